"""duckduckgo_search: search the web."""

from dataclasses import asdict, dataclass
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from shared.tools import ServerTool, ToolArguments, ToolOutcome
from shared.web_search import WebResult, web_search

_MAX_RESULTS: Final = 5
_MAX_QUERY: Final = 1_000


def _require_text(query: str) -> str:
    # A constraint in the schema would change the published schema of the tool.
    if not query.strip() or len(query) > _MAX_QUERY:
        raise ValueError(f"should have 1 to {_MAX_QUERY} characters that are not all blank")
    return query


class WebSearchArguments(ToolArguments):
    """The search query."""

    query: Annotated[
        str,
        Field(description="Search query - should be specific and descriptive for best results"),
        AfterValidator(_require_text),
    ]


@dataclass(frozen=True, slots=True)
class WebSearchOutcome:
    """The found pages, best first."""

    results: list[WebResult]


def _run(arguments: WebSearchArguments) -> ToolOutcome:
    results = web_search().search(arguments.query, _MAX_RESULTS)
    parts = (f"Title: {each.title}\nContent: {each.content}\nLink: {each.link}\n---" for each in results)
    return ToolOutcome("\n".join(parts) or "No results found.", asdict(WebSearchOutcome(results)))


TOOL = ServerTool(
    name="duckduckgo_search",
    title="Search the web",
    description=(
        "Search using DuckDuckGo (free, unlimited, privacy-focused). Returns up to 5 relevant search results "
        "with titles, content snippets, and links."
    ),
    arguments=WebSearchArguments,
    effect="reads",
    data=WebSearchOutcome,
    run=_run,
)
