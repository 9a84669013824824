"""Manifests for registries and models: `server.json`, the name in the README, `docs/llms.txt`; and every version."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from infra.clients.cli import main as kho
from shared.platform.version import VERSION
from shared.rpc.mcp_catalog import TOOLSETS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SERVER = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
LLMS = (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8")
LINKS = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): .+$", LLMS, re.MULTILINE)


def test_registry_entry_has_the_package_and_its_command() -> None:
    (package,) = SERVER["packages"]
    assert package["identifier"] == PROJECT["name"]
    assert package["identifier"] in PROJECT["scripts"]
    arguments = [each["value"] for each in package["packageArguments"]]
    called, _, ignored = kho.app.parse_args(arguments, exit_on_error=False, print_error=False)
    assert (called.__name__, ignored) == ("mcp", {})


def test_every_version_is_that_of_the_release() -> None:
    """The package, its registry entry, the plugin and the commands of the guide have one version."""
    plugin = ROOT / "infra" / "clients" / "claude_code_plugin" / ".claude-plugin" / "plugin.json"
    guide = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
    assert PROJECT["version"] == VERSION
    assert [SERVER["version"], *(each["version"] for each in SERVER["packages"])] == [VERSION, VERSION]
    assert json.loads(plugin.read_text(encoding="utf-8"))["version"] == VERSION
    assert set(re.findall(r"kho-([\d.]+)-py3", guide)) == {VERSION}


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
