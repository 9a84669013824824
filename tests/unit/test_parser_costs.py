"""Every parser of outside text takes time that grows as the text does."""

from __future__ import annotations

import base64
import gc
import json
import re
import resource
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import re2  # type: ignore[import-untyped]  # the package has no types

from api.http_events import HttpRequest, accepts_gzip
from api.mcp_resources import _pattern
from api.multipart import parse_form
from infra.clients.agent.files.folder_scan import _is_ignored, _Rules
from infra.clients.agent.web_fetch import _decode
from infra.local.http_protocol import BoundedHttpProtocol
from infra.local.iot.mqtt import decoding
from infra.local.iot.mqtt.framing import Framer
from infra.local.iot.mqtt.packets import MQTT_5
from infra.local.iot.mqtt.primitives import binary, variable
from infra.local.iot.mqtt.reason_codes import MalformedPacket
from oauth.http import form_of
from oauth.page import _texts
from shared.access.oauth.clients import _basic, _parse_metadata
from shared.access.oauth.display_names import display_name
from shared.access.oauth.errors import OAuthError
from shared.access.oauth.redirect_uris import is_redirect_uri, matches
from shared.access.oauth.token_text import read_token
from shared.access.source_address import source_address
from shared.access.tokens import TokenVerifier
from shared.answering.extractive import best_sentences
from shared.answering.models import AnswerSource
from shared.answering.rendering import to_plain_text
from shared.answering.sanitization import sanitize_answer
from shared.devices.argument_validation import validate_arguments
from shared.devices.boards import Board
from shared.devices.firmware_releases import RunningFirmware, board_url, url_problem
from shared.devices.photo_explanation import _picture
from shared.devices.protocol import parse_message
from shared.devices.tool_catalogue import DeviceTool, aliases, parse_tool
from shared.devices.tool_result import InvalidToolResult, tool_result
from shared.documents.edits import Edit, Replacement, SectionEdit, edit_text
from shared.experiences.keyword_extraction import extract_keywords
from shared.experiences.models import ExperienceReport
from shared.experiences.secret_scanner import find_secrets
from shared.knowledge.pdf import text_of
from shared.knowledge.refinement import _corrections, content_words
from shared.knowledge.text_encoding import NotText, decode
from shared.language_model.openai import _completion
from shared.platform.public_address import AddressRefused, PublicClient, RequestLimits
from shared.platform.telemetry import correlation_id_from
from shared.rpc import cursor
from shared.rpc.errors import Conflict, KhoError
from shared.rpc.mcp_catalog import McpResource
from shared.rpc.names import deception, normalize_name
from shared.rpc.strict_json import parse, require_text
from shared.rpc.timestamps import from_iso
from shared.rpc.unknown_fields import refuse_large_params
from shared.rpc.web_origin import refuse_foreign_pages
from shared.search.diacritics import restore_diacritics
from shared.search.language_detection import detect_language
from shared.search.passages import DocumentRef, Passage, SearchHit
from shared.search.splitting import split
from shared.search.tokenizer import tokenize
from shared.web_search import _results, parse_page
from tests.helpers.pdf import make_pdf, text_stream
from tests.helpers.settings import changed_settings
from tests.helpers.size import FULL_SIZE, sized

if TYPE_CHECKING:
    from collections.abc import Callable

    Inputs = dict[str, Callable[[int], Any]]

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "security.md"
KIB: Final = 1024
MIB: Final = 1024 * KIB
_RATIO: Final = 8.0
"""Four times the text may take at most this many times as long; quadratic time is 16 times as long."""
_TRIES: Final = 5
_MEASURABLE_SECONDS: Final = 0.003
_REFUSALS: Final = (
    AddressRefused,
    KhoError,
    OAuthError,
    MalformedPacket,
    InvalidToolResult,
    NotText,
    ValueError,
    re2.error,
)


@dataclass(frozen=True)
class Parser:
    """A parser, its limit in characters, and the inputs that are the worst for it, by their length."""

    name: str
    parse: Callable[[Any], object]
    limit: int
    worst: Inputs


