"""Isolation cases: a tenant's data, and another tenant's calls for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.helpers.api_client import ApiClient


OWNER = "tenant-a"
"""The tenant that owns the data of the cases."""


@dataclass(frozen=True, slots=True)
class IsolationCase:
    """A call for an object of another tenant by its id, with functions to create and read the object as its owner."""

    params: Callable[[str], dict[str, Any]]
    make: Callable[[ApiClient, str], str | None]
    """Create the object under that id, or return the id that it got instead."""
    seen: Callable[[ApiClient, str], Any]
    prepare: Callable[[ApiClient, str], None] = lambda _client, _id: None
    """Create the stranger's own objects that the call needs."""
