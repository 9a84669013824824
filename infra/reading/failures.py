"""What keeps a file from being read."""

from __future__ import annotations

from dataclasses import dataclass


class Unreadable(Exception):
    """A file or folder cannot be read, and why, in words for whoever asked."""


class OutsideRoots(Unreadable):
    """A path leads to where nothing may be read."""


class Absent(Unreadable):
    """Nothing is there."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One file that was left out, and why."""

    path: str
    reason: str
