"""What keeps a file from being read."""

from __future__ import annotations


class Unreadable(Exception):
    """A file or folder cannot be read, and why, in words for whoever asked."""


class OutsideRoots(Unreadable):
    """A path leads to where nothing may be read."""


class Absent(Unreadable):
    """Nothing is there."""


class Inaccessible(Unreadable):
    """It cannot be looked at now, and may say what it said."""
