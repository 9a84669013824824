"""What answers the command line: this machine's own data, the server that is running on it, or a deployed one."""

from __future__ import annotations

import importlib
import json
import secrets
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from infra.local.data_folder import DataFolderInUse, lock_folder, read_server_info

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from infra.local.data_folder import ServerInfo
    from shared.rpc.errors import KhoError
    from shared.rpc.method import Method

SERVER: Final = "research-agent"
_CONFIGURATION: Final = -32001
_COLLECTION: Final = -32002
_SYSTEM: Final = -32000
_POLL_SECONDS: Final = 0.1
_WORKERS: Final = ("workers-ingest", "workers-index_knowledge")


class BackendError(Exception):
    """An error as seed 004 gives it: its code, its message, and `data` with guidance."""

    def __init__(self, code: int, message: str, data: dict[str, Any]) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    @classmethod
    def of(cls, error: KhoError) -> BackendError:
        """`error` in the dialect of research-agent."""
        from api.error_formats import jsonrpc_error

        said = jsonrpc_error(error, SERVER)
        return cls(said["code"], said["message"], said["data"])

    @classmethod
    def configuration(cls, message: str, guidance: str) -> BackendError:
        """What is wrong with how the command is set up."""
        return cls(_CONFIGURATION, message, {"code": "CONFIGURATION", "details": {}, "guidance": guidance})

    @classmethod
    def system(cls, message: str, guidance: str) -> BackendError:
        """What is wrong with the way to the backend."""
        return cls(_SYSTEM, message, {"code": "UNAVAILABLE", "details": {}, "guidance": guidance})


def deletion_unconfirmed(name: str) -> BackendError:
    """That nothing is deleted which nobody has confirmed."""
    guidance = f"Confirm when asked, or delete it at a prompt: research-agent collections delete {name} --yes"
    data = {"code": "COLLECTION_NOT_CONFIRMED", "details": {"collection": name}, "guidance": guidance}
    return BackendError(_COLLECTION, f"The collection '{name}' was not deleted: nobody confirmed it.", data)


class Backend(Protocol):
    """Answers the methods of research-agent."""

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """The result as plain JSON values, or `Refused`."""


@dataclass(frozen=True, slots=True)
class BackendConfig:
    """Which backend: a deployed one at `endpoint`, else the data folder `data`."""

    data: Path
    endpoint: str = ""
    key: str = ""
    timeout: float = 60.0


def method_description(method: str) -> Method[Any, Any]:
    """What the method's own file says of it."""
    found: Method[Any, Any] = importlib.import_module(f"research_agent.{method}").handler.method
    return found


def to_markdown(method: str, result: Any) -> str:
    """A result as a model or a person reads it."""
    known = method_description(method)
    assert known.tool
    assert known.tool.text
    return known.tool.text(known.result.validate_python(result))


@contextmanager
def open_backend(choice: BackendConfig) -> Iterator[Backend]:
    """The backend of `choice`; a running `kho serve` on the same data is used, not fought."""
    if choice.endpoint:
        yield RemoteBackend(choice.endpoint, choice.key, choice.timeout)
        return
    data = choice.data.expanduser().resolve()
    with ExitStack() as stack:
        if running := _running_server(data, stack, choice.timeout):
            yield RemoteBackend(running["address"], choice.key, choice.timeout)
        else:
            yield stack.enter_context(_open_embedded(data))


