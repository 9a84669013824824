"""Requests to remote embedding and reranking models, and the handling of their responses."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from botocore.response import StreamingBody
from botocore.stub import Stubber

from shared.platform.config import ConfigurationError, config
from shared.rpc.errors import Unavailable
from shared.search.embedding import Comparison, RemoteText, embedder
from shared.search.embedding.bedrock import Cohere, Titan
from shared.search.embedding.models import E5_SMALL, current_space
from shared.search.embedding.store_inference import StoreInference
from shared.search.reranking import BedrockReranker, reranker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Set settings for one test."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")

    def setting(**settings: str) -> None:
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        config.cache_clear()

    setting()
    yield setting
    monkeypatch.undo()
    config.cache_clear()


def answers(model: Cohere | Titan, asked: dict[str, Any], answer: dict[str, Any]) -> Stubber:
    """Make Bedrock expect `asked` and return `answer`."""
    stub = Stubber(model._client)
    raw = json.dumps(answer).encode()
    body = StreamingBody(io.BytesIO(raw), len(raw))
    stub.add_response(
        "invoke_model",
        {"body": body, "contentType": "application/json"},
        {"modelId": model.space.model, "body": json.dumps(asked)},
    )
    stub.activate()
    return stub


def test_embedded_model_is_the_default(choose: Callable[..., None]) -> None:
    assert current_space() == E5_SMALL


def test_cohere_input_type_is_sent(choose: Callable[..., None]) -> None:
    choose(KHO_EMBEDDER="bedrock")
    cohere = embedder()
    assert isinstance(cohere, Cohere)
    with answers(
        cohere,
        {"texts": ["one", " "], "input_type": "search_document", "truncate": "END"},
        {"embeddings": [[1.0], [2.0]]},
    ):
        assert [embedding.vector for embedding in cohere.passages(["one", ""])] == [[1.0], [2.0]]
    with answers(cohere, {"texts": ["why"], "input_type": "search_query", "truncate": "END"}, {"embeddings": [[3.0]]}):
        assert cohere.question("why").vector == [3.0]


def test_titan_embeds_one_text_a_call(choose: Callable[..., None]) -> None:
    choose(KHO_EMBEDDER="bedrock", KHO_EMBEDDING_MODEL="amazon.titan-embed-text-v2:0")
    titan = embedder()
    assert isinstance(titan, Titan)
    with answers(titan, {"inputText": "why", "dimensions": 1024, "normalize": True}, {"embedding": [0.5]}):
        assert [embedding.vector for embedding in titan.passages(["why"])] == [[0.5]]


def test_a_passage_in_context_follows_the_one_before_it(choose: Callable[..., None]) -> None:
    """A model whose tokens cannot be taken apart reads one message before a message."""
    choose(KHO_EMBEDDER="bedrock")
    cohere = embedder()
    assert isinstance(cohere, Cohere)
    texts = {"texts": ["b\nc", "d"], "input_type": "search_document", "truncate": "END"}
    vectors = {"embeddings": [[0.6, 0.8], [1.0, 0.0]]}
    with answers(cohere, texts, vectors):
        assert [each.vector for each in cohere.passages_in_context(["c", "d"], [["a", "b"], []])] == [
            [0.6, 0.8],
            [1, 0],
        ]
    comparing = answers(
        cohere, {"texts": ["e"], "input_type": "search_query", "truncate": "END"}, {"embeddings": [[0, 1.0]]}
    )
    raw = json.dumps(vectors).encode()
    comparing.add_response("invoke_model", {"body": StreamingBody(io.BytesIO(raw), len(raw)), "contentType": "json"})
    with comparing:
        assert cohere.compare("e", ["c", "d"], [["a", "b"], []]) == [Comparison(0.8), Comparison(0.0)]


def test_unresponsive_model_is_unavailable(choose: Callable[..., None]) -> None:
    choose(KHO_EMBEDDER="bedrock")
    cohere = embedder()
    assert isinstance(cohere, Cohere)
    with Stubber(cohere._client) as stub:
        stub.add_client_error("invoke_model", "ThrottlingException", http_status_code=429)
        with pytest.raises(Unavailable):
            cohere.question("why")


def test_qdrant_cloud_gets_the_text_with_its_prefix(choose: Callable[..., None]) -> None:
    choose(KHO_EMBEDDER="qdrant")
    remote = embedder()
    assert isinstance(remote, StoreInference)
    assert remote.compare("e", ["c"], [["b"]]) == []
    assert remote.passages_in_context(["c"], [["a", "b"]]) == remote.passages(["b\nc"])
    assert remote.question("a\0b").vector == RemoteText("query: a b", "intfloat/multilingual-e5-small")
    assert [each.vector for each in remote.passages(["x"])] == [
        RemoteText("passage: x", "intfloat/multilingual-e5-small")
    ]


def test_unknown_model_error_lists_known_models(choose: Callable[..., None]) -> None:
    choose(KHO_EMBEDDER="bedrock", KHO_EMBEDDING_MODEL="mine")
    with pytest.raises(ConfigurationError, match=r"'mine'.*cohere\.embed-multilingual-v3"):
        embedder()


def test_reranker_scores_are_in_input_order(choose: Callable[..., None]) -> None:
    choose(KHO_RERANKER="bedrock", KHO_RERANK_MODEL="cohere.rerank-v3-5:0")
    chosen = reranker()
    assert isinstance(chosen, BedrockReranker)
    with Stubber(chosen._client) as stub:
        stub.add_response(
            "rerank",
            {"results": [{"index": 1, "relevanceScore": 0.9}, {"index": 0, "relevanceScore": 0.2}]},
        )
        assert chosen.scores("why", ["one", "two"]) == [0.2, 0.9]
        stub.add_client_error("rerank", "ThrottlingException", http_status_code=429)
        with pytest.raises(Unavailable):
            chosen.scores("why", ["one"])


@pytest.mark.parametrize(
    ("region", "partition"), [("eu-central-1", "aws"), ("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")]
)
def test_reranking_model_is_in_the_regions_partition(choose: Callable[..., None], region: str, partition: str) -> None:
    choose(AWS_DEFAULT_REGION=region)
    assert BedrockReranker("cohere.m")._model == f"arn:{partition}:bedrock:{region}::foundation-model/cohere.m"


def test_reranker_requires_a_model(choose: Callable[..., None]) -> None:
    choose(KHO_RERANKER="bedrock")
    with pytest.raises(ConfigurationError, match="KHO_RERANK_MODEL"):
        reranker()
