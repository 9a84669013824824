"""research-agent/manage_projects: manage projects and their linked collections."""

from typing import Annotated

from pydantic import Field

from api.deployment import lambda_function, table
from api.handler import method
from research_agent.stores import collections, projects
from shared.knowledge.errors import project_incomplete
from shared.knowledge.models import Name, Names, Project, parse_names
from shared.knowledge.projects import ProjectStore
from shared.knowledge.rendering import render_projects
from shared.knowledge.responses import ProjectAction, ProjectsResult
from shared.rpc.caller import Caller
from shared.rpc.errors import Conflict, InvalidRequest, NotFound
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.method import Params
from shared.rpc.names import refuse_deceptive_name


class ManageProjects(Params):
    """An action on a project."""

    action: Annotated[ProjectAction, Field(examples=["list"])]
    project_name: Annotated[Name | None, Field(description="Required except for 'list'.", examples=["garden"])] = None
    collections: Annotated[Names | None, Field(description="Collection names, separated by commas.")] = None


@lambda_function(table("Knowledge", "GetItem", "PutItem", "Query"))
@method(
    "research-agent/manage_projects",
    role="reader",
    errors=(NotFound, InvalidRequest, Conflict),
    example={"action": "info", "project_name": "balcony"},
    tool=McpTool(
        "Manage projects",
        "sets",
        "Create projects, link collections to them or unlink them, and set which ones the project's queries search by "
        "default; 'list' and 'info' show them.",
        text=render_projects,
    ),
)
def handler(params: ManageProjects, caller: Caller) -> ProjectsResult:
    """Run the action."""
    if params.action == "list":
        existing = projects(caller).list_all()
        message = f"{len(existing)} project{'' if len(existing) == 1 else 's'}."
        return ProjectsResult("success", "list", message, projects=existing)
    name = params.project_name
    if name is None:
        raise project_incomplete(params.action, "project_name")
    if params.action == "info":
        return ProjectsResult("success", "info", f"The project '{name}'.", projects(caller).require(name))
    caller.require("writer")
    names = parse_names(params.collections)
    if params.collections is None and params.action in ("link", "unlink"):
        raise project_incomplete(params.action, "collections")
    if params.action != "unlink":
        for each in names:
            collections(caller).require(each)
    return ProjectsResult("success", params.action, *_change(params.action, name, names, caller))


def _change(action: ProjectAction, name: str, names: list[str], caller: Caller) -> tuple[str, Project]:
    store = projects(caller)
    names_text = ", ".join(names) or "nothing"
    match action:
        case "create":
            refuse_deceptive_name(name, "project_name")
            return f"Created the project '{name}', linked to {names_text}.", store.create(name, names)
        case "link":
            return f"Linked the project '{name}' to {names_text}.", store.link(name, names)
        case "unlink":
            return _unlink(store, name, names)
        case _:
            searched = names_text if names else "everything that it is linked to"
            return f"The project '{name}' searches {searched} by default.", store.set_defaults(name, names)


def _unlink(store: ProjectStore, name: str, names: list[str]) -> tuple[str, Project]:
    linked = store.require(name).collections
    parts = [
        (f"Unlinked the project '{name}' from", [each for each in names if each in linked]),
        (f"The project '{name}' was not linked to", [each for each in names if each not in linked]),
    ]
    message = " ".join(f"{text} {', '.join(each)}." for text, each in parts if each)
    return message or f"Unlinked the project '{name}' from nothing.", store.unlink(name, names)
