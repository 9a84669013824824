"""The results of checks, and their collection in a report."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from botocore.exceptions import BotoCoreError, ClientError

from shared.config import ConfigurationError
from shared.rpc.errors import KhoError

State = Literal["good", "note", "wrong"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check, with advice if something is to be done."""

    subject: str
    state: State
    message: str
    advice: str = ""

    def to_json(self) -> dict[str, str]:
        """Return the result as `kho doctor --json` prints it."""
        return {"subject": self.subject, "state": self.state, "said": self.message, "advice": self.advice}


class CheckReport:
    """The results of all checks. Each is passed to `show` as soon as it is known."""

    def __init__(self, show: Callable[[CheckResult], object]) -> None:
        self.results: list[CheckResult] = []
        self._show = show

    def good(self, subject: str, message: str) -> None:
        """Report that a check passed."""
        self._add(CheckResult(subject, "good", message))

    def note(self, subject: str, message: str, advice: str = "") -> None:
        """Report a limitation that is not an error."""
        self._add(CheckResult(subject, "note", message, advice))

    def wrong(self, subject: str, message: str, advice: str) -> None:
        """Report that a check failed."""
        self._add(CheckResult(subject, "wrong", message, advice))

    @contextmanager
    def guard(self, subject: str, advice: str) -> Iterator[None]:
        """Report an exception in the block as a failed check."""
        try:
            yield
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            denied = "Denied" in code or "Unauthorized" in code
            self.wrong(
                subject,
                _line(error),
                f"Request the permission, or use another identity: {advice}" if denied else advice,
            )
        except KhoError as error:
            self.wrong(subject, error.message, advice)
        except (BotoCoreError, ConfigurationError, OSError) as error:
            self.wrong(subject, _line(error), advice)

    @property
    def healthy(self) -> bool:
        """True if no check failed."""
        return all(each.state != "wrong" for each in self.results)

    def _add(self, result: CheckResult) -> None:
        self.results.append(result)
        self._show(result)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
