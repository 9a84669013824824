"""What keeps a file from being read."""

from __future__ import annotations


class UnreadableFile(Exception):
    """A file or folder cannot be read, and why, in words for whoever asked."""


class OutsideRoots(UnreadableFile):
    """A path leads to where nothing may be read."""


class FileMissing(UnreadableFile):
    """Nothing is there."""


class FileInaccessible(UnreadableFile):
    """It cannot be looked at now, and may say what it said."""
