"""Find passages in your own documents, in any language from any other.

Make a collection (collections create notes), fill it (kb add-folder docs --collection notes --recursive), and ask
(query "how do I …"). Everything lies in the data folder of this machine, unless an endpoint is named.

Exit codes: 0 done; 1 the system failed; 2 the command was not understood; 3 configuration; 4 collection; 5 document;
6 query; 7 done, but some documents were left out; 130 interrupted.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import App, CycloptsError, Parameter
from cyclopts.config import Env

from infra.research import shown
from infra.research.asking import HERE, Where, answer, backend_of, end, misunderstood, refusals, run
from infra.research.backend import Refused, unconfirmed

app: Final = App(
    name="research-agent",
    help=__doc__,
    version=lambda: version("kho"),
    config=Env("KHO_", command=False),
    console=shown.out,
    suppress_keyboard_interrupt=False,
)
collections: Final = App(name="collections", help="Knowledge collections.")
kb: Final = App(name="kb", help="Add to the knowledge base.")
projects: Final = App(name="projects", help="Projects, and the collections that they are linked to.")
for each in (collections, kb, projects):
    app.command(each)

_INTERRUPTED: Final = 130


_Roots = Annotated[tuple[Path, ...], Parameter(name="--root", negative=())]


@app.command
def query(  # noqa: PLR0913 - one argument an option
    text: str,
    /,
    *,
    collections: str | None = None,
    top_k: int = 10,
    document_context: str | None = None,
    project: str | None = None,
    where: Where = HERE,
) -> None:
    """Search the knowledge base.

    Parameters
    ----------
    text
        What you look for, in any language.
    collections
        Names of collections, parted by commas; without, the project's or all.
    top_k
        How many passages at most.
    document_context
        What you are working on; it changes the ranking.
    project
        Search this project's default collections.
    """
    asked = {"query": text, "collections": collections, "top_k": top_k}
    asked |= {"document_context": document_context, "project_name": project}
    run("query_knowledge_base", asked, where, shown.query_results)


@app.command
def mcp(*, root: _Roots = (), debug: bool = False, where: Where = HERE) -> None:
    """Serve an editor by MCP over STDIO.

    Parameters
    ----------
    root
        The folders under which files may be read; without, the working folder.
    debug
        Log what happens to the standard error.
    """
    from infra.reading.reader import FileReader
    from infra.reading.roots import Roots
    from infra.research import stdio
    from infra.research.keeping import Kept

    roots = Roots(root or (Path(),))
    backend = Kept(where.choice(), roots.folders)
    stdio.run(backend, FileReader(roots), timeout=where.timeout, debug=debug)


@collections.command(name="list")
def list_collections(*, where: Where = HERE) -> None:
    """List the collections."""
    run("manage_collections", {"action": "list", "limit": 1000}, where, shown.collections)


@collections.command(name="create")
def create_collection(
    name: str,
    /,
    *,
    type_: Annotated[Literal["fundamental", "project-specific"] | None, Parameter(name="--type")] = None,
    project: str | None = None,
    where: Where = HERE,
) -> None:
    """Create a collection.

    Parameters
    ----------
    type_
        Without, project-specific where a project is named, else fundamental.
    project
        Link it to this project.
    """
    asked = {"action": "create", "collection_name": name, "collection_type": type_, "project_name": project}
    run("manage_collections", asked, where, shown.collections)


@collections.command(name="info")
def describe_collection(name: str, /, *, where: Where = HERE) -> None:
    """Show a collection and its documents."""
    run("manage_collections", {"action": "info", "collection_name": name, "limit": 1000}, where, shown.collections)


@collections.command(name="delete")
def delete_collection(
    name: str, /, *, yes: Annotated[bool, Parameter(name=["--yes", "-y"], negative=())] = False, where: Where = HERE
) -> None:
    """Delete a collection and everything in it.

    Parameters
    ----------
    yes
        Do not ask.
    """
    if not yes and not _confirmed(f"Delete the collection '{name}' and everything in it?"):
        end(unconfirmed(name), as_json=where.as_json)
    run("manage_collections", {"action": "delete", "collection_name": name}, where, shown.collections)


@kb.command
def add_document(path: str, /, *, collection: str, root: _Roots = (), where: Where = HERE) -> None:
    """Add one file.

    Parameters
    ----------
    root
        The folders under which files may be read; without, the working folder.
    """
    _ingest(path, collection, root, where, recursive=False)


@kb.command
def add_folder(
    path: str, /, *, collection: str, recursive: bool = False, root: _Roots = (), where: Where = HERE
) -> None:
    """Add a folder: new and changed files come in, those that are gone go out, unchanged ones cost nothing.

    Parameters
    ----------
    recursive
        Read the folders inside it too.
    root
        The folders under which files may be read; without, the working folder.
    """
    _ingest(path, collection, root, where, recursive=recursive)


@kb.command
def add_text(
    content: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    source: str,
    collection: str,
    title: str = "",
    where: Where = HERE,
) -> None:
    """Add a text in Markdown.

    Parameters
    ----------
    content
        The text; '-' reads it from the standard input.
    source
        Where it comes from; the same source replaces what was there.
    """
    with refusals(where):
        content = _standard_input() if content == "-" else content
    _augment(content, source, collection, title, where)


@kb.command
def add_url(url: str, /, *, collection: str, title: str = "", where: Where = HERE) -> None:
    """Fetch a page of the web and add it."""
    from infra.research.pages import fetch

    with refusals(where):
        content = fetch(url)
    _augment(content, url, collection, title, where)


@projects.command(name="list")
def list_projects(*, where: Where = HERE) -> None:
    """List the projects."""
    run("manage_projects", {"action": "list"}, where, shown.projects)


@projects.command(name="info")
def describe_project(name: str, /, *, where: Where = HERE) -> None:
    """Show a project."""
    _project("info", name, None, where)


@projects.command(name="create")
def create_project(name: str, /, *, collections: str | None = None, where: Where = HERE) -> None:
    """Create a project, linked to collections where some are named."""
    _project("create", name, collections, where)


@projects.command(name="link")
def link(name: str, /, *, collections: str, where: Where = HERE) -> None:
    """Link collections, parted by commas, to a project."""
    _project("link", name, collections, where)


@projects.command(name="unlink")
def unlink(name: str, /, *, collections: str, where: Where = HERE) -> None:
    """Unlink collections from a project."""
    _project("unlink", name, collections, where)


@projects.command(name="set-defaults")
def set_defaults(name: str, /, *, collections: str, where: Where = HERE) -> None:
    """Set which of its collections the project's queries search by default."""
    _project("set-defaults", name, collections, where)


