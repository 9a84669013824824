"""AWS's services by signed HTTP, for functions: ready in a tenth of the time that boto3 takes, asked in a third of it.

Credentials are those that Lambda gives an instance: in its environment for as long as it lives, or, where it was
restored from a snapshot, at an address of the machine's own. Functions that are served on one machine have those of
whoever serves them.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
import time
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from ssl import SSLContext, create_default_context
from threading import Lock
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from shared.aws.http_connection import HttpConnection, InvalidResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from botocore.credentials import Credentials as BotocoreCredentials

_ADDRESS: Final = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
_RENEWED_BEFORE: Final = timedelta(minutes=5)
_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_KEPT: Final = 100
_CREDENTIALS_SECONDS: Final = 2
"""So many connections wait for the next request at most."""
_signing_in: Final = Lock()


class ConnectionFailed(Exception):
    """No whole answer came."""


class ConnectionNotEstablished(ConnectionFailed):
    """Nothing was heard of the request, for there was no connection to send it on."""


class ResponseTimeout(ConnectionFailed):
    """The request was heard, and not answered for too long."""


def runs_in_lambda() -> bool:
    """Whether this process is a function's."""
    return "AWS_LAMBDA_FUNCTION_NAME" in os.environ


@dataclass(frozen=True, slots=True)
class Credentials:
    """What requests are signed with, and until when."""

    key: str
    secret: str
    token: str
    ends: datetime | None = None

    @classmethod
    def current(cls) -> Credentials:
        """Those that this process has at present."""
        if runs_in_lambda() and _ADDRESS in os.environ:
            return cls._of_snapshot()
        if "AWS_ACCESS_KEY_ID" in os.environ:
            token = os.environ.get("AWS_SESSION_TOKEN", "")
            return cls(os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"], token)
        return cls._of_operator()

    @classmethod
    def _of_snapshot(cls) -> Credentials:
        from urllib.request import Request, urlopen

        headers = {"Authorization": os.environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")}
        try:
            with urlopen(Request(os.environ[_ADDRESS], headers=headers), timeout=_CREDENTIALS_SECONDS) as answer:  # noqa: S310 - Lambda's own
                said = json.load(answer)
        except (OSError, ValueError) as error:
            raise ConnectionFailed(type(error).__name__) from None
        return cls(
            said["AccessKeyId"], said["SecretAccessKey"], said["Token"], datetime.fromisoformat(said["Expiration"])
        )

    @classmethod
    def _of_operator(cls) -> Credentials:
        """Those of whoever serves this machine: of a profile, or of the machine itself."""
        with _signing_in:
            found = _current_credentials()
        if found is None:
            raise ConnectionFailed("NoCredentials")
        now = found.get_frozen_credentials()
        ends = datetime.now(UTC) + 2 * _RENEWED_BEFORE  # botocore renews them, if it must, when it is asked again
        return cls(now.access_key or "", now.secret_key or "", now.token or "", ends)

    def are_fresh(self, at: datetime) -> bool:
        """Whether they are good for a while yet."""
        return self.ends is None or at < self.ends - _RENEWED_BEFORE


@cache
def _current_credentials() -> BotocoreCredentials | None:
    from botocore.session import get_session

    return get_session().get_credentials()


class SignedServiceClient:
    """One service in this function's region, over connections that are kept.

    A request that must not be tried again is better sent on a new connection than on one that the other side may just
    be ending for having been idle: `kept_seconds` says for how long one is used again.
    """

    def __init__(
        self, name: str, *, connect_seconds: float, read_seconds: float, url: str = "", kept_seconds: float = math.inf
    ) -> None:
        self._name = name
        self._kept_seconds = kept_seconds
        self._region = os.environ.get("AWS_REGION") or os.environ["AWS_DEFAULT_REGION"]
        self._connect_seconds, self._read_seconds = connect_seconds, read_seconds
        domain = "amazonaws.com.cn" if self._region.startswith("cn-") else "amazonaws.com"
        given = url or os.environ.get(f"AWS_ENDPOINT_URL_{name.upper()}") or os.environ.get("AWS_ENDPOINT_URL")
        self.url = given or f"https://{name}.{self._region}.{domain}"
        self._parts = urlsplit(self.url)
        self._idle: deque[tuple[HttpConnection, float]] = deque()
        self._credentials: Credentials | None = None

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], bytes]:
        """What the service answers to POST, as `request` gives it."""
        return self.request("POST", path, body, headers)

    def request(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str], query: str = ""
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of the answer; ConnectionFailed where the request may or may not have been heard.

        The path is one whose parts are escaped, the query escaped and sorted.
        """
        now = datetime.now(UTC)
        if self._credentials is None or not self._credentials.are_fresh(now):
            self._credentials = Credentials.current()
        signed = self.signed(path, body, headers, self._credentials, now, method=method, query=query)
        if trace := os.environ.get("_X_AMZN_TRACE_ID"):
            signed["x-amzn-trace-id"] = trace  # what is called shows up in the caller's trace
        connection = self._connection()
        try:
            answer = connection.request(method, f"{path}?{query}" if query else path, signed, body)
        except (OSError, InvalidResponse) as error:
            failure = ResponseTimeout if isinstance(error, TimeoutError) else ConnectionFailed
            raise failure(type(error).__name__) from None
        finally:
            if connection.goes_on and len(self._idle) < _KEPT:
                self._idle.append((connection, time.monotonic()))
            else:
                connection.close()
        return answer

    def close(self) -> None:
        """Let go of the connections that are idle."""
        while self._idle:
            self._idle.pop()[0].close()

    def signed(  # noqa: PLR0913 - each is a part of what is signed
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
        """The request's headers with its signature, version 4."""
        moment = at.strftime("%Y%m%dT%H%M%SZ")
        sent = {name.lower(): value for name, value in headers.items()}
        sent |= {"host": self._parts.netloc, "x-amz-date": moment}
        if credentials.token:
            sent["x-amz-security-token"] = credentials.token
        names = sorted(sent)
        listed = ";".join(names)
        lines = [f"{name}:{sent[name].strip()}" for name in names]
        canonical = "\n".join([method, quote(path), query, *lines, "", listed, hashlib.sha256(body).hexdigest()])
        scope = f"{moment[:8]}/{self._region}/{self._name}/aws4_request"
        to_sign = "\n".join([_ALGORITHM, moment, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        key = f"AWS4{credentials.secret}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
        credential = f"{credentials.key}/{scope}"
        sent["authorization"] = f"{_ALGORITHM} Credential={credential}, SignedHeaders={listed}, Signature={signature}"
        return sent

    @cached_property
    def _tls(self) -> SSLContext:
        # Once for all connections: every certificate that is trusted is read for it.
        context = create_default_context(cafile=os.environ.get("AWS_CA_BUNDLE") or None)
        context.set_alpn_protocols(["http/1.1"])
        return context

    def _connection(self) -> HttpConnection:
        while self._idle:
            try:
                kept, since = self._idle.pop()
            except IndexError:
                break  # another thread was first
            if time.monotonic() - since < self._kept_seconds and not kept.is_closed_by_peer():
                return kept
            kept.close()
        tls = self._tls if self._parts.scheme == "https" else None
        try:
            return HttpConnection(
                self._parts, tls, connect_seconds=self._connect_seconds, read_seconds=self._read_seconds
            )
        except OSError as error:
            raise ConnectionNotEstablished(type(error).__name__) from None
