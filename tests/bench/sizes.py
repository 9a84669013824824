"""How large each function is, as `sam build` makes it of a fresh clone."""

from __future__ import annotations

from tests.bench import tables as bench
from tests.deployment.building import MB, built, sizes


def tables() -> list[bench.Table]:
    """Build, and weigh."""
    with built() as build:
        found = sizes(build)
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
    return [bench.Table("Every function, built", ["function", "code", "layers", "together", "its layers"], rows, notes)]
