"""The ONNX graph of e5.

Quantization: matrices are multiplied as integers, with activations of 8 bits and weights of 7. Processors without a
dedicated instruction add two products in 16 bits and silently saturate what does not fit. 7 bits always fit, so a text
has the same vector everywhere. The input of each layer's last matrix has outliers in a few tokens, so every token has a
scale of its own there (mean cosine to the exact vectors .9985; with one scale for all .9963).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from .weights import Weights

_MICROSOFT: Final = "com.microsoft"
_LARGEST: Final = 63
"""The largest weight: twice 255 times this value fits into 16 bits."""


def onnx_model(weights: Weights) -> bytes:
    """Return the model in ONNX, from embedded tokens (`pieces`) to one vector each (`vectors`)."""
    return _Graph(weights).build()


class _Graph:
    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def build(self) -> bytes:
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
        serialized: bytes = helper.make_model(graph, opset_imports=operators, ir_version=10).SerializeToString()
        return serialized

    def _layer(self, layer: str, state: str) -> str:
        projections = self._product(state, f"{layer}.qkv", [f"{layer}.{part}" for part in "qkv"], biased=True)
        parts = [f"{layer}.{part}" for part in ("query", "key", "value")]
        self._nodes.append(helper.make_node("Split", [projections], parts, axis=-1, num_outputs=3))
        attended = self._node(
            "MultiHeadAttention", *parts, out=f"{layer}.attended", domain=_MICROSOFT, num_heads=self._weights.heads
        )
        projected = self._product(attended, f"{layer}.projected", [f"{layer}.ao"])
        state = self._residual(projected, state, f"{layer}.ao", f"{layer}.aln")
        widened = self._product(state, f"{layer}.widened", [f"{layer}.fi"], biased=True)
        active = self._node("Gelu", widened, out=f"{layer}.active")
        return self._residual(self._product_with_outliers(active, layer), state, f"{layer}.fo", f"{layer}.oln")

    def _product(self, state: str, out: str, names: list[str], *, biased: bool = False) -> str:
        matrix = np.concatenate([self._weights.matrix(f"{name}.w") for name in names])
        scales = np.abs(matrix).max(axis=1) / _LARGEST
        inputs = [
            self._constant(f"{out}.matrix", np.round(matrix / scales[:, None]).astype(np.int8).T),
            self._constant(f"{out}.scales", scales),
            self._constant(f"{out}.zeros", np.zeros(len(scales), np.int8)),
        ]
        if biased:
            bias = np.concatenate([self._weights.floats(f"{name}.b") for name in names])
            inputs.append(self._constant(f"{out}.bias", bias))
        return self._node("DynamicQuantizeMatMul", state, *inputs, out=out, domain=_MICROSOFT)

    def _product_with_outliers(self, state: str, layer: str) -> str:
        """Add a product whose input has outliers: normalize each token before it, and scale the result back."""
        along = self._constant(f"{layer}.along", np.array([-1]))
        sizes = self._node("Abs", state, out=f"{layer}.sizes")
        largest = self._node("ReduceMax", sizes, along, out=f"{layer}.largest", keepdims=1)
        alike = self._node("Div", state, largest, out=f"{layer}.alike")
        product = self._product(alike, f"{layer}.product", [f"{layer}.fo"])
        return self._node("Mul", product, largest, out=f"{layer}.narrowed")

    def _residual(self, change: str, state: str, biased: str, norm: str) -> str:
        return self._node(
            "SkipLayerNormalization",
            change,
            state,
            *self._norm(norm),
            self._constant(f"{biased}.bias", self._weights.floats(f"{biased}.b")),
            out=f"{norm}.out",
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
