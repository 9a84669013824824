"""Commands that run a module of Kho in a Python process of its own, from a checkout or an installed wheel."""

import sys
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).resolve().parents[2]
_PROGRAM: Final = (
    "import runpy, sys; sys.path[:0] = {folders}; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
)


def module_command(module: str, *, isolated: bool = False) -> list[str]:
    """Return the command that runs `module`, to which arguments may be added.

    Files in the working folder are never imported as modules. `isolated` ignores PYTHON* variables too.
    """
    program = _PROGRAM.format(folders=[str(_ROOT), str(_ROOT / "functions")], module=module)
    return [sys.executable, "-I" if isolated else "-P", "-c", program]
