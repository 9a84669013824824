"""Fetching of a web page for the knowledge base."""

import codecs
from typing import Final
from urllib.parse import urlsplit

from infra.agent.backend import BackendError
from infra.agent.files.errors import UnreadableFile
from shared.knowledge.errors import unreadable
from shared.knowledge.models import MAX_TEXT_BYTES

_SECONDS: Final = 20
_REDIRECTS: Final = 5
_MAX_BYTES: Final = 32 << 20
_UNSUPPORTED_CODECS: Final = ("idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7")
"""Codecs of Python that are not charsets of web pages. They decode slowly, wrongly, or not at all."""


def fetch(url: str) -> str:
    """Fetch the page at `url` and convert it to Markdown."""
    import urllib3
    from urllib3.exceptions import HTTPError

    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _fetch_error(url, "is not an address that begins with http:// or https://")
    if parts.username is not None:
        address = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        raise _fetch_error(address, "contains a password, which listings would show: use 'kb add-text'")
    try:
        response = urllib3.PoolManager().request(
            "GET",
            url,
            timeout=_SECONDS,
            retries=urllib3.Retry(total=_REDIRECTS, connect=1, read=0, redirect=_REDIRECTS),
            headers={"user-agent": "research-agent", "accept": "text/html, text/markdown, text/plain, application/pdf"},
            preload_content=False,
        )
        content = response.read(_MAX_BYTES + 1, decode_content=True)
        response.release_conn()
    except (HTTPError, UnicodeError) as error:
        raise _fetch_error(url, f"cannot be fetched ({type(error).__name__})") from None
    if response.status != 200:
        raise _fetch_error(url, f"answered with HTTP {response.status}")
    if len(content) > _MAX_BYTES:
        raise _fetch_error(url, f"is larger than {_MAX_BYTES >> 20} MiB")
    text = _to_markdown(url, content, response.headers.get("content-type", ""))
    if not text.strip() or len(text.encode("utf-8")) > MAX_TEXT_BYTES:
        raise _fetch_error(url, "holds no text" if not text.strip() else "holds too much text")
    return text


def _to_markdown(url: str, content: bytes, content_type: str) -> str:
    kind, _, rest = content_type.lower().partition(";")
    if kind.strip() == "application/pdf" or content.startswith(b"%PDF-"):
        from infra.agent.files.pdf import text_of

        try:
            return text_of(content).replace("\f", "\n\n")
        except UnreadableFile as error:
            raise _fetch_error(url, str(error)) from None
    text = _decode(content, rest.partition("charset=")[2].strip(" \"'"))
    if "html" in kind or text.lstrip()[:15].lower().startswith(("<!doctype html", "<html")):
        from shared.knowledge.splitting import split

        try:
            return "\n\n".join(chunk.text for chunk in split("page.html", text).chunks)
        except ValueError as error:
            raise _fetch_error(url, str(error)) from None
    return text


def _decode(content: bytes, charset: str) -> str:
    """Decode a page by its charset, or as UTF-8 if the charset is unknown or unsupported."""
    try:
        known = codecs.lookup(charset).name not in _UNSUPPORTED_CODECS
        return content.decode(charset if known else "utf-8", "replace")
    except LookupError:
        return content.decode("utf-8", "replace")


def _fetch_error(url: str, reason: str) -> BackendError:
    return BackendError.from_kho_error(unreadable(url, reason))
