"""One reason to refuse what was asked, in the words of the subject that has it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shared.rpc.errors import KhoError


@dataclass(frozen=True, slots=True)
class ErrorTemplate:
    """One reason to refuse; called with what it is `about`, it is the error to raise.

    Message and problem name in braces what they are about, or other words that it is called with; `problem` is the
    parameter that is at fault, and how; what is `always` so stands in the details beside what it is about.
    """

    kind: type[KhoError]
    code: str
    message: str
    guidance: str
    about: tuple[str, ...] = ()
    problem: tuple[str, str] | None = None
    always: dict[str, Any] = field(default_factory=dict)

    def __call__(self, *about: Any, **words: Any) -> KhoError:
        """The error, with what it is about in its details."""
        details: Any = dict(zip(self.about, about, strict=True)) | self.always
        named = {name: ", ".join(value) if isinstance(value, list) else value for name, value in details.items()}
        named |= words
        if self.problem:
            parameter, message = (each.format(**named) for each in self.problem)
            details = [{"field": parameter, "message": message}]
        return self.kind(self.message.format(**named), code=self.code, details=details, guidance=self.guidance)
