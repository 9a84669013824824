"""The console under Lambda's runtime: addresses, caching, compression and headers as the gateway gets them."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from infra.clients.console.bundle import HERE
from tests.events import event
from tests.suites.rie.emulator import crashed

if TYPE_CHECKING:
    from tests.suites.rie.emulator import Lambda

CONSOLE: Final = "discovery-console"
INDEX: Final = "/console/"
PROGRAM: Final = "app.js"
_ADDRESS: Final = re.compile(rf'src="\./([0-9a-f]{{16}}/{re.escape(PROGRAM)})"')
_UNSAFE: Final = re.compile(r"unsafe-[\w-]*|\*")


@dataclass(frozen=True, slots=True)
class _Response:
    status: int
    headers: dict[str, str]
    body: str
    is_base64: bool

    def expect(self, what: str, status: int, **headers: str) -> list[str]:
        """Return what differs from this status and these headers, which have '_' for '-'."""
        expected: dict[str, str | int] = {"status": status}
        expected |= {name.replace("_", "-"): value for name, value in headers.items()}
        actual = self.headers | {"status": self.status}
        return [
            f"{what}: {name} is {actual.get(name)!r}, not {value!r}"
            for name, value in expected.items()
            if actual.get(name) != value
        ]


def console_problems(aws: Lambda) -> list[str]:
    """Request the console as a browser does. Return what is wrong with the responses."""
    index = _get(aws, INDEX)
    policy, tag = index.headers.get("content-security-policy", ""), index.headers.get("etag", "")
    problems = index.expect("index", 200, cache_control="no-cache", content_type="text/html; charset=utf-8")
    if "default-src 'none'" not in policy or _UNSAFE.search(policy):
        problems.append(f"index: content-security-policy is {policy!r}")
    address = _ADDRESS.search(index.body)
    if not tag or not address:
        return [*problems, f"index: no entity tag, or no {PROGRAM}: {index.headers} {index.body[:300]}"]
    again = _get(aws, INDEX, if_none_match=tag)
    problems += again.expect("index again", 304, etag=tag, cache_control="no-cache", content_security_policy=policy)
    if again.body:
        problems.append(f"index again: 304 has a body: {again.body[:100]!r}")
    problems += _file_problems(aws, address[1])
    problems += _get(aws, "/", "GET /").expect("/", 302, location=INDEX)
    for name in (address[1].replace(PROGRAM, "absent.js"), f"{'0' * 16}/{PROGRAM}"):
        absent = _get(aws, INDEX + name)
        problems += absent.expect(name, 404, content_type="application/json", cache_control="no-store")
        if '"code":"NOT_FOUND"' not in absent.body:
            problems.append(f"{name}: the body is {absent.body[:200]!r}")
    return problems


def _file_problems(aws: Lambda, name: str) -> list[str]:
    """Return what is wrong with a file, compressed and as plain text."""
    source = (HERE / PROGRAM).read_bytes()
    caching = {"cache_control": "public, max-age=31536000, immutable", "content_type": "text/javascript; charset=utf-8"}
    compressed = _get(aws, INDEX + name)
    problems = compressed.expect(name, 200, **caching, content_encoding="gzip", vary="accept-encoding")
    if not compressed.is_base64:
        problems.append(f"{name}: the compressed body is not in base64")
    elif gzip.decompress(b64decode(compressed.body)) != source:
        problems.append(f"{name}: the compressed body is another file")
    plain = _get(aws, INDEX + name, accept_encoding="identity")
    problems += plain.expect(f"{name} as text", 200, **caching, vary="accept-encoding")
    if plain.is_base64 or "content-encoding" in plain.headers or plain.body.encode() != source:
        problems.append(f"{name} as text: the body is compressed, or another file")
    return problems


def _get(aws: Lambda, path: str, route: str = "", **headers: str) -> _Response:
    """Return the response to a browser's request. Header names have '_' for '-'."""
    request: dict[str, Any] = json.loads(event(CONSOLE))
    request["headers"] |= {"accept-encoding": "gzip, deflate, br"}
    request["headers"] |= {name.replace("_", "-"): value for name, value in headers.items()}
    request["rawPath"] = request["requestContext"]["http"]["path"] = path
    if route:
        request["routeKey"] = request["requestContext"]["routeKey"] = route
        del request["pathParameters"]
    else:
        request["pathParameters"] = {"path": path.removeprefix(INDEX)}
    answer, _ = aws.invoke(CONSOLE, json.dumps(request).encode())
    assert not crashed(answer), answer
    response = json.loads(answer)
    return _Response(response["statusCode"], response["headers"], response["body"], response["isBase64Encoded"])
