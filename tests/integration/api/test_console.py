"""The endpoint of the console: addresses, caching, compression and headers."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from discovery import console
from infra.clients.console import bundle as bundling
from infra.clients.console.bundle import BundleError, bundle
from shared.platform.config import config
from tests.helpers.mcp_events import event

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8", "accept-encoding": "gzip, deflate, br"}
_CACHES = (config, console._manifest, console._page, console._names, console._compressed)


def _forget() -> None:
    for each in _CACHES:
        each.cache_clear()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Serve the bundle in a folder of its own. Return it."""
    target = tmp_path / "console"
    bundle(target, one_machine=False)
    monkeypatch.setenv("KHO_CONSOLE_FOLDER", str(target))
    _forget()
    yield target
    _forget()


def get(path: str, headers: dict[str, str] | None = None) -> Any:
    """Return the endpoint's response as the gateway gets it."""
    request = event("", "GET", path)
    request["headers"] = {"host": "kho.example"} | (BROWSER if headers is None else headers)
    return console.handler(request, None)


def content(response: Any) -> str:
    """Return the body as the browser reads it."""
    if not response["isBase64Encoded"]:
        return str(response["body"])
    assert response["headers"]["content-encoding"] == "gzip"
    return gzip.decompress(base64.b64decode(response["body"])).decode()


def files_of(page: str) -> list[str]:
    """Return the addresses that the page names: style sheet, program, and modules of the import map."""
    return re.findall(r'"\./([0-9a-f]{16}/[^"]+)"', page)


def test_browser_at_the_root_is_sent_to_the_console(folder: Path) -> None:
    """`/` sends browsers to the console, and tells programs where everything is."""
    for path in ("/", "/console"):
        response = get(path)
        assert (response["statusCode"], response["headers"]["location"]) == (302, "/console/")
    response = get("/", {"accept": "*/*"})
    assert response["statusCode"] == 200
    assert json.loads(response["body"])["links"]["openapi"] == "/openapi.json"
    assert response["headers"]["vary"] == "accept"


def test_page_is_revalidated_and_its_files_are_kept_for_ever(folder: Path) -> None:
    """The page is revalidated at each visit (304 while it is the same); a file never changes under its name."""
    page = get("/console/")
    assert page["headers"]["cache-control"] == "no-cache"
    for tags in (page["headers"]["etag"], f'"other", W/{page["headers"]["etag"]}'):
        again = get("/console/", BROWSER | {"if-none-match": tags})
        assert (again["statusCode"], again["body"]) == (304, "")
        assert again["headers"]["content-security-policy"] == page["headers"]["content-security-policy"]
    assert get("/console/", BROWSER | {"if-none-match": '"other"'})["statusCode"] == 200
    names = files_of(content(page))
    assert len(names) > 8
    for name in names:
        response = get(f"/console/{name}")
        assert response["statusCode"] == 200, name
        assert response["headers"]["cache-control"] == "public, max-age=31536000, immutable"
        assert response["headers"]["x-content-type-options"] == "nosniff"


def test_files_are_compressed_in_advance(folder: Path) -> None:
    """A file is sent as it was compressed at build time, and as plain text to clients without gzip."""
    (name,) = [each for each in files_of(content(get("/console/"))) if each.endswith("/app.js")]
    stored = (folder / "files" / "app.js.gz").read_bytes()
    response = get(f"/console/{name}")
    assert base64.b64decode(response["body"]) == stored
    assert response["headers"]["vary"] == "accept-encoding"
    assert response["headers"]["content-type"] == "text/javascript; charset=utf-8"
    for refusing in ({}, {"accept-encoding": "gzip;q=0"}):
        plain = get(f"/console/{name}", refusing)
        assert not plain["isBase64Encoded"]
        assert "content-encoding" not in plain["headers"]
        assert plain["body"].encode() == gzip.decompress(stored)


def test_policy_allows_nothing_unsafe(folder: Path) -> None:
    """The page's Content-Security-Policy allows its own files and the inline import map by hash, nothing else."""
    page = get("/console/")
    policy = dict(each.split(" ", 1) for each in page["headers"]["content-security-policy"].split("; "))
    (import_map,) = re.findall(r'<script type="importmap">(.*?)</script>', content(page), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(import_map.encode()).digest()).decode()
    assert policy == {
        "default-src": "'none'",
        "script-src": f"'self' 'sha256-{digest}'",
        "style-src": "'self'",
        "connect-src": "'self'",
        "img-src": "'self' data: blob:",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
        "form-action": "'self'",
    }
    assert page["headers"]["x-frame-options"] == "DENY"
    assert content(page).count("<script") == 2


def test_only_the_bundled_files_are_served(folder: Path) -> None:
    """A name outside the bundle is not found, wherever it points."""
    digest = files_of(content(get("/console/")))[0].split("/")[0]
    (folder / "secret.js").write_text("secret")
    for name in (
        "absent.js",
        "../manifest.json",
        "../secret.js",
        "%2e%2e/secret.js",
        "app.js.gz",
        "",
        "pages",
        "/etc/passwd",
    ):
        assert get(f"/console/{digest}/{name}")["statusCode"] == 404, name
    response = get("/console/0123456789abcdef/app.js")
    assert response["statusCode"] == 404
    assert "Load /console/ again" in response["body"]


def test_each_change_of_a_file_changes_all_addresses(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bundle with one other file has another digest, so no browser mixes two versions."""
    before = files_of(content(get("/console/")))[0].split("/")[0]
    sources, served = bundling.HERE, bundling._served_files()
    monkeypatch.setattr(bundling, "HERE", tmp_path / "sources")
    for file in served:
        copy = bundling.HERE / file.relative_to(sources)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes() + (b"\n" if file.name == "html.js" else b""))
    (bundling.HERE / "index.html").write_text((sources / "index.html").read_text())
    bundle(folder, one_machine=False)
    _forget()
    after = files_of(content(get("/console/")))[0].split("/")[0]
    assert before != after


def test_server_without_the_packages_says_how_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the console's files the answer is 404 with the command that fetches them."""
    monkeypatch.setenv("KHO_CONSOLE_FOLDER", str(tmp_path))
    monkeypatch.setattr(bundling, "_MODULES", tmp_path / "absent.json")
    _forget()
    with pytest.raises(BundleError, match=r"infra/prepare\.py"):
        bundle(tmp_path / "console", one_machine=True)
    response = get("/console/")
    assert response["statusCode"] == 404
    assert "infra/prepare.py" in response["body"]
    _forget()
