"""The commands of the README's first calls."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from infra.prepare import ROOT

_BLOCK: Final = re.compile(r"```sh\n(.*?)```", re.DOTALL)
_OWN: Final = ".venv/bin/"
_COMMENT: Final = re.compile(r"\s+# .*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Call:
    """One call by curl."""

    method: str
    path: str
    headers: dict[str, str]
    body: str


def first_calls() -> list[Call | list[str]]:
    """Return each command of the section in order: what curl sends, and the words of our own programs.

    The program of another maker that it names is not run.
    """
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## First calls\n")[1].split("\n## ")[0]
    calls: list[Call | list[str]] = []
    for words in (words for block in _BLOCK.findall(section) for words in _commands(block)):
        match words:
            case ["curl", *rest]:
                calls.append(_call(rest))
            case [program, *rest] if program.startswith(_OWN):
                calls.append([program.removeprefix(_OWN), *rest])
            case _:
                assert words[0] == "claude"
    return calls


def _commands(block: str) -> list[list[str]]:
    lexer = shlex.shlex(_COMMENT.sub("", block).replace("\\\n", ""), posix=True, punctuation_chars="\n")
    lexer.whitespace = " \t"
    lexer.whitespace_split = True
    commands: list[list[str]] = [[]]
    for word in lexer:
        if word.strip("\n"):
            commands[-1].append(word)
        else:
            commands.append([])
    return [words for words in commands if words]


def _call(words: list[str]) -> Call:
    method, path, headers, body = "GET", "", {}, ""
    rest = iter(words)
    for word in rest:
        match word:
            case "-X":
                method = next(rest)
            case "-H":
                name, _, value = next(rest).partition(": ")
                headers[name] = value
            case "-d":
                body = next(rest)
            case _:
                address = urlsplit(word)
                assert address.netloc == "localhost:8001"
                path = address.path
    return Call(method, path, headers, body)
