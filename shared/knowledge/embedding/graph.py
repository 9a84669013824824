"""e5 as a graph that onnxruntime runs, made of the weights in a moment whenever a process first needs it.

Matrices are multiplied in 8 bits: with one scale a row, but for each layer's last, which reads what has outliers and so
has a scale for every 64 values (cosine to the exact vectors .9990 on average, with one scale a row .9970).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from shared.knowledge.embedding.weights import Weights

_MICROSOFT: Final = "com.microsoft"
_BLOCK: Final = 64
_IN_8_BITS: Final = 4
"""What onnxruntime calls it to have what is read in 8 bits too."""


def model(weights: Weights) -> bytes:
    """The model in ONNX: from embedded pieces (`pieces`) to a vector each (`vectors`)."""
    return _Graph(weights).made()


class _Graph:
    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def made(self) -> bytes:
        state = self._node(
            "LayerNormalization", "pieces", *self._norm("emb.ln"), out="embedded", epsilon=self._weights.epsilon
        )
        for layer in range(self._weights.layers):
            state = self._layer(f"l{layer}", state)
        self._node("Identity", state, out="vectors")
        shape = ["texts", "length", self._weights.width]
        graph = helper.make_graph(
            self._nodes,
            "e5",
            [helper.make_tensor_value_info("pieces", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, shape)],
            self._constants,
        )
        operators = [helper.make_opsetid("", 20), helper.make_opsetid(_MICROSOFT, 1)]
        made: bytes = helper.make_model(graph, opset_imports=operators, ir_version=10).SerializeToString()
        return made

    def _layer(self, layer: str, state: str) -> str:
        asked = self._rough(state, f"{layer}.qkv", [f"{layer}.{part}" for part in "qkv"])
        parts = [f"{layer}.{part}" for part in ("query", "key", "value")]
        self._nodes.append(helper.make_node("Split", [asked], parts, axis=-1, num_outputs=3))
        attended = self._node(
            "MultiHeadAttention", *parts, out=f"{layer}.attended", domain=_MICROSOFT, num_heads=self._weights.heads
        )
        projected = self._rough(attended, f"{layer}.projected", [f"{layer}.ao"])
        state = self._added(projected, state, f"{layer}.aln")
        widened = self._node("Gelu", self._rough(state, f"{layer}.widened", [f"{layer}.fi"]), out=f"{layer}.active")
        return self._added(self._fine(widened, f"{layer}.narrowed", f"{layer}.fo"), state, f"{layer}.oln")

    def _rough(self, state: str, out: str, names: list[str]) -> str:
        matrix = np.concatenate([self._weights.matrix(f"{name}.w") for name in names])
        scales = np.abs(matrix).max(axis=1) / 127
        whole = np.round(matrix / scales[:, None]).astype(np.int8)
        return self._node(
            "DynamicQuantizeMatMul",
            state,
            self._constant(f"{out}.matrix", whole.T),
            self._constant(f"{out}.scales", scales),
            self._constant(f"{out}.zeros", np.zeros(len(scales), np.int8)),
            self._constant(f"{out}.bias", np.concatenate([self._weights.floats(f"{name}.b") for name in names])),
            out=out,
            domain=_MICROSOFT,
        )

    def _fine(self, state: str, out: str, name: str) -> str:
        matrix = self._weights.matrix(f"{name}.w")
        rows, columns = matrix.shape
        blocks = matrix.reshape(rows, columns // _BLOCK, _BLOCK)
        scales = np.abs(blocks).max(axis=-1) / 127
        whole = (np.round(blocks / scales[..., None]) + 128).astype(np.uint8)
        product = self._node(
            "MatMulNBits",
            state,
            self._constant(f"{out}.matrix", whole),
            self._constant(f"{out}.scales", scales),
            out=f"{out}.product",
            domain=_MICROSOFT,
            K=columns,
            N=rows,
            bits=8,
            block_size=_BLOCK,
            accuracy_level=_IN_8_BITS,
        )
        return self._node("Add", product, self._constant(f"{out}.bias", self._weights.floats(f"{name}.b")), out=out)

    def _added(self, change: str, state: str, name: str) -> str:
        return self._node(
            "SkipLayerNormalization",
            change,
            state,
            *self._norm(name),
            out=f"{name}.out",
            domain=_MICROSOFT,
            epsilon=self._weights.epsilon,
        )

    def _norm(self, name: str) -> tuple[str, str]:
        return (
            self._constant(f"{name}.weight", self._weights.floats(f"{name}.w")),
            self._constant(f"{name}.bias", self._weights.floats(f"{name}.b")),
        )

    def _constant(self, name: str, value: Any) -> str:
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def _node(self, operator: str, *inputs: str, out: str, domain: str = "", **attributes: Any) -> str:
        self._nodes.append(helper.make_node(operator, list(inputs), [out], domain=domain, **attributes))
        return out
