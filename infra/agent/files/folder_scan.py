"""Which files of a folder are read: not the hidden ones, nor those that a `.gitignore` names."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.base import GitIgnorePatternError

from infra.agent.files.errors import FileInaccessible, FileMissing, UnreadableFile
from infra.agent.files.roots import read_bytes
from shared.knowledge.file_source import InvalidFile
from shared.knowledge.models import DocumentFailure
from shared.rpc.strict_json import encodable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from infra.agent.files.roots import RootedPath, Roots

_MAX_IGNORE_BYTES: Final = 1 << 20
_IGNORE_FILE: Final = ".gitignore"


@dataclass(slots=True)
class Scan:
    """The files to read, those that cannot be, and which names the scan has spoken for."""

    place: RootedPath
    kind: Literal["file", "folder", "absent"]
    recursive: bool = True
    is_whole: bool = False
    """Whether all that lies under its root was looked for."""
    files: list[RootedPath] = field(default_factory=list)
    failures: list[DocumentFailure] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)

    def reads(self, name: str) -> bool:
        """Whether a file of this name is among those that were looked for."""
        if self.kind == "file" or any(_is_below(folder, name) for folder in self.unlisted):
            return False
        rest = name if self.place.name == "." else name.removeprefix(f"{self.place.name}/")
        return name == self.place.name or (_is_below(self.place.name, name) and (self.recursive or "/" not in rest))

    def covers(self, name: str) -> bool:
        """Whether a file of the same root would have been found, were it still there and called so."""
        return self.reads(name) or (self.is_whole and not self.unlisted)


def _is_below(folder: str, name: str) -> bool:
    return folder == "." or name.startswith(f"{folder}/")


@dataclass(frozen=True, slots=True)
class _Rules:
    """The `.gitignore` of one folder."""

    folder: Path
    spec: GitIgnoreSpec


def scan(roots: Roots, path: str, *, recursive: bool) -> Scan:
    """Find the files of `path`: itself, or those of the folder it is."""
    try:
        place = roots.place(path)
    except FileMissing:
        place = roots.resolve_path(path)
        if not place.root.is_dir():
            raise  # a root that is away, as a disk may be, has not lost its files
        return Scan(place, "absent")
    if _is_excluded(roots, place):
        raise UnreadableFile("is left out: it is hidden, or a .gitignore names it")
    if not place.path.is_dir():
        return Scan(place, "file", files=[place])
    found = Scan(place, "folder", recursive, is_whole=recursive and place.path == roots.outermost(place.path))
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


def read_failure(path: str, refusal: UnreadableFile) -> DocumentFailure:
    """What a refusal makes of the file at `path`."""
    # A share that is away for a moment, or rights that are being changed, must not cost anybody their documents.
    return (
        DocumentFailure(path, str(refusal))
        if isinstance(refusal, FileInaccessible)
        else InvalidFile(path, str(refusal))
    )


def _entries(roots: Roots, folder: Path, found: Scan) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError as error:
        found.failures.append(DocumentFailure(_shown(roots, folder), f"cannot be listed: {error.strerror}"))
        found.unlisted.append(roots.name(folder))


def _take(roots: Roots, path: Path, found: Scan) -> None:
    try:
        place = roots.place(path)
    except UnreadableFile as refusal:
        found.failures.append(read_failure(_shown(roots, path), refusal))
        return
    if not path.is_symlink():
        found.files.append(place)
    elif _is_excluded(roots, place):
        return
    elif place.path.is_dir():
        found.failures.append(InvalidFile(_shown(roots, path), "is a link to a folder, which is not followed"))
    elif not found.reads(place.name):  # else it is read where it lies
        found.files.append(replace(place, name=roots.name(path)))


def _shown(roots: Roots, path: Path) -> str:
    return encodable(roots.name(path))


def _is_excluded(roots: Roots, place: RootedPath) -> bool:
    """Whether a scan of its root would pass it by."""
    rules: list[_Rules] = []
    folder = place.root
    for part in place.path.relative_to(place.root).parts:
        rules += _rules(roots, folder)
        folder /= part
        if part.startswith(".") or _is_ignored(rules, folder, is_folder=folder.is_dir()):
            return True
    return False


def _rules(roots: Roots, folder: Path) -> list[_Rules]:
    try:
        text = read_bytes(roots.place(folder / _IGNORE_FILE), _MAX_IGNORE_BYTES).decode("utf-8", "replace")
        return [_Rules(folder, GitIgnoreSpec.from_lines(text.splitlines()))]
    except (UnreadableFile, GitIgnorePatternError):
        return []


def _is_ignored(rules: list[_Rules], path: Path, *, is_folder: bool) -> bool:
    """As git decides: the deepest file that says anything of a path says it last."""
    for rule in reversed(rules):
        name = path.relative_to(rule.folder).as_posix() + ("/" if is_folder else "")
        said = rule.spec.check_file(name).include
        if said is not None:
            return said
    return False
