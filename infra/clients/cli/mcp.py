"""`kho mcp`: everything, or one toolset, by MCP over STDIO."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from infra.clients.agent.backend import DEFAULT_TARGET, BackendTarget
from infra.clients.agent.runner import roots_or_exit

ToolsetName = Literal["documents", "memory", "knowledge", "experiences", "devices", "search"]


def mcp(
    *,
    toolset: ToolsetName | None = None,
    root: Annotated[tuple[Path, ...], Parameter(negative=())] = (),
    debug: bool = False,
    target: BackendTarget = DEFAULT_TARGET,
) -> None:
    """Serve an MCP client over STDIO: the tools, resources and prompts of Kho.

    Without --endpoint they work on this machine's data, by the server that runs on it; if there is none, one is
    started and ends with the session.

    Args:
        toolset: Offer one toolset; default: all.
        root: A folder whose files may be read; default: the working folder.
        debug: Log details to the standard error.
    """
    from infra.clients.agent import stdio_server
    from infra.clients.agent.files.reader import FileReader
    from infra.clients.agent.managed_server import ManagedServerBackend
    from infra.clients.agent.mcp_proxy import proxy_server
    from infra.clients.agent.tools import AgentTools

    roots = roots_or_exit(root, target)
    backend = ManagedServerBackend(target, roots.folders)
    tools = AgentTools(backend, FileReader(roots), target.timeout)
    stdio_server.run(proxy_server(backend, tools, toolset or ""), backend, debug=debug)
