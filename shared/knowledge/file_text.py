"""The text of a file by its name and content: decoded, or extracted from a PDF."""

from shared.knowledge import pdf, text_encoding
from shared.knowledge.file_kinds import OTHER, claims_text, skipped_kind
from shared.knowledge.folder_sync import InvalidFile
from shared.knowledge.models import NewKnowledgeDocument, SkippedFile
from shared.knowledge.text_encoding import Binary, NotText
from shared.search.splitting import format_of


def is_pdf(path: str, content: bytes) -> bool:
    """Return whether the text has to be extracted, which takes long."""
    return format_of(path) == "pages" or content.startswith(b"%PDF-")


def document_of(  # noqa: PLR0913 - the parts of a document
    path: str, content: bytes, *, hash_: str, title: str = "", tree: str = "", seconds: int = pdf.MAX_SECONDS
) -> NewKnowledgeDocument | InvalidFile | SkippedFile:
    """Return the document, or the reason why the file is none. The text of a PDF is extracted within `seconds`."""
    if kind := skipped_kind(path):
        return SkippedFile(path, kind)
    try:
        text, encoding = _text_of(path, content, seconds)
    except Binary as error:
        return InvalidFile(path, str(error)) if claims_text(path) else SkippedFile(path, OTHER)
    except NotText as error:
        return InvalidFile(path, str(error))
    return NewKnowledgeDocument(path, text, hash=hash_, title=title, tree=tree, encoding=encoding)


def _text_of(path: str, content: bytes, seconds: int) -> tuple[str, str]:
    """Return the text, and its encoding if that is not UTF-8. Form feeds separate the pages of a PDF."""
    if is_pdf(path, content):
        return pdf.text_of(content, seconds), ""
    text, encoding = text_encoding.decode(content)
    return text, "" if encoding == text_encoding.UTF_8 else encoding
