"""A server whose clock is right, two days wrong, and right again, on one data folder.

All cases share the three starts of a direction. The second server is killed: its leases and unread changes stay.
"""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pytest

from tests.helpers.api_client import ApiClient, make_key
from tests.helpers.board_requests import random_address
from tests.helpers.kho_server import KhoServer
from tests.helpers.oauth_client import PUBLIC_URL, OAuthTestClient
from tests.helpers.oauth_person import Person
from tests.helpers.wait import until
from tests.helpers.webhook_receiver import HOST, URL, webhook_receiver
from tests.suites.clocks.faketime import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.helpers.webhook_receiver import WebhookReceiver

DIRECTIONS: Final = {"two days ahead": 2, "two days behind": -2}
FERNS: Final = "Ferns are watered at dawn."
WHEN: Final = "When are ferns watered?"


class Machine:
    """A data folder, and the server that runs on it with some clock."""

    def __init__(self, folder: Path, receiver: WebhookReceiver, days: int) -> None:
        self.receiver, self.days = receiver, days
        self._variables = {
            "KHO_PUBLIC_URL": PUBLIC_URL,
            "KHO_TEST_RECEIVER": json.dumps(receiver.address),
            "KHO_TEST_AUTHORITY": str(folder / f"{HOST}.authority.pem"),
        }
        self.server = KhoServer(
            folder / "data", "--auth", "required", program="tests.suites.clocks.program", environment=self._variables
        )
        self.key = make_key(self.server.data, "acme", "operator")["key"]

    @property
    def client(self) -> ApiClient:
        """Return the tenant's operator."""
        return ApiClient(self.server, self.key)

    @property
    def is_ahead(self) -> bool:
        """Return True if the wrong clock is ahead."""
        return self.days > 0

    def restart(self, days: int) -> None:
        """Start the server again, with a clock that is wrong by so many days."""
        self.server._environment = self.server._environment | {"LD_PRELOAD": ""} | environment(days)
        self.server.http.clear()
        self.server.start()


class Case:
    """A promise, and what is done for it before, during and after the time of the wrong clock."""

    name: str

    def before(self, machine: Machine) -> None:
        """Prepare while the clock is right."""

    def during(self, machine: Machine) -> None:
        """Act while the clock is wrong."""

    def after(self, machine: Machine) -> str:
        """Check while the clock is right again. Return the outcome."""
        raise NotImplementedError


class KeyCalls(Case):
    """Buckets of a key and a tenant."""

    name = "Calls with a key"

    def during(self, machine: Machine) -> None:
        machine.client.result("memory-server/resources/list")

    def after(self, machine: Machine) -> str:
        machine.client.result("memory-server/resources/list")
        return "answered"


class AnonymousCalls(Case):
    """Buckets of an address and of all strangers."""

    name = "Calls without a key"

    def during(self, machine: Machine) -> None:
        ApiClient(machine.server, None).result("recall-kit/query_experiences", keywords="ferns")

    def after(self, machine: Machine) -> str:
        self.during(machine)
        return "answered"


class SignIn(Case):
    """Grants: their tokens, refreshes and lifetimes."""

    def __init__(self) -> None:
        self._tokens: dict[str, Any] = {}
        self._client_id = ""

    def sign_in(self, machine: Machine) -> None:
        client = self._oauth(machine)
        assert client.register().status == 201
        self._client_id = client.client_id
        self._tokens = client.tokens(machine.key)
        assert self._may_call(machine)

    def _oauth(self, machine: Machine) -> OAuthTestClient:
        return OAuthTestClient(Person(machine.server).send, PUBLIC_URL, self._client_id)

    def _may_call(self, machine: Machine) -> bool:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        headers = {"authorization": f"Bearer {self._tokens['access_token']}", "accept": "application/json"}
        status = machine.server.post("/mcp", json.dumps(body).encode(), **headers).status
        assert status in (200, 401)
        return status == 200

    def _refreshes(self, machine: Machine) -> bool:
        answer = self._oauth(machine).refresh(self._tokens["refresh_token"])
        if answer.status != 200:
            assert answer.json["error"] == "invalid_grant"
            return False
        self._tokens = answer.json
        return self._may_call(machine)


