"""The errors of the contract; each endpoint has its own format for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence


class FieldProblem(TypedDict):
    """A problem with one parameter."""

    field: str
    message: str


MAX_LISTED: Final = 5
"""The problems that a message lists; details has them all."""


def list_problems(summary: str, problems: Sequence[FieldProblem]) -> str:
    """Return the message of invalid parameters: their first problems, with the fields."""
    texts = "; ".join(f"{each['field']}: {each['message']}" for each in problems[:MAX_LISTED])
    more = f"; and {len(problems) - MAX_LISTED} more" if len(problems) > MAX_LISTED else ""
    return f"{summary}: {texts}{more}" if texts else summary


def complete_message(message: str, details: Any) -> str:
    """Return the message with the fields or the reason that only the details name."""
    if isinstance(details, list) and message == InvalidParams.summary:
        return list_problems(message, details)
    return f"{message}: {details['reason']}" if isinstance(details, dict) and "reason" in details else message


def explanation(message: str, details: Any, guidance: str) -> str:
    """Return the text of an error that is complete by itself: what is wrong, where, and what to do."""
    message = complete_message(message, details)
    stop = "" if message.endswith((".", "!", "?", "…", "。")) else "."
    return f"{message}{stop} {guidance}".strip()


class KhoError(Exception):
    """An error for the caller: its code, message, details and guidance."""

    code: str
    summary: ClassVar[str]
    advice: ClassVar[str]
    retryable: ClassVar[bool] = False

    def __init__(
        self, message: str = "", *, details: Any = None, guidance: str | None = None, code: str | None = None
    ) -> None:
        self.message = message or self.summary
        self.details = {} if details is None else details
        self.guidance = self.advice if guidance is None else guidance
        self.code = code or type(self).code
        super().__init__(self.message)

    def facts(self) -> dict[str, Any]:
        """Return code, message, details and guidance."""
        return {"code": self.code, "message": self.message, "details": self.details, "guidance": self.guidance}

    def record(self) -> dict[str, Any]:
        """Return the error as a function sends it to an endpoint."""
        return {"kind": type(self).__name__, **self.facts()}

    @staticmethod
    def from_record(record: dict[str, Any]) -> KhoError:
        """Return the error that a function sent."""
        kind = _KINDS[record["kind"]]
        error = kind.__new__(kind)
        KhoError.__init__(error, **{name: value for name, value in record.items() if name != "kind"})
        return error


class ParseError(KhoError):
    """The bytes are not valid JSON: not UTF-8, malformed, or nested deeper than 64 levels."""

    code = "PARSE_ERROR"
    summary = "Parse error"
    advice = "Send one JSON text in UTF-8, nested at most 64 levels deep."


class InvalidRequest(KhoError):
    """The JSON is not the envelope that this endpoint takes."""

    code = "INVALID_REQUEST"
    summary = "Invalid Request"
    advice = "GET /openapi.json describes what each endpoint takes."


class UnknownMethod(KhoError):
    """There is no method of this name."""

    code = "METHOD_NOT_FOUND"
    summary = "Method not found"
    advice = "GET /openapi.json lists every method; names are {server}/{method}."


class MethodNotAllowed(KhoError):
    """The path does not take this HTTP method."""

    code = "METHOD_NOT_ALLOWED"
    summary = "Method not allowed"
    advice = "Use a method that the Allow header names."

    def __init__(self, *allowed: str) -> None:
        names = ", ".join(allowed)
        super().__init__(f"This path takes only {names}.", details={"allowed": list(allowed)})


class InvalidParams(KhoError):
    """Parameters are missing, unknown, of a wrong type or out of bounds: one {field, message} each in details."""

    code = "INVALID_PARAMS"
    summary = "Invalid params"
    advice = "Correct these fields and call again; nothing was changed."

    def __init__(self, *problems: FieldProblem, code: str | None = None) -> None:
        super().__init__(list_problems(self.summary, problems), details=list(problems), code=code)


class NotSignedIn(KhoError):
    """No credentials, or none that are valid."""

    code = "NOT_SIGNED_IN"
    summary = "Not signed in"
    advice = "Send a valid key as 'Authorization: Bearer …'."


class NotAllowed(KhoError):
    """The caller's roles do not allow this."""

    code = "NOT_ALLOWED"
    summary = "Not allowed"
    advice = "Ask for a key with the role that is needed."


class NotFound(KhoError):
    """It does not exist or belongs to another tenant: the answer is the same."""

    code = "NOT_FOUND"
    summary = "Resource not found"
    advice = "Check the id; lists show the ids that exist."


class Conflict(KhoError):
    """The current state does not allow this; `code` says why."""

    code = "CONFLICT"
    summary = "Conflict"
    advice = "Read the current state and decide again."


class TooLarge(KhoError):
    """The request or its answer is too large."""

    code = "TOO_LARGE"
    summary = "Too large"
    advice = "Send or ask for less at once; lists take 'limit' and 'cursor'."


class TooManyRequests(KhoError):
    """The caller exceeds its rate limit."""

    code = "TOO_MANY_REQUESTS"
    summary = "Too many requests"
    advice = "Wait for retry_after_seconds, then call again."
    retryable = True

    def __init__(self, message: str = "", *, retry_after_seconds: int = 1, guidance: str | None = None) -> None:
        super().__init__(message, details={"retry_after_seconds": retry_after_seconds}, guidance=guidance)


class ToolFailed(KhoError):
    """A tool was run and failed."""

    code = "TOOL_FAILED"
    summary = "Tool execution error"
    advice = "Call again later, or with other arguments."


class Unavailable(KhoError):
    """A store or model does not answer."""

    code = "UNAVAILABLE"
    summary = "Temporarily unavailable"
    advice = "Call again in a moment; look first where doing it twice would matter."
    retryable = True


def disk_full() -> Unavailable:
    """Build the error of a write to the full disk of one machine."""
    return Unavailable("The disk is full.", guidance="Free disk space on the server, then call again. Reads work.")


class OutOfTime(KhoError):
    """The work took longer than a request may."""

    code = "OUT_OF_TIME"
    summary = "Out of time"
    advice = "It may or may not have taken effect: look before you call again."


class Internal(KhoError):
    """A defect of Kho; the log has the trace under the correlation id."""

    code = "INTERNAL_ERROR"
    summary = "Internal error"
    advice = "Report the correlation id to the operator."

    def __init__(self, correlation_id: str) -> None:
        guidance = f"Report the correlation id {correlation_id} to the operator."
        super().__init__(details={"correlation_id": correlation_id}, guidance=guidance)


_KINDS: dict[str, type[KhoError]] = {kind.__name__: kind for kind in KhoError.__subclasses__()}
