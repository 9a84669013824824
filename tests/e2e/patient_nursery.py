"""Workers with time limits that a slow machine never reaches."""

from __future__ import annotations

import socket
import sys

from infra.local.workers.nursery import main
from tests.e2e.long_limits import raise_limits

if __name__ == "__main__":
    raise_limits()
    main(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
