"""The shell commands of the documentation, split into words as a shell does."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

_BLOCK: Final = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
_COMMENT: Final = re.compile(r"\s+# .*$", re.MULTILINE)
_HERE_DOCUMENT: Final = re.compile(r"<<'?(\w+)'?\n.*?^\1$", re.DOTALL | re.MULTILINE)
_PLACEHOLDER: Final = re.compile(r"<[a-z][\w -]*>")


@dataclass(frozen=True, slots=True)
class CurlRequest:
    """The request of one call of curl to the local server."""

    method: str
    path: str
    headers: dict[str, str]
    body: str


def shell_commands(text: str) -> list[list[str]]:
    """Return the words of each line of the shell snippets in a page, with a word for each placeholder."""
    return [words for block in _BLOCK.findall(text) for words in _lines(block)]


def split_command(text: str) -> list[str]:
    """Return the words of one command."""
    return shlex.split(_PLACEHOLDER.sub("placeholder", text))


def _lines(block: str) -> list[list[str]]:
    text = _HERE_DOCUMENT.sub("", _COMMENT.sub("", block).replace("\\\n", ""))
    lexer = shlex.shlex(_PLACEHOLDER.sub("placeholder", text), posix=True, punctuation_chars="\n")
    lexer.whitespace = " \t"
    lexer.whitespace_split = True
    lexer.commenters = ""
    lines: list[list[str]] = [[]]
    for word in lexer:
        if word.strip("\n"):
            lines[-1].append(word)
        else:
            lines.append([])
    return [words for words in lines if words]


def curl_request(words: list[str]) -> CurlRequest:
    """Return the request that the arguments of curl describe."""
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
    return CurlRequest(method, path, headers, body)
