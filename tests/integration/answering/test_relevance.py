"""Questions that a handbook answers, in its languages and in others, and questions that it does not."""

from __future__ import annotations

from typing import Final
from uuid import uuid4

import pytest

from agent_data import query_knowledge
from shared.documents.index import refresh_document
from shared.search.hybrid_search import HybridSearch
from shared.search.index import PassageIndex, knowledge_index
from tests.helpers.document_agent import DocumentAgent
from tests.integration.knowledge.test_query_refinement import HANDBOOK

MORE: Final = {
    "gateway.json": '{\n  "gateway": {"ports": {"http": 8001, "mqtt": 1883}, "timeout_seconds": 30}\n}',
    "limits.md": "# Limits\n\n| plan | requests a second | storage |\n|---|---|---|\n| team | 50 | 100 GB |\n",
    "running.md": "# Running\n\n```sh\nmake run\ncurl http://localhost:8001/health\n```\n",
}
ANSWERED: Final = [
    ("how do I roll back a release to the previous version?", "deploy.md"),
    ("when is production deployed and who approves it", "deploy.md"),
    ("how are secrets mounted into a pod", "kubernetes.md"),
    ("kubectl", "kubernetes.md"),
    ("restart", "kubernetes.md"),
    ("the pod", "kubernetes.md"),
    ("how often must the coffee machine be descaled", "coffee.md"),
    ("mỗi năm được bao nhiêu ngày nghỉ phép có lương?", "leave.md"),
    ("so ngay nghi phep co luong moi nam", "leave.md"),
    ("how many days of paid leave does an employee have a year", "leave.md"),
    ("差旅费用的发票要在多少天内提交？", "expenses.md"),
    ("出差", "expenses.md"),
    ("who approves equipment purchases?", "expenses.md"),
    ("咖啡机多久除垢一次", "coffee.md"),
    ("mqtt port of the gateway", "gateway.json"),
    ("cổng mqtt của gateway là bao nhiêu", "gateway.json"),
    ("网关的mqtt端口是多少", "gateway.json"),
    ("how many requests a second has the team plan", "limits.md"),
    ("gói team có bao nhiêu dung lượng lưu trữ", "limits.md"),
    ("which command runs it with make", "running.md"),
]
NOT_ANSWERED: Final = [
    "%",
    "🙂",
    "﷽",
    "help",
    "hello",
    "xin chào",
    "你好",
    "tell me everything",
    "what is this about",
    "how are you?",
    "what is the meaning of life",
    "weather tomorrow",
    "giá vàng hôm nay",
    "世界杯冠军是谁",
    "best pizza in town",
    "explain quantum entanglement",
    "lịch sử Việt Nam",
    "lich su viet nam thoi tran",
    "how do I cook rice",
    "who is the president of France",
    "zzqx vrrbl",
    "test",
    "?!",
]


@pytest.fixture(scope="module")
def agent(store: str) -> DocumentAgent:
    """Return an agent with the handbook."""
    reader = DocumentAgent(f"tenant-{uuid4().hex}")
    for document_id, body in (HANDBOOK | MORE).items():
        mime_type = "application/json" if document_id.endswith("json") else "text/markdown"
        content = {"mime_type": mime_type, "body": body}
        reader("create_document", document_id=document_id, parent_id="root", content=content)
        refresh_document(reader.tenant, document_id)
    return reader


@pytest.fixture(params=["closely", "roughly"])
def _looking(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run with the reranker, or without it as after a failure."""
    real = knowledge_index()
    retriever = HybridSearch(real._embedder, real._store, parts=request.param == "closely")
    index = PassageIndex(real._embedder, real._store, retriever)
    monkeypatch.setattr(query_knowledge, "knowledge_index", lambda: index)


@pytest.mark.usefixtures("_looking")
@pytest.mark.parametrize(("question", "document"), ANSWERED, ids=[question for question, _ in ANSWERED])
def test_questions_the_handbook_answers(agent: DocumentAgent, question: str, document: str) -> None:
    answer = agent("query_knowledge", query=question)
    assert answer["context"][0]["document_id"] == document
    assert answer["response"]


@pytest.mark.usefixtures("_looking")
@pytest.mark.parametrize("question", NOT_ANSWERED)
def test_questions_the_handbook_does_not_answer(agent: DocumentAgent, question: str) -> None:
    answer = agent("query_knowledge", query=question)
    assert (answer["response"], answer["context"]) == ("", [])
