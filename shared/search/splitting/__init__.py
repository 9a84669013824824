"""Chunking: splitting of documents into chunks that fit an embedder.

The formats are Markdown, HTML, paged text, source code and plain text.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final, Literal

from shared.search.passages import cut_heading
from shared.search.splitting.chunks import Chunk, Split
from shared.search.splitting.text import split_code, split_pages, split_text

Format = Literal["markdown", "html", "pages", "code", "text"]

_CODE_SUFFIXES: Final = (
    "bash bat c cc clj cpp cs css cxx dart elm erl ex exs fish fs go gradle groovy h hcl hpp hs ini ino java jl js "
    "json jsonc jsx kt kts less lua m mjs ml mm nix php pl pm proto ps1 py pyi r rb rs sass scala scss sh sql swift tf "
    "toml ts tsx vb vue xml yaml yml zig"
)
_FORMATS: Final[Mapping[str, Format]] = {
    **dict.fromkeys(("md", "markdown", "mdown", "mkd", "mdx"), "markdown"),
    **dict.fromkeys(("html", "htm", "xhtml"), "html"),
    **dict.fromkeys(_CODE_SUFFIXES.split(), "code"),
    "pdf": "pages",
}


def format_of(path: str) -> Format:
    """Return the format of a document by its file name."""
    return _FORMATS.get(PurePosixPath(path).suffix.lower().removeprefix("."), "text")


def split(path: str, text: str, *, read_as: Format | None = None) -> Split:
    """Split the document `path` into chunks. Together they contain every word of `text`."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    parts = _split(read_as or format_of(path), text, PurePosixPath(path).name or path)
    return replace(parts, title=cut_heading(parts.title))


def _split(form: Format, text: str, name: str) -> Split:
    match form:
        case "markdown":
            from shared.search.splitting.markdown import split_markdown

            return split_markdown(text, name)
        case "html":
            from shared.search.splitting.html import split_html

            return split_html(text, name)
        case "code":
            return split_code(text, name)
        case "pages":
            return split_pages(text, name)
        case "text":
            return split_text(text, name)


__all__ = ["Chunk", "Format", "Split", "format_of", "split"]
