"""Deployed layers contain the tested versions, by hash, on any machine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from infra.local.template import FILE

if TYPE_CHECKING:
    from pathlib import Path

LAYERS = FILE.parent / "infra" / "deploy" / "layers"
SETS = sorted(file.stem for file in LAYERS.glob("*.in"))
PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==(\S+)", re.MULTILINE)


def pins(lock: Path) -> dict[str, set[str]]:
    """Return the versions that a lock allows of each package: one, or one for each Python version."""
    versions: dict[str, set[str]] = {}
    for name, version in PIN.findall(lock.read_text(encoding="utf-8")):
        versions.setdefault(name, set()).add(version)
    return versions


@pytest.mark.parametrize("name", SETS)
def test_layer_versions_equal_tested_versions(name: str) -> None:
    tested, deployed = pins(FILE.parent / "requirements.lock"), pins(LAYERS / f"{name}.lock")
    wanted = (LAYERS / f"{name}.in").read_text(encoding="utf-8").split()
    assert set(wanted) <= set(deployed)
    assert "uvicorn" not in deployed, "no function runs a server, and its command line takes long to load"
    assert {package: versions for package, versions in deployed.items() if not versions <= tested[package]} == {}


@pytest.mark.parametrize("name", SETS)
def test_layer_lock_has_hashes_and_no_registry(name: str) -> None:
    lock = (LAYERS / f"{name}.lock").read_text(encoding="utf-8")
    assert "://" not in lock
    assert all("--hash=sha256:" in part for part in PIN.split(lock)[3::3])


def test_each_layer_of_the_template_is_built() -> None:
    named = set(re.findall(r"^  (\w+)Layer:$", FILE.read_text(encoding="utf-8"), re.MULTILINE))
    folders = (FILE.parent / "shared", FILE.parent / "infra" / "clients" / "console", LAYERS)
    makefiles = [folder / "Makefile" for folder in folders]
    built = {name for file in makefiles for name in re.findall(r"^build-(\w+)Layer:", file.read_text(), re.MULTILINE)}
    assert built == named == {name.capitalize() for name in SETS} | {"Shared", "Console"}
