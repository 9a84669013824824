"""The direct door: `POST /{server}/{method}` reaches the one function, and other doors call it here too.

`@method` makes a plain function that Lambda's handler: what comes from the gateway is read and answered
as HTTP, what comes from another door as that door's call.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from doors.callers import caller_of, caller_with
from doors.http import MAX_EVENT_BYTES, Request, Response, respond
from shared.rpc.caller import Caller
from shared.rpc.errors import KhoError, TooLarge
from shared.rpc.invoke import Answer, Call
from shared.rpc.method import Method, P, Params
from shared.rpc.text import compact, parse
from shared.telemetry import observe

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.rpc.caller import Role

R = TypeVar("R")


class Handler(Generic[P, R]):
    """The Lambda handler of one method."""

    def __init__(self, described: Method[P, R]) -> None:
        self.method = described

    def __call__(self, event: dict[str, Any], _context: Any) -> Any:
        """Answer the gateway's event or another door's call."""
        if "requestContext" in event:
            return respond(self.method.name, event, self._answer_http)
        return self._answer_call(cast("Call", event))

    def _answer_http(self, request: Request) -> Response:
        anonymous = self.method.anonymous
        caller = caller_with(request.headers) if anonymous else caller_of(request.authorizer)
        request.require_json()
        result = self.method.answer(parse(request.body), caller)
        return Response(HTTPStatus.OK, self.method.as_json(result))

    def _answer_call(self, call: Call) -> Answer:
        try:
            with observe(self.method.name, call["correlation_id"]):
                result = self.method.answer(call["params"], Caller.from_record(call["caller"]))
                answer = Answer(result=self.method.as_object(result))
                if len(compact(answer).encode("utf-8")) > MAX_EVENT_BYTES:
                    raise TooLarge("The answer would pass 6 MB.")
                return answer
        except KhoError as error:
            return Answer(error=error.record())


def method(
    name: str, *, role: Role, anonymous: bool = False, errors: tuple[type[KhoError], ...] = ()
) -> Callable[[Callable[[P, Caller], R]], Handler[P, R]]:
    """Make the decorated function the method `name`, for callers who hold `role`; `errors` are its own.

    An `anonymous` method serves everyone: its route has no authorizer, and who has credentials proves them to it.
    """

    def decorate(run: Callable[[P, Caller], R]) -> Handler[P, R]:
        return Handler(Method.of(name, role, [error.__name__ for error in errors], run, anonymous=anonymous))

    return decorate


__all__ = ["Caller", "Handler", "Params", "method"]
