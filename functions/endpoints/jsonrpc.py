"""POST /jsonrpc: JSON-RPC 2.0: single calls, batches and notifications; `method` is `{server}/{method}`."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Self

from api.authentication import caller_from_headers, require_authenticated
from api.deployment import CREDENTIALS, lambda_function, variables
from api.error_formats import DIALECT, dialect_of
from api.http_events import MAX_ANSWER_BYTES, HttpRequest, HttpResponse, endpoint, event_bytes
from api.jsonrpc_requests import MAX_BATCH, MAX_ID_CHARACTERS, echoed_id, is_id, principal_problem
from shared.platform.config import config
from shared.rpc.caller import ANONYMOUS, Caller
from shared.rpc.catalogue import MethodEntry, catalogue
from shared.rpc.errors import FieldProblem, InvalidParams, InvalidRequest, KhoError, ParseError, TooLarge, UnknownMethod
from shared.rpc.invocation import FunctionCall, send, unwrap
from shared.rpc.strict_json import compact
from shared.rpc.unknown_fields import MAX_VALUES, crowded_field, refuse_large_params

MAX_ANONYMOUS_BATCH: Final = 5
_NOTIFICATION: Final = object()
_REFUSAL_BYTES: Final = 1024


@dataclass(frozen=True, slots=True)
class _RequestObject:
    """One valid request object."""

    id: Any
    method: str
    params: list[Any] | dict[str, Any]

    @classmethod
    def of(cls, item: Any) -> Self:
        problem = _problem(item)
        if problem:
            raise InvalidRequest(details={"reason": problem})
        return cls(item.get("id", _NOTIFICATION), item["method"], item.get("params", {}))


@lambda_function(
    CREDENTIALS,
    variables("KHO_ANSWER_WITHOUT_ID"),
    memory=1024,
    timeout=28,
    invokes=("*",),
    routes=("POST /jsonrpc",),
)
@endpoint("endpoints/jsonrpc", server="jsonrpc")
def handler(request: HttpRequest) -> HttpResponse:
    """Answer one JSON-RPC request or a batch of them."""
    caller = caller_from_headers(request)
    try:
        body = request.json(caller, "application/json-rpc")
    except TooLarge as error:
        return HttpResponse(HTTPStatus.OK, compact(DIALECT.jsonrpc_response(None, error)))
    except (ParseError, InvalidRequest) as error:
        require_authenticated(caller)
        return HttpResponse(HTTPStatus.OK, compact(DIALECT.jsonrpc_response(None, error)))
    if not any(_is_anonymous(item) for item in (body if isinstance(body, list) else [body])):
        require_authenticated(caller)
    if isinstance(body, list) and (refusal := _batch_refusal(body, caller)):
        return HttpResponse(HTTPStatus.OK, compact(DIALECT.jsonrpc_response(None, refusal)))
    budget = _ResponseBudget()
    answer = partial(_answer, caller=caller, correlation_id=request.correlation_id, budget=budget)
    if not isinstance(body, list):
        if isinstance(body, dict) and config().answer_without_id:
            body = {"id": None} | body
        single = answer(body)
        return HttpResponse(HTTPStatus.NO_CONTENT) if single is None else HttpResponse(HTTPStatus.OK, single)
    with ThreadPoolExecutor(max_workers=len(body)) as pool:
        contexts = [copy_context() for _ in body]  # each call belongs to the trace of the request
        answers = [
            each for each in pool.map(lambda item, own: own.run(answer, item), body, contexts) if each is not None
        ]
    return HttpResponse(HTTPStatus.OK, f"[{','.join(answers)}]") if answers else HttpResponse(HTTPStatus.NO_CONTENT)


class _ResponseBudget:
    """The size that is left for the answers of a batch; answers that do not fit become errors.

    Answers are read one at a time: many large ones together would not fit into memory.
    """

    def __init__(self) -> None:
        self._left = MAX_ANSWER_BYTES - MAX_BATCH * _REFUSAL_BYTES
        self._lock = threading.Lock()

    def encode(self, id_: Any, read: Callable[[], dict[str, Any]]) -> str:
        """Return the answer that `read` returns as JSON, or a TooLarge error if it does not fit."""
        with self._lock:
            text = compact(read())
            size = event_bytes(text)
            if size <= self._left:
                self._left -= size
                return text
        return compact(DIALECT.jsonrpc_response(id_, TooLarge("The answer exceeds 6 MB.")))


def _batch_refusal(batch: list[Any], caller: Caller) -> InvalidRequest | None:
    """Return the error of a batch of too many calls, of none, or of too many values."""
    most = MAX_ANONYMOUS_BATCH if caller == ANONYMOUS else MAX_BATCH
    if not 1 <= len(batch) <= most:
        without_key = " without credentials" if most < MAX_BATCH else ""
        reason = f"a batch{without_key} holds 1 to {most} requests, this one {len(batch)}"
    elif crowded_field({"batch": batch}):
        reason = f"a batch holds at most {MAX_VALUES:,} values"
    else:
        return None
    return InvalidRequest(details={"reason": reason})


def _answer(item: Any, *, caller: Caller, correlation_id: str, budget: _ResponseBudget) -> str | None:
    """Answer one request object. Return None for a notification."""
    try:
        request = _RequestObject.of(item)
    except InvalidRequest as error:
        return compact(DIALECT.jsonrpc_response(echoed_id(item), error))
    try:
        raw = _invoke_raw(request, caller, correlation_id)
        if request.id is _NOTIFICATION:
            return None
        return budget.encode(request.id, lambda: {"jsonrpc": "2.0", "result": unwrap(raw)["result"], "id": request.id})
    except KhoError as error:
        if request.id is _NOTIFICATION:
            return None
        entry = catalogue().methods.get(request.method)
        return compact(dialect_of(entry.server if entry else "").jsonrpc_response(request.id, error))


def _invoke_raw(request: _RequestObject, caller: Caller, correlation_id: str) -> bytes:
    """Invoke the method's function and return its answer unparsed."""
    entry = catalogue().methods.get(request.method)
    if entry is None:
        raise UnknownMethod
    if not entry.anonymous:
        require_authenticated(caller)  # before the invocation, which costs more than the refusal
    function_call = FunctionCall(
        method=entry.name,
        params=_named_params(request.params, entry),
        caller=caller.record(),
        correlation_id=correlation_id,
    )
    return send(function_call, entry.function)


