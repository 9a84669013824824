"""Schemathesis tests a running server by its `/openapi.json`, with all its checks; each finding is explained here."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from shared.rpc.catalogue import catalogue
from tests.helpers.api_client import make_key
from tests.helpers.kho_server import KhoServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_EXAMPLES: Final = 20
"""Random requests for each operation, besides those that cover the schema's limits."""
_CEILING_SECONDS: Final = 1200
_VALID_REFUSED: Final = "positive_data_acceptance"
_INVALID_TAKEN: Final = "negative_data_rejection"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The reason for which findings of a check are no defects."""

    reason: str
    check: str
    operations: str
    """A pattern of the operations' names."""
    answer: str
    """A pattern of a text in the server's answer."""

    def covers(self, finding: Finding) -> bool:
        """Return True if it explains the finding."""
        return (
            finding.check == self.check
            and re.fullmatch(self.operations, finding.operation) is not None
            and re.search(self.answer, finding.answer) is not None
        )


EXPLANATIONS: Final = (
    Explanation(
        "no schema describes the cursors that a list has issued",
        _VALID_REFUSED,
        "POST .*",
        "is not a cursor of this list",
    ),
    Explanation(
        "the action decides which parameter it needs",
        _VALID_REFUSED,
        "POST /research-agent/manage_(collections|projects)",
        "_PARAMETER_MISSING",
    ),
    Explanation(
        "the tool decides which arguments it needs", _VALID_REFUSED, "POST /tool-server/tools/call", r"arguments\.query"
    ),
    Explanation(
        "update_mask decides which fields of a patch count, and null clears some of them alone",
        _VALID_REFUSED,
        "POST /(actions|agent-data/update_document)",
        "patch: changes nothing|is named by update_mask and cannot be cleared",
    ),
    Explanation(
        "an address is public, and of a scheme that boards and webhooks take",
        _VALID_REFUSED,
        "POST /device-server/(firmware|webhooks)/set",
        "url: ",
    ),
    Explanation(
        "OAuth defines the values of its fields, and refuses empty ones",
        _VALID_REFUSED,
        "(GET|POST) /oauth/(authorize|callback|sign-in)",
        "<title>Access to Kho</title>",
    ),
    Explanation(
        "OAuth defines redirect addresses", _VALID_REFUSED, "POST /oauth/register", "invalid_redirect_uri"
    ),
    Explanation(
        "OAuth refuses parameters that are sent twice, unknown ones too",
        _VALID_REFUSED,
        "POST /oauth/(revoke|token)",
        "A parameter is repeated",
    ),
    Explanation(
        "a device's own failure is a 502: the request has reached a simulated board, which has no such tool",
        "not_a_server_error",
        "POST /device-server/tools/call",
        "DEVICE_ERROR",
    ),
    Explanation(
        "JSON-RPC answers an invalid request by an error in an answer of status 200",
        _INVALID_TAKEN,
        "POST /jsonrpc",
        r'"error":\{"code":-32',
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """A check that failed at an operation, and the server's answer."""

    check: str
    operation: str
    answer: str


def test_findings_are_explained(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """No answer of a server is at odds with its description, but for those explained here; none is a server error."""
    record_property("generator", "schemathesis")
    record_property("version", f"schemathesis {version('schemathesis')}")
    with KhoServer(tmp_path / "data", "--auth", "required") as server:
        key = make_key(server.data, "local", "admin")["key"]
        report = tmp_path / "report"
        program = str(Path(sys.executable).with_name("schemathesis"))
        options = ["--checks", "all", "-n", str(_EXAMPLES), "--seed", "1", "--continue-on-failure", "--no-color"]
        stored = ["--report", "ndjson", "--report-dir", str(report), "--generation-database", "none"]
        done = subprocess.run(
            [program, "run", f"{server.address}/openapi.json", "-H", f"Authorization: Bearer {key}", *options, *stored],
            check=False,
            capture_output=True,
            text=True,
            timeout=_CEILING_SECONDS,
            cwd=tmp_path,
        )
    assert done.returncode in (0, 1), (done.stdout + done.stderr)[-3000:]
    (events_file,) = report.glob("*.ndjson")
    events = [json.loads(line) for line in events_file.read_text(encoding="utf-8").split("\n") if line]
    recorders = [each["ScenarioFinished"]["recorder"] for each in events if "ScenarioFinished" in each]
    findings = list(_findings(recorders))
    assert [each for each in findings if not any(known.covers(each) for known in EXPLANATIONS)] == []
    requests = sum(len(each.get("interactions", ())) for each in recorders)
    operations = len({each["label"] for each in recorders})
    assert operations > len(catalogue().methods)
    kinds = sum(any(known.covers(each) for each in findings) for known in EXPLANATIONS)
    record_property(
        "outcome", f"{requests:,} requests to {operations} operations; {kinds} kinds of findings, all explained"
    )


def _findings(recorders: list[dict[str, Any]]) -> Iterator[Finding]:
    for recorder in recorders:
        for case, checks in recorder.get("checks", {}).items():
            request = recorder["cases"][case]["value"]
            operation = f"{request['method']} {request['path']}"
            response = (recorder["interactions"].get(case) or {}).get("response") or {}
            content = (response.get("content") or {}).get("$base64", "")
            answer = base64.b64decode(content).decode("utf-8", "replace")
            for check in checks:
                if check["status"] != "success":
                    yield Finding(check["name"], operation, answer)
