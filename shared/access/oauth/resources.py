"""Protected resources: the addresses that an access token can be for (RFC 8707)."""

import re
from typing import Final

from shared.access.oauth.errors import OAuthError
from shared.rpc.caller import ROLES, Role
from shared.rpc.mcp_catalog import TOOLSETS, McpCatalog, mcp_catalog

MCP: Final = "/mcp"
METADATA: Final = "/.well-known/oauth-protected-resource"
"""The path that a resource's own path follows in the address of its metadata (RFC 9728)."""
RECALL_KIT: Final = f"{MCP}/recall-kit"
_DEVICE: Final = re.compile(r"/mcp/devices/[A-Za-z0-9._:-]{1,128}", re.ASCII)
_WITH_OPERATORS: Final = ("", MCP, f"{MCP}/devices")


def is_resource(path: str) -> bool:
    """Return True for the path of an MCP endpoint, and for the empty path, which stands for all of Kho."""
    if path in ("", MCP, RECALL_KIT) or _DEVICE.fullmatch(path):
        return True
    parent, _, toolset = path.rpartition("/")
    return parent == MCP and toolset in TOOLSETS


def canonical_resource(resource: str, public_url: str) -> str:
    """Return a requested resource without a slash at its end; `/mcp` if none is named. Raise OAuthError for others."""
    canonical = (resource or public_url + MCP).rstrip("/")
    if not canonical.startswith(public_url) or not is_resource(canonical.removeprefix(public_url)):
        raise OAuthError("invalid_target", "resource is not the address of an MCP endpoint of this server.")
    return canonical


def challenge(path: str, public_url: str, *, has_credentials: bool) -> str:
    """Return the `WWW-Authenticate` header of a resource, which points to its metadata."""
    parameters = ['error="invalid_token"'] if has_credentials else []
    if public_url:
        parameters.append(f'resource_metadata="{public_url}{METADATA}{path}"')
    return f"Bearer {', '.join(parameters)}".rstrip()


def scopes_of(path: str) -> tuple[Role, ...]:
    """Return the scopes that clients of a resource need for all of its tools."""
    has_devices = path in _WITH_OPERATORS or path.startswith(f"{MCP}/devices/")
    return ROLES[:3] if has_devices else ROLES[:2]


def catalog_of(path: str) -> McpCatalog | None:
    """Return the catalog of a resource; None of one device, which has its own tools."""
    if _DEVICE.fullmatch(path):
        return None
    if path == RECALL_KIT:
        return mcp_catalog().of("recall-kit/")
    toolset = TOOLSETS.get(path.removeprefix(f"{MCP}/"))
    return mcp_catalog().of(*toolset.methods) if toolset else mcp_catalog()
