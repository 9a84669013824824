"""The backends of the command line: this machine's data in the process, a server running on it, or a deployed one."""

from __future__ import annotations

import importlib
import json
import os
import secrets
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - the command line reads annotations
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol
from urllib.parse import urlsplit

from cyclopts import Parameter
from cyclopts.validators import Number

from infra.local.data_folder import DEFAULT_DATA, DataFolderError, DataFolderInUse, DataFolderMissing, server_or_lock
from shared.rpc.errors import explanation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from shared.rpc.caller import Caller
    from shared.rpc.errors import KhoError
    from shared.rpc.method import Method

SERVER: Final = "research-agent"
_CONFIGURATION: Final = -32001
_COLLECTION: Final = -32002
_DOCUMENT: Final = -32003
_SYSTEM: Final = -32000
_DAY: Final = 86_400
_WORKERS: Final = ("workers-ingest", "workers-index_knowledge")


class BackendError(Exception):
    """An error in research-agent's format: its code, its message, and `data` with guidance."""

    def __init__(self, code: int, message: str, data: dict[str, Any]) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    @property
    def explanation(self) -> str:
        """The text of the error, complete by itself."""
        return explanation(self.message, self.data.get("details"), str(self.data.get("guidance", "")))

    @classmethod
    def from_kho_error(cls, error: KhoError) -> BackendError:
        """Convert an error to research-agent's format."""
        from api.error_formats import dialect_of

        record = dialect_of(SERVER).jsonrpc_error(error)
        return cls(record["code"], record["message"], record["data"])

    @classmethod
    def configuration(cls, message: str, guidance: str) -> BackendError:
        """Build an error of the command's configuration."""
        return cls(_CONFIGURATION, message, {"code": "CONFIGURATION", "details": {}, "guidance": guidance})

    @classmethod
    def system(cls, message: str, guidance: str) -> BackendError:
        """Build an error of the connection to the backend."""
        return cls(_SYSTEM, message, {"code": "UNAVAILABLE", "details": {}, "guidance": guidance})


class EndpointError(BackendError):
    """A JSON-RPC error that an endpoint answered."""


def deletion_unconfirmed(name: str, guidance: str = "") -> BackendError:
    """Build the error of a collection's deletion that was not confirmed."""
    at_a_prompt = f"Confirm when asked, or delete it at a prompt: research-agent collections delete {name} --yes"
    guidance = guidance or at_a_prompt
    data = {"code": "COLLECTION_NOT_CONFIRMED", "details": {"collection": name}, "guidance": guidance}
    return BackendError(_COLLECTION, f"The collection '{name}' was not deleted: the deletion was not confirmed.", data)


def removal_unconfirmed(path: str, guidance: str = "") -> BackendError:
    """Build the error of a document's removal that was not confirmed."""
    guidance = guidance or f"Confirm when asked, or remove it at a prompt: research-agent kb remove {path}"
    data = {"code": "DOCUMENT_NOT_CONFIRMED", "details": {"path": path}, "guidance": guidance}
    return BackendError(_DOCUMENT, f"The document '{path}' was not removed: the removal was not confirmed.", data)


class Backend(Protocol):
    """A way to call the methods of one server."""

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """Return the result as plain JSON values, or raise `BackendError`."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class BackendTarget:
    """The knowledge base of a command, and the output's format.

    Args:
        data: This machine's data folder. If 'kho serve' runs on it, that server is used.
        endpoint: A deployed Kho. Its key is in KHO_KEY or in the keyring (service 'kho', user: the endpoint).
        timeout: Seconds to wait for a response.
        as_json: Print JSON.
    """

    data: Path = DEFAULT_DATA
    endpoint: str = ""
    timeout: Annotated[float, Parameter(validator=Number(gt=0, lte=_DAY))] = 60.0
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False

    @property
    def data_folder(self) -> Path:
        """The data folder's whole path."""
        return self.data.expanduser().resolve()


DEFAULT_TARGET: Final = BackendTarget()


def method_description(method: str) -> Method[Any, Any]:
    """Return the method's declaration, from its module."""
    description: Method[Any, Any] = importlib.import_module(f"research_agent.{method}").handler.method
    return description


def to_markdown(method: str, result: Any) -> str:
    """Render a result as text for models and people."""
    description = method_description(method)
    assert description.tool
    assert description.tool.text
    return description.tool.text(description.result.validate_python(result))


@contextmanager
def open_backend(target: BackendTarget, *, create: bool = False) -> Iterator[Backend]:
    """Open the chosen backend. If `kho serve` runs on the data folder, use that server.

    A data folder that does not exist is an error, unless it may be created.
    """
    key = api_key_for(target.endpoint)
    if target.endpoint:
        with closing(RemoteBackend(target.endpoint, key, target.timeout)) as backend:
            yield backend
        return
    data = target.data_folder
    with ExitStack() as stack:
        try:
            running = server_or_lock(data, stack, create=create, wait_seconds=target.timeout)
        except DataFolderInUse as error:
            message = f"{error}, and has been for {target.timeout:g} s."
            guidance = "Try again when it has ended, or keep 'kho serve' running: it serves many commands concurrently."
            raise BackendError.configuration(message, guidance) from None
        except DataFolderMissing as error:
            guidance = "Correct --data (KHO_DATA); 'kho serve' and 'research-agent collections create' create it."
            raise BackendError.configuration(f"{error}.", guidance) from None
        except DataFolderError as error:
            raise unusable_folder(error) from None
        if running:
            yield stack.enter_context(closing(RemoteBackend(running["address"], key, target.timeout)))
        else:
            yield _open_embedded(data, stack)


