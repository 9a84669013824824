"""research-agent/manage_projects: projects, and the collections that they are linked to."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from api.deployment import lambda_function, table
from api.handler import Caller, Params, method
from research_agent import collections, projects
from shared.knowledge.errors import project_incomplete
from shared.knowledge.models import Name, Project
from shared.knowledge.params import Names, parse_names
from shared.knowledge.rendering import render_projects
from shared.knowledge.responses import ProjectAction, ProjectsResult
from shared.rpc.errors import Conflict, InvalidRequest, NotFound
from shared.rpc.mcp_catalog import McpTool


class ManageProjects(Params):
    """What to do, with which project and which collections."""

    action: Annotated[ProjectAction, Field(examples=["list"])]
    project_name: Annotated[Name | None, Field(description="Needed but for 'list'.", examples=["garden"])] = None
    collections: Annotated[Names | None, Field(description="Names of collections, parted by commas.")] = None


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
    """Do what `action` says."""
    if params.action == "list":
        there = projects(caller).listed()
        said = f"{len(there)} project{'' if len(there) == 1 else 's'}."
        return ProjectsResult("success", "list", said, projects=there)
    name = params.project_name
    if name is None:
        raise project_incomplete(params.action, "project_name")
    if params.action == "info":
        return ProjectsResult("success", "info", f"The project '{name}'.", projects(caller).require(name))
    caller.require("writer")
    chosen = parse_names(params.collections)
    if params.collections is None and params.action in ("link", "unlink"):
        raise project_incomplete(params.action, "collections")
    if params.action != "unlink":
        for each in chosen:
            collections(caller).require(each)
    return ProjectsResult("success", params.action, *_changed(params.action, name, chosen, caller))


def _changed(action: ProjectAction, name: str, chosen: list[str], caller: Caller) -> tuple[str, Project]:
    kept = projects(caller)
    listed = ", ".join(chosen) or "nothing"
    match action:
        case "create":
            return f"Created the project '{name}', linked to {listed}.", kept.create(name, chosen)
        case "link":
            return f"Linked the project '{name}' to {listed}.", kept.link(name, chosen)
        case "unlink":
            return f"Unlinked the project '{name}' from {listed}.", kept.unlink(name, chosen)
        case _:
            searched = listed if chosen else "everything that it is linked to"
            return f"The project '{name}' searches {searched} by default.", kept.set_defaults(name, chosen)
