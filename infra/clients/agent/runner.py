"""The frame of every command: open the backend, call it, show the result or the error, and set the exit code."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from infra.clients.agent import console
from infra.clients.agent.backend import BackendError, open_backend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cyclopts import CycloptsError

    from infra.clients.agent.backend import Backend, BackendTarget
    from infra.clients.agent.files.roots import Roots

_EXIT_CODES: Final = {-32001: 3, -32002: 4, -32003: 5, -32004: 6, -32602: 2}
_PARTIAL_FAILURE: Final = 7
_USAGE: Final = -32602


def run(method: str, params: dict[str, Any], target: BackendTarget, show: Callable[[dict[str, Any]], None]) -> None:
    """Call a method and show its result. Parameters that are None are omitted."""
    with backend_or_exit(target, create=params.get("action") == "create") as backend:
        result = backend.call(method, {name: value for name, value in params.items() if value is not None})
    show_result(result, target, show)


def show_result(result: dict[str, Any], target: BackendTarget, show: Callable[[dict[str, Any]], None]) -> None:
    """Show a result, or print it as JSON. End with code 7 if documents failed."""
    if target.as_json:
        console.print_json(result)
    else:
        show(result)
    if result.get("failed"):
        sys.exit(_PARTIAL_FAILURE)


@contextmanager
def backend_or_exit(target: BackendTarget, *, create: bool = False) -> Iterator[Backend]:
    """Open the backend, whose data folder may be created or must exist. An error ends the command."""
    with exit_on_error(target), open_backend(target, create=create) as backend:
        yield backend


def roots_or_exit(folders: Sequence[Path], target: BackendTarget) -> Roots:
    """Return the allowed roots, by default the working folder. A root that is not a folder ends the command."""
    from infra.clients.agent.files.roots import Roots

    for folder in folders:
        if not folder.is_dir():
            message = f"The root '{folder}' is not a folder."
            guidance = "Choose existing folders with --root (KHO_ROOT)."
            exit_with_error(BackendError.configuration(message, guidance), as_json=target.as_json)
    return Roots(folders or (Path(),))


@contextmanager
def exit_on_error(target: BackendTarget) -> Iterator[None]:
    """End the command on an error: as text, or as JSON in the form of a JSON-RPC error."""
    try:
        yield
    except BackendError as error:
        exit_with_error(error, as_json=target.as_json)


def exit_with_error(error: BackendError, *, as_json: bool) -> NoReturn:
    """Show the error and end with its exit code."""
    if as_json:
        console.print_json({"error": {"code": error.code, "message": error.message, "data": error.data}})
    else:
        console.print_error(error)
    sys.exit(_EXIT_CODES.get(error.code, 1))


def usage_error(error: CycloptsError) -> BackendError:
    """Convert a command-line error to the form of invalid parameters."""
    field = error.argument.name.lstrip("-") if error.argument else "arguments"
    details = [{"field": field, "message": str(error)}]
    guidance = "Add --help to the command: it tells what it takes."
    return BackendError(_USAGE, str(error), {"code": "INVALID_PARAMS", "details": details, "guidance": guidance})
