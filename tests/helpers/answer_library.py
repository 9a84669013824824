"""A small library of documents for tests, the questions it answers, and helpers to read the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.helpers.document_agent import DocumentAgent


Ask = Any
"""A function that calls `query_knowledge`."""
DOCUMENTS: Final = {
    "doc-pf-032": (
        "# Khởi tạo hạ tầng PF\n\nCác bước khởi tạo hạ tầng PF:\n\n1. Bước 1: Active PF envelope bằng `pf init`.\n"
        "2. Bước 2: Tạo VPC và khoá KMS.\n\n## Gỡ bỏ\n\nĐể gỡ bỏ, chạy `pf destroy`. Việc này không thể hoàn tác.\n",
        ["pf", "phase-11"],
    ),
    "doc-laptop": (
        "# Onboarding\n\nEvery new engineer gets a laptop on the first day, and signs the security policy.\n",
        ["onboarding", "pf"],
    ),
    "doc-travel": (
        "# 报销\n\n差旅费用须在回来后三十天内提交，并附上发票。超过五千元的报销需要经理批准。\n",
        ["finance"],
    ),
}
PF: Final = "Các bước khởi tạo hạ tầng PF?"
LAPTOP: Final = "When do I get my laptop?"
TRAVEL: Final = "差旅费用什么时候提交？"


def write_document(agent: DocumentAgent, document_id: str, body: str, tags: Sequence[str] = ()) -> None:
    """Write a document as an agent."""
    content, metadata = {"mime_type": "text/markdown", "body": body}, {"title": document_id, "tags": list(tags)}
    agent("create_document", document_id=document_id, parent_id="root", content=content, metadata=metadata)


def dropped_sources(answer: Any) -> dict[str, str]:
    """Return the dropped sources and the reason for each."""
    degraded = answer["usage"].get("degraded", [])
    assert all(set(each) == {"dropped", "reason", "message"} and each["message"] for each in degraded)
    return {each["dropped"]: each["reason"] for each in degraded}


def cited_documents(answer: Any) -> list[str]:
    """Return the documents of the context, each once, in order."""
    return list(dict.fromkeys(each["document_id"] for each in answer["context"]))
