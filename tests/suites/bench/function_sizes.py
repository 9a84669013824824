"""The size of each function, as `sam build` makes it from a fresh clone."""

from __future__ import annotations

from typing import Final

from tests.suites.bench import tables as bench
from tests.suites.bench.size import sized
from tests.suites.deployment.sam_build import MB, build_clone, sizes
from tests.suites.rie.installation import functions_python

TITLE: Final = "Every function, built"
ALONE: Final = sized("MemoryServerAddMessage", full="")
"""The one function that is built; all if empty."""


def tables() -> list[bench.BenchTable]:
    """Build the functions, and add up the sizes of their files."""
    if functions_python() is None:
        return [
            bench.BenchTable(
                TITLE, [], [], ["Not measured: `sam build` needs Python 3.13, as `python3.13` on the path."]
            )
        ]
    with build_clone(function=ALONE) as build:
        found = sizes(build)
    assert found
    too_large = [size.function.name for size in found if size.total > size.limit]
    assert not too_large, too_large
    rows = [
        [
            size.function.name,
            f"{size.code / MB:.1f} MB",
            f"{size.layers / MB:.1f} MB",
            f"{size.total / MB:.1f} MB",
            ", ".join(layer.removesuffix("Layer").lower() for layer in size.function.layers),
        ]
        for size in found
    ]
    notes = [
        "Unzipped, as `sam build` makes it of a fresh clone for arm64; `sam validate --lint` finds nothing. Lambda",
        "takes 250 MB; a function of memory-server is to stay under 40 MB.",
    ]
    return [bench.BenchTable(TITLE, ["function", "code", "layers", "together", "its layers"], rows, notes)]
