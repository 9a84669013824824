"""What a check found, and how a check that could not be made is told."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from botocore.exceptions import BotoCoreError, ClientError

from shared.config import ConfigurationError
from shared.rpc.errors import KhoError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

State = Literal["good", "note", "wrong"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One thing that was looked at; `advice` says what to do about it."""

    subject: str
    state: State
    said: str
    advice: str = ""


class CheckReport:
    """Everything that was found, each told to `tell` as it is found."""

    def __init__(self, tell: Callable[[CheckResult], object]) -> None:
        self.all: list[CheckResult] = []
        self._tell = tell

    def good(self, subject: str, said: str) -> None:
        """It is as it should be."""
        self._add(CheckResult(subject, "good", said))

    def note(self, subject: str, said: str, advice: str = "") -> None:
        """It works, and is worth knowing."""
        self._add(CheckResult(subject, "note", said, advice))

    def wrong(self, subject: str, said: str, advice: str) -> None:
        """It does not work."""
        self._add(CheckResult(subject, "wrong", said, advice))

    @contextmanager
    def guard(self, subject: str, advice: str) -> Iterator[None]:
        """Take what goes wrong while looking as what is wrong."""
        try:
            yield
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            denied = "Denied" in code or "Unauthorized" in code
            self.wrong(
                subject, _line(error), f"Ask for the permission, or sign in as another: {advice}" if denied else advice
            )
        except KhoError as error:
            self.wrong(subject, error.message, advice)
        except (BotoCoreError, ConfigurationError, OSError) as error:
            self.wrong(subject, _line(error), advice)

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong."""
        return all(each.state != "wrong" for each in self.all)

    def _add(self, finding: CheckResult) -> None:
        self.all.append(finding)
        self._tell(finding)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
