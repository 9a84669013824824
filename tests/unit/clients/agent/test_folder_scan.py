"""Reading the caller's files: excluded files, unreadable files, and confinement to the allowed roots."""

from __future__ import annotations

import errno
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from infra.clients.agent.files.errors import FileMissing, OutsideRoots, UnreadableFile
from infra.clients.agent.files.folder_scan import scan
from infra.clients.agent.files.reader import FileReader, read
from infra.clients.agent.files.roots import RootedPath, Roots
from shared.knowledge.folder_sync import FoundFile, InvalidFile
from shared.knowledge.models import DocumentFailure, NewKnowledgeDocument, SkippedFile
from shared.rpc.errors import InvalidRequest
from tests.helpers.folders import scanned_names, write_files


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("outside")
    return folder


def test_recursion_is_optional(root: Path) -> None:
    write_files(root, "b.md", "a.md", "deep/c.md", "deep/er/d.py")
    assert scanned_names(root) == ["a.md", "b.md", "deep/c.md", "deep/er/d.py"]
    assert scanned_names(root, recursive=False) == ["a.md", "b.md"]
    assert scanned_names(root, "deep") == ["deep/c.md", "deep/er/d.py"]
    assert scanned_names(root, str(root / "deep"), recursive=False) == ["deep/c.md"]
    assert scanned_names(root, "deep/c.md") == ["deep/c.md"]


def test_hidden_and_gitignored_files_are_skipped(root: Path) -> None:
    write_files(
        root, ".env", ".git/config", "keep.md", "x.log", "important.log", "build/out.md", "sub/x.tmp", "sub/keep.log"
    )
    write_files(root, "sub/build/seen.md", "sub/inner/x.tmp")
    write_files(root, ".gitignore", text="*.log\n!important.log\n/build/\n# a comment\n")
    write_files(root, "sub/.gitignore", text="*.tmp\n!keep.log\n!inner/x.tmp\n")
    expected = ["important.log", "keep.md", "sub/build/seen.md", "sub/inner/x.tmp", "sub/keep.log"]
    assert scanned_names(root) == expected
    assert scanned_names(root, "sub") == [name for name in expected if name.startswith("sub/")]


@pytest.mark.parametrize("line", ["\\", "[z-a]", r"[a-\d]", "[[:foo:]]", "!", "foo\\"])
def test_invalid_gitignore_line_is_reported_and_the_others_hold(root: Path, line: str) -> None:
    write_files(root, "d/a.md", "d/secret.txt", "d/more.txt")
    write_files(root, "d/.gitignore", text=f"secret.txt\r\n{line}\nmore.txt")
    for path in (".", "d"):
        files = scan(Roots([root]), path, recursive=True)
        assert [each.name for each in files.files] == ["d/a.md"]
        assert files.failures == []
        (note,) = files.notes
        assert note.path == "d/.gitignore"
        assert note.note.endswith("are skipped, the others hold: 2")
        assert files.covers("d/secret.txt"), "an excluded file's document is removed"
    assert scanned_names(root, "d/a.md") == ["d/a.md"]
    with pytest.raises(UnreadableFile, match="is excluded"):
        scan(Roots([root]), "d/secret.txt", recursive=True)


