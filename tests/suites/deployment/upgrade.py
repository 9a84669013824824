"""`make deploy-local FROM=<revision>`: the stack of a revision becomes this checkout's while a client goes on writing.

The stack uses the tests' Qdrant, so that each worker of a stream has work.
"""

from __future__ import annotations

import math
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import urllib3

from shared.devices import keys as device_keys
from shared.documents import keys as document_keys
from tests.helpers.qdrant_server import running_qdrant
from tests.helpers.wait import CEILING_SECONDS, until
from tests.suites.deployment.emulator import STACK, add_routes, client, running_emulator, without_what_it_lacks
from tests.suites.deployment.sam_build import build_clone
from tests.suites.deployment.stack import TENANT, Stack
from tests.suites.deployment.stream_results import (
    deliver_failed_again,
    items,
    record_counts,
    table_name,
    unprocessed,
    unread_records,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_KEPT: Final = (
    "AWS::ApiGatewayV2::Api",
    "AWS::DynamoDB::Table",
    "AWS::Lambda::EventSourceMapping",
    "AWS::SecretsManager::Secret",
    "AWS::SQS::Queue",
)
"""Types of resources with data, an address, or a position in a stream, which a replacement would lose."""
_ROUNDS: Final = 20
"""The rounds that the client writes before the update, and after it."""
_PATHS: Final = [f"{number}.md" for number in range(101)]
"""So many that a job removes them."""


def upgrade(revision: str) -> list[str]:
    """Build and deploy a revision, and update it to this checkout. Return the problems."""
    with (
        build_clone(for_this_machine=True, revision=revision) as old,
        build_clone(for_this_machine=True) as new,
        TemporaryDirectory(prefix="kho-deployment-") as folder,
        running_qdrant() as qdrant,
        running_emulator(Path(folder)) as url,
    ):
        checkout = old.parents[1]
        subprocess.run(["make", "setup"], cwd=checkout, check=True, stdout=subprocess.DEVNULL)
        stack = Stack(url, QdrantUrl=qdrant.url, Embedder="qdrant", Reranker="none")
        return upgrade_stack(stack, checkout, old, new)


def upgrade_stack(stack: Stack, checkout: Path, old: Path, new: Path) -> list[str]:
    """Deploy the build of an older checkout, and update it to the new build. Return the problems."""
    stack.deploy(without_what_it_lacks(old / "template.yaml")[0])
    stack.api = add_routes(stack.url)
    resources = _resources(stack.url)
    writer = _Writer(stack, stack.create_key(checkout))
    for _ in range(_ROUNDS):
        writer.write()
    writer.empty_bin()
    template, missing = without_what_it_lacks(new / "template.yaml")
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(writer.run)
        try:
            stack.deploy(template)
        finally:
            writer.end = writer.rounds + _ROUNDS
        writing.result()
    print(f"{writer.rounds} rounds were written, {writer.end - 2 * _ROUNDS} of them during the update.")
    print(*(f"Repeated {times} times: {problem}" for problem, times in writer.refusals.most_common()), sep="\n")
    kept = _resources(stack.url)
    problems = [f"{name} was replaced" for name, id_ in resources.items() if kept.get(name) != id_]
    print(f"There were {len(resources)} tables, mappings, queues, secrets and APIs. {len(problems)} were replaced.")
    problems += _commands(stack) + _rest(lambda: unread_records(stack.url))
    counts = (f"{function} {number}" for function, number in record_counts(stack.url).items())
    print(f"Stream records: {', '.join(counts)}. Failed, and delivered again: {deliver_failed_again(stack.url)}.")
    problems += _rest(lambda: unprocessed(stack.url)) + writer.lost()
    print(f"Not emulated: {', '.join(missing) or 'nothing'}")
    return problems


@dataclass(slots=True)
class _Writer:
    """A client that writes in rounds, and repeats each call until it is accepted."""

    stack: Stack
    key: dict[str, str]
    rounds: int = 0
    end: float = math.inf
    """The number of rounds to write."""
    refusals: Counter[str] = field(default_factory=Counter)

    def run(self) -> None:
        """Write round after round."""
        while self.rounds < self.end:
            self.write()

    def write(self) -> None:
        """Write one round: something for each worker of a stream."""
        number, name = self.rounds, _document(self.rounds)
        if not number:
            self("recall-kit/submit_experience", title="Brown ferns", problem_description="Sun.", solution="Shade.")
            self("research-agent/manage_collections", action="create", collection_name="notes")
        document = {"document_id": name, "parent_id": "root", "content": {"body": f"Body {number}."}}
        self("agent-data/create_document", **document, request_id=f"create-{number}")
        if _is_deleted(number):
            self("agent-data/delete_document", document_id=name, request_id=f"delete-{number}")
        for conversation in ("kept", "cleared"):
            message = {"role": "user", "content": f"Message {number}."}
            self("memory-server/memory/add_message", conversation_id=conversation, **message)
        self("memory-server/memory/clear", conversation_id="cleared")
        self("recall-kit/query_experiences", keywords="brown ferns")
        self("research-agent/ingest_documents", collection="notes", remove=_PATHS)
        for action in ("create", "delete"):
            self("research-agent/manage_collections", action=action, collection_name=f"dropped-{number}")
        self._store_event(f"lamp-{number}")
        self.rounds += 1

    def empty_bin(self) -> None:
        """Delete the entries of the bin, as if it was not there yet when the documents were deleted."""
        store, partition = client("dynamodb", self.stack.url), document_keys.deleted_documents(TENANT)
        for item in items(self.stack.url, "Documents"):
            if item["pk"] == partition:
                key = {name: {"S": item[name]} for name in ("pk", "sk")}
                store.delete_item(TableName=table_name(self.stack.url, "Documents"), Key=key)

    def lost(self) -> list[str]:
        """Return what cannot be read back."""
        kept = self._all("memory-server/memory/get_all_messages", "messages", conversation_id="kept")
        texts = {each["content"] for each in kept}
        deleted = {each["document_id"] for each in self._all("agent-data/list_deleted", "documents")}
        experiences = self("recall-kit/query_experiences", keywords="brown ferns")["data"]["experiences"]
        counts = [each["query_count"] for each in experiences]
        problems = [] if sum(counts) >= self.rounds else [f"{self.rounds} queries were counted as {counts}"]
        for number in range(self.rounds):
            name, is_deleted = _document(number), _is_deleted(number)
            if f"Message {number}." not in texts:
                problems.append(f"message {number} is lost")
            if (name in deleted) != is_deleted:
                problems.append(f"{name} is {'not ' * is_deleted}in list_deleted")
            elif not is_deleted:
                body = self("agent-data/get_document", document_id=name)["content"]["body"]
                problems += [f"{name} is lost"] * (body != f"Body {number}.")
        return problems

    def __call__(self, method: str, /, **params: Any) -> Any:
        """Call a method until it is accepted."""
        problem, deadline = "", time.monotonic() + CEILING_SECONDS
        while time.monotonic() < deadline:
            try:
                response = self.stack.request(f"/{method}", params, self.key)
            except urllib3.exceptions.HTTPError as error:
                problem = f"{method}: {type(error).__name__}"
            else:
                # A refused call may have been carried out: then the repeated one is refused as a duplicate.
                if response.status == 200 or (problem and response.status < 500):
                    return response.json()
                problem = f"{method}: {response.status} {response.data.decode()[:100]}"
                assert response.status >= 500, problem
            self.refusals[problem] += 1
        raise AssertionError(problem)

    def _all(self, method: str, name: str, **params: Any) -> Iterator[Any]:
        """Yield the items of all pages."""
        while True:
            page = self(method, **params, limit=100)
            yield from page[name]
            if not page.get("next_cursor"):
                return
            params["cursor"] = page["next_cursor"]

    def _store_event(self, device_id: str) -> None:
        """Store an event as a device's function does. Without a webhook, the delivery deletes it."""
        key = (device_keys.outbox(TENANT, device_id), device_keys.event(str(int(time.time() * 1000)), "0"))
        item = {name: {"S": value} for name, value in zip(("pk", "sk", "body"), (*key, "{}"), strict=True)}
        client("dynamodb", self.stack.url).put_item(TableName=table_name(self.stack.url, "Devices"), Item=item)


def _commands(stack: Stack) -> list[str]:
    """Migrate, and print what `kho doctor` finds: it calls what the emulator lacks broken. Return the problems."""
    migrations = [stack.kho("migrate") for _ in range(2)]
    for process in migrations:
        print(f"$ kho migrate\n{process.stdout}{process.stderr}".rstrip())
    lines = stack.kho("doctor").stdout.splitlines()
    print("$ kho doctor", *(line for line in lines if not line.startswith("✓")), sep="\n")
    return ["kho migrate failed" for process in migrations if process.returncode]


def _document(number: int) -> str:
    return f"document-{number}"


def _is_deleted(number: int) -> bool:
    return number % 3 == 0


def _resources(url: str) -> dict[str, str]:
    """Return the ids of the resources that an update must not replace, by their logical ids."""
    pages = client("cloudformation", url).get_paginator("list_stack_resources").paginate(StackName=STACK)
    return {
        each["LogicalResourceId"]: each["PhysicalResourceId"]
        for page in pages
        for each in page["StackResourceSummaries"]
        if each["ResourceType"] in _KEPT
    }


def _rest(problems: Callable[[], list[str]]) -> list[str]:
    """Wait until there are no problems, as long as they become fewer. Return the rest."""
    rest = problems()
    while rest:
        before = len(rest)
        try:
            until(lambda: len(problems()) < before)  # noqa: B023 - it is called at once
        except AssertionError:
            break
        rest = problems()
    return rest
