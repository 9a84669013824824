"""A person with a browser, for OAuth clients of other makers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.helpers.oauth_person import Person

if TYPE_CHECKING:
    from tests.helpers.kho_server import KhoServer


@pytest.fixture(scope="session")
def person(guarded: KhoServer) -> Person:
    """Return a person in front of the guarded server."""
    return Person(guarded)
