"""Search your own documents, across languages.

Create a collection (collections create notes), fill it (kb add-folder docs --collection notes --recursive), and search
it (query "how do I …"). All data is in this machine's data folder, unless an endpoint is set.

Exit codes: 0 success; 1 system error; 2 usage; 3 configuration; 4 collection; 5 document; 6 query; 7 success, but some
documents failed; 130 interrupted.
"""

import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import App, CycloptsError, Parameter

from infra.clients.agent import console
from infra.clients.agent.backend import DEFAULT_TARGET, BackendError, BackendTarget, deletion_unconfirmed, read_pages
from infra.clients.agent.runner import (
    backend_or_exit,
    exit_on_error,
    exit_with_error,
    roots_or_exit,
    run,
    show_result,
    usage_error,
)
from infra.clients.cli.option_environment import OPTION_ENVIRONMENT
from shared.platform.version import VERSION

app: Final = App(
    name="research-agent",
    help=__doc__,
    version=VERSION,
    config=OPTION_ENVIRONMENT,
    console=console.out,
    suppress_keyboard_interrupt=False,
)
collections: Final = App(name="collections", help="Knowledge collections.")
kb: Final = App(name="kb", help="The documents of collections: add, list and remove them.")
projects: Final = App(name="projects", help="Projects and their linked collections.")
for each in (collections, kb, projects):
    app.command(each)

_INTERRUPTED: Final = 130


_Roots = Annotated[
    tuple[Path, ...],
    Parameter(name="--root", negative=(), help="The only folder whose files may be read; may be repeated."),
]


@app.command
def query(  # noqa: PLR0913 - one argument an option
    text: str,
    /,
    *,
    collections: str | None = None,
    top_k: int = 10,
    document_context: str | None = None,
    project: str | None = None,
    target: BackendTarget = DEFAULT_TARGET,
) -> None:
    """Search the knowledge base.

    Args:
        text: The query, in any language.
        collections: Names of collections, separated by commas; default: the project's, or all.
        top_k: The maximum number of passages.
        document_context: The text that you are working on; it influences the ranking.
        project: Search this project's default collections.
    """
    params = {"query": text, "collections": collections, "top_k": top_k}
    params |= {"document_context": document_context, "project_name": project}
    run("query_knowledge_base", params, target, console.print_query_results)


@app.command
def evaluate(queries: Path, /, *, collections: str, target: BackendTarget = DEFAULT_TARGET) -> None:
    """Measure how well the knowledge base finds the documents that answer your queries.

    Each line of the file is a JSON object: {"query": "…", "relevant": ["path of a document", …]}. The result has
    nDCG@10, recall@10, and the queries whose relevant documents are not first.

    Args:
        queries: The file of queries, in JSON Lines.
        collections: Names of collections, separated by commas.
    """
    from infra.clients.agent import evaluation

    with exit_on_error(target):
        judged = evaluation.read_queries(queries)
    with backend_or_exit(target) as backend, console.progress_bar(quiet=target.as_json) as progress:
        result = evaluation.evaluate(backend, judged, collections, progress)
    show_result(result, target, console.print_evaluation)


@app.command
def mcp(*, root: _Roots = (), debug: bool = False, target: BackendTarget = DEFAULT_TARGET) -> None:
    """Serve an editor by MCP over STDIO.

    Args:
        debug: Log details to the standard error.
    """
    from infra.clients.agent import stdio_server
    from infra.clients.agent.files.reader import FileReader
    from infra.clients.agent.managed_server import ManagedServerBackend
    from infra.clients.agent.tools import AgentTools

    roots = roots_or_exit(root, target)
    backend = ManagedServerBackend(target, roots.folders)
    tools = AgentTools(backend, FileReader(roots), target.timeout)
    stdio_server.run(stdio_server.research_server(backend, tools), backend, debug=debug)


_CollectionType = Annotated[Literal["fundamental", "project-specific", ""] | None, Parameter(name="--type")]
"""A wrapper that substitutes arguments in a command line leaves it empty."""
_Unused = Parameter(show=False)
"""Every action takes the same arguments; this one does not need them."""


