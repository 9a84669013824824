"""What keeps a file from being read."""

from __future__ import annotations

from shared.knowledge.models import Failure
from shared.knowledge.reading import Unfit


class Unreadable(Exception):
    """A file or folder cannot be read, and why, in words for whoever asked."""


class OutsideRoots(Unreadable):
    """A path leads to where nothing may be read."""


class Absent(Unreadable):
    """Nothing is there."""


class Inaccessible(Unreadable):
    """It cannot be looked at now, and may say what it said."""


def failure(path: str, refusal: Unreadable) -> Failure:
    """What a refusal makes of the file at `path`."""
    # A share that is away for a moment, or rights that are being changed, must not cost anybody their documents.
    return Failure(path, str(refusal)) if isinstance(refusal, Inaccessible) else Unfit(path, str(refusal))
