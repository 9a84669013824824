"""The HTTP server of one machine: uvicorn with the gateway."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn

from infra.local.gateway import AccessLog, Gateway, with_cors
from infra.local.http_protocol import BoundedHttpProtocol
from shared.platform.config import config

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator

    from starlette.types import ASGIApp

    from infra.local.functions import Functions
    from infra.local.template import Template


class HttpServer(uvicorn.Server):
    """An HTTP server that leaves the process's signals to others."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Serve."""
        yield

    def protocol(self, state: dict[str, Any]) -> asyncio.Protocol:
        """Return the protocol of a connection that was accepted elsewhere, with the state of its requests."""
        return BoundedHttpProtocol(self.config, self.server_state, state)


def http_settings(
    gateway: ASGIApp, protocol: type[BoundedHttpProtocol] = BoundedHttpProtocol, end_seconds: float | None = None
) -> uvicorn.Config:
    """Return uvicorn's settings for the gateway. At the server's end, requests have `end_seconds` to end."""
    return uvicorn.Config(
        gateway,
        http=protocol,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # a proxy's word on the caller's address counts only with the operator's secret
        timeout_keep_alive=65,
        timeout_graceful_shutdown=end_seconds,  # type: ignore[arg-type]  # annotated as whole seconds
    )


def make_gateway(template: Template, functions: Functions, *, authorizing: bool) -> tuple[Gateway, ASGIApp]:
    """Return the gateway with this process's settings and access log, and the application around it."""
    access_log = AccessLog()
    access_log.start()
    gateway = Gateway(
        template,
        functions,
        authorizing=authorizing,
        access_log=access_log.access,
        # The sign-in page sends its form from the public address, even if a proxy calls another.
        origins=tuple(filter(None, (*config().cors_origins, config().public_url))),
        firmware=Path(config().firmware_folder) if config().firmware_folder else None,
    )
    return gateway, with_cors(gateway, config().cors_origins)