@collections.command(name="list")
def list_collections(
    name: Annotated[str | None, _Unused] = None,  # noqa: ARG001
    /,
    *,
    type_: Annotated[_CollectionType, _Unused] = None,  # noqa: ARG001 - see _Unused
    project: Annotated[str | None, _Unused] = None,  # noqa: ARG001
    target: BackendTarget = DEFAULT_TARGET,
) -> None:
    """List the collections."""
    run("manage_collections", {"action": "list", "limit": 1000}, target, console.print_collections)


@collections.command(name="create")
def create_collection(
    name: str,
    /,
    *,
    type_: _CollectionType = None,
    project: str | None = None,
    target: BackendTarget = DEFAULT_TARGET,
) -> None:
    """Create a collection.

    Args:
        type_: Default: project-specific if a project is named, else fundamental.
        project: Link it to this project.
    """
    linked = {"collection_type": type_ or None, "project_name": project or None}
    params = {"action": "create", "collection_name": name, **linked}
    run("manage_collections", params, target, console.print_collections)


@collections.command(name="info")
def describe_collection(
    name: str,
    /,
    *,
    type_: Annotated[_CollectionType, _Unused] = None,  # noqa: ARG001
    project: Annotated[str | None, _Unused] = None,  # noqa: ARG001
    target: BackendTarget = DEFAULT_TARGET,
) -> None:
    """Show a collection and its documents."""
    params = {"action": "info", "collection_name": name, "limit": 1000}
    run("manage_collections", params, target, console.print_collections)


@collections.command(name="delete")
def delete_collection(
    name: str,
    /,
    *,
    type_: Annotated[_CollectionType, _Unused] = None,  # noqa: ARG001
    project: Annotated[str | None, _Unused] = None,  # noqa: ARG001
    yes: Annotated[bool, Parameter(name=["--yes", "-y"], negative=())] = False,
    target: BackendTarget = DEFAULT_TARGET,
) -> None:
    """Delete a collection and everything in it.

    Args:
        yes: Skip the confirmation.
    """
    with backend_or_exit(target) as backend:
        if not yes:
            backend.call("manage_collections", {"action": "info", "collection_name": name, "limit": 1})
            if not _confirmed(f"Delete the collection '{name}' and everything in it?"):
                raise deletion_unconfirmed(name)
        result = backend.call("manage_collections", {"action": "delete", "collection_name": name})
    show_result(result, target, console.print_collections)


@kb.command
def add_document(path: str, /, *, collection: str, root: _Roots = (), target: BackendTarget = DEFAULT_TARGET) -> None:
    """Add one file."""
    _ingest(path, collection, root, target, recursive=False)


@kb.command
def add_folder(
    path: str, /, *, collection: str, recursive: bool = False, root: _Roots = (), target: BackendTarget = DEFAULT_TARGET
) -> None:
    """Synchronise with a folder: add new and changed files, remove missing ones, skip unchanged ones.

    Args:
        recursive: Include subfolders.
    """
    _ingest(path, collection, root, target, recursive=recursive)


@kb.command
def add_text(
    content: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    source: str,
    collection: str,
    title: str = "",
    target: BackendTarget = DEFAULT_TARGET,
) -> None:
    """Add a text in Markdown.

    Args:
        content: The text; '-' reads it from the standard input.
        source: The text's origin, which identifies it: adding the same source again replaces the text.
    """
    with exit_on_error(target):
        content = _read_standard_input() if content == "-" else content
    _augment(content, source, collection, title, target)


@kb.command
def add_url(url: str, /, *, collection: str, title: str = "", target: BackendTarget = DEFAULT_TARGET) -> None:
    """Fetch a web page and add it."""
    from infra.clients.agent.web_fetch import fetch

    with exit_on_error(target):
        content = fetch(url)
    _augment(content, url, collection, title, target)


@kb.command(name="list")
def list_documents(*, collection: str, prefix: str = "", target: BackendTarget = DEFAULT_TARGET) -> None:
    """List the documents of a collection.

    Args:
        prefix: Only documents whose paths begin with this.
    """
    params = {"collection_name": collection, "prefix": prefix, "limit": 1000}
    with backend_or_exit(target) as backend:
        pages = read_pages(partial(backend.call, "list_documents"), params)
        documents = [each for page in pages for each in page["documents"]]
    show_result({"documents": documents}, target, console.print_documents)


