"""Fetching of a web page for the knowledge base."""

import codecs
import contextlib
from typing import Final
from urllib.parse import urlsplit

from infra.clients.agent.backend import BackendError
from shared.knowledge.errors import unreadable
from shared.knowledge.models import MAX_TEXT_BYTES
from shared.knowledge.text_encoding import NotText, decode
from shared.platform.public_address import AddressFailed, AddressRefused, PublicClient, RequestLimits

_UNKNOWN_TYPE: Final = "application/octet-stream"
"""The type that some servers give to a PDF."""
_MAX_BYTES: Final = 32 << 20
_SECONDS: Final = 60
_CONTENT_TYPES: Final = (
    "text/",
    *("application/xhtml", "application/pdf", "application/json", "application/xml", _UNKNOWN_TYPE),
)
_HEADERS: Final = {"user-agent": "research-agent", "accept": "text/html, text/markdown, text/plain, application/pdf"}
_UNSUPPORTED_CODECS: Final = ("idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7")
"""Codecs of Python that are not charsets of web pages. They decode slowly, wrongly, or not at all."""


def fetch(url: str) -> str:
    """Fetch the page at `url` and convert it to Markdown."""
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
        if parts.username is not None:
            address = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
            raise _fetch_error(address, "contains a password, which listings would show: use 'kb add-text'")
    limits = RequestLimits(_SECONDS, _MAX_BYTES, _CONTENT_TYPES, ("http", "https"), redirects=5, loopback=True)
    try:
        response = PublicClient(limits).request("GET", url, headers=_HEADERS)
    except (AddressRefused, AddressFailed) as error:
        advice = "Check the address." if isinstance(error, AddressFailed) else "Only public addresses are fetched."
        raise _fetch_error(url, str(error), f"{advice} Or save the page, and use 'kb add-document'.") from None
    if response.status != 200:
        raise _fetch_error(url, f"answered with HTTP {response.status}", "Check the address in a browser.")
    text = _to_markdown(url, response.content, response.content_type)
    if not text.strip() or len(text.encode("utf-8")) > MAX_TEXT_BYTES:
        raise _fetch_error(url, "holds no text" if not text.strip() else "holds too much text")
    return text


def _to_markdown(url: str, content: bytes, content_type: str) -> str:
    kind, _, rest = content_type.lower().partition(";")
    if kind.strip() == "application/pdf" or content.startswith(b"%PDF-"):
        from shared.knowledge.pdf import text_of

        try:
            return text_of(content).replace("\f", "\n\n")
        except NotText as error:
            raise _fetch_error(url, str(error)) from None
    if kind.strip() == _UNKNOWN_TYPE:
        raise _fetch_error(url, "is not text: its content type is application/octet-stream")
    text = _decode(content, rest.partition("charset=")[2].strip(" \"'"))
    if "html" in kind or text.lstrip()[:15].lower().startswith(("<!doctype html", "<html")):
        from shared.search.splitting import split

        try:
            return "\n\n".join(chunk.text for chunk in split("page.html", text).chunks)
        except ValueError as error:
            raise _fetch_error(url, str(error)) from None
    return text


def _decode(content: bytes, charset: str) -> str:
    """Decode a page by its charset. If that is absent, unknown or unsupported, recognise the encoding."""
    with contextlib.suppress(LookupError):
        if codecs.lookup(charset).name not in _UNSUPPORTED_CODECS:
            return content.decode(charset, "replace")
    try:
        return decode(content)[0]
    except NotText:
        return content.decode("utf-8", "replace")


def _fetch_error(url: str, reason: str, guidance: str = "") -> BackendError:
    error = unreadable(url, reason)
    error.guidance = guidance or error.guidance
    return BackendError.from_kho_error(error)
