"""tool-server/system/check: the findings of `kho doctor` that a function can make."""

from __future__ import annotations

import pytest

from shared.platform.config import config
from shared.rpc.caller import Caller, Role
from tool_server import system_check

pytestmark = pytest.mark.usefixtures("indexing")


def findings(role: Role) -> dict[str, dict[str, str]]:
    """Return the findings by subject."""
    caller = Caller("tester", frozenset({role}), "acme")
    call = {"method": "tool-server/system/check", "params": {}, "caller": caller.record(), "correlation_id": "c"}
    answer = system_check.handler(call, None)
    if "error" in answer:
        raise PermissionError(answer["error"]["code"])
    return {each["subject"]: each for each in answer["result"]["findings"]}


def test_every_dependency_is_checked() -> None:
    """An admin learns of each table, the keys, the embedding, the index and the model whether it works."""
    found = findings("admin")
    assert found.keys() >= {"Table memory", "Table documents", "Keys", "Embedding", "Qdrant", "Model"}
    assert [each for each in found.values() if each["state"] == "wrong"] == []
    assert found["Model"]["state"] == "note"


def test_failure_is_told_without_names_of_the_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that does not answer is a finding with advice, which reveals no address, name or path."""
    monkeypatch.setattr(config(), "memory_table", "absent-table-of-acme")
    found = findings("admin")["Table memory"]
    assert found["state"] == "wrong"
    assert found["advice"]
    assert "absent-table" not in found["message"]


@pytest.mark.parametrize("role", ["reader", "writer", "operator"])
def test_only_admins_may_check(role: Role) -> None:
    """Other roles are refused."""
    with pytest.raises(PermissionError, match="NOT_ALLOWED"):
        findings(role)