def test_folder_without_gitignore_costs_the_same_at_any_depth(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    located: list[str] = []
    locate = Roots.locate

    def counted(self: Roots, path: str | Path) -> RootedPath:
        located.append(str(path))
        return locate(self, path)

    monkeypatch.setattr(Roots, "locate", counted)
    write_files(root, "/".join(["d"] * 60) + "/a.md")
    assert len(scanned_names(root)) == 1
    assert len(located) == 2, "the folder that is scanned, and the file"


def test_gitignore_of_too_many_lines_is_refused(root: Path) -> None:
    write_files(root, "a.md", "d/secret.txt")
    write_files(root, "d/.gitignore", text="secret.txt\n" + "a?b*\n" * 20_000)
    files = scan(Roots([root]), ".", recursive=True)
    assert [each.name for each in files.files] == ["a.md"]
    assert [each.reason for each in files.failures] == [
        "is not read, because its .gitignore has more than 20,000 lines"
    ]


def test_folder_without_readable_gitignore_is_refused(root: Path) -> None:
    write_files(root, "a.md", "d/secret.txt", "d/deep/b.md")
    (root / "link.md").symlink_to("d/secret.txt")
    write_files(root, "d/.gitignore", text="secret.txt\n" + "#" * (1 << 20))
    files = scan(Roots([root]), ".", recursive=True)
    reason = "is not read, because its .gitignore is larger than 1 MiB"
    assert [each.name for each in files.files] == ["a.md"]
    assert sorted((each.path, each.reason) for each in files.failures) == [("d", reason), ("link.md", reason)]
    assert not files.covers("d/secret.txt"), "documents of a refused folder are kept"
    for path in ("d", "d/deep", "d/deep/b.md", "d/secret.txt"):
        with pytest.raises(UnreadableFile, match=reason):
            scan(Roots([root]), path, recursive=True)


@pytest.mark.parametrize("path", ["../secret.txt", "..", "link", "linked/secret.txt", "/etc/passwd", "/"])
def test_paths_cannot_leave_the_roots(root: Path, path: str) -> None:
    (root / "link").symlink_to(root.parent / "secret.txt")
    (root / "linked").symlink_to(root.parent)
    with pytest.raises((OutsideRoots, FileMissing)):
        scan(Roots([root]), path, recursive=True)


@pytest.mark.parametrize("path", ["../nothing", "/etc/passwd", "/etc/nothing", "dangling", "linked/nothing"])
def test_outside_paths_do_not_reveal_existence(root: Path, path: str) -> None:
    (root / "dangling").symlink_to(root.parent / "nothing")
    (root / "linked").symlink_to(root.parent)
    with pytest.raises(OutsideRoots):
        scan(Roots([root]), path, recursive=True)


def test_non_utf8_file_name_is_rejected(root: Path) -> None:
    name = os.fsdecode(b"caf\xe9.md")
    (root / name).write_text("x")
    with pytest.raises(InvalidRequest, match=r"caf\\udce9.md has a name that is not UTF-8"):
        FileReader(Roots([root])).find(name, recursive=False)
    (failure,) = scan(Roots([root]), ".", recursive=False).failures
    assert (failure.path, failure.reason) == (r"caf\udce9.md", "has a name that is not UTF-8")


@pytest.mark.parametrize("path", ["", "x\0y", "n" * 5000])
def test_invalid_path_is_reported(root: Path, path: str) -> None:
    with pytest.raises(UnreadableFile):
        scan(Roots([root]), path, recursive=True)


@pytest.mark.parametrize("path", ["nothing.md", "nothing/at/all", "a.md/inside"])
def test_missing_path_covers_everything_below(root: Path, path: str) -> None:
    write_files(root, "a.md")
    files = scan(Roots([root]), path, recursive=False)
    assert (files.kind, files.files, files.failures) == ("absent", [], [])
    assert [files.covers(name) for name in (path, f"{path}/x/y.md", f"{path}x", "a.md")] == [True, True, False, False]


def test_symlinks_in_a_folder(root: Path) -> None:
    write_files(root, "docs/a.md", "other/b.md")
    (root / "docs/out.md").symlink_to(root.parent / "secret.txt")
    (root / "docs/same.md").symlink_to("a.md")
    (root / "docs/b.md").symlink_to("../other/b.md")
    (root / "docs/folder").symlink_to("../other")
    (root / "docs/loop").symlink_to("loop")
    (root / "docs/dangling").symlink_to("nowhere")
    files = scan(Roots([root]), "docs", recursive=True)
    assert [each.name for each in files.files] == ["docs/a.md", "docs/b.md"]
    assert {each.path: each.reason.partition(":")[0] for each in files.failures} == {
        "docs/out.md": "leads outside the allowed roots",
        "docs/folder": "is a link to a folder, which is not followed",
        "docs/loop": "cannot be resolved",
        "docs/dangling": "does not exist under the allowed roots",
    }


def test_symlink_does_not_reveal_ignored_files(root: Path) -> None:
    write_files(root, ".env", ".git/config", "logs/x.log", "build/deep/x.md", "docs/.hidden.md", "seen/a.md")
    write_files(root, ".gitignore", text="*.log\n/build/\n")
    (root / "pub").mkdir()
    for number, name in enumerate(
        (".env", ".git/config", "logs/x.log", "build/deep/x.md", "docs/.hidden.md", "seen/a.md")
    ):
        (root / f"pub/{number}.md").symlink_to(f"../{name}")
    files = scan(Roots([root]), "pub", recursive=True)
    assert ([each.name for each in files.files], files.failures) == (["pub/5.md"], [])


@pytest.mark.parametrize("path", [".env", ".git", "x.log", "build/deep/x.md", "link.md"])
def test_ignored_file_cannot_be_read_by_name(root: Path, path: str) -> None:
    write_files(root, ".env", ".git/config", "x.log", "build/deep/x.md")
    write_files(root, ".gitignore", text="*.log\n/build/\n")
    (root / "link.md").symlink_to(".env")
    with pytest.raises(UnreadableFile, match="is excluded"):
        scan(Roots([root]), path, recursive=True)
    assert scanned_names(root / "build", "deep") == ["deep/x.md"], "a root itself is never excluded"


def test_symlink_race_is_not_followed(root: Path) -> None:
    write_files(root, "a/x.md", "b.md")
    places = scan(Roots([root]), ".", recursive=True).files
    (root / "a/x.md").unlink()
    (root / "a").rmdir()
    (root / "a").symlink_to(root.parent)
    (root.parent / "x.md").write_text("outside")
    (root / "b.md").unlink()
    (root / "b.md").symlink_to(root.parent / "secret.txt")
    for place in places:
        with pytest.raises(UnreadableFile):
            read(place)


def test_fifo_does_not_block(root: Path) -> None:
    os.mkfifo(root / "fifo.md")
    for allowed, name in ((root, "fifo.md"), (Path("/dev"), "zero")):
        (place,) = scan(Roots([allowed]), name, recursive=False).files
        with pytest.raises(UnreadableFile, match="not a regular file"):
            read(place)


@pytest.mark.parametrize("name", ["huge.md", "huge.pdf"])
def test_huge_sparse_file_is_rejected_unread(root: Path, name: str) -> None:
    with (root / name).open("wb") as file:
        file.truncate(10 << 30)
    (place,) = scan(Roots([root]), name, recursive=False).files
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableFile, match="is larger than"):
            read(place)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_text_encodings(root: Path) -> None:
    text = "Tiếng Việt, 漢字"
    for name, content in {
        "a.md": text.encode(),
        "b.md": b"\xef\xbb\xbf" + text.encode(),
        "c.md": text.encode("utf-16"),
    }.items():
        (root / name).write_bytes(content)
    documents = [read(each).document() for each in scan(Roots([root]), ".", recursive=False).files]
    assert [(each.text, each.encoding) for each in documents if isinstance(each, NewKnowledgeDocument)] == [
        (text, ""),
        (text, ""),
        (text, "UTF-16"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "outcome"),
    [
        ("x.md", b"\x89PNG\r\n\0\0", InvalidFile("x.md", "is not text")),
        ("x.py", b"\0", InvalidFile("x.py", "is not text")),
        ("x.md", b"\xff\xfe\x00\xd8", InvalidFile("x.md", "is not whole UTF-16")),
        ("x", b"\x7fELF\0", SkippedFile("x", "other binary files")),
        ("x.dat", b"\0\1\2\3", SkippedFile("x.dat", "other binary files")),
    ],
)
def test_binary_file_is_no_document(root: Path, name: str, content: bytes, outcome: DocumentFailure) -> None:
    """A file that claims to be text is a failure; one of another kind is skipped."""
    (root / name).write_bytes(content)
    (place,) = scan(Roots([root]), name, recursive=False).files
    assert read(place).document() == outcome


