"""Where files may be read: what paths lead to there, and what they are called."""

from __future__ import annotations

import hashlib
import platform
from typing import TYPE_CHECKING

import pytest

from infra.reading.failures import Absent
from infra.reading.folders import scan
from infra.reading.reader import FileReader
from infra.reading.roots import Roots
from tests.unit.reading import names, write

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def test_a_tilde_is_a_character_like_others(root: Path) -> None:
    write(root, "~draft.md", "~root/x.md")
    assert names(root, "~draft.md") == ["~draft.md"]
    assert names(root) == ["~draft.md", "~root/x.md"]
    for path in ("~nobody/y.md", "~root/y.md", "~"):
        assert scan(Roots([root]), path, recursive=False).kind == "absent"


def test_a_root_that_is_away_has_lost_no_files(root: Path) -> None:
    for path in (".", "a.md"):
        with pytest.raises(Absent):
            scan(Roots([root / "unmounted"]), path, recursive=True)


def test_a_hidden_folder_that_is_allowed_is_read(root: Path) -> None:
    write(root, ".notes/a.md")
    found = scan(Roots([root, root / ".notes"]), ".notes", recursive=True)
    assert [each.name for each in found.files] == [".notes/a.md"]


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
def test_no_two_files_under_several_roots_have_one_name(root: Path, folders: list[str], expected: list[str]) -> None:
    for folder in folders:
        write(root, f"{folder}/a.md")
    roots = Roots([root / folder for folder in folders])
    assert [roots.place(root / folder / "a.md").name for folder in folders] == expected


def test_a_root_among_several_is_followed_as_one_is(root: Path) -> None:
    write(root, "x/docs/a.md", "y/docs/sub/a.md")
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


def test_a_tree_is_that_of_its_root(root: Path) -> None:
    write(root, "x/docs/a.md", "y/docs/a.md")
    x, y = root / "x/docs", root / "y/docs"

    def tree(roots: list[Path], path: Path) -> str:
        return FileReader(Roots(roots)).find(str(path), recursive=True).tree

    assert tree([x], x) == tree([x, y], x) == tree([y, x], x / "a.md")
    assert tree([x, y], x) != tree([x, y], y)
    named = f"{platform.node()}\0{x}"
    assert tree([x], x) == hashlib.sha256(named.encode()).hexdigest()[:32], "as it has always been under one root"


def test_several_roots_are_named(root: Path) -> None:
    other = root.parent / "other"
    other.mkdir()
    write(root, "a.md")
    write(other, "a.md")
    roots = Roots([root, other])
    assert [roots.place(root / "a.md").name, roots.place(other / "a.md").name] == ["root/a.md", "other/a.md"]
