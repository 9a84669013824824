"""Regular files, opened without following a link."""

import io
import os
import stat
from pathlib import Path
from typing import Final

# O_NONBLOCK: opening a FIFO would wait for its writer.
_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


class NotRegularFileError(OSError):
    """The name is that of a folder, a device or a pipe."""


def open_regular_file(path: str | Path, *, dir_fd: int | None = None) -> io.FileIO:
    """Open a file to read. Raise OSError for a link, NotRegularFileError for a folder, a device or a pipe."""
    descriptor = os.open(path, _FLAGS, dir_fd=dir_fd)
    # The open file is checked: one that is checked by its name may be another when it is opened.
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegularFileError
    return io.FileIO(descriptor)
