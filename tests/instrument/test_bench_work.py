"""How many units a call of a bench did: what it returns, its batch, or one."""

from decimal import Decimal

import pytest

from carbonlens.domain.bench import Variant
from carbonlens.errors import MeasurementError
from carbonlens.instrument.bench_onnx import OnnxWork
from carbonlens.instrument.bench_work import calls, told

np = pytest.importorskip("numpy", reason="numpy is of an extra that is not installed")


@pytest.mark.parametrize(
    ("said", "units"),
    [
        (None, 1),
        (3, 3),
        (Decimal("2.5"), Decimal("2.5")),
        (np.int64(5), 5),
        (np.uint8(7), 7),
        (np.array(9), 9),
    ],
)
def test_whole_numbers_of_any_library_are_units(said, units):
    assert calls(lambda: said, None, 0)[0] == units


@pytest.mark.parametrize(
    "said",
    [
        0,
        -1,
        np.int64(0),
        True,
        0.25,
        np.float32(0.25),
        1.0,
        np.float32(1.0),
        np.array(64.0),
        float("nan"),
        float("inf"),
        "7",
        [1],
        np.ones(3),
        10**30,
    ],
)
def test_anything_else_is_refused_with_its_mend(said):
    with pytest.raises(MeasurementError, match="positive number"):
        calls(lambda: said, None, 0)
    assert calls(lambda: said, Decimal(2), 0)[0] == 2


def model_of(tmp_path, shape):
    onnx = pytest.importorskip("onnx", reason="onnx is of an extra that is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime is of an extra that is not installed")
    kind = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [onnx.helper.make_tensor_value_info("x", kind, shape)],
        [onnx.helper.make_tensor_value_info("y", kind, shape)],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
    file = tmp_path / "m.onnx"
    onnx.save(model, str(file))
    return str(file)


@pytest.mark.parametrize(
    ("shape", "stated", "units"),
    [([64, 4], None, 64), (["n", 4], None, 1), ([64, 4], Decimal(8), 8), ([64], None, 1), ([], None, 1)],
)
def test_a_call_of_a_model_counts_its_batch_as_the_session_wrapper_does(tmp_path, shape, stated, units):
    variant = Variant(name="m", kind="onnx", onnx=model_of(tmp_path, shape), units=stated)
    work = OnnxWork(variant)
    assert calls(work.load(), variant.units, 0)[0] == units


def test_a_feed_of_64_is_64_units(tmp_path, monkeypatch):
    (tmp_path / "feeds_of_64.py").write_text(
        "import numpy as np\ndef feed(): return {'x': np.ones((64, 4), 'float32')}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    model = model_of(tmp_path, ["n", 4])
    variant = Variant(name="m", kind="onnx", onnx=model, inputs="feeds_of_64:feed")
    assert calls(OnnxWork(variant).load(), None, 0)[0] == 64


def test_an_error_of_several_lines_is_told_in_one():
    assert told(RuntimeError("\n\nIMPORTANT\n  read this")) == "RuntimeError: IMPORTANT read this"
    broken = MeasurementError("cannot be loaded (a\nb)", where="work:f", mend="mend it")
    assert told(broken) == "work:f: cannot be loaded (a b)"
    assert len(told(ValueError("x" * 1000))) == 300
