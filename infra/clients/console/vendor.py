"""Fetch the console's packages from npm into `vendor/`, as package-lock.json pins them; only the standard library."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
VENDOR: Final = HERE / "vendor"
MODULES: Final = {
    "preact": "preact/dist/preact.mjs",
    "preact/hooks": "preact/hooks/dist/hooks.mjs",
    "htm": "htm/dist/htm.mjs",
    "@preact/signals": "@preact/signals/dist/signals.mjs",
    "@preact/signals-core": "@preact/signals-core/dist/signals-core.mjs",
    "marked": "marked/lib/marked.esm.js",
    "dompurify": "dompurify/dist/purify.es.mjs",
    "diff/array": "diff/libesm/diff/array.js",
    "diff/base": "diff/libesm/diff/base.js",
}
"""The module that each import names, by its path in node_modules."""
_SOURCE_MAP: Final = b"//# sourceMappingURL="


def fetch(npm: str) -> None:
    """Fetch the packages, check their hashes, and replace `vendor/` by the files that the console serves."""
    with tempfile.TemporaryDirectory(prefix="kho-console-") as folder:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, Path(folder) / name)
        command = [npm, "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", folder]
        subprocess.run(command, check=True)  # noqa: S603 - our own words only
        _select(Path(folder) / "node_modules")


def _select(packages: Path) -> None:
    shutil.rmtree(VENDOR, ignore_errors=True)
    files = {name: f"{name}{Path(source).suffix}" for name, source in MODULES.items()}
    for name, source in MODULES.items():
        _write(VENDOR / files[name], _without_source_map((packages / source).read_bytes()))
    _write(VENDOR / "modules.json", json.dumps(files).encode())
    for package in sorted({_package(source) for source in MODULES.values()}):
        licence = next(each for each in sorted((packages / package).iterdir()) if each.name.upper().startswith("LICEN"))
        _write(VENDOR / "licences" / f"{package.replace('/', '-')}.txt", licence.read_bytes())


def _package(source: str) -> str:
    parts = source.split("/")
    return "/".join(parts[:2] if source.startswith("@") else parts[:1])


def _without_source_map(module: bytes) -> bytes:
    """Drop the last line's reference to a source map, which is not served."""
    head, _, rest = module.rpartition(_SOURCE_MAP)
    return head if head and b"\n" not in rest.strip() else module


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


if __name__ == "__main__":
    fetch(sys.argv[1] if len(sys.argv) > 1 else "npm")