def _running_server(data: Path, stack: ExitStack, seconds: float) -> ServerInfo | None:
    """Return the server that runs on the folder. Without one, hold the folder until the stack is closed.

    Wait at most `seconds` for another command that holds it.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            if running := read_server_info(data):
                return running
            stack.enter_context(lock_folder(data))
        except (DataFolderInUse, ValueError):  # another command has it, or a server is writing where it is
            if time.monotonic() > deadline:
                said = f"Another command is using {data}, and has been for {seconds:g} s."
                guidance = "Try again when it has ended, or keep 'kho serve' running: it answers many at once."
                raise BackendError.configuration(said, guidance) from None
            time.sleep(_POLL_SECONDS)
        except OSError as error:
            said = f"{data} cannot be used: {error.strerror}."
            raise BackendError.configuration(said, "Choose another folder with --data (KHO_DATA).") from None
        else:
            return None


class RemoteBackend:
    """A server, through its JSON-RPC door."""

    def __init__(self, endpoint: str, key: str, timeout: float, server: str = SERVER) -> None:
        from shared.config import is_safe_url

        if not is_safe_url(endpoint):
            said = f"The endpoint '{endpoint}' must begin with https:// (http:// on this machine alone)."
            raise BackendError.configuration(said, "Give the stack's output Endpoint with --endpoint (KHO_ENDPOINT).")
        import urllib3

        self._server = server
        self._address = f"{endpoint.rstrip('/')}/jsonrpc"
        self._headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
        self._http = urllib3.PoolManager(retries=False, timeout=timeout)

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """The result as plain JSON values, or `Refused`."""
        from urllib3.exceptions import HTTPError

        call = {"jsonrpc": "2.0", "id": 1, "method": f"{self._server}/{method}", "params": params}
        try:
            response = self._http.request("POST", self._address, body=json.dumps(call).encode(), headers=self._headers)
        except HTTPError:
            said = "The server does not answer."
            raise BackendError.system(said, f"Look whether {self._address} can be reached, and try again.") from None
        if response.status in (401, 403):
            said = "The server does not know this key."
            raise BackendError.configuration(said, "Set KHO_KEY to a valid key; 'kho keys create' makes one.")
        return _parse_response(response.status, response.data)


def _parse_response(status: int, body: bytes) -> Any:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    match answer:
        case {"result": result}:
            return result
        case {"error": {"code": int(code), "message": str(message), **rest}}:
            data = rest.get("data")
            raise BackendError(code, message, data if isinstance(data, dict) else {})
    raise _gateway_error(status)


def _gateway_error(status: int) -> BackendError:
    """What a gateway says by its status alone, or whoever is no Kho at all."""
    from shared.rpc.errors import OutOfTime, TooLarge, TooManyRequests, Unavailable

    match status:
        case 413:
            return BackendError.from_kho_error(TooLarge())
        case 429:
            return BackendError.from_kho_error(TooManyRequests(guidance="Try again later: nothing was changed."))
        case 502 | 503:
            return BackendError.from_kho_error(Unavailable())
        case 504:
            return BackendError.from_kho_error(OutOfTime())
    said = f"The server answered with HTTP {status}, and not as Kho does."
    return BackendError.system(said, "Look whether the endpoint is a Kho server.")


class _EmbeddedBackend:
    """The methods' own functions in this process, called as doors call them."""

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """The result as plain JSON values, or `Refused`."""
        from shared.rpc.caller import LOCAL
        from shared.rpc.errors import KhoError
        from shared.rpc.invoke import invoke

        function = f"research_agent-{method}"
        try:
            return invoke(function, f"{SERVER}/{method}", params, LOCAL, secrets.token_hex(16))
        except KhoError as error:
            raise BackendError.from_kho_error(error) from None


@contextmanager
def _open_embedded(data: Path) -> Iterator[_EmbeddedBackend]:
    """This machine's store, functions and streams, for as long as the command runs."""
    from infra.local.dynamodb import DURABLE, Engine, EngineFailed, connect, create_tables
    from infra.local.environment import point_at_store, prepare
    from infra.local.template import load

    if not DURABLE:
        said = "This platform has no durable local store."
        raise BackendError.configuration(said, "Start 'kho serve' with a DynamoDB endpoint, or use --endpoint.")
    template = load()
    with ExitStack() as stack:
        try:
            prepare(template, auth="open", log_file=data / "kho.log", passages=data / "passages")
            engine = Engine(data / "dynamodb.sqlite", data / "store.log")
        except EngineFailed as error:
            raise BackendError.configuration(f"{error}.", "Try again, or choose another folder with --data.") from None
        stack.callback(engine.close)
        point_at_store(engine.url)
        create_tables(connect(engine.url), template.tables)

        from infra.local.functions import Functions
        from infra.local.streams import StreamReader
        from shared.config import ConfigurationError, config
        from shared.knowledge.index import close_index
        from shared.rpc import invoke

        try:
            config()
        except ConfigurationError as error:
            raise BackendError.configuration(f"{error}.", "Correct the setting in the environment.") from None
        functions = Functions(template.functions)
        stack.callback(functions.close)
        invoke.use_transport(functions)
        for trigger in template.streams:
            if trigger.function in _WORKERS:
                reader = StreamReader(trigger, engine.url, functions, data)
                reader.start()
                stack.callback(reader.join, 5)
                stack.callback(reader.stop)
        stack.callback(close_index)
        yield _EmbeddedBackend()
