"""Templates of errors, filled with the details of one case."""

from dataclasses import dataclass, field
from string import Formatter
from typing import Any

from shared.rpc.errors import KhoError


@dataclass(frozen=True, slots=True)
class ErrorTemplate:
    """An error with placeholders; calling it with the values of `about` returns the error to raise.

    `message` and `problem` name values of `about` and other keyword arguments in braces. Without `about`, the values
    are those that `message` names. `problem` is the parameter at fault and its message. `always` is added to the
    details.
    """

    kind: type[KhoError]
    code: str
    message: str
    guidance: str
    about: tuple[str, ...] | None = None
    problem: tuple[str, str] | None = None
    always: dict[str, Any] = field(default_factory=dict)

    def __call__(self, *about: str | int | list[str], **words: str | int) -> KhoError:
        """Return the error, with the values of `about` in its details."""
        names = self.about
        if names is None:
            names = tuple(name for _, name, _, _ in Formatter().parse(self.message) if name)
        details: Any = dict(zip(names, about, strict=True)) | self.always
        values = {name: ", ".join(value) if isinstance(value, list) else value for name, value in details.items()}
        values |= words
        if self.problem:
            parameter, message = (each.format(**values) for each in self.problem)
            details = [{"field": parameter, "message": message}]
        return self.kind(self.message.format(**values), code=self.code, details=details, guidance=self.guidance)
