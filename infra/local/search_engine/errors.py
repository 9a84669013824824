"""Failures of an index on one machine."""

from shared.platform.config import ConfigurationError


class FolderLocked(ConfigurationError):
    """Another process has the index of this folder open."""


class IndexDamaged(Exception):
    """The files of an embedded index cannot be read."""