def unusable_folder(error: DataFolderError) -> BackendError:
    """Build the error of a data folder that cannot be used."""
    return BackendError.configuration(f"{error}.", "Choose another folder with --data (KHO_DATA).")


class RemoteBackend:
    """A server, called through its JSON-RPC endpoint."""

    def __init__(self, endpoint: str, key: str, timeout: float, server: str = SERVER) -> None:
        from shared.platform.config import is_safe_url

        if not is_safe_url(endpoint):
            message = f"The endpoint '{endpoint}' must begin with https:// (http:// only on this machine)."
            raise BackendError.configuration(message, "Set the stack's output Endpoint with --endpoint (KHO_ENDPOINT).")
        from shared.platform.http import HttpClient

        address = urlsplit(endpoint)
        self._server = server
        self._endpoint, self._path = endpoint.rstrip("/"), address.path.rstrip("/")
        self._http = HttpClient(f"{address.scheme}://{address.netloc}", connect_seconds=timeout, read_seconds=timeout)
        self._headers = {"host": self._http.authority, "content-type": "application/json"}
        self._headers |= {"authorization": f"Bearer {key}"} if key else {}

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """Return the result as plain JSON values, or raise `BackendError`."""
        message = {"jsonrpc": "2.0", "id": 1, "method": f"{self._server}/{method}", "params": params}
        return self.send("/jsonrpc", message, {})

    def send(self, path: str, message: dict[str, Any], headers: Mapping[str, str]) -> Any:
        """Send a JSON-RPC message to an endpoint. Return its result, or raise its error as `BackendError`."""
        from shared.platform.http import ConnectionFailed

        body = json.dumps(message).encode()
        try:
            status, _, content = self._http.send("POST", self._path + path, {**self._headers, **headers}, body)
        except ConnectionFailed:
            reason = "The server does not answer."
            guidance = f"Check that {self._endpoint}{path} can be reached, and try again."
            raise BackendError.system(reason, guidance) from None
        if status in (401, 403):
            reason = "The server rejected the key."
            raise BackendError.configuration(reason, "Set KHO_KEY to a valid key; 'kho keys create' makes one.")
        return _parse_response(status, content)


def _parse_response(status: int, body: bytes) -> Any:
    if body.startswith(b"event: "):  # MCP's transport may stream the one response
        *_, body = (line for line in body.splitlines() if line.startswith(b"data: "))
        body = body.removeprefix(b"data: ")
    try:
        response = json.loads(body)
    except (ValueError, RecursionError):
        response = None
    match response:
        case {"result": result}:
            return result
        case {"error": {"code": int(code), "message": str(message), **rest}}:
            data = rest.get("data")
            raise EndpointError(code, message, data if isinstance(data, dict) else {})
    raise _gateway_error(status)


def _gateway_error(status: int) -> BackendError:
    """Build the error of a response that is not JSON-RPC: a gateway's, or another server's."""
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
    message = f"The server returned HTTP {status}, which is not a Kho response."
    return BackendError.system(message, "Check that the endpoint is a Kho server.")


class EmbeddedBackend:
    """The methods' functions in this process, invoked as endpoints invoke them."""

    def __init__(self, server: str, caller: Caller) -> None:
        self._server = server
        self._caller = caller

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """Return the result as plain JSON values, or raise `BackendError`."""
        from shared.rpc.errors import KhoError
        from shared.rpc.invocation import invoke

        function = f"{self._server.replace('-', '_')}-{method.replace('/', '_')}"
        try:
            return invoke(function, f"{self._server}/{method}", params, self._caller, secrets.token_hex(16))
        except KhoError as error:
            raise BackendError.from_kho_error(error) from None


def read_pages(fetch: Callable[[dict[str, Any]], dict[str, Any]], params: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each page of a method's result, following `next_cursor`."""
    while True:
        page = fetch(params)
        yield page
        if not page.get("next_cursor"):
            return
        params = params | {"cursor": page["next_cursor"]}


def api_key_for(endpoint: str) -> str:
    """Return the key that is configured for a deployed Kho."""
    key = os.environ.get("KHO_KEY", "")
    if key or not endpoint:
        return key
    import keyring
    from keyring.errors import KeyringError

    try:
        return keyring.get_password("kho", endpoint) or ""
    except KeyringError:
        return ""


def _open_embedded(data: Path, stack: ExitStack) -> EmbeddedBackend:
    """Start this machine's store, functions and streams until `stack` is closed."""
    from infra.local.store import StoreUnavailable, open_store

    try:
        template, store_url = open_store(stack, data, auth="open")
    except StoreUnavailable as error:
        raise BackendError.configuration(
            str(error), "Try again, choose another folder with --data, or use --endpoint."
        ) from None

    from infra.local.functions import Functions
    from infra.local.shutdown import STOP_SECONDS, join_all
    from infra.local.streams import StreamReader
    from shared.platform.config import ConfigurationError, config
    from shared.platform.runtime import runtime
    from shared.rpc.caller import LOCAL
    from shared.search.index import close_index

    try:
        config()
    except ConfigurationError as error:
        raise BackendError.configuration(f"{error}.", "Correct the setting in the environment.") from None
    functions = Functions(template.functions)
    stack.callback(functions.close)
    runtime.functions = functions
    readers = [
        StreamReader(trigger, store_url, functions, data)
        for trigger in template.streams
        if trigger.function in _WORKERS
    ]
    stack.callback(join_all, readers, STOP_SECONDS)
    for reader in readers:
        reader.start()
        stack.callback(reader.stop)
    stack.callback(close_index)
    return EmbeddedBackend(SERVER, LOCAL)