def _is_anonymous(item: Any) -> bool:
    """Return True for a call of an anonymous method. In a batch with one, other calls are refused individually."""
    name = item.get("method") if isinstance(item, dict) else None
    return isinstance(name, str) and name in catalogue().methods and catalogue().methods[name].anonymous


def _named_params(params: list[Any] | dict[str, Any], entry: MethodEntry) -> dict[str, Any]:
    """Return the parameters by name. Positional parameters follow the order of the method's fields."""
    if isinstance(params, dict):
        refuse_large_params(params, entry.fields)
        return params
    if len(params) > len(entry.fields):
        message = f"takes at most {len(entry.fields)} by position: {', '.join(entry.fields) or 'none'}"
        raise InvalidParams(FieldProblem(field="params", message=message))
    named = dict(zip(entry.fields, params, strict=False))
    refuse_large_params(named)
    return named


def _problem(item: Any) -> str | None:
    """Return the reason why `item` is not a valid request object, or None."""
    if not isinstance(item, dict):
        return "a request is a JSON object"
    if item.get("jsonrpc") != "2.0":
        return "'jsonrpc' must be \"2.0\""
    if not isinstance(item.get("method"), str):
        return "'method' must be a string"
    if not isinstance(item.get("params", {}), list | dict):
        return "'params' must be an object or an array"
    if "id" in item and not is_id(item["id"]):
        return f"'id' must be a string of at most {MAX_ID_CHARACTERS} characters, a number or null"
    return principal_problem(item)