class EarlierSignIn(SignIn):
    """A sign-in of the right clock."""

    name = "A sign-in of before"

    def before(self, machine: Machine) -> None:
        self.sign_in(machine)

    def during(self, machine: Machine) -> None:
        assert not self._may_call(machine)

    def after(self, machine: Machine) -> str:
        # A clock that is ahead for more than a minute sweeps the token away, which lives an hour.
        assert self._may_call(machine) or machine.is_ahead
        assert self._refreshes(machine)
        return "refused meanwhile, then goes on"


class LaterSignIn(SignIn):
    """A sign-in of the wrong clock."""

    name = "A sign-in meanwhile"

    def during(self, machine: Machine) -> None:
        self.sign_in(machine)

    def after(self, machine: Machine) -> str:
        assert not self._may_call(machine), "a token outlives no hour"
        assert self._refreshes(machine) is not machine.is_ahead
        self.sign_in(machine)
        return "the person signs in again" if machine.is_ahead else "the token has expired, the refresh goes on"


class Board:
    """A stock board."""

    def __init__(self) -> None:
        self._headers = {"device-id": random_address(), "client-id": str(uuid4())}

    def check_in(self, machine: Machine) -> Any:
        """Return the answer to a check-in."""
        response = machine.server.post("/ota/", b"{}", **self._headers)
        assert response.status == 200, response.data
        return response.json()

    def code(self, machine: Machine) -> str:
        """Return the code that the board shows."""
        code: str = self.check_in(machine)["activation"]["code"]
        assert code != "000000"
        return code


def claim(machine: Machine, code: str) -> int:
    """Claim a code, and return the status."""
    return machine.client.direct("device-server/devices/claim", code=code, name="Kitchen")[0]


class CheckIn(Case):
    """Activation codes, their places, and the buckets of unknown boards."""

    name = "A board that waits to be claimed"

    def __init__(self) -> None:
        self._board = Board()
        self._code = ""

    def during(self, machine: Machine) -> None:
        self._code = self._board.code(machine)

    def after(self, machine: Machine) -> str:
        assert claim(machine, self._code) == 404, "a code outlives no quarter of an hour"
        assert claim(machine, self._board.code(machine)) == 200
        assert "mqtt" in self._board.check_in(machine)
        return "shows a new code, which is claimed"


class Claim(Case):
    """The password of a claimed board."""

    name = "A board that was claimed meanwhile"

    def __init__(self) -> None:
        self._board = Board()
        self._password = ""

    def during(self, machine: Machine) -> None:
        assert claim(machine, self._board.code(machine)) == 200
        self._password = self._board.check_in(machine)["mqtt"]["password"]

    def after(self, machine: Machine) -> str:
        assert self._board.check_in(machine)["mqtt"]["password"] == self._password
        return "keeps its password"


class Devices(Case):
    """Presence, sessions, catalogues and calls of devices."""

    name = "Calls of a device that connects again"

    def _call(self, machine: Machine) -> None:
        devices = machine.client.result("device-server/devices/simulate")["devices"]
        lamp = {"device_id": next(each["device_id"] for each in devices if each["name"] == "Desk lamp")}
        until(lambda: machine.client.result("device-server/devices/get", **lamp)["connected"])
        power = {"name": "self.lamp.set_power", "arguments": {"on": True}}
        machine.client.result("device-server/tools/call", **lamp, **power)

    def before(self, machine: Machine) -> None:
        self._call(machine)

    def during(self, machine: Machine) -> None:
        self._call(machine)

    def after(self, machine: Machine) -> str:
        self._call(machine)
        return "answered"