def repeated(text: str) -> Callable[[int], str]:
    """Make texts of this part."""
    return lambda n: (text * (n // len(text) + 1))[:n]


def repeatedly(*texts: str) -> Inputs:
    """Make texts of each part."""
    return {repr(text): repeated(text) for text in texts}


def after(beginning: str, part: str, end: str = "") -> Callable[[int], str]:
    """Make texts of this part after a beginning, before an end."""
    return lambda n: beginning + repeated(part)(n) + end


def numbered(form: str, begin: str = "", end: str = "", between: str = "") -> Callable[[int], str]:
    """Make texts of this form with different numbers."""
    return lambda n: begin + between.join(form.format(number) for number in range(n // len(form))) + end


def encoded(inputs: Inputs) -> Inputs:
    """Make bytes of each text."""

    def encoder(make: Callable[[int], str]) -> Callable[[int], bytes]:
        return lambda n: make(n).encode("utf-8", "surrogatepass")

    return {name: encoder(make) for name, make in inputs.items()}


MARKS: Final = "\u0301\u0323"
"""Marks in the order that takes the most sorting."""
WORDS: Final = "word " * 600


# HTTP


class _Wire:
    """The transport and the event loop of one connection that goes nowhere."""

    def __init__(self) -> None:
        self.closed = False

    def get_extra_info(self, _name: str) -> None:
        """Know nothing."""

    def is_closing(self) -> bool:
        """Return True after the server has closed the connection."""
        return self.closed

    def close(self) -> None:
        """Close the connection."""
        self.closed = True

    def write(self, _data: bytes) -> None:
        """Send nothing."""

    def call_later(self, *_: Any) -> _Wire:
        """Start no timer."""
        return self

    def create_task(self, coroutine: Any) -> _Wire:
        """Start no task."""
        coroutine.close()
        return self

    def __getattr__(self, _name: str) -> Callable[..., None]:
        return lambda *_: None


@cache
def http_settings() -> Any:
    from uvicorn import Config

    async def application(_scope: Any, _receive: Any, _send: Any) -> None:
        """Answer nothing."""

    config = Config(application, log_config=None, lifespan="off")
    config.load()
    return config


def http_connection(data: bytes) -> None:
    """Read a connection's data as they arrive, 1,000 bytes at once."""
    from uvicorn.server import ServerState

    wire: Any = _Wire()
    connection = BoundedHttpProtocol(http_settings(), ServerState(), {}, wire)
    connection.connection_made(wire)
    for start in range(0, len(data), 1000):
        if wire.closed:
            return
        connection.data_received(data[start : start + 1000])


def http_request(**changes: Any) -> HttpRequest:
    fields: dict[str, Any] = {"path": "/", "path_parameters": {}, "headers": {}, "body": b"", "source_ip": ""}
    return HttpRequest(**fields | {"authorizer": None, "correlation_id": ""} | changes)


def form_with_head(head: str) -> tuple[str, bytes]:
    return "multipart/form-data; boundary=b", f"--b\r\n{head}\r\n\r\nx\r\n--b--".encode()


def form_of_type(content_type: str) -> tuple[str, bytes]:
    return content_type, b"--b\r\n\r\n--b--"


HEADERS: Final = repeatedly(
    " ", ",", ";", "gzip ", "gzip;q=0", "*;q=0.0", "en;q=0.1,", "1.1.1.1,", ":1", "[", ":", "1", ";q="
)
FORM_HEADS: Final = {
    "open quotation": after('Content-Disposition: form-data; name="a', ";"),
    "escapes": after('Content-Disposition: form-data; name="a', '\\"'),
    "parameters": after("Content-Disposition: form-data", ';x="y"'),
    "blanks": after("Content-Disposition: form-data;", " "),
    "names": after("Content-Disposition: form-data", ";a"),
    "lines": repeated("x: y\r\n"),
}


# JSON and parameters

JSON_TEXTS: Final = {
    "digits": repeated("7"),
    "long numbers": after("[1", "," + "9" * 4000, "]"),
    "fractions": after("[0.", "7", "]"),
    "exponents": after("1e", "0"),
    "zeros": after("0.", "0", "1e9"),
    "open lists": repeated("["),
    "open objects": repeated('{"a":'),
    "deep lists": after("[1", "," + "[" * 60 + "]" * 60, "]"),
    "brackets in texts": after('["', "[{", '"]'),
    "quotations": after('["', '\\"', '"]'),
    "escapes": after('"', "\\u0041", '"'),
    "surrogates": after('"', "\\ud83d\\ude00", '"'),
    "lone surrogates": after('["', '\\ud83d","', '"]'),
    "fields": numbered('"{:08}":0', "{", "}", ","),
    "values": after("[1", ",1", "]"),
    "lines before an error": after("", "\n", "x"),
}


# Devices


def mqtt_connection(data: bytes) -> None:
    """Read a connection's data as they arrive, 1,000 bytes at once."""
    framer = Framer(149_504)
    for start in range(0, len(data), 1000):
        for header, body in framer.feed(data[start : start + 1000]):
            with suppress(MalformedPacket):
                decoding.decode(header, body, MQTT_5)


def mqtt_packet(header: int, body: bytes) -> bytes:
    return bytes((header,)) + variable(len(body)) + body


def mqtt_properties(n: int) -> bytes:
    properties = (b"\x26" + binary(b"a") + binary(b"b")) * (n // 7)
    return mqtt_packet(0x30, binary(b"t") + variable(len(properties)) + properties)


MQTT: Final = {
    "empty packets": lambda n: b"\xc0\x00" * (n // 2),
    "lengths": lambda n: b"\x30\x80" * (n // 2),
    "properties": mqtt_properties,
    "filters": lambda n: mqtt_packet(0x82, b"\0\1\0" + (binary(b"a/+/#") + b"\0") * (n // 8)),
    "levels": lambda n: mqtt_packet(0x82, b"\0\1\0" + (binary(b"/" * 60_000) + b"\0") * (n // 60_000 + 1)),
    "large message": lambda n: mqtt_packet(0x30, binary(b"t") + b"\0" + b"x" * n),
    "texts": lambda n: mqtt_packet(0x30, binary("ệ".encode() * min(20_000, n // 3)) + b"\0"),
}
DEVICE_MESSAGES: Final = {
    "ids": after('"payload"', '"id" : 1 '),
    "blanks": after('"payload""id"', " "),
    "outcomes": after('"payload"', '"result" '),
    "unescaped error": after('"payload":{"id":1,"error":{"message":"', '"'),
    "almost ended errors": after('"payload":{"id":1,"error":{"message":"', '"   }  }'),
    "blanks after an error": after('"payload":{"id":1,"error":', " "),
    "nested": repeated('{"payload":'),
    "result": after('{"type":"mcp","payload":{"id":1,"result":["', "\\u00e9", '"]}}'),
}


def arguments_of(schema: dict[str, Any], arguments: dict[str, Any]) -> tuple[DeviceTool, dict[str, Any]]:
    return DeviceTool("t", "", schema), arguments


def doubling_schema(n: int) -> tuple[DeviceTool, dict[str, Any]]:
    depth = min(24, n // 64)
    parts = {f"d{each}": {"allOf": [{"$ref": f"#/$defs/d{each + 1}"}] * 2} for each in range(depth)}
    schema = {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": parts | {f"d{depth}": {"type": "string"}}}
    return arguments_of(schema, {"a": 1})


def reevaluating_schema(n: int) -> tuple[DeviceTool, dict[str, Any]]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(min(24, n // 64)):
        schema = {"if": schema, "then": True, "unevaluatedProperties": False}
    return arguments_of(schema, {"a": 1})


def property_schema(schema: dict[str, Any]) -> dict[str, Any]:
    return {"properties": {"a": schema}}


SCHEMAS: Final = {
    "doubling references": doubling_schema,
    "evaluated again": reevaluating_schema,
    "alternatives of items": lambda n: arguments_of(
        property_schema({"items": {"anyOf": [{"const": each} for each in range(n // 100)]}}), {"a": [-1] * (n // 4)}
    ),
    "patterns": lambda n: arguments_of(
        property_schema({"pattern": "(a*)*(a|aa)+$|" + "a?" * 100 + "b"}), {"a": "a" * n}
    ),
    "many patterns": lambda n: arguments_of(
        property_schema({"allOf": [{"pattern": f"a{{1,{each}}}b"} for each in range(n // 100)]}), {"a": "a" * n}
    ),
    "names": lambda n: arguments_of(
        {"patternProperties": {f"a{each}$": {} for each in range(n // 100)}}, {f"b{each}": 1 for each in range(n // 8)}
    ),
    "different items": lambda n: arguments_of(
        property_schema({"uniqueItems": True}), {"a": [{"x": each} for each in range(n // 8)]}
    ),
    "problems": lambda n: arguments_of(property_schema({"items": {"type": "string"}}), {"a": [1] * (n // 2)}),
    "required": lambda n: arguments_of({"required": [f"a{each}" for each in range(n // 8)]}, {}),
}


def wrapped_image(n: int) -> Any:
    wrapped = json.dumps({"data": base64.b64encode(b"x" * n).decode(), "mimeType": "image/png"})
    return {"content": [{"type": "image", "image": wrapped}]}


# Documents

DOCUMENT_TEXTS: Final = {
    "line ends": after(WORDS, "\n"),
    "blank lines": after(WORDS, "\n \n"),
    "blanks": after(WORDS, " "),
    "words far apart": after(WORDS, "w" + " " * 999),
    "sentences": repeated("a. "),
    "one word": repeated("x"),
    "Chinese": repeated("中"),
    "marks": repeated(MARKS),
    "form feeds": repeated("\f"),
    "paragraphs": repeated("a\n\n"),
}
MARKDOWN: Final = {
    "title": after("---\ntitle: a", " ", "b\n---\n"),
    "front matter": after("---\na: b\n", "--- "),
    "front matter without an end": after("---\na: b\n", "title:\n"),
    "delimiters": after("a|b\n", "-", "x\n"),
    "wide table": lambda n: "|a" * (n // 4) + "\n" + "|-" * (n // 4) + "\n|a|\n",
    "heading of brackets": after("# ", "["),
    "heading of links": after("# ", "![a]("),
    "heading of emphasis": after("# ", "**a_"),
    "heading of code": lambda n: "# " + "".join("`" * (each % 300 + 1) + "a" for each in range(n // 150)),
    "heading of tags": after("# ", "<!--"),
    "deep lists": after(WORDS, "".join(" " * 2 * depth + "- a\n" for depth in range(20))),
    **repeatedly(
        ">", "> ", "- ", "1. a\n", "[a]: x\n", '[a]: b "\n', "[\n", "# a\n## b\n", "|a|\n|-|\n", "```\n", "<!-- \n\n"
    ),
    **repeatedly("> - ", "- a\n\n", "    a\n", "* ", "a\n=", "\t", "a\n"),
}
HTML: Final = {
    "deep": repeated("<div>"),
    "deep and closed": lambda n: "<div>" * (n // 11) + "</div>" * (n // 11),
    "deep lists": lambda n: "<ul><li>" * (n // 18) + "</li></ul>" * (n // 18),
    "different elements": numbered("<x{:07}>"),
    "formatting in paragraphs": lambda n: "<p>" + numbered("<b id={:07}>")(n // 2) + "<p>x" * (n // 8),
    "attributes": numbered(" a{:07}", "<p", ">x"),
    "open tags": repeated("<a "),
    "open quotations": repeated('<a b="'),
    "open comments": repeated("<!--"),
    "almost closed comments": after("<!--", "--"),
    "tables": repeated("<table><tr><td>"),
    "closed tables": lambda n: "<table><tr><td>" * (n // 37) + "</table>" * (n // 37),
    "cells": after("<table><tr>", "<td>x", "</table>"),
    "scripts": repeated("<script>"),
    "almost closed scripts": after("<script>", "</scrip"),
    "hidden": repeated("<svg>"),
    "images": repeated("<img alt="),
    "navigation": repeated("<nav>"),
    "articles": lambda n: "<article>" * (n // 20) + "</article>" * (n // 20),
    "main part": after("<main>", "x<nav>y</nav>", "</main>"),
    "references": repeated("&#9999999999;"),
    "long reference": after("&#", "9"),
    "open references": repeated("&a"),
    **repeatedly(
        "<", "</", "<!", "<p>x", "</p>", "<pre>", "<h1>x</h1>", "<h1>", "<textarea>", "<title>x</title>", "&lt;"
    ),
}


def document(name: str) -> Callable[[str], object]:
    return lambda text: split(name, text)


# Questions and answers

ANSWERS: Final = repeatedly(
    *("`", "```", "a```", "```\n", "![", "[a](", "[1", "[1-9]", "[[1]]", "<img ", "<image =", "</think>", "\n</think>"),
    *(
        "*a",
        "**",
        "* *a",
        "_a",
        "[a](b) ",
        "http://",
        "www.a",
        " ",
        "\n>",
        "~~~\n",
        "\x1b[",
        "【1†",
        "9",
        "a ",
        "。",
        "!![",
    ),
)


def replaced(texts: tuple[str, str]) -> object:
    text, old = texts
    with suppress(Conflict):
        return edit_text(text, "text/plain", Edit(replace=Replacement(old, "new")), "edits.0")
    return None


def section_replaced(text: str) -> object:
    with suppress(Conflict):
        return edit_text(text, "text/markdown", Edit(section=SectionEdit(("a",), "new")), "edits.0")
    return None


REPLACEMENTS: Final[Inputs] = {
    "overlaps": lambda n: ("a" * n, "a" * (n // 2)),
    "almost": lambda n: ("a" * n, "a" * (n // 2) + "b"),
    "almost from the end": lambda n: ("a" * n, "b" + "a" * (n // 2)),
    "parts of letters": lambda n: ("a\u0301" * (n // 2), "a\u0301" * (n // 4) + "a"),
    "letters": lambda n: ("a" * n, "a"),
    "line breaks": lambda n: ("\r\n" * (n // 2), "\n" * (n // 4)),
    "other letters": lambda n: ("e\u0301" * (n // 2), "\u00e9" * (n // 4) + "x"),
    "marks": lambda n: (MARKS * (n // 2), "a"),
    "marks at the end": lambda n: ("a" + MARKS * (n // 2), "a"),
    "Hangul": lambda n: ("\u1112\u1161\u11ab" * (n // 3), "\ud55c" * (n // 6) + "x"),
    "similar lines": lambda n: ("a \n" * (n // 3), "A" * (n // 3)),
    "ligatures": lambda n: ("\ufdfa" * n, "\ufdfb"),
}


def quoted(text: str) -> object:
    return best_sentences("what is a", [AnswerSource("d", text, 1.0)], "en")


def report(text: str) -> ExperienceReport:
    return ExperienceReport(title="title", problem_description=text, solution="solution", keywords=[])


def chinese(n: int) -> str:
    """Return a text without a string that recurs nearby, twice."""
    return "".join(chr(0x4E00 + each * each % 20_899) for each in range(n // 2)) * 2


def unlike_words(n: int) -> str:
    return " ".join(
        f"{each * 7919 % 46_656:05o}".translate(str.maketrans("01234567", "abcdefgh")) for each in range(n // 6)
    )


def misspelled(text: str) -> object:
    passage = Passage(DocumentRef("t", "c", "d"), 0, text[:1700], 1)
    return _corrections(content_words(text), [SearchHit(passage, 0.1, 0.1, 0.0)] * 10)


def ignored(text: str) -> bool:
    from pathspec import GitIgnoreSpec

    pattern, _, name = text.partition("\0")
    return _is_ignored(
        [_Rules(Path("/"), GitIgnoreSpec.from_lines(pattern.split("\n")))], Path("/", name), is_folder=False
    )


VERIFIER: Final = TokenVerifier(changed_settings(oidc_issuer="https://login.example", oidc_audience="kho"))


def token(text: str) -> object:
    return VERIFIER.verify(text)


def token_of(header: str) -> str:
    return base64.urlsafe_b64encode(header.encode()).decode().rstrip("=") + ".e30.eA"


PARSERS: Final = (
    Parser(
        "HTTP request",
        http_connection,
        8 * MIB,
        encoded(
            {
                "headers": after("GET / HTTP/1.1\r\n", "a: b\r\n"),
                "long header": after("GET / HTTP/1.1\r\na: ", "b"),
                "chunks": after("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n", "1\r\nx\r\n"),
                "requests": repeated("GET / HTTP/1.1\r\nhost: a\r\n\r\n"),
            }
        ),
    ),
    Parser("`Accept-Encoding`", lambda text: accepts_gzip({"accept-encoding": text}), 10_240, HEADERS),
    Parser("`Accept-Language`", lambda text: _texts(http_request(headers={"accept-language": text})), 10_240, HEADERS),
    Parser(
        "`Host` and `Origin`",
        lambda text: refuse_foreign_pages({"host": text, "origin": f"http://{text}"}, is_open=True),
        10_240,
        HEADERS,
    ),
    Parser("`X-Forwarded-For`", lambda text: source_address(text, {"x-forwarded-for": text}), 10_240, HEADERS),
    Parser("`X-Correlation-Id`", correlation_id_from, 10_240, repeatedly("a", "=", " ")),
    Parser(
        "Form of a camera",
        lambda form: parse_form(*form),
        4 * MIB,
        {f"head: {name}": lambda n, make=make: form_with_head(make(n)) for name, make in FORM_HEADS.items()}
        | {
            "type: open quotation": lambda n: form_of_type('multipart/form-data; boundary="b' + ";" * n),
            "type: parameters": lambda n: form_of_type("multipart/form-data" + ";a=b" * (n // 4)),
            "boundary": lambda n: (f"multipart/form-data; boundary={'a' * n}b", b"--" + b"a" * n),
            "almost a boundary": lambda n: ("multipart/form-data; boundary=" + "a" * 69 + "b", b"\r\n--" + b"a" * n),
            "parts": lambda n: form_with_head("\r\n\r\n--b" * (n // 7)),
        },
    ),
    Parser("Photo", _picture, 4 * MIB, {"zeros": lambda n: b"\xff\xd8\xff" + b"\0" * n}),
    Parser("JSON", lambda raw: require_text(parse(raw), raw), 6 * MIB, encoded(JSON_TEXTS)),
    Parser(
        "Parameters",
        lambda params: refuse_large_params(params, ("id",)),
        6 * MIB,
        {
            "unknown fields": lambda n: dict.fromkeys(map(str, range(n // 8)), 0),
            "values": lambda n: {"id": [[]] * (n // 3)},
            "digits": lambda n: {"id": [10**4000] * (n // 4000)},
        },
    ),
    Parser("Cursor", lambda text: cursor.decode(text, str), 4_096, repeatedly("A", "W1tb", "=", "\u00e9")),
    Parser("Time", from_iso, 6 * MIB, repeatedly("1", "2025-09-16T03:00:00Z")),
    Parser(
        "Name",
        lambda text: (normalize_name(text), deception(text)),
        128,
        repeatedly(MARKS, "a\u200d", "а", "\U0001f3f4"),
    ),
    Parser(
        "Resource's URI",
        _pattern(McpResource("kho://conversations/{a}/{b}", "", "", "", "")).fullmatch,
        6 * MIB,
        {"parts": after("kho://conversations/", "a"), "slashes": after("kho://conversations/", "/")},
    ),
    Parser(
        "OAuth form and query",
        lambda text: form_of(
            http_request(headers={"content-type": "application/x-www-form-urlencoded"}, body=text.encode())
        ),
        256 * KIB,
        repeatedly("a=b&", "&", "%", "%41", "=", "a=%c3", ";"),
    ),
    Parser(
        "OAuth client's metadata",
        _parse_metadata,
        256 * KIB,
        {
            "redirect URIs": lambda n: {"redirect_uris": [f"https://a.example/{each}" for each in range(n // 20)]},
            "scopes": lambda n: {"redirect_uris": ["https://a.example/"], "scope": "a " * (n // 2)},
            "name": lambda n: {"redirect_uris": ["https://a.example/"], "client_name": MARKS * (n // 2)},
        },
    ),
    Parser("OAuth client's name", display_name, 256 * KIB, repeatedly(MARKS, "\ufdfa", "\u202e", "\ud800", " ")),
    Parser(
        "Redirect URI",
        lambda text: (is_redirect_uri(text), matches("http://127.0.0.1/", text)),
        256 * KIB,
        {
            **repeatedly("a", "a:", "http://[", "http://127.0.0.1:", "https://a.b@", "//"),
            "port": after("http://127.0.0.1:", "1", "/"),
            "address": after("http://[", "::", "]/"),
        },
    ),
    Parser("Client's credentials", _basic, 10_240, repeatedly("QTpi", "JTQx", "=")),
    Parser("Kho's tokens", lambda text: read_token("access", f"khoa_{text}"), 8_192, repeatedly("a", "_", ".", "a.")),
    Parser(
        "Token of a provider (JWT)",
        token,
        8_192,
        {
            "header of lists": lambda n: token_of("[" * n),
            "header of digits": lambda n: token_of('{"alg":' + "9" * n + "}"),
            "header of fields": lambda n: token_of(numbered('"{:08}":0', "{", "}", ",")(n)),
            **repeatedly(".", "e30.", "A"),
        },
    ),
    Parser("MQTT packets", mqtt_connection, MIB, MQTT),
    Parser("Device's message", parse_message, 128 * KIB, encoded(DEVICE_MESSAGES)),
    Parser(
        "Device's tools",
        lambda names: aliases(tool.name for name in names if (tool := parse_tool({"name": name}))),
        128 * KIB,
        {
            "equal aliases": lambda n: [chr(0x4E00 + each % 20_000) * 9 for each in range(n // 27)],
            "long names": lambda n: ["x" * 200 + str(each) for each in range(n // 200)],
        },
    ),
    Parser("Device's input schema", lambda call: validate_arguments(*call), 128 * KIB, SCHEMAS),
    Parser(
        "Device's result",
        tool_result,
        128 * KIB,
        {
            "image": wrapped_image,
            "wrapped lists": lambda n: {"content": [{"type": "image", "image": "[" * n}]},
            "wrapped digits": lambda n: {"content": [{"type": "image", "image": "9" * n}]},
            "type": lambda n: {"content": [{"type": "image", "data": "", "mimeType": "image/" + "a." * (n // 2)}]},
            "parts": lambda n: {"content": [{"type": "other"}] * (n // 16)},
        },
    ),
    Parser(
        "Board's headers",
        lambda text: (RunningFirmware.identify(text), board_url("/firmware/a", text), Board.identify(text, text)),
        10_240,
        {"version": after("board/", "1."), "digits": after("board/", "9"), **repeatedly("/", "a", ":1", "00:", "-0")},
    ),
    Parser(
        "Firmware's version and URL",
        lambda text: url_problem(text, None),
        1_024,
        {"port": after("https://a:", "9"), "address": after("https://[", ":"), **repeatedly("https://", "@", "#")},
    ),
    Parser("Plain text", document("a.txt"), 4 * MIB, DOCUMENT_TEXTS),
    Parser(
        "Encodings",
        decode,
        4 * MIB,
        {
            "Chinese": lambda n: b"\xc4\xe3" * (n // 2),
            "Vietnamese": lambda n: b"Ti\xea\xecng Vi\xea\xf2t " * (n // 13),
            "syllables": lambda n: b"\xfd" * n,
            "Western": lambda n: b"\xe9t\xe9 " * (n // 4),
            "long runs": lambda n: b"\x81" * n,
            "controls": lambda n: b"\xe9\x01" * (n // 2),
            "two bytes a letter": lambda n: b"\0\n" * (n // 2),
            "damaged": lambda n: b"\xe2\x82" * (n // 2),
        },
    ),
    Parser(
        "PDF",
        text_of,
        32 * MIB,
        {
            "pages": lambda n: make_pdf(*[text_stream(b"x")] * (n // 300 + 1)),
            "texts": lambda n: make_pdf(text_stream(b"x") * (n // 34 + 1)),
            "open parentheses": lambda n: make_pdf(b"(" * n),
            "no objects": lambda n: b"%PDF-1.4\n" + b"1 0 obj\n" * (n // 8),
        },
    ),
    Parser("Pages", document("a.pdf"), 4 * MIB, DOCUMENT_TEXTS),
    Parser(
        "Source code",
        document("a.py"),
        4 * MIB,
        DOCUMENT_TEXTS
        | {"definitions": repeated("def f():\n\n\n"), "modifiers": repeated("export "), "name": after("def ", "a")},
    ),
    Parser("Markdown", document("a.md"), 4 * MIB, DOCUMENT_TEXTS | MARKDOWN),
    Parser("Edit: text to replace", replaced, 2 * MIB, REPLACEMENTS),
    Parser("Edit: section", section_replaced, 2 * MIB, MARKDOWN | repeatedly("# a\n", "# a\n# b\n", "a\n=\n")),
    Parser("HTML", document("a.html"), 32 * MIB, DOCUMENT_TEXTS | HTML),
    Parser(
        "Charset of a page",
        lambda charset: _decode(b"\xc3\xa9" * 1000, charset),
        64 * KIB,
        repeatedly("a", "-", "utf-8", "\0", " "),
    ),
    Parser("Redirect of a page", PublicClient(RequestLimits(1.0, 1), tls=None)._split, 64 * KIB, HEADERS),  # type: ignore[arg-type]
    Parser(
        "`.gitignore`",
        ignored,
        MIB,
        {
            "stars": lambda n: "*a" * 20 + "b\0" + "a" * n,
            "folders": lambda n: "**/a/" * 20 + "b\0" + "a/" * min(n // 2, 2_000),
            "lines": lambda n: "a?b*\n" * (n // 5) + "\0x",
            "brackets": lambda n: "[" * n + "\0x",
        },
    ),
    Parser(
        "Words",
        lambda text: list(tokenize(text)),
        4 * MIB,
        DOCUMENT_TEXTS | repeatedly("aA", "ệ ", "a\u0301", "ﷺ", "-", "A"),
    ),
    Parser("Language", detect_language, 4 * MIB, DOCUMENT_TEXTS),
    Parser(
        "Diacritics", lambda text: restore_diacritics(text, [text]), 4 * MIB, repeatedly("toi ", "a", " ", "tôi ", "中")
    ),
    Parser(
        "Keywords of an experience",
        lambda text: extract_keywords(report(text)),
        60_000,
        {"Chinese": chinese, "pairs": numbered("{:06}，"), **repeatedly("中", "ế ", "a.", "a ", ".", "#", "中国，")},
    ),
    Parser(
        "Secret scanner",
        find_secrets,
        20_000,
        repeatedly(
            "a@b.co ",
            "password=hunter2secret ",
            "4111111111111111 ",
            "+84 912 345 678 ",
            "192.0.2.1 ",
            "A1b2",
            '="',
            "%41",
        ),
    ),
    Parser("Suggestions for a query", misspelled, 2_048, {"unlike words": unlike_words, **repeatedly("a", "ab-")}),
    Parser("Quotations", quoted, 32_000, DOCUMENT_TEXTS | ANSWERS),
    Parser("Model's answer", lambda text: sanitize_answer(text, "fence", 5, ["x"]), 32_000, ANSWERS),
    Parser("Answer as plain text", to_plain_text, 32_000, ANSWERS),
    Parser("Model's response", _completion, MIB, encoded(JSON_TEXTS)),
    Parser(
        "Web search's page",
        lambda text: _results(parse_page(text.encode())),
        2 * MIB,
        {"results": repeated("<div class=result>" * 40 + "</div>" * 40)}
        | repeatedly("<b>", "<a class=result__a href=//duckduckgo.com/l/?uddg=", "<!--", "&a", "<p a=b "),
    ),
)


@pytest.mark.stress
@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name.replace("`", ""))
def test_four_times_the_text_takes_at_most_eight_times_as_long(
    parser: Parser, record_property: Callable[[str, object], None]
) -> None:
    """Every parser of outside text takes time that grows as the text does."""
    limit = min(parser.limit, sized(128 * KIB, full=512 * KIB))
    ratios = {name: growth(parser.parse, make, limit) for name, make in parser.worst.items()}
    assert {name: ratio for name, ratio in ratios.items() if ratio >= _RATIO} == {}
    record_property("count", len(ratios))
    record_property("load", "inputs, each n and 4n, up to a parser's limit or 512 KiB")
    record_property("outcome", "4n never takes 8 times as long as n")


def growth(parse: Callable[[Any], object], make: Callable[[int], Any], limit: int) -> float:
    """Return the most times that a text takes as long as a quarter of it.

    Texts grow until their time can be measured, in `make stress` until the limit.
    """
    size, worst = min(256, limit // 4), 0.0
    quarter, whole = make(size), make(4 * size)
    while True:
        if (seconds := seconds_of(parse, whole)) >= _MEASURABLE_SECONDS:
            worst = max(worst, _ratio(parse, quarter, whole, seconds))
        if 16 * size > limit or worst >= _RATIO or (seconds >= _MEASURABLE_SECONDS and not FULL_SIZE):
            return worst
        size *= 4
        quarter, whole = whole, make(4 * size)


def _ratio(parse: Callable[[Any], object], quarter: Any, whole: Any, seconds: float) -> float:
    """Compare the shortest times of several tries."""
    shortest, shortest_whole = float("inf"), seconds
    for _ in range(_TRIES):
        shortest = min(shortest, seconds_of(parse, quarter))
        ratio = shortest_whole / max(shortest, _MEASURABLE_SECONDS / 100)
        if ratio < _RATIO:
            break
        shortest_whole = min(shortest_whole, seconds_of(parse, whole))
    return ratio


def seconds_of(parse: Callable[[Any], object], value: Any) -> float:
    """Return the processor time of a parser that accepts or refuses the value."""
    gc.disable()
    try:
        began = _processor_seconds()
        with suppress(*_REFUSALS):
            parse(value)
        return _processor_seconds() - began
    finally:
        gc.enable()


def _processor_seconds() -> float:
    """Return the time that this process and its ended children took."""
    uses = (resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)


def test_quadratic_time_is_noticed() -> None:
    assert (
        growth(lambda text: [text.count("a" * 8, 0, end) for end in range(len(text))], repeated("ab"), 64 * KIB)
        >= _RATIO
    )


def test_the_table_of_parsers_is_complete() -> None:
    """docs/security.md has a row for each parser of this test, and no other, with files that exist."""
    section = DOCUMENT.read_text(encoding="utf-8").partition("## Parsers\n")[2]
    table, _, _ = section.partition("\n\nThe console")
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    assert [name for name, *_ in rows] == ["parser", *(parser.name for parser in PARSERS)]
    for _, where, limit, cost, test in rows[1:]:
        assert limit
        assert cost
        for path in re.findall(r"`([a-z_/]+(?:\.py)?)`", where + test):
            assert (DOCUMENT.parents[1] / path).exists(), path
