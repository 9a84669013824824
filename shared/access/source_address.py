"""The address that a request comes from, by which anonymous callers are metered."""

from __future__ import annotations

import hmac
import ipaddress
from typing import TYPE_CHECKING, Final

from shared.platform.config import require_declared
from shared.platform.runtime import runtime
from shared.rpc.errors import NotSignedIn

if TYPE_CHECKING:
    from collections.abc import Mapping

PROXY_HEADER: Final = "x-kho-proxy-secret"
"""The header by which a proxy proves that it is the operator's; only then are its other headers believed."""
_VIEWER: Final = "cloudfront-viewer-address"
_HOPS: Final = "x-forwarded-for"
_IPV6_PREFIX: Final = 64


def source_address(gateway_address: str, headers: Mapping[str, str]) -> str:
    """Return the client's address: the one that the gateway saw, or behind the operator's proxy, the proxy's word."""
    if not is_from_proxy(headers):
        return _group(gateway_address)
    viewer = headers.get(_VIEWER, "").rpartition(":")[0]  # the port follows the address, IPv6 too
    hops = [hop.strip() for hop in headers.get(_HOPS, "").split(",")]
    # The proxy appends the address that it saw, API Gateway the proxy's own. What comes before is the client's word.
    seen = next((hop for hop in reversed(hops) if hop and hop != gateway_address), gateway_address)
    return _group(viewer or seen)


def is_from_proxy(headers: Mapping[str, str]) -> bool:
    """Return True if the request carries the secret that the operator gave the proxy."""
    presented = headers.get(PROXY_HEADER)
    if not presented:
        return False
    from shared.aws.secrets_manager import get_secret  # imports the clients of AWS

    expected = get_secret("KHO_PROXY_SECRET")
    return bool(expected) and hmac.compare_digest(presented.encode(), expected.encode())


def require_proxy(headers: Mapping[str, str]) -> None:
    """Refuse a request that did not come through the operator's proxy, if there is one."""
    require_declared("KHO_PROXY_SECRET_SECRET")
    has_proxy = runtime.environment.get("KHO_PROXY_SECRET") or runtime.environment.get("KHO_PROXY_SECRET_SECRET")
    if has_proxy and not is_from_proxy(headers):
        raise NotSignedIn("This server answers at its public address alone.", guidance="Call the public address.")


def _group(text: str) -> str:
    """Return the address, and for IPv6 the network of 64 bits, within which one client chooses freely."""
    try:
        address = ipaddress.ip_address(text.strip("[] "))
    except ValueError:
        return "unknown"
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address), _IPV6_PREFIX), strict=False))
