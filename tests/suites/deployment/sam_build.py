"""`sam build` of a fresh clone, and how large each function is."""

from __future__ import annotations

import platform
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from tests.suites.deployment.tools import command_environment, tool
from tests.suites.rie.functions import deployed_functions
from tests.suites.rie.installation import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.suites.rie.functions import DeployedFunction

MB: Final = 1_000_000
LARGEST: Final = 230 * MB
"""Less than Lambda's limit of 250, unzipped, layers included."""
LARGEST_OF_MEMORY: Final = 40 * MB


@dataclass(frozen=True, slots=True)
class Size:
    """A function's size, unzipped, in bytes."""

    function: DeployedFunction
    code: int
    layers: int

    @property
    def total(self) -> int:
        """The size that counts against Lambda's limit."""
        return self.code + self.layers

    @property
    def limit(self) -> int:
        """The limit that the project sets itself."""
        return LARGEST_OF_MEMORY if self.function.name.startswith("memory_server-") else LARGEST


@contextmanager
def build_clone(*, for_this_machine: bool = False, function: str = "", revision: str = "HEAD") -> Iterator[Path]:
    """Clone the project, check it with `sam validate --lint` and build it, for Lambda or for this machine.

    With the logical name of a `function`, build that function and its layers alone, without the check.
    """
    sam = str(tool("sam") / "sam")
    with TemporaryDirectory(prefix="kho-build-") as folder:
        clone = Path(folder) / "kho"
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(clone)], check=True)
        subprocess.run(["git", "-C", str(clone), "checkout", "--quiet", revision], check=True)
        more = _turn_to_this_machine(clone / "template.yaml") if for_this_machine else {}
        for arguments in (["build", function],) if function else (["validate", "--lint"], ["build"]):
            ran = subprocess.run(
                [sam, *arguments],
                cwd=clone,
                env=command_environment(**more),
                capture_output=True,
                text=True,
                check=False,
            )
            assert ran.returncode == 0, ran.stdout + ran.stderr
        yield clone / ".aws-sam" / "build"


def sizes(build: Path) -> list[Size]:
    """Return the size of every function that was built, the largest first."""
    of_layers = {folder.name: _bytes(folder) for folder in build.glob("*Layer")}
    sizes_found = [
        Size(function, _bytes(build / function.logical), sum(of_layers[layer] for layer in function.layers))
        for function in deployed_functions()
        if (build / function.logical).is_dir()
    ]
    return sorted(sizes_found, key=lambda size: (-size.total, size.function.name))


def _turn_to_this_machine(template: Path) -> dict[str, str]:
    """Have everything built for this processor."""
    machine = platform.machine()
    lambdas = {"x86_64": "x86_64", "aarch64": "arm64"}[machine]
    template.write_text(template.read_text(encoding="utf-8").replace("arm64", lambdas), encoding="utf-8")
    return {"ARCHITECTURE": machine}


def _bytes(folder: Path) -> int:
    return sum(file.lstat().st_size for file in folder.rglob("*") if not file.is_dir())
