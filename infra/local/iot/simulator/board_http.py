"""The HTTP client of the firmware: one request on a connection, and an answer of less than 8 KB."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Trace = Callable[[str], None]

MAX_ANSWER_BYTES: Final = 8_192
"""The firmware's client hangs at an answer of this size, headers included."""
_PART_BYTES: Final = 65_536
_OK: Final = 200


class FirmwareHang(Exception):
    """The firmware hangs until its power is cut."""


class NoAnswer(Exception):
    """The server could not be reached, or its answer is not HTTP."""


@dataclass(frozen=True, slots=True)
class BoardAnswer:
    """The answer to one request."""

    status: int
    headers: dict[str, str]
    body: bytes
    size: int
    """The bytes of headers and body on the wire."""


def post(
    url: str, headers: Mapping[str, str], content: bytes | Sequence[bytes], *, seconds: float, trace: Trace
) -> BoardAnswer:
    """Send one POST request as the firmware does, and return the answer. A sequence is sent in chunks."""
    if isinstance(content, bytes):
        framing, parts, body = {"Content-Length": str(len(content))}, [content], content
    else:
        framing, parts = {"Transfer-Encoding": "chunked"}, list(content)
        body = b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in [*parts, b""])
    answer = _send("POST", url, {**headers, **framing}, body, parts, seconds=seconds, trace=trace)
    if answer.size >= MAX_ANSWER_BYTES:
        raise FirmwareHang(f"an answer of {answer.size} bytes")
    return answer


def download(url: str, *, seconds: float, trace: Trace) -> bytes | None:
    """Return a file, or None where the firmware fails: it takes only status 200 with a Content-Length."""
    try:
        answer = _send("GET", url, {}, b"", [], seconds=seconds, trace=trace)
    except NoAnswer:
        return None
    length = answer.headers.get("content-length", "")
    is_whole = length.isdecimal() and int(length) == len(answer.body) > 0
    return answer.body if answer.status == _OK and is_whole else None


def _send(  # noqa: PLR0913 - each is a part of the request
    verb: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    traced: Sequence[bytes],
    *,
    seconds: float,
    trace: Trace,
) -> BoardAnswer:
    """Send a request and return the answer; `traced` are the parts of the body as they are traced."""
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "") or "/"
    lines = {"Host": parts.netloc, "Connection": "close", **headers}
    head = "\r\n".join([f"{verb} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in lines.items()), "", ""])
    _trace(trace, ">", head, *traced)
    try:
        with _connect(parts.scheme, parts.hostname or "", parts.port, seconds) as connection:
            connection.sendall(head.encode() + body)
            raw = b"".join(iter(lambda: connection.recv(_PART_BYTES), b""))
    except OSError as error:
        trace(f"< no answer: {error}")
        raise NoAnswer(str(error)) from None
    answer = _parse(raw)
    shown = b"" if answer.size >= MAX_ANSWER_BYTES else answer.body
    _trace(trace, "<", raw.partition(b"\r\n\r\n")[0].decode("latin-1"), shown)
    return answer


def _connect(scheme: str, host: str, port: int | None, seconds: float) -> socket.socket:
    connection = socket.create_connection((host, port or (443 if scheme == "https" else 80)), timeout=seconds)
    if scheme != "https":
        return connection
    return ssl.create_default_context().wrap_socket(connection, server_hostname=host)


def _parse(raw: bytes) -> BoardAnswer:
    head, separator, rest = raw.partition(b"\r\n\r\n")
    start, *lines = head.decode("latin-1").split("\r\n")
    version, _, status = start.partition(" ")
    if not separator or not version.startswith("HTTP/1.") or not status[:3].isdecimal():
        raise NoAnswer("the answer is not HTTP")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    chunked = headers.get("transfer-encoding", "").lower() == "chunked"
    return BoardAnswer(int(status[:3]), headers, _dechunked(rest) if chunked else rest, len(raw))


def _dechunked(rest: bytes) -> bytes:
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size.partition(b";")[0], 16)
        if length == 0:
            break
        body, rest = body + rest[:length], rest[length + 2 :]
    return body


def _trace(trace: Trace, mark: str, head: str, *chunks: bytes) -> None:
    for line in head.rstrip().splitlines():
        trace(f"{mark} {line}")
    for chunk in filter(None, chunks):
        try:
            trace(f"{mark} {chunk.decode().rstrip()}")
        except UnicodeDecodeError:
            trace(f"{mark} [{len(chunk)} bytes]")
