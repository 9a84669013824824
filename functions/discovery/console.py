"""GET / and /console/…: the console, a static web application, and the way to it for browsers."""

import gzip
import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Final

from api.deployment import CONSOLE_FILES, lambda_function
from api.http_events import HttpRequest, HttpResponse, accepts_gzip, endpoint
from shared.platform.config import config
from shared.rpc.errors import NotFound
from shared.rpc.strict_json import compact

CONSOLE: Final = "/console/"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_COMMON: Final = {"x-content-type-options": "nosniff", "referrer-policy": "no-referrer", "vary": "accept-encoding"}
_UNCHANGING: Final = {
    "cache-control": "public, max-age=31536000, immutable",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    **_COMMON,
}


# The gateway has no routes that end with a slash: `path` is empty at /console/.
@lambda_function(
    CONSOLE_FILES,
    timeout=10,
    routes=("GET /", "GET /console", "GET /console/{path+}"),
)
@endpoint("discovery/console")
def handler(request: HttpRequest) -> HttpResponse:
    """Answer with a file of the console. Redirect a browser at `/` to it, and tell programs what there is."""
    if request.path == "/":
        return _root(request.headers)
    if request.path == CONSOLE.rstrip("/"):
        return HttpResponse(HTTPStatus.FOUND, headers={"location": CONSOLE})
    digest, _, name = request.path.removeprefix(CONSOLE).partition("/")
    if not digest:
        return _index(request.headers)
    if digest != _manifest()["digest"]:
        raise NotFound("The console has changed.", guidance="Load /console/ again.")
    return _file(name, request.headers)


def _root(headers: Mapping[str, str]) -> HttpResponse:
    if "text/html" in headers.get("accept", ""):
        return HttpResponse(HTTPStatus.FOUND, headers={"location": CONSOLE, "vary": "accept"})
    links = {"console": CONSOLE, "health": "/health", "openapi": "/openapi.json", "mcp": "/mcp", "jsonrpc": "/jsonrpc"}
    return HttpResponse(HTTPStatus.OK, compact({"name": "Kho", "links": links}), {"vary": "accept"})


def _index(headers: Mapping[str, str]) -> HttpResponse:
    """Answer with the page, which browsers revalidate at each visit."""
    text, tag = _page()
    caching = {
        "cache-control": "no-cache",
        "etag": tag,
        "content-security-policy": _manifest()["policy"],
        "x-frame-options": "DENY",
        "cross-origin-opener-policy": "same-origin",
        **_COMMON,
    }
    tags = [each.strip().removeprefix("W/") for each in headers.get("if-none-match", "").split(",")]
    if tag in tags:
        return HttpResponse(HTTPStatus.NOT_MODIFIED, headers=caching)
    return HttpResponse(HTTPStatus.OK, text, caching | {"content-type": "text/html; charset=utf-8"})


def _file(name: str, headers: Mapping[str, str]) -> HttpResponse:
    content_type = _TYPES.get(Path(name).suffix)
    content = _compressed(name) if content_type and name in _names() else None
    if content is None:
        raise NotFound("The console has no such file.")
    file_headers = {"content-type": str(content_type), **_UNCHANGING}
    if accepts_gzip(headers):
        body = b64encode(content).decode("ascii")
        return HttpResponse(HTTPStatus.OK, body, file_headers | {"content-encoding": "gzip"}, is_base64=True)
    return HttpResponse(HTTPStatus.OK, gzip.decompress(content).decode("utf-8"), file_headers)


def _folder() -> Path:
    folder = Path(config().console_folder)
    if not (folder / "manifest.json").is_file():
        raise NotFound("This server has no console.", guidance="Run 'python3 infra/prepare.py', then start it again.")
    return folder


@cache
def _manifest() -> dict[str, str]:
    manifest: dict[str, str] = json.loads((_folder() / "manifest.json").read_text(encoding="utf-8"))
    return manifest


@cache
def _page() -> tuple[str, str]:
    """Return the page and its entity tag."""
    text = (_folder() / "index.html").read_text(encoding="utf-8")
    return text, f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


@cache
def _names() -> frozenset[str]:
    """Return the names of all files: a name of a request never reaches the file system otherwise."""
    root = _folder() / "files"
    return frozenset(each.relative_to(root).as_posix().removesuffix(".gz") for each in root.rglob("*.gz"))


@cache
def _compressed(name: str) -> bytes:
    return (_folder() / "files" / f"{name}.gz").read_bytes()
