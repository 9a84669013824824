"""Signed HTTP requests to AWS services (Signature Version 4, SigV4), on the standard library's HTTP client.

It is ready in a tenth of boto3's time and takes a third of its time per request. On Lambda, credentials come from the
environment, or from a local address if the instance was restored from a snapshot. With `kho serve`, they are the
operator's.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
import select
import time
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from ssl import SSLContext, create_default_context
from threading import Lock
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote, urlsplit

from shared.aws import passed_socket

if TYPE_CHECKING:
    from collections.abc import Mapping

    from botocore.credentials import Credentials as BotocoreCredentials

_CREDENTIALS_URI: Final = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
_RENEWAL_MARGIN: Final = timedelta(minutes=5)
_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_MAX_IDLE: Final = 100
_CREDENTIALS_SECONDS: Final = 2
_session_lock: Final = Lock()


class ConnectionFailed(Exception):
    """No complete response was received."""


class ConnectionNotEstablished(ConnectionFailed):
    """No connection could be made, so the request was not sent."""


class ResponseTimeout(ConnectionFailed):
    """The request was sent, and no response came in time."""


def runs_in_lambda() -> bool:
    """Return True in a Lambda function."""
    return "AWS_LAMBDA_FUNCTION_NAME" in os.environ


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials for signing, and their expiry."""

    key: str
    secret: str
    token: str
    ends: datetime | None = None

    @classmethod
    def current(cls) -> Credentials:
        """Return the current credentials of this process."""
        if runs_in_lambda() and _CREDENTIALS_URI in os.environ:
            return cls._from_local_address()
        if "AWS_ACCESS_KEY_ID" in os.environ:
            token = os.environ.get("AWS_SESSION_TOKEN", "")
            return cls(os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"], token)
        return cls._from_botocore()

    @classmethod
    def _from_local_address(cls) -> Credentials:
        from urllib.request import Request, urlopen

        headers = {"Authorization": os.environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")}
        try:
            with urlopen(  # noqa: S310 - Lambda's own address
                Request(os.environ[_CREDENTIALS_URI], headers=headers),  # noqa: S310
                timeout=_CREDENTIALS_SECONDS,
            ) as response:
                record = json.load(response)
        except (OSError, ValueError) as error:
            raise ConnectionFailed(type(error).__name__) from None
        return cls(
            record["AccessKeyId"],
            record["SecretAccessKey"],
            record["Token"],
            datetime.fromisoformat(record["Expiration"]),
        )

    @classmethod
    def _from_botocore(cls) -> Credentials:
        """Return the operator's credentials: of a profile or of the machine."""
        with _session_lock:
            source = _botocore_credentials()
        if source is None:
            raise ConnectionFailed("NoCredentials")
        current = source.get_frozen_credentials()
        ends = datetime.now(UTC) + 2 * _RENEWAL_MARGIN  # botocore renews them on the next call if necessary
        return cls(current.access_key or "", current.secret_key or "", current.token or "", ends)

    def are_fresh(self, at: datetime) -> bool:
        """Return True if they do not have to be renewed yet."""
        return self.ends is None or at < self.ends - _RENEWAL_MARGIN


@cache
def _botocore_credentials() -> BotocoreCredentials | None:
    from botocore.session import get_session

    return get_session().get_credentials()


class SignedServiceClient:
    """Client of one service in this region, with a connection pool.

    A connection that was idle for `max_idle_seconds` is not reused: the service may just be closing it, and a request
    that must not be retried would be lost.
    """

    def __init__(
        self,
        name: str,
        *,
        connect_seconds: float,
        read_seconds: float,
        url: str = "",
        max_idle_seconds: float = math.inf,
    ) -> None:
        self._name = name
        self._max_idle_seconds = max_idle_seconds
        self._region = os.environ.get("AWS_REGION") or os.environ["AWS_DEFAULT_REGION"]
        self._connect_seconds, self._read_seconds = connect_seconds, read_seconds
        domain = "amazonaws.com.cn" if self._region.startswith("cn-") else "amazonaws.com"
        endpoint = url or os.environ.get(f"AWS_ENDPOINT_URL_{name.upper()}") or os.environ.get("AWS_ENDPOINT_URL")
        self.url = endpoint or f"https://{name}.{self._region}.{domain}"
        self._parts = urlsplit(self.url)
        self._idle: deque[tuple[HTTPConnection, float]] = deque()
        self._credentials: Credentials | None = None

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], bytes]:
        """Send a POST request like `request`."""
        return self.request("POST", path, body, headers)

    def request(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str], query: str = ""
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers by lower-case name, and body. Raise ConnectionFailed if the outcome is unknown.

        The path must be escaped, the query escaped and sorted.
        """
        now = datetime.now(UTC)
        if self._credentials is None or not self._credentials.are_fresh(now):
            self._credentials = Credentials.current()
        signed = self.sign(path, body, headers, self._credentials, now, method=method, query=query)
        if trace := os.environ.get("_X_AMZN_TRACE_ID"):
            signed["x-amzn-trace-id"] = trace  # the service appears in the caller's trace
        connection = self._connection()
        reusable = False
        try:
            response, content = _exchange(connection, method, f"{path}?{query}" if query else path, signed, body)
            reusable = not response.will_close
        except (OSError, HTTPException) as error:
            failure = ResponseTimeout if isinstance(error, TimeoutError) else ConnectionFailed
            raise failure(type(error).__name__) from None
        finally:
            if reusable and len(self._idle) < _MAX_IDLE:
                self._idle.append((connection, time.monotonic()))
            else:
                connection.close()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, content

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop()[0].close()

    def sign(  # noqa: PLR0913 - each is a part of what is signed
        self,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
        credentials: Credentials,
        at: datetime,
        *,
        method: str = "POST",
        query: str = "",
    ) -> dict[str, str]:
        """Return the request's headers with its signature, version 4."""
        moment = at.strftime("%Y%m%dT%H%M%SZ")
        sent = {name.lower(): value for name, value in headers.items()}
        sent |= {"host": self._parts.netloc or "localhost", "x-amz-date": moment}
        if credentials.token:
            sent["x-amz-security-token"] = credentials.token
        names = sorted(sent)
        signed_names = ";".join(names)
        lines = [f"{name}:{sent[name].strip()}" for name in names]
        canonical = "\n".join([method, quote(path), query, *lines, "", signed_names, hashlib.sha256(body).hexdigest()])
        scope = f"{moment[:8]}/{self._region}/{self._name}/aws4_request"
        to_sign = "\n".join([_ALGORITHM, moment, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        key = f"AWS4{credentials.secret}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
        credential = f"{credentials.key}/{scope}"
        sent["authorization"] = (
            f"{_ALGORITHM} Credential={credential}, SignedHeaders={signed_names}, Signature={signature}"
        )
        return sent

    @cached_property
    def _tls(self) -> SSLContext:
        # One context for all connections: it reads every trusted certificate.
        context = create_default_context(cafile=os.environ.get("AWS_CA_BUNDLE") or None)
        context.set_alpn_protocols(["http/1.1"])
        return context

    def _connection(self) -> HTTPConnection:
        while self._idle:
            try:
                connection, since = self._idle.pop()
            except IndexError:
                break  # another thread was first
            if time.monotonic() - since < self._max_idle_seconds and not _is_stale(connection):
                return connection
            connection.close()
        host, port = self._parts.hostname or "localhost", self._parts.port
        if self._parts.scheme == "https":
            connection = HTTPSConnection(host, port, timeout=self._connect_seconds, context=self._tls)
        else:
            connection = HTTPConnection(host, port, timeout=self._connect_seconds)
        try:
            if self._parts.scheme == passed_socket.SCHEME:
                connection.sock = passed_socket.connect(unquote(self._parts.path), self._connect_seconds)
            else:
                connection.connect()
        except OSError as error:
            connection.close()
            raise ConnectionNotEstablished(type(error).__name__) from None
        connection.sock.settimeout(self._read_seconds)
        return connection


def _exchange(
    connection: HTTPConnection, method: str, target: str, headers: Mapping[str, str], body: bytes
) -> tuple[HTTPResponse, bytes]:
    """Send one request. Return the response and its body, or raise HTTPException if it may be incomplete."""
    start = f"{method} {target} HTTP/1.1"
    lines = [f"{name}: {value}" for name, value in headers.items()]
    if " " in target or not all(line.isprintable() for line in (start, *lines)):
        raise ValueError("the target must be escaped, and each header must be one line")
    head = "\r\n".join([start, *lines, f"content-length: {len(body)}", "", ""])
    # HTTPConnection would send head and body separately, which wakes the service twice.
    connection.sock.sendall(head.encode("latin-1") + body)
    with HTTPResponse(connection.sock, method=method) as response:
        response.begin()
        lengths = response.headers.get_all("content-length", [])
        if response.status < HTTPStatus.OK or len(lengths) > 1 or (response.length is None and not response.chunked):
            raise HTTPException("the response has no definite end")
        return response, response.read()


def _is_stale(connection: HTTPConnection) -> bool:
    """Return True if there is something to read on an idle connection: its end, or surplus bytes."""
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(0))
