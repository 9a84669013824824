"""Which files of a folder are read: not the hidden ones, nor those that a `.gitignore` names."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.base import GitIgnorePatternError

from infra.reading.failures import Failure, Unreadable
from infra.reading.roots import read_bytes
from shared.rpc.text import encodable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from infra.reading.roots import Place, Roots

_MAX_IGNORE_BYTES: Final = 1 << 20
_IGNORE_FILE: Final = ".gitignore"


@dataclass(slots=True)
class Scan:
    """The files to read, those that cannot be, and which names the scan has spoken for."""

    files: list[Place] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    folder: str | None = None
    recursive: bool = False

    def covers(self, name: str) -> bool:
        """Whether a file of this name would have been found, were it still there."""
        if self.folder is None:
            return False
        inside = "" if self.folder == "." else f"{self.folder}/"
        rest = name.removeprefix(inside)
        return name.startswith(inside) and (self.recursive or "/" not in rest)


@dataclass(frozen=True, slots=True)
class _Rules:
    """The `.gitignore` of one folder."""

    folder: Path
    spec: GitIgnoreSpec


def scan(roots: Roots, path: str, *, recursive: bool) -> Scan:
    """Find the files of `path`: itself, or those of the folder it is."""
    place = roots.place(path)
    if not place.path.is_dir():
        return Scan([place])
    found = Scan(folder=place.name, recursive=recursive)
    above = [place.root, *(each for each in reversed(place.path.parents) if place.root in each.parents)]
    rules = [rule for folder in above if folder != place.path for rule in _rules(roots, folder)]
    waiting = [(place.path, rules)]
    while waiting:
        folder, outer = waiting.pop()
        inner = [*outer, *_rules(roots, folder)]
        for entry in _entries(roots, folder, found):
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name.startswith(".") or _is_ignored(inner, folder / entry.name, is_folder=is_folder):
                continue
            if is_folder:
                if recursive:
                    waiting.append((folder / entry.name, inner))
            else:
                _take(roots, folder / entry.name, found)
    found.files.sort(key=lambda each: each.name)
    return found


def _entries(roots: Roots, folder: Path, found: Scan) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError as error:
        found.failures.append(Failure(_shown(roots, folder), f"cannot be listed: {error.strerror}"))


def _take(roots: Roots, path: Path, found: Scan) -> None:
    try:
        place = roots.place(path)
    except Unreadable as refusal:
        found.failures.append(Failure(_shown(roots, path), str(refusal)))
        return
    if not path.is_symlink():
        found.files.append(place)
    elif place.path.is_dir():
        found.failures.append(Failure(_shown(roots, path), "is a link to a folder, which is not followed"))
    elif not found.covers(place.name):  # else it is read where it lies
        found.files.append(replace(place, name=roots.name(path)))


def _shown(roots: Roots, path: Path) -> str:
    return encodable(roots.name(path))


def _rules(roots: Roots, folder: Path) -> list[_Rules]:
    try:
        text = read_bytes(roots.place(folder / _IGNORE_FILE), _MAX_IGNORE_BYTES).decode("utf-8", "replace")
        return [_Rules(folder, GitIgnoreSpec.from_lines(text.splitlines()))]
    except (Unreadable, GitIgnorePatternError):
        return []


def _is_ignored(rules: list[_Rules], path: Path, *, is_folder: bool) -> bool:
    """As git decides: the deepest file that says anything of a path says it last."""
    for rule in reversed(rules):
        name = path.relative_to(rule.folder).as_posix() + ("/" if is_folder else "")
        said = rule.spec.check_file(name).include
        if said is not None:
            return said
    return False
