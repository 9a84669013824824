"""The packages of the peers, apart from Kho's own, so that only benchmarks import them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final

from infra.prepare import install

LOCK: Final = Path(__file__).with_name("requirements.lock")
FOLDER: Final = Path(sys.prefix) / "share" / "peers"


def installed() -> Path:
    """Return the folder of the packages that `requirements.lock` pins. Install them unless they are there."""
    stamp = FOLDER / LOCK.name
    if not stamp.is_file() or stamp.read_bytes() != LOCK.read_bytes():
        print("Installing the peers; this is needed once.", flush=True)
        shutil.rmtree(FOLDER, ignore_errors=True)
        install("--target", str(FOLDER), "--require-hashes", "--no-deps", "-r", str(LOCK))
        shutil.copy(LOCK, stamp)
    return FOLDER
