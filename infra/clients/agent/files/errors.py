"""Errors of reading files."""


class UnreadableFile(Exception):
    """A file or folder cannot be read. The message continues a sentence that begins with the file's name."""


class OutsideRoots(UnreadableFile):
    """A path leads outside the allowed roots."""


class FileMissing(UnreadableFile):
    """The file or folder does not exist."""


class FileInaccessible(UnreadableFile):
    """The file cannot be opened now. Its content may be unchanged."""
