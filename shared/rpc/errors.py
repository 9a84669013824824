"""The named errors of the contract; a door renders each in its own dialect.

KhoError
├── ParseError           the bytes are not JSON we read
├── InvalidRequest       the envelope is not what the door takes
├── UnknownMethod
├── InvalidParams        one {field, message} each in details
├── NotSignedIn
├── NotAllowed
├── NotFound             does not exist, or is another tenant's: the same answer
├── Conflict             `code` says which
├── TooLarge
├── TooManyRequests
├── ToolFailed
├── Unavailable          a store or model is not answering
├── OutOfTime
└── Internal             a correlation id, nothing else
"""

from __future__ import annotations

from typing import Any, ClassVar, TypedDict


class ErrorRecord(TypedDict):
    """An error as it travels from a function to a door."""

    kind: str
    code: str
    message: str
    details: Any
    guidance: str


class FieldProblem(TypedDict):
    """What is wrong with one parameter."""

    field: str
    message: str


class KhoError(Exception):
    """What went wrong, where, and what to do, in words for the caller."""

    code: ClassVar[str]
    summary: ClassVar[str]
    advice: ClassVar[str]
    retryable: ClassVar[bool] = False

    def __init__(
        self, message: str = "", *, details: Any = None, guidance: str | None = None, code: str | None = None
    ) -> None:
        self.message = message or self.summary
        self.details = {} if details is None else details
        self.guidance = self.advice if guidance is None else guidance
        self.name = code or self.code
        super().__init__(self.message)

    def record(self) -> ErrorRecord:
        """This error as it travels from a function to a door."""
        return ErrorRecord(
            kind=type(self).__name__,
            code=self.name,
            message=self.message,
            details=self.details,
            guidance=self.guidance,
        )

    @classmethod
    def from_record(cls, record: ErrorRecord) -> KhoError:
        """The error that a function's answer holds."""
        kind = _KINDS[record["kind"]]
        error = kind.__new__(kind)
        KhoError.__init__(
            error,
            record["message"],
            details=record["details"],
            guidance=record["guidance"],
            code=record["code"],
        )
        return error


class ParseError(KhoError):
    """The bytes are not JSON that we read: not UTF-8, broken, or nested deeper than 64 levels."""

    code = "PARSE_ERROR"
    summary = "Parse error"
    advice = "Send one JSON text in UTF-8, nested at most 64 levels deep."


class InvalidRequest(KhoError):
    """The JSON is not the envelope that this door takes."""

    code = "INVALID_REQUEST"
    summary = "Invalid Request"
    advice = "GET /openapi.json describes what each door takes."


class UnknownMethod(KhoError):
    """No method bears this name."""

    code = "METHOD_NOT_FOUND"
    summary = "Method not found"
    advice = "GET /openapi.json lists every method; names are {server}/{method}."


class InvalidParams(KhoError):
    """Parameters are missing, unknown, of a wrong type or out of bounds."""

    code = "INVALID_PARAMS"
    summary = "Invalid params"
    advice = "Correct the fields listed in details and call again; nothing was changed."

    def __init__(self, *problems: FieldProblem, code: str | None = None) -> None:
        named = "; ".join(f"{problem['field']}: {problem['message']}" for problem in problems[:5])
        super().__init__(f"{self.summary}: {named}" if named else self.summary, details=list(problems), code=code)


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
    """It does not exist, or it is another tenant's: the same answer."""

    code = "NOT_FOUND"
    summary = "Resource not found"
    advice = "Check the id; lists show the ids that exist."


class Conflict(KhoError):
    """The state has changed under the caller, or forbids this."""

    code = "CONFLICT"
    summary = "Conflict"
    advice = "Read the current state and decide again."


class TooLarge(KhoError):
    """The request or its answer does not fit through the door."""

    code = "TOO_LARGE"
    summary = "Too large"
    advice = "Send or ask for less at once; lists take 'limit' and 'cursor'."


class TooManyRequests(KhoError):
    """The caller is over its rate."""

    code = "TOO_MANY_REQUESTS"
    summary = "Too many requests"
    advice = "Wait as long as Retry-After says, then call again."
    retryable = True


class ToolFailed(KhoError):
    """A tool was run and failed."""

    code = "TOOL_FAILED"
    summary = "Tool execution error"
    advice = "Call again later, or with other arguments."


class Unavailable(KhoError):
    """A store or model is not answering."""

    code = "UNAVAILABLE"
    summary = "Temporarily unavailable"
    advice = "Call again in a moment; look first where doing it twice would matter."
    retryable = True


class OutOfTime(KhoError):
    """The work did not end in the time that a request has."""

    code = "OUT_OF_TIME"
    summary = "Out of time"
    advice = "It may or may not have taken effect: look before you call again."


class Internal(KhoError):
    """A defect of ours; the logs hold the rest under the correlation id."""

    code = "INTERNAL_ERROR"
    summary = "Internal error"
    advice = "Report the correlation id to the operator."

    def __init__(self, correlation_id: str) -> None:
        super().__init__(details={"correlation_id": correlation_id})


_KINDS: dict[str, type[KhoError]] = {kind.__name__: kind for kind in KhoError.__subclasses__()}