class WebhookEvents(Case):
    """The outbox: settings, leases and retries. The receiver's certificate is not valid at the wrong time."""

    name = "Events for a webhook that was set meanwhile"

    def during(self, machine: Machine) -> None:
        machine.client.result("device-server/webhooks/set", url=URL, events=["presence"])
        machine.client.result("device-server/devices/simulate")
        until(lambda: machine.client.result("device-server/webhooks/get")["waiting_devices"])

    def after(self, machine: Machine) -> str:
        machine.client.result("device-server/devices/simulate")
        until(machine.receiver.events)
        dropped = machine.client.result("device-server/webhooks/get")["dropped"]
        assert bool(dropped) is not machine.is_ahead
        return (
            "delivered" if machine.is_ahead else "delivered; those of meanwhile are over a day old, dropped and counted"
        )


class Ingestion(Case):
    """Jobs, their leases and their expiry."""

    name = "An ingestion that was killed"

    def __init__(self) -> None:
        self._job = ""

    def during(self, machine: Machine) -> None:
        documents = [{"path": f"{number}.md", "content": f"# {number}\n\n{FERNS * 40}"} for number in range(40)]
        machine.client.result(
            "research-agent/manage_collections", action="create", collection_name="notes", collection_type="fundamental"
        )
        answer = machine.client.result("research-agent/ingest_documents", collection="notes", documents=documents)
        self._job = answer["job_id"]

    def after(self, machine: Machine) -> str:
        def job() -> Any:
            return machine.client.result("research-agent/get_ingestion", job_id=self._job)

        until(lambda: job()["status"] not in ("queued", "running"))
        ended = job()
        assert (ended["status"], ended["processed"]) == ("done", 40), ended
        return "goes on and ends"


class Documents(Case):
    """Base of the cases of documents."""

    def _create(self, machine: Machine, document_id: str, body: str = FERNS, **params: Any) -> Any:
        return machine.client.result(
            "agent-data/create_document",
            document_id=document_id,
            parent_id="root",
            content={"mime_type": "text/plain", "body": body},
            metadata={"tags": [document_id]},
            **params,
        )

    def _delete(self, machine: Machine, document_id: str, **params: Any) -> None:
        machine.client.result("agent-data/delete_document", document_id=document_id, **params)

    def _exists(self, machine: Machine, document_id: str) -> bool:
        return machine.client.direct("agent-data/get_document", document_id=document_id)[0] == 200

    def _is_found(self, machine: Machine, document_id: str) -> bool:
        question = {"query": WHEN, "filters": {"tags": [document_id]}}
        return bool(machine.client.result("agent-data/query_knowledge", **question)["context"])


class ScheduledDeletion(Documents):
    """A deletion that a caller dated: it takes effect by the clock, and destroys nothing."""

    name = "A document with `delete_at` in a day"

    def before(self, machine: Machine) -> None:
        self._create(machine, "scheduled")
        self._delete(machine, "scheduled", delete_at=(datetime.now(UTC) + timedelta(days=1)).isoformat())

    def during(self, machine: Machine) -> None:
        assert self._exists(machine, "scheduled") is not machine.is_ahead
        assert self._is_found(machine, "scheduled") is not machine.is_ahead

    def after(self, machine: Machine) -> str:
        assert self._exists(machine, "scheduled")
        assert self._is_found(machine, "scheduled")
        return "hidden meanwhile, then read and found" if machine.is_ahead else "read and found throughout"


class Deletion(Documents):
    """A deletion that took effect when it was made."""

    name = "A document that was deleted meanwhile"

    def during(self, machine: Machine) -> None:
        self._create(machine, "deleted")
        self._delete(machine, "deleted")

    def after(self, machine: Machine) -> str:
        assert not self._exists(machine, "deleted")
        listed = machine.client.result("agent-data/list_deleted")["documents"]
        assert "deleted" in [each["document_id"] for each in listed]
        return "stays deleted, and can be restored"


class Repetition(Documents):
    """Idempotency records."""

    name = "A write that is repeated with its `request_id`"

    def during(self, machine: Machine) -> None:
        self._create(machine, "repeated", request_id="once")

    def after(self, machine: Machine) -> str:
        if machine.is_ahead:
            assert self._create(machine, "repeated", request_id="once")["replayed"]
            return "executed once"
        with pytest.raises(AssertionError, match="ALREADY_EXISTS"):
            self._create(machine, "repeated", request_id="once")
        return "the record is over, as after two days"


