"""multilingual-e5-small in this process, from the files that `infra/deploy/layers/model_builder` builds."""

from __future__ import annotations

import gc
import json
import threading
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import numpy as np

from shared.platform.background import map_concurrently
from shared.platform.config import ConfigurationError
from shared.platform.lanes import current_lane
from shared.platform.library_environment import set_for_libraries
from shared.search.cpu_count import cpu_count
from shared.search.embedding import Comparison, Embedding
from shared.search.embedding.models import E5_SMALL
from shared.search.embedding.sentencepiece import SentencePiece
from shared.search.embedding.slots import EmbeddingSlots

# Without it, ONNX Runtime sends reports of its use, with an id of this machine, to its manufacturer.
set_for_libraries({"ORT_DISABLE_TELEMETRY": "1"})
import onnxruntime  # type: ignore[import-untyped]  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shared.search.embedding.sentencepiece import Vocabulary

_loading: Final = threading.Lock()
_POOLED: Final = 3
"""Neighbouring tokens of a passage that share a vector: a third of the space, for .002 of nDCG across languages."""

Input = TypeVar("Input")


class TextVectors(NamedTuple):
    """The vectors of a text as arrays: one of the whole, and those of its tokens."""

    text: Any
    tokens: Any


class E5:
    """The model as an embedder, for callers that have it in their process. Safe for any number of threads."""

    space = E5_SMALL

    def passages(self, texts: Sequence[str]) -> list[Embedding]:
        """Embed passages."""
        return [_embedding(each) for each in embed_passages(texts)]

    def passages_in_context(self, texts: Sequence[str], before: Sequence[Sequence[str]]) -> list[Embedding]:
        """Embed passages, each after the texts `before` it."""
        return [_embedding(each) for each in embed_passages_in_context(texts, ["\n".join(each) for each in before])]

    def compare(self, question: str, texts: Sequence[str], before: Sequence[Sequence[str]]) -> list[Comparison]:
        """Compare a question with passages in context."""
        return compare(question, texts, ["\n".join(each) for each in before])

    def question(self, text: str) -> Embedding:
        """Embed a question."""
        return _embedding(embed_question(text))

    def prepare_question(self, text: str) -> Callable[[], Embedding]:
        """Return a function that embeds a question."""
        return partial(self.question, text)


def embed_passages(texts: Sequence[str]) -> list[TextVectors]:
    """Embed passages in the current lane, as many at once as there are cores."""
    return _at_once(_passage, texts)


def embed_passages_in_context(texts: Sequence[str], before: Sequence[str]) -> list[TextVectors]:
    """Embed passages as the model reads them after the text `before` each, of which no token is kept."""
    return _at_once(lambda pair: _passage_in_context(*pair), list(zip(texts, before, strict=True)))


def compare(question: str, texts: Sequence[str], before: Sequence[str]) -> list[Comparison]:
    """Compare a question with passages in context."""
    asked = embed_question(question)
    return [
        Comparison(float(asked.text @ each.text), float((asked.tokens @ each.tokens.T).max(axis=1).mean()))
        for each in embed_passages_in_context(texts, before)
    ]


def embed_question(text: str) -> TextVectors:
    """Embed a question, which waits for no passage."""
    with _slots().question():
        vectors, own = _engine().run(E5_SMALL.question_prefix, text)
    return TextVectors(_unit(vectors.mean(axis=0)), _unit(own))


def _passage(text: str) -> TextVectors:
    with _slots().slot(current_lane()):
        vectors, own = _engine().run(E5_SMALL.passage_prefix, text)
    return TextVectors(_unit(vectors.mean(axis=0)), _pooled(own))


def _passage_in_context(text: str, before: str) -> TextVectors:
    with _slots().slot(current_lane()):
        vectors, own = _engine().run(E5_SMALL.passage_prefix, text, before)
    return TextVectors(_unit((own if len(own) else vectors).mean(axis=0)), _pooled(own))


def _at_once(embed: Callable[[Input], TextVectors], inputs: Sequence[Input]) -> list[TextVectors]:
    if len(inputs) == 1:
        return [embed(inputs[0])]
    return list(map_concurrently(embed, inputs, cpu_count()))


def _pooled(tokens: Any) -> Any:
    return _unit(np.add.reduceat(tokens, range(0, len(tokens), _POOLED), axis=0))


def _embedding(vectors: TextVectors) -> Embedding:
    return Embedding(vectors.text.tolist(), vectors.tokens.tolist())


def _unit(vectors: Any) -> Any:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


class _Engine:
    def __init__(self, folder: Path) -> None:
        vocabulary: Vocabulary = json.loads((folder / "vocabulary.json").read_text(encoding="utf-8"))
        self._tokenizer = SentencePiece(vocabulary, np.load(folder / "scores.npy").tolist())
        self._begin, self._end = vocabulary["begin"], vocabulary["end"]
        # The table of words stays on disk, apart from the rows of words that were read.
        self._words, self._scales = (
            np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("words", "word_scales")
        )
        self._positions = np.load(folder / "positions.npy")
        self._prefixes = {
            prefix: self._tokenizer(prefix.strip(), len(self._positions))
            for prefix in (E5_SMALL.question_prefix, E5_SMALL.passage_prefix)
        }
        options = onnxruntime.SessionOptions()
        # One text per run and one thread per text, with as many runs as there are cores. So there is no padding, and a
        # text's vector never depends on other texts, whose outliers would set the 8-bit scale.
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            folder / "encoder.onnx", options, providers=["CPUExecutionProvider"]
        )

    def run(self, prefix: str, text: str, before: str = "") -> tuple[Any, Any]:
        """Return the vectors of all tokens, and of the text's own tokens. It is read after the end of `before`."""
        first = [self._begin, *self._prefixes[prefix]]
        room = len(self._positions) - len(first) - 1
        own = self._tokenizer(text, room)
        if before and len(own) < room:
            first += self._tokenizer(before, 2 * len(before))[len(own) - room :]
        numbers = [*first, *own, self._end]
        embedded = self._embed(numbers) + self._positions[: len(numbers)]
        (outputs,) = self._session.run(None, {"pieces": embedded[None]})
        return outputs[0], outputs[0][len(first) : -1]

    def _embed(self, numbers: list[int]) -> Any:
        """Return the vectors of words, which are stored in 4 bits, in blocks with a scale each."""
        packed = self._words[numbers]
        steps = np.concatenate([packed & 15, packed >> 4], axis=-1).astype(np.float32) - 8
        return (steps * self._scales[numbers][..., None]).reshape(len(numbers), -1)


def _engine() -> _Engine:
    with _loading:  # first callers at the same moment would each load it
        return _loaded_engine()


@cache
def _loaded_engine() -> _Engine:
    package = find_spec("e5_model")
    if package is None or not package.submodule_search_locations:
        raise ConfigurationError("the files of the embedding model are missing; 'make setup' builds them")
    engine = _Engine(Path(package.submodule_search_locations[0]))
    # The vocabulary of a quarter of a million tokens lives as long as the process: freeze it out of garbage collection.
    gc.freeze()
    return engine


@cache
def _slots() -> EmbeddingSlots:
    return EmbeddingSlots(cpu_count())
