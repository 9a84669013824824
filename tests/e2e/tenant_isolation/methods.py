"""What a tenant can have, method by method: how another asks for it, how it is made, and what its owner sees of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.e2e.tenant_isolation import conversations, devices, documents, knowledge

if TYPE_CHECKING:
    from tests.e2e.tenant_isolation.case import IsolationCase

CASES: dict[str, list[IsolationCase]] = documents.CASES | conversations.CASES | knowledge.CASES | devices.CASES
WITHOUT_DATA = {"tool-server/tools/list", "tool-server/tools/call"}
"""Methods that keep nothing of any tenant."""
EVERYONES = {
    f"recall-kit/{action}_experience{'s' if action == 'query' else ''}"
    for action in ("query", "submit", "get", "update", "delete", "restore")
}
"""Methods of what all tenants share."""
