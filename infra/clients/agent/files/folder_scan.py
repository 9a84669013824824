"""The scan of a folder for files, without hidden files and files that a `.gitignore` excludes."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import TYPE_CHECKING, Final, Literal

import re2  # type: ignore[import-untyped]  # the package has no types
from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.base import GitIgnorePatternError

from infra.clients.agent.files.errors import FileInaccessible, FileMissing, UnreadableFile
from infra.clients.agent.files.roots import read_bytes
from shared.knowledge.folder_sync import InvalidFile
from shared.knowledge.models import DocumentFailure, FileNote
from shared.rpc.strict_json import encodable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from infra.clients.agent.files.roots import RootedPath, Roots

_MAX_IGNORE_BYTES: Final = 1 << 20
_MAX_LINES: Final = 20_000
_IGNORE_FILE: Final = ".gitignore"
_PATTERN_ERRORS: Final = (GitIgnorePatternError, re.error, re2.error)
_LISTED_LINES: Final = 10


@dataclass(slots=True)
class Scan:
    """The result of a scan: readable files, failures, notes, and the range of names that it covers."""

    location: RootedPath
    kind: Literal["file", "folder", "absent"]
    recursive: bool = True
    is_whole: bool = False
    """True if the scan covers its whole root."""
    files: list[RootedPath] = field(default_factory=list)
    failures: list[DocumentFailure] = field(default_factory=list)
    notes: list[FileNote] = field(default_factory=list)
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
    invalid_lines: tuple[int, ...] = ()


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
    folders = [location.root, *(each for each in reversed(location.path.parents) if location.root in each.parents)]
    if location.path != location.root:
        folders.append(location.path)
    _add_files(
        roots, location.path, [rule for folder in folders for rule in _reported_rules(roots, folder, result)], result
    )
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
        _skip_folder(roots, folder, f"cannot be listed: {error.strerror}", result)


def _add_files(roots: Roots, start: Path, rules: list[_Rules], result: Scan) -> None:
    """Add the files in `start`, to which `rules` apply."""
    pending = [(start, rules)]
    while pending:
        folder, inner = pending.pop()
        for entry in _entries(roots, folder, result):
            path = folder / entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name.startswith(".") or _is_ignored(inner, path, is_folder=is_folder):
                continue
            if not is_folder:
                _add_file(roots, path, result)
            elif result.recursive:
                try:
                    pending.append((path, [*inner, *_reported_rules(roots, path, result)]))
                except UnreadableFile as error:
                    _skip_folder(roots, path, str(error), result)


def _skip_folder(roots: Roots, folder: Path, reason: str, result: Scan) -> None:
    result.failures.append(DocumentFailure(_name(roots, folder), reason))
    result.unlisted.append(roots.name(folder))


def _reported_rules(roots: Roots, folder: Path, result: Scan) -> list[_Rules]:
    """Read the folder's rules. Report lines that are not patterns."""
    rules = _rules(roots, folder)
    for lines in (rule.invalid_lines for rule in rules if rule.invalid_lines):
        listed = ", ".join(map(str, lines[:_LISTED_LINES])) + (", …" if len(lines) > _LISTED_LINES else "")
        note = f"has lines that are not patterns. They are skipped, the others hold: {listed}"
        result.notes.append(FileNote(_name(roots, folder / _IGNORE_FILE), note))
    return rules


def _add_file(roots: Roots, path: Path, result: Scan) -> None:
    try:
        location = roots.locate(path)
        is_excluded = path.is_symlink() and _is_excluded(roots, location)
    except UnreadableFile as error:
        result.failures.append(read_failure(_name(roots, path), error))
        return
    if not path.is_symlink():
        result.files.append(location)
    elif is_excluded:
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
    """Read the folder's `.gitignore`, if it has one. As git does, skip each line that is not a pattern."""
    file = folder / _IGNORE_FILE
    try:
        file.lstat()  # much cheaper than locating it in a deep folder
    except FileNotFoundError:
        return []
    except OSError:
        pass  # reported below
    try:
        content = read_bytes(roots.locate(file), _MAX_IGNORE_BYTES)
    except FileMissing:
        return []
    except UnreadableFile as error:
        # Without its rules, files that the user excluded would be ingested.
        raise FileInaccessible(f"is not read, because its {_IGNORE_FILE} {error}") from None
    lines = [line.removesuffix("\r") for line in content.decode("utf-8-sig", "replace").split("\n")]
    if len(lines) > _MAX_LINES:
        raise FileInaccessible(f"is not read, because its {_IGNORE_FILE} has more than {_MAX_LINES:,} lines")
    if _are_patterns(lines):
        return [_Rules(folder, GitIgnoreSpec.from_lines(lines))]
    valid = [_are_patterns([line]) for line in lines]
    invalid = tuple(number for number, is_valid in enumerate(valid, start=1) if not is_valid)
    try:
        return [_Rules(folder, GitIgnoreSpec.from_lines(compress(lines, valid)), invalid)]
    except _PATTERN_ERRORS:
        raise FileInaccessible(f"is not read, because its {_IGNORE_FILE} has too many patterns") from None


def _are_patterns(lines: list[str]) -> bool:
    """Return whether pathspec can read the lines. It reads no POSIX class, such as `[[:alpha:]]`."""
    if any("[[" in line for line in lines):
        return False
    try:
        GitIgnoreSpec.from_lines(lines)
    except _PATTERN_ERRORS:
        return False
    return True


def _is_ignored(rules: list[_Rules], path: Path, *, is_folder: bool) -> bool:
    """Decide as git does: the deepest `.gitignore` with a pattern for the path decides."""
    for rule in reversed(rules):
        name = path.relative_to(rule.folder).as_posix() + ("/" if is_folder else "")
        ignored = rule.spec.check_file(name).include
        if ignored is not None:
            return ignored
    return False
