"""Tiny ONNX models, built here."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper


def mlp(folder: Path, *, wide: int = 16, hidden: int = 32, batch: int | str = "batch") -> Path:
    """Write a perceptron with a swish, ``x`` [batch, wide] to ``y`` [batch, 4], and return its file."""
    random = np.random.default_rng(0)
    first = random.normal(size=(wide, hidden)).astype("f4")
    second = random.normal(size=(hidden, 4)).astype("f4")
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h"], name="first"),
        helper.make_node("Sigmoid", ["h"], ["s"], name="sigmoid"),
        helper.make_node("Mul", ["h", "s"], ["a"], name="mul"),
        helper.make_node("MatMul", ["a", "w2"], ["y"], name="second"),
    ]
    return _saved(
        folder / "mlp.onnx",
        nodes,
        [value("x", [batch, wide])],
        [value("y", [batch, 4])],
        [onnx.numpy_helper.from_array(first, "w1"), onnx.numpy_helper.from_array(second, "w2")],
    )


def swapped(folder: Path) -> Path:
    """Write a model whose outputs are a sum without a batch and ``y`` [batch, 3], from ``x`` [batch, 3]."""
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
        helper.make_node("Relu", ["x"], ["y"]),
    ]
    outputs = [value("total", []), value("y", ["batch", 3])]
    return _saved(folder / "swapped.onnx", nodes, [value("x", ["batch", 3])], outputs, [])


def scalar(folder: Path) -> Path:
    """Write a model of one number without a dimension."""
    nodes = [helper.make_node("Neg", ["x"], ["y"])]
    return _saved(folder / "scalar.onnx", nodes, [value("x", [])], [value("y", [])], [])


def branching(folder: Path) -> Path:
    """Write a model whose If runs a long chain of products of ``x`` [64, 64] in a subgraph."""
    chain = [helper.make_node("MatMul", [f"c{k}", "x"], [f"c{k + 1}"], name=f"chain{k}") for k in range(1, 9)]
    start = helper.make_node("Identity", ["x"], ["c1"], name="start")
    then = helper.make_graph([start, *chain], "then", [], [value("c9", [64, 64])])
    other = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["o"], name="other")], "else", [], [value("o", [64, 64])]
    )
    nodes = [helper.make_node("If", ["go"], ["y"], name="if", then_branch=then, else_branch=other)]
    go = helper.make_tensor_value_info("go", TensorProto.BOOL, [])
    return _saved(folder / "branching.onnx", nodes, [value("x", [64, 64]), go], [value("y", [64, 64])], [])


def value(name: str, shape: list[int | str]) -> onnx.ValueInfoProto:
    """Return the description of a float input or output."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def _saved(file: Path, nodes, inputs, outputs, weights) -> Path:
    graph = helper.make_graph(nodes, "model", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, file)
    return file
