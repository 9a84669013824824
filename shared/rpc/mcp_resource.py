"""Results of methods that read MCP resources."""

from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import Field

Uri = Annotated[str, Field(min_length=1, max_length=4096)]


@dataclass(frozen=True, slots=True)
class ResourceText:
    """One resource as text."""

    uri: str
    mimeType: str  # noqa: N815 - MCP's own name
    text: str


@dataclass(frozen=True, slots=True)
class ResourceContents:
    """The resource's contents; `next_cursor` continues a long one."""

    contents: list[ResourceText]
    next_cursor: str | None = None

    @classmethod
    def json(cls, uri: str, text: str, next_cursor: str | None) -> Self:
        """Return the contents of the resource at `uri`, whose JSON is `text`."""
        return cls([ResourceText(uri, "application/json", text)], next_cursor)
