"""The `@method` decorator, which makes a plain function the Lambda handler of one method.

The handler takes the gateway's event of `POST /{server}/{method}` and the `FunctionCall` of other endpoints.
"""

from __future__ import annotations

import json
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from api.authentication import caller_from_authorizer, caller_from_headers
from api.http_events import HttpRequest, HttpResponse, respond
from shared.platform.config import config
from shared.rpc import cursor as cursors
from shared.rpc.caller import Caller
from shared.rpc.errors import KhoError, TooLarge
from shared.rpc.invocation import MAX_EVENT_BYTES, FunctionAnswer, FunctionCall
from shared.rpc.method import Method, P
from shared.rpc.observation import observe

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.rpc.caller import Role
    from shared.rpc.mcp_catalog import McpTool

R = TypeVar("R")


class Handler(Generic[P, R]):
    """The Lambda handler of one method."""

    def __init__(self, definition: Method[P, R], example: dict[str, Any]) -> None:
        self.method = definition
        self.example = example

    def __call__(self, event: dict[str, Any], _context: Any) -> Any:
        """Answer the gateway's event or another endpoint's call."""
        if "requestContext" in event:
            return respond(self.method.name, event, self._answer_http, server=self.method.name.partition("/")[0])
        return self._answer_call(cast("FunctionCall", event))

    def _answer_http(self, request: HttpRequest) -> HttpResponse:
        anonymous = self.method.anonymous
        caller = caller_from_headers(request) if anonymous else caller_from_authorizer(request.authorizer)
        result = self._run(request.parameters(caller), caller)
        return HttpResponse(HTTPStatus.OK, self.method.as_json(result))

    def _answer_call(self, call: FunctionCall) -> FunctionAnswer:
        try:
            with observe(self.method.name, call["correlation_id"], traceparent=call.get("traceparent")):
                result = self._run(call["params"], Caller.from_record(call["caller"]))
                answer = FunctionAnswer(result=self.method.as_object(result))
                if call.get("to_read") and self.method.tool and self.method.tool.text:
                    answer["text"] = self.method.tool.text(result)
                if len(json.dumps(answer, ensure_ascii=False).encode("utf-8")) > MAX_EVENT_BYTES:
                    raise TooLarge("The answer exceeds 6 MB.")
                return answer
        except KhoError as error:
            return FunctionAnswer(error=error.record())

    def _run(self, raw: Any, caller: Caller) -> R:
        """Run the method within the caller's rate limits. A call with invalid parameters costs none of them."""
        params = self.method.params_of(raw, caller)
        if config().auth == "required":
            from shared.access.rate_limits import (
                rate_limits,
            )  # loads the client of the store, which open mode may not need

            rate_limits().require_capacity(caller, self.method.role)
        if "cursor" not in type(params).model_fields:
            return self.method.run(params, caller)
        return self._run_list(params, caller)

    def _run_list(self, params: P, caller: Caller) -> R:
        """Run a method of a list, whose cursors are bound to the list, its filters and the caller's tenant."""
        scope = (*params.listing(self.method.name), caller.tenant_id)
        if (cursor := getattr(params, "cursor", None)) is not None:
            params = params.model_copy(update={"cursor": cursors.unbind(cursor, *scope)})
        result: Any = self.method.run(params, caller)
        member = "nextCursor" if hasattr(result, "nextCursor") else "next_cursor"
        if (following := getattr(result, member, None)) is not None:
            result = replace(result, **{member: cursors.bind(following, *scope)})
        return cast("R", result)


def method(  # noqa: PLR0913 - each is a fact of the method
    name: str,
    *,
    role: Role,
    anonymous: bool = False,
    errors: tuple[type[KhoError], ...] = (),
    example: dict[str, Any] | None = None,
    tool: McpTool | None = None,
) -> Callable[[Callable[[P, Caller], R]], Handler[P, R]]:
    """Make the decorated function the method `name`, for callers with `role`; `errors` are its own error kinds.

    An `anonymous` method needs no credentials: its route has no authorizer, and the method verifies credentials that
    are sent. A method with a `tool` is offered at the MCP endpoints. `kho generate` writes the
    sample event from `example`.
    """

    def decorate(run: Callable[[P, Caller], R]) -> Handler[P, R]:
        return Handler(Method(run, name, role, errors, anonymous=anonymous, tool=tool), example or {})

    return decorate
