"""The documentation: its links lead somewhere, its snippets can be read, its commands and requests exist."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from functools import cache
from itertools import dropwhile, groupby, product
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest
import yaml
from botocore import xform_name
from botocore.session import get_session
from cyclopts import MissingArgumentError

from infra.clients.agent import cli as research_agent
from infra.clients.cli import main as kho
from infra.local.template import load, logical_id
from infra.prepare import ROOT
from shared.rpc.catalogue import catalogue
from tests.helpers.documented_commands import curl_request, shell_commands, split_command

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAGES = [
    str(page.relative_to(ROOT))
    for pattern in ("*.md", "docs/**/*.md", "docs/llms.txt", "tests/suites/bench/*.md")
    for page in sorted(ROOT.glob(pattern))
]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PARSERS: dict[str, Callable[[str], Any]] = {
    "json": json.loads,
    "python": ast.parse,
    "toml": tomllib.loads,
    "yaml": yaml.safe_load,
}
APPS = {"kho": kho.app, "research-agent": research_agent.app}
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([\w-]+):", MAKEFILE, re.MULTILINE))
CONNECTORS = ("&&", "&", "|", ";")
STARTERS = re.compile(r"[A-Z_]+=.*|uvx|--from|--refresh|.*\.whl|docker|compose|-f|.*compose\.yaml|exec|server")
MENTIONS = (
    re.compile(r"`((?:\.venv/bin/)?(?:kho|research-agent|make) [^`]+)`"),
    re.compile(r"^    ((?:\.venv/bin/)?(?:kho|research-agent|make) .+)$", re.MULTILINE),
)
OTHERS = ("aws", "cat", "claude", "cp", "curl", "docker", "git", "pip", "python3", "sam")
"""Programs of others. Those that call Kho, or read its files, have tests of their own."""
METHODS = catalogue().methods
ROUTES = {route.key for route in load().routes}


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
    """Return the words of each command in the shell snippets, without what starts it and the path of its program."""
    found = []
    for line in (line for page in PAGES for line in shell_commands(text_of(ROOT / page))):
        for connected, parts in groupby(line, lambda word: word in CONNECTORS):
            words = list(parts)
            words = words[: words.index(">")] if ">" in words else words
            command = list(dropwhile(STARTERS.fullmatch, words))
            is_ours = command and _program(command[0]) in (*APPS, "make")
            first, *rest = command if is_ours else words
            if not connected:
                found.append([_program(first), *rest])
    return found


def _program(path: str) -> str:
    return path.rpartition("/")[2]


def mentions() -> list[str]:
    """Return each command of ours in the text, once for each choice such as `list|revoke`."""
    found = set()
    for mentioned in MENTIONS:
        for text in (text for page in PAGES for text in mentioned.findall(BLOCK.sub("", text_of(ROOT / page)))):
            words = [word.replace("\\|", "|").split("|") for word in text.partition("…")[0].split()]
            found |= {" ".join(choice) for choice in product(*words)}
    return sorted(found)


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


OWN_COMMANDS = [words for words in commands() if words[0] not in OTHERS]


@pytest.mark.parametrize("words", OWN_COMMANDS, ids=" ".join)
def test_commands_exist(words: list[str]) -> None:
    program, *arguments = words
    if program == "make":
        for argument in arguments:
            variable, is_assigned, _ = argument.partition("=")
            assert f"$({variable})" in MAKEFILE if is_assigned else argument in TARGETS
    else:
        _, _, ignored = APPS[program].parse_args(arguments, exit_on_error=False, print_error=False)
        assert not ignored


@pytest.mark.parametrize("mention", mentions())
def test_commands_in_the_text_exist(mention: str) -> None:
    """A command in the text may leave out arguments."""
    try:
        program, *arguments = split_command(mention)
        test_commands_exist([_program(program), *arguments])
    except MissingArgumentError:
        pass


@pytest.mark.parametrize("words", [words[1:] for words in commands() if words[0] == "curl"], ids=" ".join)
def test_requests_are_those_of_an_endpoint(words: list[str]) -> None:
    """Each call of curl goes to an endpoint, and its parameters are valid."""
    request = curl_request(words)
    if request.method == "GET":
        assert f"GET {request.path}" in ROUTES
        return
    assert request.headers == {"Content-Type": "application/json"}
    body = json.loads(request.body)
    if request.path == "/jsonrpc":
        assert (body["jsonrpc"], request.method) == ("2.0", "POST")
        method, params = METHODS[body["method"]], body["params"]
    else:
        method, params = METHODS[request.path.removeprefix("/")], body
    jsonschema_rs.validator_for(method.params).validate(params)


@pytest.mark.parametrize("words", [words[1:] for words in commands() if words[0] == "sam"], ids=" ".join)
def test_sam_invokes_a_function_of_the_template_by_its_event(words: list[str]) -> None:
    if words[:2] == ["local", "invoke"]:
        options = dict(zip(words[3::2], words[4::2], strict=True))
        event = ROOT / options["-e"]
        assert event.is_file()
        assert event.stem in load().functions
        assert words[2] == logical_id(event.stem)
    else:
        assert words in (["build"], ["deploy"])


def test_aws_commands_have_options_of_their_operation() -> None:
    (words,) = (words for words in commands() if words[0] == "aws")
    service = get_session().get_service_model(words[1])
    operations = {xform_name(name, "-"): name for name in service.operation_names}
    shape = service.operation_model(operations[words[2]]).input_shape
    assert shape
    assert {word.removeprefix("--") for word in words if word.startswith("--")} <= {
        xform_name(member, "-") for member in shape.members
    }
