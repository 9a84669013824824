"""The documentation: its links lead somewhere, its JSON, TOML and YAML can be read, its commands exist."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from functools import cache
from itertools import dropwhile, groupby
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from infra.agent import cli as research_agent
from infra.cli import main as kho
from infra.prepare import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAGES = [
    str(page.relative_to(ROOT))
    for pattern in ("*.md", "docs/**/*.md", "docs/llms.txt", "tests/bench/*.md")
    for page in sorted(ROOT.glob(pattern))
]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PARSERS: dict[str, Callable[[str], Any]] = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}
APPS = {"kho": kho.app, "research-agent": research_agent.app}
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
CONNECTORS = ("&&", "&", "|", ";", ">")
STARTERS = re.compile(r"[A-Z_]+=.*|uvx|--from|--refresh|.*\.whl|docker|compose|-f|.*compose\.yaml|exec|server")
PLACEHOLDER = re.compile(r"<[a-z][\w -]*>")


@cache
def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@cache
def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", text_of(page)), re.MULTILINE)
    plain = (re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def blocks(language: str) -> list[str]:
    return [content for page in PAGES for found, content in BLOCK.findall(text_of(ROOT / page)) if found == language]


def commands() -> list[list[str]]:
    """Return the words of each command of ours in the documentation, without what starts it."""
    found = []
    for line in (line for block in blocks("sh") for line in block.replace("\\\n", "").splitlines()):
        try:
            words = shlex.split(PLACEHOLDER.sub("placeholder", line), comments=True)
        except ValueError:  # a line of a quoted body
            continue
        for connected, parts in groupby(words, lambda word: word in CONNECTORS):
            command = list(dropwhile(STARTERS.fullmatch, parts))
            if not connected and command and command[0].rpartition("/")[2] in (*APPS, "make"):
                found.append([command[0].rpartition("/")[2], *command[1:]])
    return found


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings(page: str) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", BLOCK.sub("", text_of(ROOT / page))):
        if "://" not in link:
            name, _, anchor = link.partition("#")
            target = (ROOT / page).parent / name if name else ROOT / page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target.resolve()), link


@pytest.mark.parametrize("language", PARSERS)
def test_snippets_can_be_read(language: str) -> None:
    for snippet in blocks(language):
        assert PARSERS[language](snippet) is not None


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_commands_exist(words: list[str]) -> None:
    program, *arguments = words
    if program == "make":
        assert not set(arguments) - TARGETS
    else:
        _, _, ignored = APPS[program].parse_args(arguments, exit_on_error=False, print_error=False)
        assert not ignored
