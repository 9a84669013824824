"""Refinement hints of thirty queries: the status each must get, and words that the collection contains."""

from __future__ import annotations

from uuid import uuid4

import pytest

from shared.rpc.caller import ROLES, Caller
from shared.search.embedding.e5 import E5
from tests.helpers.research_client import call_research_agent

HANDBOOK = {
    "deploy.md": """# Deploying

## Rolling back a release
To roll back a release, run the rollback command with the previous version number and wait for the health check.

## Canary releases
A canary release sends five percent of the traffic to the new version for one hour.

## Deploying to staging
Staging is deployed from the main branch after every merge.

## Deploying to production
Production is deployed on Tuesdays, after two reviewers have approved.

## Deploying database migrations
Migrations are deployed before the code that needs them.
""",
    "kubernetes.md": """# Kubernetes

## Restarting a pod
Delete the pod; the deployment's controller starts another within seconds.

## Reading logs of a pod
The command kubectl logs prints what a container has written.

## Scaling a deployment
Set the number of replicas, or let the horizontal autoscaler watch the processor load.

## Secrets of a pod
Secrets are mounted as files; never put them into environment variables.

## Networking between pods
Pods reach each other by the name of their service.
""",
    "leave.md": """# Nghỉ phép

## Số ngày nghỉ phép
Mỗi nhân viên có mười hai ngày nghỉ phép có lương mỗi năm.

## Nghỉ ốm
Khi nghỉ ốm quá hai ngày, nhân viên cần nộp giấy của bác sĩ.
""",
    "expenses.md": """# 报销

## 差旅报销
差旅费用须在回来后三十天内提交，并附上发票。

## 设备采购
超过五千元的设备采购需要部门经理批准。
""",
    "coffee.md": """# Coffee machine

## Descaling
Descale the coffee machine every month with citric acid.

## Grinder
The grinder of the coffee machine is set to medium coarseness.
""",
}

TABLE: list[tuple[str, str]] = [
    # precise
    ("how do I roll back a release to the previous version?", "optimal"),
    ("when is production deployed and who approves it", "optimal"),
    ("restart a pod in kubernetes", "optimal"),
    ("share of traffic of a canary release", "optimal"),
    ("how often must the coffee machine be descaled", "optimal"),
    ("what does kubectl logs print", "optimal"),
    ("horizontal autoscaler processor load", "optimal"),
    # in another language, or in that of the document
    ("mỗi năm được bao nhiêu ngày nghỉ phép có lương?", "optimal"),
    ("nghỉ ốm cần giấy tờ gì của bác sĩ", "optimal"),
    ("差旅费用的发票要在多少天内提交？", "optimal"),
    ("设备采购需要谁批准", "optimal"),
    ("how many days of paid leave does an employee have a year", "optimal"),
    ("so ngay nghi phep co luong moi nam", "optimal"),
    ("报销", "optimal"),
    # broad
    ("deploying", "too_broad"),
    ("pods", "too_broad"),
    ("deploy", "too_broad"),
    ("kubernetes", "too_broad"),
    ("about pods please", "too_broad"),
    # vague
    ("help", "clarification_needed"),
    ("how does it work?", "clarification_needed"),
    ("tell me everything", "clarification_needed"),
    ("thông tin", "clarification_needed"),
    ("帮助", "clarification_needed"),
    # misspelt
    ("kuberntes", "clarification_needed"),
    ("autoscalr", "clarification_needed"),
    ("descalling", "clarification_needed"),
    ("pod netwroking", "clarification_needed"),
    # off topic
    ("zzqx vrrbl", "clarification_needed"),
    ("weather in Hanoi tomorrow", "clarification_needed"),
]


def test_corpus_has_thirty_queries() -> None:
    assert len(dict(TABLE)) == 30


@pytest.fixture(scope="module")
def reader(store: str) -> Caller:
    """Return a caller with the handbook."""
    E5().question("the model is loaded before anybody's time runs")
    caller = Caller("tester", frozenset(ROLES), f"tenant-{uuid4().hex}")
    call_research_agent(caller, "manage_collections", action="create", collection_name="handbook")
    documents = [{"path": path, "content": text} for path, text in HANDBOOK.items()]
    for each in documents:
        call_research_agent(caller, "ingest_documents", collection="handbook", documents=[each])
    return caller


@pytest.mark.parametrize(("query", "status"), TABLE, ids=[query for query, _ in TABLE])
def test_each_query_gets_its_status_and_indexed_suggestions(reader: Caller, query: str, status: str) -> None:
    refinement = call_research_agent(reader, "query_knowledge_base", query=query)["query_refinement"]
    assert refinement["status"] == status
    assert refinement["message"]
    everything = "\n".join(HANDBOOK.values()).lower()
    assert all(word.lower() in everything for word in refinement["suggestions"])
    assert bool(refinement["suggestions"]) == (status != "optimal")


@pytest.mark.parametrize(
    ("query", "meant"), [("kuberntes", "kubernetes"), ("autoscalr", "autoscaler"), ("pod netwroking", "networking")]
)
def test_a_misspelt_word_is_recognised(reader: Caller, query: str, meant: str) -> None:
    refinement = call_research_agent(reader, "query_knowledge_base", query=query)["query_refinement"]
    assert meant in [word.lower() for word in refinement["suggestions"]]


@pytest.mark.parametrize("query", ["x" * 2048, "%", "﷽", "🙂", "_ - …", "xxxx 🙂", "the", "và", "的"])
def test_text_without_a_word_matches_nothing(reader: Caller, query: str) -> None:
    answer = call_research_agent(reader, "query_knowledge_base", query=query)
    assert answer["results"] == []
    assert answer["query_refinement"]["status"] == "clarification_needed"


@pytest.mark.parametrize("query", ["deploying", "restart a pod in kubernetes", "kuberntes"])
def test_status_is_independent_of_top_k(reader: Caller, query: str) -> None:
    statuses = {
        call_research_agent(reader, "query_knowledge_base", query=query, top_k=wanted)["query_refinement"]["status"]
        for wanted in (1, 3, 10, 50)
    }
    assert statuses == {dict(TABLE)[query]}
