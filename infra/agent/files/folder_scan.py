"""The scan of a folder for files, without hidden files and files that a `.gitignore` excludes."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.base import GitIgnorePatternError

from infra.agent.files.errors import FileInaccessible, FileMissing, UnreadableFile
from infra.agent.files.roots import read_bytes
from shared.knowledge.folder_sync import InvalidFile
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
    """The result of a scan: readable files, failures, and the range of names that it covers."""

    location: RootedPath
    kind: Literal["file", "folder", "absent"]
    recursive: bool = True
    is_whole: bool = False
    """True if the scan covers its whole root."""
    files: list[RootedPath] = field(default_factory=list)
    failures: list[DocumentFailure] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)

    def reads(self, name: str) -> bool:
        """Return whether a file of this name is in the scanned range."""
        if self.kind == "file" or any(_is_below(folder, name) for folder in self.unlisted):
            return False
        folder = self.location.name
        rest = name if folder == "." else name.removeprefix(f"{folder}/")
        return name == folder or (_is_below(folder, name) and (self.recursive or "/" not in rest))

    def covers(self, name: str) -> bool:
        """Return whether the scan would have found a file of this name in the same root."""
        return self.reads(name) or (self.is_whole and not self.unlisted)


def _is_below(folder: str, name: str) -> bool:
    return folder == "." or name.startswith(f"{folder}/")


@dataclass(frozen=True, slots=True)
class _Rules:
    """The `.gitignore` of one folder."""

    folder: Path
    spec: GitIgnoreSpec


def scan(roots: Roots, path: str, *, recursive: bool) -> Scan:
    """Find the file at `path`, or the files in the folder at `path`."""
    try:
        location = roots.locate(path)
    except FileMissing:
        location = roots.resolve_path(path)
        if not location.root.is_dir():
            raise  # the root itself is missing, for example an unmounted disk: its files are not deleted
        return Scan(location, "absent")
    if _is_excluded(roots, location):
        raise UnreadableFile("is excluded: it is hidden, or a .gitignore names it")
    if not location.path.is_dir():
        return Scan(location, "file", files=[location])
    result = Scan(location, "folder", recursive, is_whole=recursive and location.path == roots.outermost(location.path))
    above = [location.root, *(each for each in reversed(location.path.parents) if location.root in each.parents)]
    rules = [rule for folder in above if folder != location.path for rule in _rules(roots, folder)]
    pending = [(location.path, rules)]
    while pending:
        folder, outer = pending.pop()
        inner = [*outer, *_rules(roots, folder)]
        for entry in _entries(roots, folder, result):
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name.startswith(".") or _is_ignored(inner, folder / entry.name, is_folder=is_folder):
                continue
            if is_folder:
                if recursive:
                    pending.append((folder / entry.name, inner))
            else:
                _add_file(roots, folder / entry.name, result)
    result.files.sort(key=lambda each: each.name)
    return result


def read_failure(path: str, error: UnreadableFile) -> DocumentFailure:
    """Convert the error of the file at `path`. Only an invalid file loses its document."""
    # A share that is unreachable or permissions that are being changed must not delete documents.
    return DocumentFailure(path, str(error)) if isinstance(error, FileInaccessible) else InvalidFile(path, str(error))


def _entries(roots: Roots, folder: Path, result: Scan) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError as error:
        result.failures.append(DocumentFailure(_name(roots, folder), f"cannot be listed: {error.strerror}"))
        result.unlisted.append(roots.name(folder))


def _add_file(roots: Roots, path: Path, result: Scan) -> None:
    try:
        location = roots.locate(path)
    except UnreadableFile as error:
        result.failures.append(read_failure(_name(roots, path), error))
        return
    if not path.is_symlink():
        result.files.append(location)
    elif _is_excluded(roots, location):
        return
    elif location.path.is_dir():
        result.failures.append(InvalidFile(_name(roots, path), "is a link to a folder, which is not followed"))
    elif not result.reads(location.name):  # else the scan finds the link's target itself
        result.files.append(replace(location, name=roots.name(path)))


def _name(roots: Roots, path: Path) -> str:
    return encodable(roots.name(path))


def _is_excluded(roots: Roots, location: RootedPath) -> bool:
    """Return whether a scan of its root would skip the path."""
    rules: list[_Rules] = []
    folder = location.root
    for part in location.path.relative_to(location.root).parts:
        rules += _rules(roots, folder)
        folder /= part
        if part.startswith(".") or _is_ignored(rules, folder, is_folder=folder.is_dir()):
            return True
    return False


def _rules(roots: Roots, folder: Path) -> list[_Rules]:
    try:
        text = read_bytes(roots.locate(folder / _IGNORE_FILE), _MAX_IGNORE_BYTES).decode("utf-8", "replace")
        return [_Rules(folder, GitIgnoreSpec.from_lines(text.splitlines()))]
    except (UnreadableFile, GitIgnorePatternError):
        return []


def _is_ignored(rules: list[_Rules], path: Path, *, is_folder: bool) -> bool:
    """Decide as git does: the deepest `.gitignore` with a pattern for the path decides."""
    for rule in reversed(rules):
        name = path.relative_to(rule.folder).as_posix() + ("/" if is_folder else "")
        ignored = rule.spec.check_file(name).include
        if ignored is not None:
            return ignored
    return False
