"""The checks for one machine and for deployments: tables, keys, index, model, HTTP endpoint."""

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
    from infra.cli.doctor.report import CheckReport

_TIMEOUT_SECONDS: Final = 5.0
_MAX_SKEW_SECONDS: Final = 60
_PROMPT: Final = "Answer with the one word: here"


def check_tables(report: CheckReport) -> None:
    """Check that each table of the template exists and has its stream."""
    from shared.dynamodb import client

    for definition in load().tables:
        name = table_name(definition)
        with report.guard(name, "Deploy again, or start 'kho serve' once: both create the tables."):
            table = client().describe_table(TableName=name)["Table"]
            has_stream = table.get("StreamSpecification", {}).get("StreamEnabled", False)
            if table["TableStatus"] != "ACTIVE":
                report.wrong(name, f"The table is {table['TableStatus']}.", "Wait, and check again.")
            elif "StreamSpecification" in definition.creation and not has_stream:
                report.wrong(name, "The table has no stream for the workers.", "Deploy the template again.")
            else:
                report.good(name, "The table is active.")


def check_keys(report: CheckReport, how: str) -> None:
    """Check that there is an active API key or an identity provider."""
    from shared.access.api_keys import ApiKeys
    from shared.dynamodb import Table

    with report.guard("Keys", "See the tables above."):
        active = sum(
            key.state(time.time()) == "active" for key in ApiKeys(Table(config().access_table)).list_keys(None)
        )
        if active:
            report.good("Keys", f"{active} active.")
        elif config().oidc_issuer:
            report.note("Keys", "There are none: callers need tokens of the identity provider.")
        else:
            report.note("Keys", "There are none: calls fail if keys are required.", f"Create one: {how}")


def check_index(report: CheckReport) -> None:
    """Check that the embedder and the index respond."""
    from shared.knowledge.embedding import embedder

    advice = "Correct KHO_EMBEDDER and KHO_EMBEDDING_MODEL, or request access to the model."
    with report.guard("Embedding", advice):
        started = time.perf_counter()
        embedder().question("kho")
        milliseconds = (time.perf_counter() - started) * 1000
        report.good("Embedding", f"{embedder().space.model} embeds a query in {milliseconds:.0f} ms.")
        _check_qdrant(report)


def _check_qdrant(report: CheckReport) -> None:
    from shared.knowledge.index import knowledge_index

    location = config().qdrant_url or config().qdrant_folder
    advice = "Correct KHO_QDRANT_URL and its key, or wait for the cluster; then run 'kho reindex'."
    with report.guard("Qdrant", advice):
        started = time.perf_counter()
        knowledge_index().count("doctor")
        report.good("Qdrant", f"{location} answers in {(time.perf_counter() - started) * 1000:.0f} ms.")


def check_model(report: CheckReport) -> None:
    """Check that the language model responds, if one is configured."""
    from shared.language_model import language_model

    with report.guard("Model", "Correct KHO_MODEL…; for Bedrock, request access to the model in its console."):
        model = language_model()
        if model is None:
            report.note("Model", "None is configured: answers are extracts, and there are no summaries.")
            return
        started = time.perf_counter()
        model.complete("You are brief.", _PROMPT, max_tokens=8)
        report.good("Model", f"{config().model} answers in {time.perf_counter() - started:.1f} s.")


def check_http_endpoint(report: CheckReport, address: str, advice: str) -> None:
    """Check that the HTTP endpoint responds, and compare its clock with this machine's."""
    with report.guard("HTTP", advice):
        try:
            response = urllib3.request("GET", f"{address}/health", timeout=_TIMEOUT_SECONDS, retries=False)
        except urllib3.exceptions.HTTPError as error:
            report.wrong("HTTP", f"{address} does not answer ({type(error).__name__}).", advice)
            return
        if response.status != 200:
            report.wrong("HTTP", f"{address}/health returns {response.status}.", advice)
            return
        health: dict[str, Any] = json.loads(response.data)
        report.good("HTTP", f"{address} answers, with {len(health['servers'])} servers.")
        _check_clock(report, response.headers.get("date"))


def _check_clock(report: CheckReport, date: str | None) -> None:
    if date is None:
        return
    skew = time.time() - parsedate_to_datetime(date).timestamp()
    if abs(skew) > _MAX_SKEW_SECONDS:
        report.wrong(
            "Clock",
            f"This machine's clock is {abs(skew):.0f} s {'ahead' if skew > 0 else 'behind'}.",
            "Synchronise it by NTP: signatures, tokens and scheduled deletions depend on the time.",
        )
    else:
        report.good("Clock", "It is correct.")
