"""What every command does: open the backend, ask it, show the result or what was refused, and end with a code."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

from cyclopts import Parameter
from cyclopts.validators import Number

from infra.research import shown
from infra.research.backend import Choice, Refused, opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cyclopts import CycloptsError

    from infra.research.backend import Backend

_EXIT_CODES: Final = {-32001: 3, -32002: 4, -32003: 5, -32004: 6, -32602: 2}
_PARTLY: Final = 7
_USAGE: Final = -32602
_DAY: Final = 86_400


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Where:
    """Which knowledge base, and how to answer.

    Parameters
    ----------
    data
        The data folder of this machine; a 'kho serve' that runs on it is used.
    endpoint
        A deployed Kho, its key in KHO_KEY or in the keyring (service 'kho', user the endpoint).
    timeout
        Seconds to wait for an answer.
    as_json
        Print JSON.
    """

    data: Path = Path(".kho")
    endpoint: str = ""
    timeout: Annotated[float, Parameter(validator=Number(gt=0, lte=_DAY))] = 60.0
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False

    def choice(self) -> Choice:
        """The backend that is meant."""
        return Choice(self.data, self.endpoint, key_for(self.endpoint), self.timeout)


HERE: Final = Where()


def run(method: str, asked: dict[str, Any], where: Where, show: Callable[[dict[str, Any]], None]) -> None:
    """Ask a method, without what is None, and answer with its result."""
    with backend_of(where) as backend:
        result = backend.call(method, {name: value for name, value in asked.items() if value is not None})
    answer(result, where, show)


def answer(result: dict[str, Any], where: Where, show: Callable[[dict[str, Any]], None]) -> None:
    """Show a result, or print it as JSON; a code of its own says that documents were left out."""
    if where.as_json:
        shown.as_json(result)
    else:
        show(result)
    if result.get("failed"):
        sys.exit(_PARTLY)


@contextmanager
def backend_of(where: Where) -> Iterator[Backend]:
    """The backend that is meant; a refusal ends the command."""
    with refusals(where), opened(where.choice()) as backend:
        yield backend


@contextmanager
def refusals(where: Where) -> Iterator[None]:
    """End with what was refused: in words, or in JSON as a JSON-RPC error has it."""
    try:
        yield
    except Refused as error:
        end(error, as_json=where.as_json)


def end(error: Refused, *, as_json: bool) -> NoReturn:
    """End with this error's code, once it is shown."""
    if as_json:
        shown.as_json({"error": {"code": error.code, "message": error.message, "data": error.data}})
    else:
        shown.refused(error)
    sys.exit(_EXIT_CODES.get(error.code, 1))


def misunderstood(error: CycloptsError) -> Refused:
    """What was not understood of the command line, as methods say it of their parameters."""
    field = error.argument.name.lstrip("-") if error.argument else "arguments"
    details = [{"field": field, "message": str(error)}]
    guidance = "Add --help to the command: it tells what it takes."
    return Refused(_USAGE, str(error), {"code": "INVALID_PARAMS", "details": details, "guidance": guidance})


def key_for(endpoint: str) -> str:
    """The key that is configured for a deployed Kho."""
    given = os.environ.get("KHO_KEY", "")
    if given or not endpoint:
        return given
    import keyring
    from keyring.errors import KeyringError

    try:
        return keyring.get_password("kho", endpoint) or ""
    except KeyringError:
        return ""
