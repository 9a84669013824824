"""multilingual-e5-small in this process, without a server or a download."""

from __future__ import annotations

import gc
import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

# Without it, ONNX Runtime sends reports of its use, with an id of this machine, to its manufacturer.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import onnxruntime  # type: ignore[import-untyped]

from shared.knowledge.cpu_count import cpu_count
from shared.knowledge.embedding import Embedding
from shared.knowledge.embedding.models import E5_SMALL
from shared.knowledge.embedding.onnx_graph import onnx_model
from shared.knowledge.embedding.sentencepiece import SentencePiece
from shared.knowledge.embedding.weights import Weights, blocks_to_floats, weights

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_POOLED: Final = 3
"""Neighbouring tokens of a passage that share a vector: a third of the space, for .002 of nDCG across languages."""


class E5:
    """The embedder of one process, safe for any number of threads."""

    space = E5_SMALL

    def passages(self, texts: Sequence[str]) -> list[Embedding]:
        """Embed passages."""
        return list(_threads().map(_passage, texts)) if len(texts) > 1 else [_passage(text) for text in texts]

    def question(self, text: str) -> Embedding:
        """Embed a question."""
        return self.prepare_question(text)()

    def prepare_question(self, text: str) -> Callable[[], Embedding]:
        """Tokenize a question, and return a function that embeds it. It uses none of the other embedding threads."""
        run = _engine().prepare(E5_SMALL.question_prefix, text)

        def embed() -> Embedding:
            vectors, own = run()
            return Embedding(_unit(vectors.mean(axis=0)).tolist(), _unit(own).tolist())

        return embed


def _passage(text: str) -> Embedding:
    vectors, own = _engine().prepare(E5_SMALL.passage_prefix, text)()
    pooled = np.add.reduceat(own, range(0, len(own), _POOLED), axis=0)
    return Embedding(_unit(vectors.mean(axis=0)).tolist(), _unit(pooled).tolist())


def _unit(vectors: Any) -> Any:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


class _Engine:
    def __init__(self, stored: Weights) -> None:
        vocabulary = stored.vocabulary
        self._tokenizer = SentencePiece(vocabulary)
        self._begin, self._end = vocabulary.begin, vocabulary.end
        self._words = stored.blocks("emb.word")
        self._positions = stored.floats("emb.pos").reshape(-1, stored.width) + stored.floats("emb.type")[: stored.width]
        self._prefixes = {
            prefix: self._tokenizer(prefix.strip(), len(self._positions))
            for prefix in (E5_SMALL.question_prefix, E5_SMALL.passage_prefix)
        }
        options = onnxruntime.SessionOptions()
        # One text per run and one thread per text, with as many runs as there are cores. So there is no padding, and a
        # text's vector never depends on other texts, whose outliers would set the 8-bit scale.
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(onnx_model(stored), options, providers=["CPUExecutionProvider"])

    def prepare(self, prefix: str, text: str) -> Callable[[], tuple[Any, Any]]:
        """Tokenize a text. Return a function that computes the vectors of all tokens and of the text's own tokens."""
        before = [self._begin, *self._prefixes[prefix]]
        own = self._tokenizer(text, len(self._positions) - len(before) - 1)
        numbers = [*before, *own, self._end]
        embedded = blocks_to_floats(self._words[numbers]) + self._positions[: len(numbers)]

        def run() -> tuple[Any, Any]:
            (outputs,) = self._session.run(None, {"pieces": embedded[None]})
            return outputs[0], outputs[0][len(before) : -1]

        return run


@cache
def _engine() -> _Engine:
    engine = _Engine(weights())
    # The vocabulary of a quarter of a million tokens lives as long as the process: freeze it out of garbage collection.
    gc.freeze()
    return engine


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cpu_count(), thread_name_prefix="embedding")
