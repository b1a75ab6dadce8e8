"""An ONNX model as an artefact: file, external data, weights and work.

Parameters are the numbers of its initializers and constants, statistics of normalisation
included. Scalars, scales and zero points of quantization, and the integers that shapes
and indices are made of, are none. A weight of a quantized model is 0 where it equals its
zero point.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from carbonlens.instrument.artefact_figures import Allowance, Figures, UntoldError
from carbonlens.instrument.artefact_files import CHANGED, Content, identity, read_file

_INLINE_LIMIT: Final = 2**31 - 1
"""What a protocol buffer can hold."""

_QUANTIZED: Final = {
    "DequantizeLinear": {0: 2},
    "QLinearConv": {3: 5},
    "QLinearMatMul": {0: 2, 3: 5},
    "ConvInteger": {1: 3},
    "MatMulInteger": {0: 2, 1: 3},
    "MatMulIntegerToFloat": {0: 4, 1: 5},
    "DynamicQuantizeMatMul": {1: 3},
    "QGemm": {0: 2, 3: 5},
    "DynamicQuantizeLSTM": {1: 9, 2: 11},
}
"""Where an operator takes quantized values, and where their zero point."""

_SETTINGS: Final = {
    "QuantizeLinear": {1, 2},
    "DequantizeLinear": {1, 2},
    "QLinearConv": {1, 2, 4, 5, 6, 7},
    "QLinearMatMul": {1, 2, 4, 5, 6, 7},
    "ConvInteger": {2, 3},
    "MatMulInteger": {2, 3},
    "MatMulIntegerToFloat": {2, 3, 4, 5},
    "DynamicQuantizeMatMul": {2, 3},
    "QGemm": {1, 2, 4, 5, 7, 8},
    "QLinearAdd": {1, 2, 4, 5, 6, 7},
    "QLinearMul": {1, 2, 4, 5, 6, 7},
    "QLinearSigmoid": {1, 2, 3, 4},
    "QLinearLeakyRelu": {1, 2, 3, 4},
    "QLinearGlobalAveragePool": {1, 2, 3, 4},
    "QLinearAveragePool": {1, 2, 3, 4},
    "QLinearConcat": set(),
    "Resize": {1, 2},
    "Clip": {1, 2},
    "Pad": {2, 3},
    "DynamicQuantizeLSTM": {4, 8, 9, 10, 11},
    "LSTM": {4},
    "GRU": {4},
    "RNN": {4},
    "Gather": {1},
    "GatherElements": {1},
    "GatherND": {1},
    "Scatter": {1},
    "ScatterElements": {1},
    "ScatterND": {1},
    "Slice": {1, 2, 3, 4},
    "Tile": {1},
    "CumSum": {1},
    "OneHot": {1},
}
"""Where an operator takes numbers that are no weights: scales, zero points, limits, indices, lengths."""

_UNKNOWN: Final = ("QAttention", "QEmbed", "QOrdered", "QMoE", "MatMulBnb4", "GatherBlockQuantized")
"""How the names of operators begin whose settings cannot be told from weights here."""


class Weight(NamedTuple):
    """A tensor of a model that counts as parameters.

    Attributes:
        zero: Tensor that holds the code of 0, for a quantized one.
    """

    tensor: Any
    zero: Any | None


def look_at_file(path: Path, figures: Figures, example: object) -> None:
    """Fill in the figures of a model file.

    Args:
        path: A regular file.
        figures: Filled in; bytes and hash hold the external data too, in the order of its names.
        example: Input of one call, for its shape; not needed where the model fixes its shapes.
    """
    figures.kind = "onnx"
    before = identity(path.stat())
    model = _loaded(path, figures)
    if model is None:
        return
    try:
        external = sorted({location for t in _all_tensors(model) if (location := _location(t)) is not None})
        files = [_inside(path.parent, name) for name in external]
    except UntoldError as error:
        figures.withdraw(str(error))
        return
    contents: list[Content] = []

    def size() -> int:
        contents.extend(read_file(f, figures.allowance) for f in (path, *files))
        return sum(c.size for c in contents)

    def digest() -> str:
        if len(contents) != 1 + len(files):
            raise UntoldError("its files could not be read whole")
        if not files:
            return contents[0].sha256
        return hashlib.sha256("".join(c.sha256 for c in contents).encode()).hexdigest()

    figures.tell("bytes", size)
    figures.tell_hash(digest)
    _tell(model, figures, example, path.parent)
    if identity(path.stat()) != before:
        figures.withdraw(CHANGED)


def look_at_proto(model: Any, figures: Figures, example: object) -> None:  # noqa: ANN401  # onnx has no types here
    """Fill in the figures of a model in memory."""
    figures.kind = "onnx.ModelProto"
    if any(_location(t) is not None for t in _all_tensors(model)):
        figures.withdraw("its weights lie in other files, and nobody says where: give the model's path")
        return
    content = partial(model.SerializeToString, deterministic=True)
    figures.tell("bytes", lambda: len(content()))
    figures.tell_hash(lambda: hashlib.sha256(content()).hexdigest())
    _tell(model, figures, example, None)


def _tell(model: Any, figures: Figures, example: object, folder: Path | None) -> None:  # noqa: ANN401  # as above
    from carbonlens.instrument.artefact_onnx_macs import count_macs

    def flat() -> Any:  # noqa: ANN401  # as above
        if not model.functions:
            return model
        from onnx import inliner

        return inliner.inline_local_functions(model)

    figures.tell("parameters", lambda: sum(math.prod(w.tensor.dims) for w in weights_of(flat())))
    figures.tell("nonzeros", lambda: sum(_nonzeros(w, folder, figures.allowance) for w in weights_of(flat())))
    figures.tell("macs", lambda: count_macs(flat(), example))


def _loaded(path: Path, figures: Figures) -> Any | None:  # noqa: ANN401  # as above
    try:
        import onnx
    except ImportError:
        figures.withdraw("onnx is not installed: pip install 'carbonlens[onnx]'")
        return None
    try:
        if path.stat().st_size <= _INLINE_LIMIT:
            model = onnx.load(str(path), load_external_data=False)
            if model.HasField("graph"):
                return model
    except OSError:
        raise
    except Exception:  # noqa: BLE001, S110  # law 8: protobuf raises errors of its own over what is no model
        pass
    content = read_file(path, figures.allowance)
    figures.tell("bytes", lambda: content.size)
    figures.tell_hash(lambda: content.sha256)
    for figure in ("parameters", "nonzeros", "macs"):
        figures.withdraw("the file holds no ONNX model", figure)
    return None


def weights_of(model: Any) -> Iterator[Weight]:  # noqa: ANN401  # as above
    """Yield the tensors of a model that count as parameters.

    Args:
        model: Without local functions.

    Raises:
        UntoldError: If it keeps weights in a form that is not known here.
    """
    from onnx import TensorProto

    whole = {TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING}
    for graph in _graphs(model.graph):
        if graph.sparse_initializer or any(
            a.name == "sparse_value" for n in graph.node if n.op_type == "Constant" for a in n.attribute
        ):
            raise UntoldError("it holds sparse tensors")
        tensors = dict(_named_tensors(graph))
        settings, weights, zeros = _uses(graph, tensors)
        for name, tensor in tensors.items():
            is_setting = not tensor.dims or (name in settings and name not in weights)
            if tensor.data_type not in whole and not is_setting:
                yield Weight(tensor, tensors.get(zeros.get(name, "")))


def _uses(graph: Any, tensors: dict[str, Any]) -> tuple[set[str], set[str], dict[str, str]]:  # noqa: ANN401  # as above
    """Return the tensors that are settings, those that are weights, and the zero point of each."""
    settings: set[str] = set()
    weights: set[str] = set()
    zeros: dict[str, str] = {}
    scales = {n.output[1] for n in graph.node if n.op_type == "DynamicQuantizeLinear"}
    for node in graph.node:
        if node.op_type.endswith("NBits") or node.op_type.startswith(_UNKNOWN):
            raise UntoldError(f"how {node.op_type} keeps its weights is not known here")
        places = _SETTINGS.get(node.op_type, set())
        zero_of = _QUANTIZED.get(node.op_type, {})
        concat = node.op_type == "QLinearConcat"
        # The scale of the weights, by which that of the activations is multiplied.
        scaled = node.op_type == "Mul" and not scales.isdisjoint(node.input)
        for place, name in enumerate(node.input):
            if name not in tensors:
                continue
            is_setting = scaled or place in places or (concat and (place < 2 or place % 3 != 2))
            (settings if is_setting else weights).add(name)
            zero = zero_of.get(place)
            if zero is not None and zero < len(node.input):
                zeros[name] = node.input[zero]
    return settings, weights, zeros


def _named_tensors(graph: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401  # as above
    for tensor in graph.initializer:
        yield tensor.name, tensor
    for node in graph.node:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.name == "value" and attribute.t.dims:
                    yield node.output[0], attribute.t
                elif attribute.name == "value_floats":
                    # The other forms are scalars, integers of 64 bits and texts, which are no weights.
                    yield node.output[0], _row(attribute.floats)


def _row(numbers: Sequence[float]) -> Any:  # noqa: ANN401  # as above
    from onnx import TensorProto, helper

    return helper.make_tensor("", TensorProto.FLOAT, [len(numbers)], numbers)


def _graphs(graph: Any) -> Iterator[Any]:  # noqa: ANN401  # as above
    """Yield a graph and those inside its nodes (branches, bodies of loops)."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs) if attribute.HasField("g") else attribute.graphs:
                yield from _graphs(inner)


