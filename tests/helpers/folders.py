"""Folders of files to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.clients.agent.files.folder_scan import scan
from infra.clients.agent.files.roots import Roots

if TYPE_CHECKING:
    from pathlib import Path


def write_files(root: Path, *names: str, text: str = "x") -> None:
    """Write files of these names."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def scanned_names(root: Path, path: str = ".", *, recursive: bool = True) -> list[str]:
    """Return the names of the files below a path."""
    return [each.name for each in scan(Roots([root]), path, recursive=recursive).files]
