"""Isolation cases by method."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.e2e.tenant_isolation import conversations, devices, documents, knowledge

if TYPE_CHECKING:
    from tests.e2e.tenant_isolation.case import IsolationCase

CASES: dict[str, list[IsolationCase]] = documents.CASES | conversations.CASES | knowledge.CASES | devices.CASES
WITHOUT_DATA = {
    "tool-server/tools/list",
    "tool-server/tools/call",
    "tool-server/system/caller",
    "tool-server/system/check",
}
"""Methods without stored data of tenants."""
SHARED = {
    f"recall-kit/{action}_experience{'s' if action == 'query' else ''}"
    for action in ("query", "submit", "get", "update", "delete", "restore")
}
"""Methods on data that all tenants share."""