def _all_tensors(model: Any) -> Iterable[Any]:  # noqa: ANN401  # as above
    return (t for g in _graphs(model.graph) for _, t in _named_tensors(g))


def _location(tensor: Any) -> str | None:  # noqa: ANN401  # as above
    """Return the name of the file that a tensor lies in, if it is another."""
    if tensor.data_location != tensor.EXTERNAL:
        return None
    told = {entry.key: entry.value for entry in tensor.external_data}
    return told.get("location")


def _inside(folder: Path, name: str) -> Path:
    """Return a file below a folder: a model may not have any other file read."""
    path = folder / name
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise UntoldError("it names a file outside its folder")
    return path


def _nonzeros(weight: Weight, folder: Path | None, allowance: Allowance) -> int:
    import numpy as np
    from onnx import numpy_helper

    allowance.check()
    tensor, base = weight.tensor, str(folder or "")
    values = numpy_helper.to_array(tensor, base)
    if weight.zero is None:
        return int(np.count_nonzero(values))
    zero = numpy_helper.to_array(weight.zero, base)
    if zero.size == 1:
        return int(np.count_nonzero(values != zero.reshape(())))
    if not zero.any():
        return int(np.count_nonzero(values))
    axes = [axis for axis, length in enumerate(values.shape) if length == zero.size]
    if len(axes) != 1:
        raise UntoldError("along which axis its zero points lie cannot be told")
    shape = [1] * values.ndim
    shape[axes[0]] = zero.size
    return int(np.count_nonzero(values != zero.reshape(shape)))
