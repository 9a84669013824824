"""The commands of an installed Kho.

A wheel holds the folders `functions`, `shared` and `infra` inside this package, whose modules import each other as they
do in a checkout and in Lambda: from the root.
"""

import sys
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent
if (_FOLDER / "shared").is_dir():  # in a checkout, this package is alone
    sys.path[:0] = [str(_FOLDER), str(_FOLDER / "functions")]


def kho() -> None:
    """Run `kho`."""
    from infra.clients.cli.main import main

    main()


def research_agent() -> None:
    """Run `research-agent`."""
    from infra.clients.agent.cli import main

    main()
