"""Bundle the console as its endpoint serves it: compressed files under a digest of all, an index and its headers.

`sam build` runs this as a program, `kho serve` imports it; only the standard library.
"""

import base64
import gzip
import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
_MODULES: Final = HERE / "vendor" / "modules.json"
"""The path below `vendor/` of the module that each import names; written by vendor.py."""
_SUFFIXES: Final = frozenset({".js", ".mjs", ".css", ".svg", ".txt"})
_DIGEST_CHARACTERS: Final = 16
_POLICY: Final = (
    "default-src 'none'; script-src 'self' 'sha256-{import_map}'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)


class BundleError(Exception):
    """The console cannot be bundled; the text says why."""


def bundle(target: Path, *, one_machine: bool) -> None:
    """Write the bundle to `target`. On one machine, the sign-in offers to paste a key."""
    if not _MODULES.is_file():
        raise BundleError("The console's packages are missing: run 'python3 infra/prepare.py'.")
    files = {each.relative_to(HERE).as_posix(): each.read_bytes() for each in _served_files()}
    digest = _digest(files)
    shutil.rmtree(target, ignore_errors=True)
    for name, content in files.items():
        file = target / "files" / f"{name}.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(content, mtime=0))
    modules: dict[str, str] = json.loads(_MODULES.read_text(encoding="utf-8"))
    imports = {name: f"./{digest}/vendor/{file}" for name, file in modules.items()}
    import_map = json.dumps({"imports": imports})
    index = (HERE / "index.html").read_text(encoding="utf-8")
    values = {"{{digest}}": digest, "{{import_map}}": import_map, "{{machine}}": "one" if one_machine else "cloud"}
    for mark, value in values.items():
        index = index.replace(mark, value)
    (target / "index.html").write_text(index, encoding="utf-8")
    import_map_hash = base64.b64encode(hashlib.sha256(import_map.encode()).digest()).decode()
    manifest = {"digest": digest, "policy": _POLICY.format(import_map=import_map_hash)}
    (target / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def _served_files() -> list[Path]:
    return sorted(each for each in HERE.rglob("*") if each.suffix in _SUFFIXES and "node_modules" not in each.parts)


def _digest(files: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:_DIGEST_CHARACTERS]


if __name__ == "__main__":
    bundle(Path(sys.argv[1]), one_machine=False)
