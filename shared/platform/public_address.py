"""HTTP requests to addresses that a caller chooses, without server-side request forgery (SSRF).

A name is resolved once, and the connection goes to the address that was checked: a second answer of the name's server
(DNS rebinding) has no effect. Each redirect is checked again. One deadline covers everything, name resolution included.
"""

import contextlib
import http.client
import ipaddress
import socket
import ssl
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

from shared.platform.background import run_with_timeout
from shared.platform.http import shut_down_at

Resolver = Callable[[str, int], Sequence[str]]
Connector = Callable[[tuple[str, int], float], socket.socket]

_REDIRECTS: Final = (301, 302, 303, 307, 308)
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_GZIP_OR_ZLIB: Final = 47
_LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "::1")
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_GLOBAL_IPV6: Final = ipaddress.ip_network("2000::/3")
_SPECIAL: Final = tuple(
    map(
        ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
    )
)
"""Ranges for protocols, tunnels and documentation, which some versions of Python call global."""


class AddressRefused(Exception):
    """The address may not be connected to. The message continues a sentence that begins with the address."""


class AddressFailed(Exception):
    """The address gave no usable response. The message continues a sentence that begins with the address."""


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """The limits of a request to a caller's address."""

    seconds: float
    """The total time, from the name's resolution to the last byte."""
    max_bytes: int
    """The maximum size of the body, also after decompression."""
    content_types: tuple[str, ...] = ()
    """The beginnings of accepted media types. All are accepted if there are none."""
    schemes: tuple[str, ...] = ("https",)
    redirects: int = 0
    loopback: bool = False
    """Accept a loopback address if the caller's URL names it. A redirect never leads to one."""


@dataclass(frozen=True, slots=True)
class PublicResponse:
    """The last response of a chain of redirects."""

    status: int
    content_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class _Target:
    """A checked URL, and the address that its connection goes to."""

    parts: SplitResult
    port: int
    address: str


def resolve(host: str, port: int) -> list[str]:
    """Resolve a name by the operating system."""
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in entries))


def is_public(address: str) -> bool:
    """Return whether an IP address is one of the public Internet."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address) and ip in _NAT64:
        ip = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    if isinstance(ip, ipaddress.IPv6Address) and ip not in _GLOBAL_IPV6:
        return False  # also IPv4-mapped addresses
    return (
        ip.is_global and not ip.is_multicast and not any(ip in each for each in _SPECIAL if each.version == ip.version)
    )


@dataclass(frozen=True, slots=True)
class PublicClient:
    """Sends requests to addresses that a caller chooses, within limits."""

    limits: RequestLimits
    resolve: Resolver = resolve
    connect: Connector = socket.create_connection
    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context)

    def request(
        self, method: str, url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> PublicResponse:
        """Send a request, following redirects as far as the limits allow."""
        deadline = time.monotonic() + self.limits.seconds
        current = url
        for followed in range(self.limits.redirects + 1):
            target = self._checked(current, deadline, is_typed=not followed)
            with self._response(target, deadline, method, body, headers or {}) as response:
                location = response.headers.get("location")
                if response.status not in _REDIRECTS or not location:
                    return self._read(response)
                current = urljoin(current, location)
        raise AddressRefused("redirects" if not self.limits.redirects else "redirects too often")

    def _checked(self, url: str, deadline: float, *, is_typed: bool) -> _Target:
        """Resolve the host once. Every address that it has must be public."""
        parts, port = self._split(url)
        host = str(parts.hostname)
        try:
            addresses = run_with_timeout(deadline - time.monotonic(), lambda: self.resolve(host, port))
        except TimeoutError:
            raise self._late() from None
        except (OSError, UnicodeError):
            addresses = []
        if not addresses:
            raise AddressFailed("has a host whose name cannot be resolved")
        is_loopback = is_typed and self.limits.loopback and host in _LOOPBACK_NAMES
        for address in addresses:
            if not is_public(address) and not (is_loopback and ipaddress.ip_address(address).is_loopback):
                where = "is" if is_typed else f"redirects to {host}, which is"
                raise AddressRefused(f"{where} not a public address")
        return _Target(parts, port, addresses[0])

    def _split(self, url: str) -> tuple[SplitResult, int]:
        try:
            parts = urlsplit(url)
            port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
        except ValueError:
            parts, port = urlsplit(""), 0
        if parts.scheme not in self.limits.schemes or not parts.hostname:
            schemes = " or ".join(f"{scheme}://" for scheme in self.limits.schemes)
            raise AddressRefused(f"is not an address that begins with {schemes}")
        if parts.username is not None:
            raise AddressRefused("contains a user name or password")
        return parts, port

    @contextlib.contextmanager
    def _response(
        self, target: _Target, deadline: float, method: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Iterator[http.client.HTTPResponse]:
        parts = target.parts
        connection = http.client.HTTPConnection(str(parts.hostname), target.port)
        connection.default_port = _DEFAULT_PORTS[parts.scheme]
        path = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
        try:
            with (
                self.connect((target.address, target.port), max(0.001, deadline - time.monotonic())) as raw,
                raw.dup() as same,  # TLS takes the other
                shut_down_at(deadline, same) as expired,
                contextlib.closing(connection),
            ):
                is_tls = parts.scheme == "https"
                connection.sock = self.tls.wrap_socket(raw, server_hostname=parts.hostname) if is_tls else raw
                connection.request(method, path, body, dict(headers))
                yield connection.getresponse()
        except (OSError, http.client.HTTPException, UnicodeError, ValueError, zlib.error) as error:
            if time.monotonic() >= deadline:
                raise self._late() from None
            raise AddressFailed(_reason(error)) from None
        if expired.is_set():
            raise self._late()  # without a stated length, the body ends where the connection was shut down

    def _read(self, response: http.client.HTTPResponse) -> PublicResponse:
        content_type = response.headers.get("content-type", "").strip()
        if response.status == 200 and not content_type.lower().startswith(self.limits.content_types or ("",)):
            raise AddressFailed(f"has a content type that is not accepted: {content_type or 'none'}")
        content = response.read(self.limits.max_bytes + 1)
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding in ("gzip", "deflate"):
            content = zlib.decompressobj(_GZIP_OR_ZLIB).decompress(content, self.limits.max_bytes + 1)
        elif encoding != "identity":
            raise AddressFailed("is compressed, which was not requested")
        if len(content) > self.limits.max_bytes:
            raise AddressFailed(f"is larger than {self.limits.max_bytes >> 20} MiB")
        return PublicResponse(response.status, content_type, content)

    def _late(self) -> AddressFailed:
        return AddressFailed(f"did not answer completely within {self.limits.seconds:g} s")


def _reason(error: Exception) -> str:
    """Return why nothing was fetched, in words."""
    match error:
        case ConnectionRefusedError():
            return "refuses connections"
        case ssl.SSLCertVerificationError():
            return "has no valid certificate"
    return "cannot be reached"
