"""What seed 003 calls what is wrong with parameters, and what it lets nobody share."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from shared.rpc.errors import FieldProblem, InvalidParams
from shared.rpc.method import MISSING, Params

if TYPE_CHECKING:
    from shared.experiences.models import ExperienceReport

NOT_SANITIZED = "CONTEXT_NOT_SANITIZED"


class CodedParams(Params):
    """Parameters of which some have a code of their own for what is wrong with them."""

    codes: ClassVar[dict[str, str]] = {}
    """By field; where several are wrong, the first of these."""

    @classmethod
    def to_error(cls, *problems: FieldProblem) -> InvalidParams:
        """The error that says what is wrong, by the seed's code."""
        wrong = {problem["field"].partition(".")[0] for problem in problems}
        code = next((code for field, code in cls.codes.items() if field in wrong), None)
        return InvalidParams(*problems, code=code)


class RequiredParams(CodedParams):
    """Parameters of which those that are required have a code of their own where they are missing."""

    @classmethod
    def to_error(cls, *problems: FieldProblem) -> InvalidParams:
        """The error that says what is wrong, by the seed's code."""
        if any(problem["message"] == MISSING for problem in problems):
            return InvalidParams(*problems, code="MISSING_REQUIRED_FIELDS")
        return super().to_error(*problems)


def require_sanitized(account: ExperienceReport) -> None:
    """Refuse an account that tells anything secret or personal, naming what kind of thing and where, never itself."""
    from shared.experiences.secret_scanner import find_secrets  # brings RE2

    texts = {
        "title": [account.title],
        "problem_description": [account.problem_description],
        "root_cause": [account.root_cause or ""],
        "solution": [account.solution],
        "context": [account.context or ""],
        "keywords": account.keywords,
    }
    problems = [
        FieldProblem(field=field, message=f"{_named(field)} contains what must not be shared: {kind}")
        for field, said in texts.items()
        for kind in dict.fromkeys(each.kind for text in said for each in find_secrets(text))
    ]
    if problems:
        refusal = InvalidParams(*problems, code=NOT_SANITIZED)
        refusal.guidance = "Put a placeholder such as <API_KEY> in the place of each, and submit again."
        raise refusal


def _named(field: str) -> str:
    return field.capitalize().replace("_", " ")
