"""One kind of tenant data, and the calls with which another tenant asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.helpers.api_client import ApiClient


OWNER = "tenant-a"
"""The tenant that has what is made here."""


@dataclass(frozen=True, slots=True)
class IsolationCase:
    """How to ask a method for something, given its id; how its owner makes it, and what the owner sees of it."""

    params: Callable[[str], dict[str, Any]]
    make: Callable[[ApiClient, str], str | None]
    """Makes it under that id, or gives the id that it got instead."""
    seen: Callable[[ApiClient, str], Any]
    prepare: Callable[[ApiClient, str], None] = lambda _client, _id: None
    """What the stranger needs of its own to ask."""
