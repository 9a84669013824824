"""`kho migrate`: bring stored data to the formats of this program."""

import json
import sys

from infra.clients.cli.target import DEFAULT_TARGET, AsJson, DataTarget, exit_with_error, open_stores
from shared.migrations import runner
from shared.platform.formats import DataTooNew


def migrate(*, target: DataTarget = DEFAULT_TARGET, as_json: AsJson = False) -> None:
    """Bring stored data to the formats of this program, after an upgrade.

    'kho serve' does it at its start. The command can be interrupted and repeated, and what it changes stays in use.
    """
    with open_stores(target):
        try:
            changes = runner.migrate(lambda line: print(f"{line}.", file=sys.stderr, flush=True))
        except DataTooNew as error:
            exit_with_error(f"{error}.")
    if as_json:
        print(json.dumps(changes))
    elif changes:
        print(f"{sum(changes.values())} items changed. {len(changes)} tables got this program's formats.")
    else:
        print("There is nothing to do: every table has this program's format.")
