"""Manifests for registries and models: `server.json`, the name in the README, `docs/llms.txt`."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from infra.cli import main as kho
from shared.rpc.mcp_catalog import TOOLSETS

ROOT = Path(__file__).parents[2]
SERVER = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
LLMS = (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8")
LINKS = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): .+$", LLMS, re.MULTILINE)


def test_registry_entry_has_the_package_and_its_command() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (package,) = SERVER["packages"]
    assert (package["identifier"], package["version"]) == (project["name"], project["version"])
    assert SERVER["version"] == project["version"]
    assert package["identifier"] in project["scripts"]
    arguments = [each["value"] for each in package["packageArguments"]]
    called, _, ignored = kho.app.parse_args(arguments, exit_on_error=False, print_error=False)
    assert (called.__name__, ignored) == ("mcp", {})


def test_registry_entry_keeps_the_registrys_limits() -> None:
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", SERVER["name"])
    assert len(SERVER["description"]) <= 100
    assert len(SERVER["title"]) <= 100
    assert SERVER["$schema"].startswith("https://static.modelcontextprotocol.io/schemas/")
    variables = {each["name"]: each for each in SERVER["packages"][0]["environmentVariables"]}
    assert variables["KHO_TOOLSET"]["choices"] == list(TOOLSETS)
    assert variables["KHO_KEY"]["isSecret"]


def test_readme_has_the_registrys_name() -> None:
    assert f"mcp-name: {SERVER['name']}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_llms_text_has_the_format_of_its_specification() -> None:
    first, second, *_ = LLMS.split("\n\n")
    assert re.fullmatch(r"# \w+", first)
    assert all(line.startswith("> ") for line in second.splitlines())
    assert len(LINKS) == LLMS.count("\n- ")


@pytest.mark.parametrize("link", LINKS)
def test_links_of_llms_text_lead_to_pages(link: str) -> None:
    assert (ROOT / "docs" / link).is_file()
