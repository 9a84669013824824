"""Prints what each module named by an argument loads: Kho's own modules, and libraries.

Each is imported in a copy of a process that has loaded the libraries which take long, and nothing of Kho.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_LIBRARIES = (
    "aws_lambda_powertools.metrics",
    "botocore.exceptions",
    "concurrent.futures.thread",
    "http.client",
    "logging.handlers",
    "mangum",
    "mcp_types.methods",
    "opentelemetry.trace",
    "pydantic.functional_validators",
    "pydantic.json_schema",
    "pydantic.main",
    "pydantic.type_adapter",
)


def import_closures(*modules: str) -> dict[str, tuple[set[str], set[str]]]:
    """Return the modules of Kho, packages included, and the libraries that each of these modules loads."""
    program = subprocess.run([sys.executable, __file__, *modules], stdout=subprocess.PIPE, check=True, cwd=ROOT)
    return {name: (set(own), set(libraries)) for name, (own, libraries) in json.loads(program.stdout).items()}


def _closure(module: str) -> tuple[list[str], list[str]]:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        with os.fdopen(write, "w") as pipe:
            importlib.import_module(module)
            json.dump(_loaded(), pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    if os.waitpid(child, 0)[1]:
        sys.exit(f"{module} cannot be imported")
    own, libraries = json.loads(text)
    return own, libraries


def _loaded() -> tuple[list[str], list[str]]:
    """Return the names of Kho's modules and of top-level packages of libraries."""
    program = sys.modules["__main__"]
    own = {name for name, module in sys.modules.items() if module is not program and _is_own(module)}
    return sorted(own), sorted({name.partition(".")[0] for name in sys.modules.keys() - own})


def _is_own(module: object) -> bool:
    files = [getattr(module, "__file__", None), *getattr(module, "__path__", [])]
    return any(file and Path(file).is_relative_to(ROOT) and "site-packages" not in file for file in files)


if __name__ == "__main__":
    for library in _LIBRARIES:
        importlib.import_module(library)
    print(json.dumps({name: _closure(name) for name in sys.argv[1:]}))
