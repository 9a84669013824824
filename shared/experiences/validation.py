"""Validation of recall-kit's parameters: its error codes, and the scan for secrets."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, ClassVar

from shared.rpc.errors import FieldProblem, InvalidParams
from shared.rpc.field_messages import MISSING
from shared.rpc.method import Params

if TYPE_CHECKING:
    from shared.experiences.models import ExperienceReport

NOT_SANITIZED = "CONTEXT_NOT_SANITIZED"


class CodedParams(Params):
    """Params with an error code of their own for some fields."""

    codes: ClassVar[dict[str, str]] = {}
    """The codes by field. The first code wins if several fields are invalid."""

    @classmethod
    def to_error(cls, *problems: FieldProblem) -> InvalidParams:
        """Build the error with the code of the first invalid field that has one."""
        invalid = {problem["field"].partition(".")[0] for problem in problems}
        code = next((code for field, code in cls.codes.items() if field in invalid), None)
        return InvalidParams(*problems, code=code)


class RequiredParams(CodedParams):
    """Params that report missing required fields as MISSING_REQUIRED_FIELDS."""

    @classmethod
    def to_error(cls, *problems: FieldProblem) -> InvalidParams:
        """Build the error; missing fields take precedence over invalid ones."""
        if any(problem["message"] == MISSING for problem in problems):
            return InvalidParams(*problems, code="MISSING_REQUIRED_FIELDS")
        return super().to_error(*problems)


def require_sanitized(report: ExperienceReport) -> None:
    """Raise InvalidParams if a report has secrets or personal data. The error names the fields and kinds, no values."""
    from shared.experiences.secret_scanner import find_secrets  # imports RE2

    texts = {name: value if isinstance(value, list) else [value or ""] for name, value in asdict(report).items()}
    problems = [
        FieldProblem(field=field, message=f"{label} contains what must not be shared: {kind}")
        for field, values in texts.items()
        for label in [field.capitalize().replace("_", " ")]
        for kind in dict.fromkeys(finding.kind for text in values for finding in find_secrets(text))
    ]
    if problems:
        error = InvalidParams(*problems, code=NOT_SANITIZED)
        error.guidance = "Replace each by a placeholder such as <API_KEY>, and submit again."
        raise error
