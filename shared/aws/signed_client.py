"""Signed HTTP requests to AWS services (Signature Version 4, SigV4).

On Lambda, credentials come from the environment, or from a local address if the instance was restored from a snapshot.
With `kho serve`, they are the operator's.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from shared.platform.http import ConnectionFailed, HttpClient
from shared.platform.runtime import runtime
from shared.platform.telemetry import trace_header

if TYPE_CHECKING:
    from collections.abc import Mapping

    from botocore.credentials import Credentials as BotocoreCredentials

_CREDENTIALS_URI: Final = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
_RENEWAL_MARGIN: Final = timedelta(minutes=5)
_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_CREDENTIALS_SECONDS: Final = 2
_UNVERIFIED: Final = {
    "x-amz-date": "20000101T000000Z",
    "authorization": f"{_ALGORITHM} Credential=a/20000101/b/c/aws4_request, SignedHeaders=host, Signature=0",
}
_session_lock: Final = Lock()


def runs_in_lambda() -> bool:
    """Return True in a Lambda function."""
    return "AWS_LAMBDA_FUNCTION_NAME" in runtime.environment


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
        if runs_in_lambda() and _CREDENTIALS_URI in runtime.environment:
            return cls._from_local_address()
        if "AWS_ACCESS_KEY_ID" in runtime.environment:
            token = runtime.environment.get("AWS_SESSION_TOKEN", "")
            return cls(runtime.environment["AWS_ACCESS_KEY_ID"], runtime.environment["AWS_SECRET_ACCESS_KEY"], token)
        return cls._from_botocore()

    @classmethod
    def _from_local_address(cls) -> Credentials:
        from urllib.request import Request, urlopen

        headers = {"Authorization": runtime.environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")}
        try:
            with urlopen(  # noqa: S310 - Lambda's own address
                Request(runtime.environment[_CREDENTIALS_URI], headers=headers),  # noqa: S310
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


@lru_cache(maxsize=8)
def _signing_key(secret: str, scope: str) -> bytes:
    """Return the key of a day, a region and a service."""
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


@cache
def _botocore_credentials() -> BotocoreCredentials | None:
    from botocore.session import get_session

    return get_session().get_credentials()


class SignedServiceClient(HttpClient):
    """Client of one service in this region."""

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
        self._region = runtime.environment.get("AWS_REGION") or runtime.environment["AWS_DEFAULT_REGION"]
        domain = "amazonaws.com.cn" if self._region.startswith("cn-") else "amazonaws.com"
        endpoint = (
            url
            or runtime.environment.get(f"AWS_ENDPOINT_URL_{name.upper()}")
            or runtime.environment.get("AWS_ENDPOINT_URL")
        )
        super().__init__(
            endpoint or f"https://{name}.{self._region}.{domain}",
            connect_seconds=connect_seconds,
            read_seconds=read_seconds,
            max_idle_seconds=max_idle_seconds,
        )
        self._credentials: Credentials | None = None
        self._signed_at = datetime.min.replace(tzinfo=UTC)

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], bytes]:
        """Send a POST request like `request`."""
        return self.request("POST", path, body, headers)

    def request(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str], query: str = ""
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers by lower-case name, and body. Raise ConnectionFailed if the outcome is unknown.

        The path must be escaped, the query escaped and sorted.
        """
        target = f"{path}?{query}" if query else path
        if self.is_of_this_machine:
            return self.send(method, target, {"host": self.authority, **_UNVERIFIED, **headers}, body)
        now = datetime.now(UTC)
        # After a step back of the clock, the credentials are of any age.
        if self._credentials is None or now < self._signed_at or not self._credentials.are_fresh(now):
            self._credentials = Credentials.current()
        self._signed_at = now
        signed = self.sign(path, body, headers, self._credentials, now, method=method, query=query)
        if trace := trace_header():
            signed["x-amzn-trace-id"] = trace  # the service appears in the caller's trace
        return self.send(method, target, signed, body)

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
        sent |= {"host": self.authority, "x-amz-date": moment}
        if credentials.token:
            sent["x-amz-security-token"] = credentials.token
        names = sorted(sent)
        signed_names = ";".join(names)
        lines = [f"{name}:{sent[name].strip()}" for name in names]
        canonical = "\n".join([method, quote(path), query, *lines, "", signed_names, hashlib.sha256(body).hexdigest()])
        scope = f"{moment[:8]}/{self._region}/{self._name}/aws4_request"
        to_sign = "\n".join([_ALGORITHM, moment, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        signature = hmac.digest(_signing_key(credentials.secret, scope), to_sign.encode(), "sha256").hex()
        credential = f"{credentials.key}/{scope}"
        sent["authorization"] = (
            f"{_ALGORITHM} Credential={credential}, SignedHeaders={signed_names}, Signature={signature}"
        )
        return sent
