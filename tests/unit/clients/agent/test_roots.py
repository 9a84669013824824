"""Allowed roots of files: paths that lead into them, and the names of the files."""

from __future__ import annotations

import hashlib
import platform
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from infra.clients.agent.files.errors import FileMissing
from infra.clients.agent.files.folder_scan import scan
from infra.clients.agent.files.reader import FileReader
from infra.clients.agent.files.roots import Roots
from tests.helpers.folders import scanned_names, write_files

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def test_tilde_is_not_expanded(root: Path) -> None:
    write_files(root, "~draft.md", "~root/x.md")
    assert scanned_names(root, "~draft.md") == ["~draft.md"]
    assert scanned_names(root) == ["~draft.md", "~root/x.md"]
    for path in ("~daemon/y.md", "~root/y.md", "~"):
        assert scan(Roots([root]), path, recursive=False).kind == "absent"


def test_missing_root_does_not_delete_documents(root: Path) -> None:
    for path in (".", "a.md"):
        with pytest.raises(FileMissing):
            scan(Roots([root / "unmounted"]), path, recursive=True)


def test_hidden_root_is_read(root: Path) -> None:
    write_files(root, ".notes/a.md")
    files = scan(Roots([root, root / ".notes"]), ".notes", recursive=True)
    assert [each.name for each in files.files] == [".notes/a.md"]


@pytest.mark.parametrize(
    ("folders", "expected"),
    [
        (["x"], ["a.md"]),
        (["x", "x"], ["a.md", "a.md"]),
        (["x", "y"], ["x/a.md", "y/a.md"]),
        (["x/docs", "y/docs"], ["x/docs/a.md", "y/docs/a.md"]),
        (["x", "x/docs"], ["a.md", "docs/a.md"]),
        (["x/docs", "y/docs", "z/x"], ["x/docs/a.md", "y/docs/a.md", "z/x/a.md"]),
        (["z/docs", "z/y/docs"], ["z/docs/a.md", "y/docs/a.md"]),
    ],
)
def test_names_are_unique_across_roots(root: Path, folders: list[str], expected: list[str]) -> None:
    for folder in folders:
        write_files(root, f"{folder}/a.md")
    roots = Roots([root / folder for folder in folders])
    assert [roots.locate(root / folder / "a.md").name for folder in folders] == expected


def test_scan_of_one_of_several_roots(root: Path) -> None:
    write_files(root, "x/docs/a.md", "y/docs/sub/a.md")
    roots = Roots([root / "x/docs", root / "y/docs"])
    flat, whole = (scan(roots, str(root / "x/docs"), recursive=each) for each in (False, True))
    assert [each.name for each in whole.files] == ["x/docs/a.md"]
    assert [flat.covers(name) for name in ("x/docs/b.md", "x/docs/sub/b.md", "b.md")] == [True, False, False]
    assert whole.covers("b.md"), "as it was called when this was the one root"
    sub = scan(roots, str(root / "y/docs/sub"), recursive=True)
    assert [sub.covers(name) for name in ("y/docs/sub/b.md", "x/docs/sub/b.md", "docs/sub/b.md")] == [
        True,
        False,
        False,
    ]


def test_tree_belongs_to_its_root(root: Path) -> None:
    write_files(root, "x/docs/a.md", "y/docs/a.md")
    x, y = root / "x/docs", root / "y/docs"

    def tree(roots: list[Path], path: Path) -> str:
        return FileReader(Roots(roots)).find(str(path), recursive=True).tree

    assert tree([x], x) == tree([x, y], x) == tree([y, x], x / "a.md")
    assert tree([x, y], x) != tree([x, y], y)
    named = f"{platform.node()}\0{x}"
    assert tree([x], x) == hashlib.sha256(named.encode()).hexdigest()[:32], "as it has always been under one root"


def test_multiple_roots_are_labelled(root: Path) -> None:
    other = root.parent / "other"
    other.mkdir()
    write_files(root, "a.md")
    write_files(other, "a.md")
    roots = Roots([root, other])
    assert [roots.locate(root / "a.md").name, roots.locate(other / "a.md").name] == ["root/a.md", "other/a.md"]


def test_typed_path_outside_of_the_working_folder_is_its_own_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its documents are named by the folder's name, from whichever folder the command runs."""
    write_files(root, "work/docs/a.md", "other/docs/b.md", "other/docs/deep/c.md")
    monkeypatch.chdir(root / "work")
    for path, names in {
        "docs": ["docs/a.md"],
        str(root / "work/docs/a.md"): ["docs/a.md"],
        "../other": ["other/docs/b.md", "other/docs/deep/c.md"],
        str(root / "other/docs"): ["docs/b.md", "docs/deep/c.md"],
        str(root / "other/docs/b.md"): ["docs/b.md"],
    }.items():
        assert [each.name for each in scan(Roots.around(path), path, recursive=True).files] == names
    for path in ("", "\0", str(root / "none/a.md"), str(root / "none")):
        with suppress(FileMissing):
            assert scan(Roots.around(path), path, recursive=True).kind == "absent"