@kb.command(name="remove")
def remove_document(path: str, /, *, collection: str, target: BackendTarget = DEFAULT_TARGET) -> None:
    """Take one document out of a collection. The next add-folder adds it again if its file is still there.

    Args:
        path: The document's path, as 'kb list' shows it.
    """
    params = {"collection_name": collection, "path": path}
    run("remove_document", params, target, console.print_message)


@projects.command(name="list")
def list_projects(*, target: BackendTarget = DEFAULT_TARGET) -> None:
    """List the projects."""
    run("manage_projects", {"action": "list"}, target, console.print_projects)


@projects.command(name="info")
def describe_project(name: str, /, *, target: BackendTarget = DEFAULT_TARGET) -> None:
    """Show a project."""
    _project("info", name, None, target)


@projects.command(name="create")
def create_project(name: str, /, *, collections: str | None = None, target: BackendTarget = DEFAULT_TARGET) -> None:
    """Create a project, optionally linked to collections."""
    _project("create", name, collections, target)


@projects.command(name="link")
def link(name: str, /, *, collections: str, target: BackendTarget = DEFAULT_TARGET) -> None:
    """Link collections, separated by commas, to a project."""
    _project("link", name, collections, target)


@projects.command(name="unlink")
def unlink(name: str, /, *, collections: str, target: BackendTarget = DEFAULT_TARGET) -> None:
    """Unlink collections from a project."""
    _project("unlink", name, collections, target)


@projects.command(name="set-defaults")
def set_defaults(name: str, /, *, collections: str, target: BackendTarget = DEFAULT_TARGET) -> None:
    """Set the collections that the project's queries search by default."""
    _project("set-defaults", name, collections, target)


def _project(action: str, name: str, collections: str | None, target: BackendTarget) -> None:
    params = {"action": action, "project_name": name, "collections": collections}
    run("manage_projects", params, target, console.print_projects)


def _ingest(path: str, collection: str, roots: tuple[Path, ...], target: BackendTarget, *, recursive: bool) -> None:
    from infra.clients.agent.files.reader import FileReader
    from infra.clients.agent.files.roots import Roots
    from infra.clients.agent.folder_upload import FolderUpload

    reader = FileReader(roots_or_exit(roots, target) if roots else Roots.around(path))
    with backend_or_exit(target) as backend, console.progress_bar(quiet=target.as_json) as progress:
        result = FolderUpload(backend, collection, progress).run(reader, path, recursive=recursive)
    show_result(result, target, console.print_ingestion)


def _augment(content: str, source: str, collection: str, title: str, target: BackendTarget) -> None:
    from infra.clients.agent.folder_upload import await_ingestion

    params = {"content": content, "source": source, "collection": collection, "title": title}
    with backend_or_exit(target) as backend:
        result = await_ingestion(backend, backend.call("augment_knowledge", params))
    show_result(result, target, console.print_ingestion)


def _read_standard_input() -> str:
    from shared.knowledge.errors import unreadable
    from shared.knowledge.text_encoding import NotText, decode

    try:
        return decode(sys.stdin.buffer.read())[0]
    except NotText as error:
        raise BackendError.from_kho_error(unreadable("The standard input", str(error))) from None


def _confirmed(question: str) -> bool:
    if not sys.stdin.isatty():
        return False
    try:
        return console.prompt_user(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _interrupt(_number: int, _frame: object) -> None:
    """End the command in order. A second Ctrl-C ends the process at once."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    raise KeyboardInterrupt


def main() -> None:
    """Run the command line."""
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:  # a background command ignores Ctrl-C
        signal.signal(signal.SIGINT, _interrupt)
    console.escape_unencodable()
    as_json = "--json" in sys.argv
    try:
        app(print_error=not as_json, exit_on_error=not as_json)
    except CycloptsError as error:
        exit_with_error(usage_error(error), as_json=True)
    except KeyboardInterrupt:
        sys.stderr.write("research-agent: interrupted; repeat the command to continue, added documents are kept.\n")
        sys.stdout.flush()
        os._exit(_INTERRUPTED)  # the results of its threads are not needed
