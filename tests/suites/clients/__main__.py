"""Run every client, or with `--smoke` the quick ones, and keep the tables of what they showed in docs/clients.md."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.suites.clients.clients import CLIENTS, HERE, SDK
from tests.suites.clients.plan import planned
from tests.suites.clients.test_clients import is_shown

DOCUMENT: Final = Path(__file__).resolve().parents[3] / "docs" / "clients.md"
BEGIN: Final = "<!-- clients: made by `make clients` -->"
END: Final = "<!-- /clients -->"
_LONGEST: Final = 400


class Collector:
    """A pytest plugin that collects what each client showed its model."""

    def __init__(self) -> None:
        self.outcomes: dict[str, dict[str, Any]] = {}
        self.generators: list[list[str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the outcome of one client."""
        properties = dict(report.user_properties)
        if report.when == "call" and "client" in properties:
            self.outcomes[str(properties["client"])] = properties
        if report.when == "call" and "generator" in properties:
            cells = (properties["generator"], properties["version"], properties.get("outcome", "**failed**"))
            self.generators.append([str(each) for each in cells])


def main(arguments: list[str]) -> int:
    """Run the clients, and write the tables after a whole run; return pytest's exit code."""
    test = HERE / "test_clients.py"
    quick = [f"{test}::test_client_does_the_plan[{each.title}]" for each in CLIENTS if each.is_quick]
    chosen = quick if arguments == ["--smoke"] else [str(HERE), *arguments]
    collector = Collector()
    code = pytest.main([*chosen, "-n", "2", "-p", "no:cacheprovider"], plugins=[collector])
    if not arguments and code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        text = DOCUMENT.read_text(encoding="utf-8")
        before, rest = text.split(BEGIN)
        _, after = rest.split(END)
        generators = _table(
            [["Generators and linters of OpenAPI", "Versions", "Outcome"], ["---"] * 3, *sorted(collector.generators)]
        )
        outcomes = collector.outcomes
        tables = "\n\n".join((_matrix(outcomes), _texts(outcomes), *_spoiled(outcomes), generators))
        DOCUMENT.write_text(f"{before}{BEGIN}\n{tables}\n{END}{after}", encoding="utf-8")
    return int(code)


def _matrix(outcomes: dict[str, dict[str, Any]]) -> str:
    lines = [
        ["Client, and the API of its model", "Versions", "Tools", "Calls", "A device's `true`", "Errors"],
        ["---"] * 6,
    ]
    plan = planned("")
    for client in CLIENTS:
        outcome = outcomes.get(client.title, {"shown": {}, "tools": ""})
        shown = outcome["shown"]
        told = {call.label: call.label in shown and _is_told(call, shown[call.label]) for call in plan}
        failures = [told[call.label] for call in plan if call.fails]
        calls = [told[call.label] for call in plan[:3]]
        lines.append(
            [
                client.title,
                client.version(),
                str(outcome["tools"]),
                f"{sum(calls)} of {len(calls)}",
                "a success" if told[plan[3].label] else "**not a success**",
                f"{sum(failures)} of {len(failures)}",
            ]
        )
    return _table(lines)


def _is_told(call: Any, text: str) -> bool:
    """Return True if the text has the planned words, which differ between runs in a document's id alone."""
    return (call.label == "a new document" and "ferns-" in text) or is_shown(call, text)


def _texts(outcomes: dict[str, dict[str, Any]]) -> str:
    shown = outcomes.get(SDK.title, {"shown": {}})["shown"]
    lines = [["Error", "Text that the model gets"], ["---"] * 2]
    lines += [[call.label, _cell(shown.get(call.label, ""))] for call in planned("") if call.fails]
    return _table(lines)


def _spoiled(outcomes: dict[str, dict[str, Any]]) -> list[str]:
    lines = [
        [client.title, label, reason, _cell(outcomes.get(client.title, {"shown": {}})["shown"].get(label, ""))]
        for client in CLIENTS
        for label, reason in client.spoils.items()
    ]
    return [
        _table([["Client", "Call", "What the client does", "Text that its model gets"], ["---"] * 4, *lines])
    ] * bool(lines)


def _cell(text: str) -> str:
    return " ".join(text[:_LONGEST].replace("|", "\\|").split())


def _table(lines: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
