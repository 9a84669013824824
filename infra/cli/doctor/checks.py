"""What is looked at on one machine and in a deployment alike: tables, keys, the index, the model, the HTTP door."""

from __future__ import annotations

import json
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

import urllib3

from infra.cli.target import table_name
from infra.local.template import load
from shared.config import config

if TYPE_CHECKING:
    from infra.cli.doctor.findings import CheckReport

_SECONDS: Final = 5.0
_SKEW: Final = 60
_REQUESTED: Final = "Answer with the one word: here"


def check_tables(findings: CheckReport) -> None:
    """Each table of the template is there, and tells of its changes."""
    import boto3

    client = boto3.client("dynamodb")
    for definition in load().tables:
        name = table_name(definition)
        with findings.guard(name, "Deploy again, or start 'kho serve' once: both make the tables."):
            described = client.describe_table(TableName=name)["Table"]
            streams = described.get("StreamSpecification", {}).get("StreamEnabled", False)
            if described["TableStatus"] != "ACTIVE":
                findings.wrong(name, f"It is {described['TableStatus']}.", "Wait, and look again.")
            elif "StreamSpecification" in definition.creation and not streams:
                findings.wrong(name, "It has no stream: workers never hear of it.", "Deploy the template again.")
            else:
                findings.good(name, "It is there.")


def check_keys(findings: CheckReport, how: str) -> None:
    """Somebody can call."""
    from shared.access.api_keys import ApiKeys
    from shared.dynamodb import Table

    with findings.guard("Keys", "See the tables above."):
        active = sum(
            key.state(time.time()) == "active" for key in ApiKeys(Table(config().access_table)).list_keys(None)
        )
        if active:
            findings.good("Keys", f"{active} can be used.")
        elif config().oidc_issuer:
            findings.note("Keys", "There is none: only tokens open the doors.")
        else:
            findings.note("Keys", "There is none: where keys are required, nobody can call.", f"Make one: {how}")


def check_index(findings: CheckReport) -> None:
    """Texts can be embedded, and the index answers."""
    from shared.knowledge.embedding import embedder

    with findings.guard("Embedding", "Correct KHO_EMBEDDER and KHO_EMBEDDING_MODEL, or ask for access to the model."):
        started = time.perf_counter()
        embedder().question("kho")
        took = (time.perf_counter() - started) * 1000
        findings.good("Embedding", f"{embedder().space.model} embeds a question in {took:.0f} ms.")
        _check_qdrant(findings)


def _check_qdrant(findings: CheckReport) -> None:
    from shared.knowledge.index import knowledge_index

    where = config().qdrant_url or config().qdrant_folder
    advice = (
        "Correct KHO_QDRANT_URL and its key, or wait for the cluster; then 'kho reindex' makes good what it missed."
    )
    with findings.guard("Qdrant", advice):
        started = time.perf_counter()
        knowledge_index().count("doctor")
        findings.good("Qdrant", f"{where} answers in {(time.perf_counter() - started) * 1000:.0f} ms.")


def check_model(findings: CheckReport) -> None:
    """The language model answers, where there is one."""
    from shared.language_model import language_model

    with findings.guard("Model", "Correct KHO_MODEL…; for Bedrock, ask for access to the model in its console."):
        model = language_model()
        if model is None:
            findings.note("Model", "None is configured: answers are extracts, and summaries are not made.")
            return
        started = time.perf_counter()
        model.complete("You are brief.", _REQUESTED, max_tokens=8)
        findings.good("Model", f"{config().model} answers in {time.perf_counter() - started:.1f} s.")


def check_http_endpoint(findings: CheckReport, address: str, advice: str) -> None:
    """The HTTP door answers, and agrees what time it is."""
    with findings.guard("HTTP", advice):
        try:
            answer = urllib3.request("GET", f"{address}/health", timeout=_SECONDS, retries=False)
        except urllib3.exceptions.HTTPError as error:
            findings.wrong("HTTP", f"{address} does not answer ({type(error).__name__}).", advice)
            return
        if answer.status != 200:
            findings.wrong("HTTP", f"{address}/health answers {answer.status}.", advice)
            return
        servers: dict[str, Any] = json.loads(answer.data)
        findings.good("HTTP", f"{address} answers, with {len(servers['servers'])} servers.")
        _check_clock(findings, answer.headers.get("date"))


def _check_clock(findings: CheckReport, told: str | None) -> None:
    if told is None:
        return
    skew = time.time() - parsedate_to_datetime(told).timestamp()
    if abs(skew) > _SKEW:
        findings.wrong(
            "Clock",
            f"This machine's is {abs(skew):.0f} s {'ahead' if skew > 0 else 'behind'}.",
            "Set it by NTP: signatures, tokens and deletions to come go by the time.",
        )
    else:
        findings.good("Clock", "It is right.")
