"""The index processes of the owner, which its workers use too."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from infra.local.search_engine.index_process import open_index
from shared.rpc.errors import Unavailable

if TYPE_CHECKING:
    import socket
    from pathlib import Path

    from infra.local.search_engine.index_process import IndexProcess
    from shared.search.embedding.models import Space


class SharedIndexes:
    """One process a folder, opened at the first use."""

    def __init__(self) -> None:
        self._processes: dict[Path, IndexProcess] = {}
        self._opening = threading.Lock()
        self._is_closed = False

    def open(self, space: Space, folder: Path) -> IndexProcess:
        """Return the index of `folder`. Raise `Unavailable` if it cannot be opened."""
        with self._opening:
            if self._is_closed:
                raise Unavailable("The index is closed.")
            if folder not in self._processes:
                self._processes[folder] = open_index(space, folder)
            return self._processes[folder]

    def connect(self, space: Space, folder: Path) -> socket.socket | None:
        """Return a connection for a worker, None if the index was not created because the disk is full."""
        return self.open(space, folder).connect()

    def close(self) -> None:
        """Close all indexes for good. Everything written is kept."""
        with self._opening:
            self._is_closed = True
            for process in self._processes.values():
                process.close()
