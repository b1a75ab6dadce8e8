"""Multiply-accumulates of one call of an ONNX model, from the shapes of its tensors.

Counted are convolutions and products of matrices, quantized or not; a value of the
result is one dot product. All else of the standard operators counts nothing, but for
those that multiply in ways not counted here: they make the count unknown, as operators
of unknown domains do. Zeros count like other values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from carbonlens.instrument.artefact_figures import UntoldError

_STANDARD: Final = frozenset({"", "ai.onnx"})
_MICROSOFT: Final = "com.microsoft"
_UNKNOWN: Final = frozenset(
    {
        *("Einsum", "LSTM", "GRU", "RNN", "Attention", "LinearAttention", "DeformConv"),
        *("DFT", "STFT", "Det", "If", "Loop", "Scan", "SequenceMap"),
    }
)
"""Standard operators whose work is not told by the shapes of their tensors."""

_CONV: Final = {"Conv": (0, 1), "FusedConv": (0, 1), "ConvInteger": (0, 1), "QLinearConv": (0, 3)}
_TRANSPOSED: Final = {"ConvTranspose": (0, 1)}
_MATMUL: Final = {
    "MatMul": (0, 1),
    "FusedMatMul": (0, 1),
    "MatMulInteger": (0, 1),
    "MatMulIntegerToFloat": (0, 1),
    "DynamicQuantizeMatMul": (0, 1),
    "QLinearMatMul": (0, 3),
}
_GEMM: Final = {"Gemm": (0, 1), "FusedGemm": (0, 1), "QGemm": (0, 3)}
_LIGHT_OF_MICROSOFT: Final = frozenset(
    {
        *("QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax"),
        *("QLinearConcat", "QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearReduceMean"),
        *("QuickGelu", "Gelu", "FastGelu", "BiasGelu", "SkipLayerNormalization"),
        *("QuantizeLinear", "DequantizeLinear", "LayerNormalization", "SimplifiedLayerNormalization"),
    }
)

Shape = tuple[int | None, ...]


def count_macs(model: Any, example: object) -> int:  # noqa: ANN401  # onnx has no types here
    """Return the multiply-accumulates of one call.

    Args:
        model: Without local functions; it is left as it is.
        example: A tensor or array, a list or tuple in the order of the inputs, or a
            mapping by their names; only shapes are looked at.

    Raises:
        UntoldError: If an operator or a shape is not known.
    """
    shapes = _shapes(_bound(model, example))
    total, unknown, open_ = 0, set(), set()
    for node in model.graph.node:
        macs = _macs_of(node, shapes)
        if macs is None:
            unknown.add(node.op_type)
        elif macs < 0:
            open_.add(node.op_type)
        else:
            total += macs
    if unknown:
        raise UntoldError(f"the work of {', '.join(sorted(unknown)[:3])} is not known")
    if open_:
        hint = "give example=" if example is None else "they do not follow from the example"
        raise UntoldError(f"shapes of {', '.join(sorted(open_)[:3])} are not known: {hint}")
    return total


_OPEN: Final = -1
"""Stands for work that would be known if the shapes were."""


def _macs_of(node: Any, shapes: Mapping[str, Shape]) -> int | None:  # noqa: ANN401  # as above
    """Return the work of a node, ``_OPEN`` where a shape is missing; ``None`` if it is not known."""
    kind = node.op_type
    if node.domain not in _STANDARD:
        if node.domain == _MICROSOFT and kind in _LIGHT_OF_MICROSOFT:
            return 0
        if node.domain != _MICROSOFT or kind not in {**_CONV, **_MATMUL, **_GEMM}:
            return None
    elif kind in _UNKNOWN:
        return None
    for table, work in (
        (_CONV, _convolution),
        (_TRANSPOSED, _transposed),
        (_MATMUL, _product),
        (_GEMM, _gemm),
    ):
        if kind in table:
            left, right = (shapes.get(node.input[place]) for place in table[kind])
            out = shapes.get(node.output[0])
            return work(node, left, right, out)
    return 0


def _times(*parts: Sequence[int | None] | None) -> int:
    sizes: list[int] = []
    for part in parts:
        if part is None:
            return _OPEN
        for length in part:
            if length is None:
                return _OPEN
            sizes.append(length)
    return math.prod(sizes)


def _convolution(_node: Any, _left: Shape | None, right: Shape | None, out: Shape | None) -> int:  # noqa: ANN401  # as above
    return _times(out, None if right is None else right[1:])


def _transposed(_node: Any, left: Shape | None, right: Shape | None, _out: Shape | None) -> int:  # noqa: ANN401  # as above
    return _times(left, None if right is None else right[1:])


def _product(node: Any, left: Shape | None, right: Shape | None, out: Shape | None) -> int:  # noqa: ANN401  # as above
    # A vector on the left has no dimension in the result, and its length is the depth all the same.
    for shape, side, is_left in ((left, "A", True), (right, "B", False)):
        depth = _depth(node, shape, side, is_left=is_left)
        if depth is not None:
            return _times(out, (depth,))
    return _OPEN


def _depth(node: Any, shape: Shape | None, side: str, *, is_left: bool) -> int | None:  # noqa: ANN401  # as above
    """Return how long the dot products of a product are, as one of its sides tells; ``None`` if it does not.

    ``FusedMatMul`` may have a side's last two dimensions swapped (``transA``), after its first
    one was moved behind those of the batch (``transBatchA``); of a vector neither is done.
    """
    if not shape:
        return None
    if len(shape) == 1:
        return shape[0]
    set_ = {a.name for a in node.attribute if a.i}
    is_last = is_left != (f"trans{side}" in set_)
    return shape[-1] if is_last else shape[0 if f"transBatch{side}" in set_ else -2]


def _gemm(node: Any, left: Shape | None, _right: Shape | None, out: Shape | None) -> int:  # noqa: ANN401  # as above
    flipped = any(a.name == "transA" and a.i for a in node.attribute)
    return _times(out, None if left is None else (left[:1] if flipped else left[-1:]))


def _bound(model: Any, example: object) -> Any:  # noqa: ANN401  # as above
    """Return a copy of the model without weights' values, whose inputs have the shapes of the example."""
    import onnx

    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    known = {t.name for t in copied.graph.initializer}
    inputs = [i for i in copied.graph.input if i.name not in known]
    for name, shape in _given(example, [i.name for i in inputs]).items():
        slot = next((i for i in inputs if i.name == name), None)
        if slot is None:
            raise UntoldError("the example names an input that the model has not")
        stated = slot.type.tensor_type.shape.dim
        if len(stated) != len(shape):
            raise UntoldError("the example has another number of dimensions than the model's input")
        for dimension, length in zip(stated, shape, strict=True):
            if dimension.HasField("dim_value") and dimension.dim_value != length:
                raise UntoldError("the example has another shape than the model's input")
            dimension.dim_value = length
    # What is derived from the old shapes would contradict the new ones.
    if example is not None:
        del copied.graph.value_info[:]
        for output in copied.graph.output:
            output.type.tensor_type.ClearField("shape")
    return copied


def _given(example: Any, names: Sequence[str]) -> dict[str, tuple[int, ...]]:  # noqa: ANN401  # the user's
    if example is None:
        return {}
    if isinstance(example, Mapping):
        values = {str(k): v for k, v in example.items()}
    else:
        listed = example if isinstance(example, list | tuple) else (example,)
        values = dict(zip(names, listed, strict=False))
    return {name: tuple(map(int, v.shape)) for name, v in values.items() if hasattr(v, "shape")}


def _shapes(model: Any) -> dict[str, Shape]:  # noqa: ANN401  # as above
    from onnx import shape_inference

    inferred = shape_inference.infer_shapes(model, data_prop=True).graph
    found: dict[str, Shape] = {t.name: tuple(t.dims) for t in inferred.initializer}
    for node in inferred.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                found[node.output[0]] = tuple(attribute.t.dims)
    for value in (*inferred.input, *inferred.value_info, *inferred.output):
        tensor = value.type.tensor_type
        if tensor.HasField("shape"):
            found.setdefault(
                value.name,
                tuple(d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim),
            )
    return found
