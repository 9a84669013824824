"""A closing process indexes nothing more, at any moment of the close."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Final

from tests.helpers.environment import ORIGINAL_ENVIRONMENT
from tests.helpers.qdrant_server import running_qdrant
from tests.helpers.wait import until

if TYPE_CHECKING:
    from pathlib import Path

_CLOSED_AS_IT_IS_OPENED: Final = """
from concurrent.futures import ThreadPoolExecutor
from shared.search import index
from shared.search.index import close_index, knowledge_index
from shared.search.passages import DocumentRef
from shared.search.store import qdrant_rest
from shared.rpc.errors import Unavailable

qdrant_rest._SECONDS = 60
with ThreadPoolExecutor() as threads:
    opening = threads.submit(knowledge_index)
    input()
    closing = threads.submit(close_index)
    index._is_closing.wait(60)
    print("told", flush=True)
    closing.result()
    try:
        opening.result()._version(DocumentRef("tenant", "collection", "id"))
    except Unavailable as refused:
        print(refused)
"""
_OPENED_AFTER_IT_WAS_CLOSED: Final = """
from shared.search.index import close_index, knowledge_index
from shared.rpc.errors import Unavailable

close_index()
try:
    knowledge_index()
except Unavailable as refused:
    print(refused)
"""


def test_index_closed_while_opening_accepts_no_writes() -> None:
    with running_qdrant() as qdrant:
        qdrant.hang()
        program = [sys.executable, "-c", _CLOSED_AS_IT_IS_OPENED]
        environment = ORIGINAL_ENVIRONMENT | {"KHO_QDRANT_URL": qdrant.url}
        with subprocess.Popen(
            program, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin
            assert process.stdout
            until(lambda: bool(qdrant.keys))
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "told\n"
            qdrant.wake()
            assert process.stdout.read() == "The index is closed.\n"


def test_closed_index_is_not_reopened(tmp_path: Path) -> None:
    environment = ORIGINAL_ENVIRONMENT | {"KHO_QDRANT_FOLDER": str(tmp_path / "index")}
    program = [sys.executable, "-c", _OPENED_AFTER_IT_WAS_CLOSED]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "The index is closed.\n"
    assert not (tmp_path / "index").exists()
