"""The wheel and its installations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.suites.package.installation import Installation, build_wheel, interpreters

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel of this checkout."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module", params=list(interpreters()))
def installed(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """Return an installation for each Python. The first one finds neither npm nor uv."""
    with_npm = request.param != next(iter(interpreters()))
    folder = tmp_path_factory.mktemp(f"installed-{request.param}")
    return Installation(folder, interpreters()[request.param], wheel, with_npm=with_npm)