def test_kinds_without_text_are_skipped_unread(root: Path) -> None:
    names = ["a.PNG", "b.tar.gz", "c.svg", "d.mp4", "e.docx"]
    write_files(root, *names)
    for name in names:
        (root / name).unlink()
        os.mkfifo(root / name)  # reading it would be a failure
    listed = list(FileReader(Roots([root])).find(".", recursive=True).files)
    kinds = ["pictures", "archives", "pictures", "videos", "office documents"]
    assert listed == [SkippedFile(name, kind) for name, kind in zip(names, kinds, strict=True)]


def test_hash_depends_only_on_content(root: Path) -> None:
    write_files(root, "a.md", "b.md")
    first, second = (read(each).hash for each in scan(Roots([root]), ".", recursive=False).files)
    assert first == second
    write_files(root, "b.md", text="y")
    assert read(scan(Roots([root]), "b.md", recursive=False).files[0]).hash != first


def test_paths_covered_by_a_scan(root: Path) -> None:
    write_files(root, "docs/deep/a.md")
    flat, deep = (scan(Roots([root]), "docs", recursive=each) for each in (False, True))
    whole = scan(Roots([root]), ".", recursive=True)
    single = scan(Roots([root]), "docs/deep/a.md", recursive=True)
    assert [each.covers("docs/gone.md") for each in (flat, deep, whole, single)] == [True, True, True, False]
    assert [each.covers("docs/deep/gone.md") for each in (flat, deep, whole, single)] == [False, True, True, False]
    assert not deep.covers("docs2/gone.md")


def test_unlistable_folder_is_not_covered(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(root, "docs/a.md", "docs/shut/b.md")
    listed = os.scandir

    def denied(folder: Path) -> Any:
        if folder.name == "shut":
            raise PermissionError(errno.EACCES, "Permission denied")
        return listed(folder)

    monkeypatch.setattr(os, "scandir", denied)
    for path in ("docs", "."):
        files = scan(Roots([root]), path, recursive=True)
        assert [(each.path, type(each)) for each in files.failures] == [("docs/shut", DocumentFailure)]
        assert [files.covers(f"docs/{name}") for name in ("gone.md", "shut/b.md")] == [True, False]


def test_inaccessible_file_differs_from_unreadable_document(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(root, "a.md", "b.md")
    (root / "c.md").write_bytes(b"\x89PNG\0")
    os.mkfifo(root / "d.md")
    (root / "e.md").symlink_to("nowhere")
    opened = os.open

    def denied(path: Any, *arguments: Any, **more: Any) -> int:
        if path == "b.md":
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(path, *arguments, **more)

    monkeypatch.setattr(os, "open", denied)
    files = FileReader(Roots([root])).find(".", recursive=True)
    read = [each.document() if isinstance(each, FoundFile) else each for each in files.files]
    kinds = {each.path: type(each) for each in read}
    assert kinds == {
        "a.md": NewKnowledgeDocument,
        "b.md": DocumentFailure,
        "c.md": InvalidFile,
        "d.md": InvalidFile,
        "e.md": InvalidFile,
    }
