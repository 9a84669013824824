"""multilingual-e5-small in this process: nothing to install, nothing to call."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnxruntime  # type: ignore[import-untyped]

from shared.knowledge.cpu_count import cpu_count
from shared.knowledge.embedding import Embedding
from shared.knowledge.embedding.graph import model
from shared.knowledge.embedding.pieces import Pieces
from shared.knowledge.embedding.spaces import E5_SMALL
from shared.knowledge.embedding.weights import Weights, blocks_to_floats, weights

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_POOLED: Final = 3
"""Neighbouring pieces of a passage share a vector: a third of the space, for .002 of nDCG across languages."""


class E5:
    """The embedder of one process; any number of threads may ask it."""

    space = E5_SMALL

    def passages(self, texts: Sequence[str]) -> list[Embedding]:
        """The vectors of passages."""
        return list(_threads().map(_passage, texts)) if len(texts) > 1 else [_passage(text) for text in texts]

    def question(self, text: str) -> Embedding:
        """The vector of a question."""
        return self.asking(text)()

    def asking(self, text: str) -> Callable[[], Embedding]:
        """What gives the vector of a question, and leaves this process's other threads alone meanwhile."""
        run = _engine().reading(E5_SMALL.question_prefix, text)

        def asked() -> Embedding:
            vectors, own = run()
            return Embedding(_unit(vectors.mean(axis=0)).tolist(), _unit(own).tolist())

        return asked


def _passage(text: str) -> Embedding:
    vectors, own = _engine().reading(E5_SMALL.passage_prefix, text)()
    pooled = np.add.reduceat(own, range(0, len(own), _POOLED), axis=0)
    return Embedding(_unit(vectors.mean(axis=0)).tolist(), _unit(pooled).tolist())


def _unit(vectors: Any) -> Any:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


class _Engine:
    def __init__(self, read: Weights) -> None:
        vocabulary = read.vocabulary
        self._pieces = Pieces(vocabulary)
        self._begin, self._end = vocabulary.begin, vocabulary.end
        self._words = read.blocks("emb.word")
        self._places = read.floats("emb.pos").reshape(-1, read.width) + read.floats("emb.type")[: read.width]
        self._prefixes = {
            prefix: self._pieces(prefix.strip(), len(self._places))
            for prefix in (E5_SMALL.question_prefix, E5_SMALL.passage_prefix)
        }
        options = onnxruntime.SessionOptions()
        # A text at a time on one thread, as many at once as there are cores: no padding, and a text's vector never
        # depends on its neighbours, whose outliers would set the scale of 8 bits.
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(model(read), options, providers=["CPUExecutionProvider"])

    def reading(self, prefix: str, text: str) -> Callable[[], tuple[Any, Any]]:
        """What gives a vector for each piece that the model reads, and those of the text's own pieces."""
        before = [self._begin, *self._prefixes[prefix]]
        own = self._pieces(text, len(self._places) - len(before) - 1)
        numbers = [*before, *own, self._end]
        embedded = blocks_to_floats(self._words[numbers]) + self._places[: len(numbers)]

        def run() -> tuple[Any, Any]:
            (found,) = self._session.run(None, {"pieces": embedded[None]})
            return found[0], found[0][len(before) : -1]

        return run


@cache
def _engine() -> _Engine:
    engine = _Engine(weights())
    # A quarter of a million pieces of words stay for good: whoever collects garbage need not look at them each time.
    gc.freeze()
    return engine


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cpu_count(), thread_name_prefix="embedding")
