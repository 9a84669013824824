"""Checks of what every installation depends on: tables, keys, embedding, index, language model."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from shared.migrations.formats import FORMAT_KEY, TABLES, current_format, table_name
from shared.platform.config import ConfigurationError, config
from shared.platform.formats import DataTooNew, require_known_format
from shared.rpc.errors import KhoError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

State = Literal["good", "note", "wrong"]

_PROMPT: Final = "Answer with the one word: here"
_NOBODY: Final = "diagnostics"
"""A key that no item has, and a tenant that no caller has."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check, with advice if something is to be done."""

    subject: str
    state: State
    message: str
    advice: str = ""

    def to_json(self) -> dict[str, str]:
        """Return the result as `kho doctor --json` prints it."""
        return {"subject": self.subject, "state": self.state, "message": self.message, "advice": self.advice}


class CheckReport:
    """The results of all checks. Each is passed to `show` as soon as it is known.

    A report that is not `detailed` leaves out what a failure says of the installation: addresses, paths and names.
    """

    def __init__(self, show: Callable[[CheckResult], object] = lambda _result: None, *, detailed: bool = True) -> None:
        self.results: list[CheckResult] = []
        self.detailed = detailed
        self._show = show

    def good(self, subject: str, message: str) -> None:
        """Report that a check passed."""
        self._add(CheckResult(subject, "good", message))

    def note(self, subject: str, message: str, advice: str = "") -> None:
        """Report a limitation that is not an error."""
        self._add(CheckResult(subject, "note", message, advice))

    def wrong(self, subject: str, message: str, advice: str) -> None:
        """Report that a check failed."""
        self._add(CheckResult(subject, "wrong", message, advice))

    @contextmanager
    def guard(self, subject: str, advice: str) -> Iterator[None]:
        """Report an exception in the block as a failed check."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            denied = "Denied" in code or "Unauthorized" in code
            self.wrong(
                subject,
                self._line(error),
                f"Request the permission, or use another identity: {advice}" if denied else advice,
            )
        except KhoError as error:
            self.wrong(subject, error.message, advice)
        except (BotoCoreError, ConfigurationError, OSError) as error:
            self.wrong(subject, self._line(error), advice)

    @property
    def healthy(self) -> bool:
        """True if no check failed."""
        return all(each.state != "wrong" for each in self.results)

    def _line(self, error: BaseException) -> str:
        if not self.detailed:
            return f"It does not answer ({type(error).__name__})."
        return " ".join(str(error).split()) or type(error).__name__

    def _add(self, result: CheckResult) -> None:
        self.results.append(result)
        self._show(result)


def check_stores(report: CheckReport) -> None:
    """Check that each table answers, and has the format of this program."""
    for table in TABLES:
        subject = f"Table {table}"
        with report.guard(subject, "Run 'kho doctor' with the operator's credentials: it tells more of each table."):
            check_format(report, subject, table)


def check_format(report: CheckReport, subject: str, table: str) -> None:
    """Compare the format of a table with this program's."""
    from shared.aws.dynamodb import Table

    item = Table(table_name(table)).get(*FORMAT_KEY) or {}
    try:
        number = require_known_format("The table", item, current_format(table))
    except DataTooNew as error:
        report.wrong(subject, f"{error}.", "Deploy or install that version.")
        return
    if number < current_format(table):
        report.note(
            subject,
            f"It has format {number}; this program's is {current_format(table)}.",
            "Run: kho migrate, with --stack <name> for a deployed stack.",
        )
    else:
        report.good(subject, f"It is active, with format {number}.")


def check_keys(report: CheckReport, how: str, tenant_id: str | None = None) -> None:
    """Check that there is an active API key, of one tenant or of any, or an identity provider."""
    from shared.access.api_keys import ApiKeys
    from shared.aws.dynamodb import Table

    with report.guard("Keys", "See the tables above."):
        api_keys = ApiKeys(Table(config().access_table)).list_keys(tenant_id)
        active = sum(key.state(time.time()) == "active" for key in api_keys)
        if active:
            report.good("Keys", f"{active} active.")
        elif config().oidc_issuer:
            report.note("Keys", "There are none: callers need tokens of the identity provider.")
        else:
            report.note("Keys", "There are none: calls fail if keys are required.", f"Create one: {how}")


def check_index(report: CheckReport) -> None:
    """Check that the embedder and the index respond."""
    from shared.search.embedding import embedder

    advice = "Correct KHO_EMBEDDER and KHO_EMBEDDING_MODEL, or request access to the model."
    with report.guard("Embedding", advice):
        started = time.perf_counter()
        embedder().question("kho")
        milliseconds = (time.perf_counter() - started) * 1000
        report.good("Embedding", f"{embedder().space.model} embeds a query in {milliseconds:.0f} ms.")
        _check_qdrant(report)


def _check_qdrant(report: CheckReport) -> None:
    from shared.search.index import knowledge_index

    location = (config().qdrant_url or config().qdrant_folder) if report.detailed else "It"
    advice = "Correct KHO_QDRANT_URL and its key, or wait for the cluster; then run 'kho reindex'."
    with report.guard("Qdrant", advice):
        started = time.perf_counter()
        knowledge_index().count(_NOBODY)
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