class UnreadChange(Documents):
    """Changes that no worker has read, and their retention."""

    name = "A document that was written just before the kill"

    def during(self, machine: Machine) -> None:
        self._create(machine, "unread", f"{FERNS} {' ' * 70_000}")

    def after(self, machine: Machine) -> str:
        until(lambda: self._is_found(machine, "unread"))
        return "indexed and found"


class Messages(Case):
    """The order of a conversation."""

    name = "Messages of before, meanwhile and after"

    def __init__(self) -> None:
        self._written: list[str] = []

    def _write(self, machine: Machine) -> None:
        for _ in range(3):
            self._written.append(f"message {len(self._written)}")
            message = {"role": "user", "content": self._written[-1]}
            machine.client.result("memory-server/memory/add_message", conversation_id="chat", **message)

    def before(self, machine: Machine) -> None:
        self._write(machine)

    def during(self, machine: Machine) -> None:
        self._write(machine)

    def after(self, machine: Machine) -> str:
        self._write(machine)
        stored = machine.client.result("memory-server/memory/get_all_messages", conversation_id="chat")
        assert [each["content"] for each in stored["messages"]] == self._written
        return "all there, in order"


CASES: Final[list[type[Case]]] = [
    KeyCalls,
    AnonymousCalls,
    EarlierSignIn,
    LaterSignIn,
    CheckIn,
    Claim,
    WebhookEvents,  # before the devices connect
    Devices,
    ScheduledDeletion,
    Deletion,
    Repetition,
    Messages,
    Ingestion,
    UnreadChange,
]


class Journey:
    """The outcomes of all cases in one direction."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._cases = {each: each() for each in CASES}
        self._failures: dict[type[Case], Exception | AssertionError] = {}
        self._outcomes: dict[type[Case], str] = {}

    @cached_property
    def outcomes(self) -> dict[type[Case], str]:
        """Return the outcomes, after the whole journey."""
        machine = self._machine
        self._go(lambda case: case.before(machine))
        machine.server.interrupt()
        machine.restart(machine.days)
        self._go(lambda case: case.during(machine))
        machine.server.kill()
        machine.restart(0)
        self._go(self._arrive)
        return self._outcomes

    def outcome(self, kind: type[Case]) -> str:
        """Return the outcome of one case. Raise what failed first in it."""
        outcomes = self.outcomes
        if kind in self._failures:
            raise self._failures[kind]
        return outcomes[kind]

    def _arrive(self, case: Case) -> None:
        self._outcomes[type(case)] = case.after(self._machine)

    def _go(self, step: Callable[[Case], None]) -> None:
        for kind, case in self._cases.items():
            if kind not in self._failures:
                try:
                    step(case)
                except Exception as error:
                    self._failures[kind] = error


@contextmanager
def journey(folder: Path, days: int) -> Iterator[Journey]:
    """Yield the journey of a new machine."""
    with webhook_receiver(folder) as receiver:
        machine = Machine(folder, receiver, days)
        with machine.server:
            yield Journey(machine)


@pytest.fixture(scope="module")
def journeys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Journey]]:
    """Yield a function that returns the journey in a direction, which is made once."""
    made: dict[str, Journey] = {}
    with ExitStack() as stack:

        def journey_in(direction: str) -> Journey:
            if direction not in made:
                folder = tmp_path_factory.mktemp("machine")
                made[direction] = stack.enter_context(journey(folder, DIRECTIONS[direction]))
            return made[direction]

        yield journey_in


@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    "direction", [pytest.param(each, marks=pytest.mark.xdist_group(each), id=each) for each in DIRECTIONS]
)
def test_wrong_clock_heals(
    journeys: Callable[[str], Journey],
    direction: str,
    kind: type[Case],
    record_property: Callable[[str, object], None],
) -> None:
    record_property("case", kind.name)
    record_property("direction", direction)
    record_property("outcome", journeys(direction).outcome(kind))