def _project(action: str, name: str, collections: str | None, where: Where) -> None:
    asked = {"action": action, "project_name": name, "collections": collections}
    run("manage_projects", asked, where, shown.projects)


def _ingest(path: str, collection: str, roots: tuple[Path, ...], where: Where, *, recursive: bool) -> None:
    from infra.reading.reader import FileReader
    from infra.reading.roots import Roots
    from infra.research.ingesting import FolderIngestion

    reader = FileReader(Roots(roots or (Path(),)))
    with backend_of(where) as backend, shown.progress(quiet=where.as_json) as told:
        result = FolderIngestion(backend, collection, told).run(reader, path, recursive=recursive)
    answer(result, where, shown.ingested)


def _augment(content: str, source: str, collection: str, title: str, where: Where) -> None:
    from infra.research.ingesting import awaited

    asked = {"content": content, "source": source, "collection": collection, "title": title}
    with backend_of(where) as backend:
        result = awaited(backend, backend.call("augment_knowledge", asked))
    answer(result, where, shown.ingested)


def _standard_input() -> str:
    from shared.knowledge.refusals import unreadable

    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Refused.of(unreadable("The standard input", "is not UTF-8 text")) from None


def _confirmed(question: str) -> bool:
    if not sys.stdin.isatty():
        return False
    try:
        return shown.asked(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def main() -> None:
    """Run the command line."""
    shown.write_anything()
    as_json = "--json" in sys.argv
    try:
        app(print_error=not as_json, exit_on_error=not as_json)
    except CycloptsError as error:
        end(misunderstood(error), as_json=True)
    except KeyboardInterrupt:
        sys.stderr.write("research-agent: interrupted; what was brought in stays, and the same command goes on.\n")
        sys.exit(_INTERRUPTED)
