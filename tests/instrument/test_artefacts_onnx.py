"""Figures of ONNX models, against the network they come from and models put together by hand."""

import hashlib
import logging
import warnings

import numpy as np
import pytest

from tests.instrument.looking_at import looked, said

onnx = pytest.importorskip("onnx", reason="onnx is of an extra that is not installed")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402  # onnx is an extra


def model_of(nodes, inputs, outputs, weights, *, opset=17, domains=(), functions=()):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs.items()],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in weights.items()],
    )
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions))


def written(model, path):
    path.write_bytes(model.SerializeToString())
    return path


def chain(batch="n"):
    """4-5 by MatMul and 5-3 by Gemm, whose weights lie the other way round."""
    weight = np.zeros((4, 5), np.float32)
    weight[:, :2] = 1
    return model_of(
        [
            helper.make_node("MatMul", ["x", "w"], ["h"]),
            helper.make_node("Relu", ["h"], ["r"]),
            helper.make_node("Gemm", ["r", "v", "b"], ["y"], transB=1),
        ],
        {"x": [batch, 4]},
        {"y": [batch, 3]},
        {"w": weight, "v": np.ones((3, 5), np.float32), "b": np.ones(3, np.float32)},
    )


def test_products_of_matrices_are_counted_by_their_shapes(tmp_path):
    path = written(chain(), tmp_path / "m.onnx")
    found, notes = said(path, np.zeros((1, 4), np.float32))
    assert (found.kind, found.parameters, found.nonzeros, notes) == ("onnx", 38, 8 + 18, [])
    assert found.macs == 4 * 5 + 5 * 3
    assert (found.bytes, found.sha256) == (path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
    assert looked(path, {"x": np.zeros((7, 4), np.float32)}).macs == 7 * 35
    assert looked(written(chain(2), path)).macs == 2 * 35


def test_a_free_batch_without_an_example_is_not_taken_for_one(tmp_path):
    found, notes = said(written(chain(), tmp_path / "m.onnx"))
    assert (found.parameters, found.macs) == (38, None)
    assert notes == ["CL140 input model: macs unknown (shapes of Gemm, MatMul are not known: give example=)"]


@pytest.mark.parametrize(
    ("example", "reason"),
    [
        (np.zeros((1, 5)), "another shape"),
        (np.zeros((1, 4, 1)), "another number of dimensions"),
        ({"z": np.zeros((1, 4))}, "names an input that the model has not"),
    ],
)
def test_an_example_that_does_not_fit_is_said(tmp_path, example, reason):
    found, notes = said(written(chain(5), tmp_path / "m.onnx"), example)
    assert found.macs is None
    assert reason in notes[0]


def test_convolutions_with_groups_and_transposed_ones():
    ones = np.ones
    model = model_of(
        [
            helper.make_node("Conv", ["x", "w"], ["h"], group=2, pads=[1, 1, 1, 1]),
            helper.make_node("ConvTranspose", ["h", "v"], ["y"], strides=[2, 2]),
        ],
        {"x": [1, 4, 6, 6]},
        {"y": None},
        {"w": ones((8, 2, 3, 3), np.float32), "v": ones((8, 3, 2, 2), np.float32)},
    )
    assert looked(model).macs == 36 * 8 * 2 * 9 + 36 * 8 * 3 * 4


@pytest.mark.parametrize(
    ("node", "domain", "named"),
    [
        ("Einsum", "", "Einsum"),
        ("Mystery", "some.where", "Mystery"),
        ("MatMulNBits", "com.microsoft", "MatMulNBits"),
    ],
)
def test_an_operator_that_is_not_known_makes_the_work_unknown(node, domain, named):
    extra = {"equation": "ij,jk->ik"} if node == "Einsum" else {}
    model = model_of(
        [
            helper.make_node("MatMul", ["x", "w"], ["h"]),
            helper.make_node(node, ["h", "w"], ["y"], domain=domain, **extra),
        ],
        {"x": [4, 4]},
        {"y": [4, 4]},
        {"w": np.ones((4, 4), np.float32)},
        domains=[domain] if domain else [],
    )
    found, notes = said(model)
    assert found.macs is None
    assert f"the work of {named} is not known" in notes[0]
    assert found.parameters == (None if named == "MatMulNBits" else 16)


def test_shapes_scalars_and_limits_are_no_parameters():
    model = model_of(
        [
            helper.make_node("Reshape", ["x", "to"], ["a"]),
            helper.make_node("Clip", ["a", "low", "high"], ["b"]),
            helper.make_node("MatMul", ["b", "w"], ["c"]),
            helper.make_node("Mul", ["c", "half"], ["y"]),
        ],
        {"x": [4]},
        {"y": [1, 2]},
        {
            "to": np.array([1, 4]),
            "low": np.float32(0),
            "high": np.float32(6),
            "w": np.ones((4, 2), np.float32),
            "half": np.float32(0.5),
        },
    )
    assert (looked(model).parameters, looked(model).macs) == (8, 8)


def test_the_settings_of_a_quantized_lstm_are_no_parameters(tmp_path):
    quantization = pytest.importorskip(
        "onnxruntime.quantization", reason="onnxruntime is of an extra that is not installed"
    )
    made = np.random.default_rng(0)
    weights = {n: made.normal(size=s).astype("f4") for n, s in (("w", (1, 80, 10)), ("r", (1, 80, 20)))}
    node = helper.make_node("LSTM", ["x", "w", "r", "b", "n"], ["y"], hidden_size=20)
    fixed = {**weights, "b": np.ones((1, 160), np.float32), "n": np.full(3, 5, np.int32)}
    model = model_of([node], {"x": [5, 3, 10]}, {"y": [5, 1, 3, 20]}, fixed)
    assert looked(model).parameters == 2560
    plain = written(model, tmp_path / "lstm.onnx")
    for per_channel in (False, True):
        small = tmp_path / f"small{per_channel}.onnx"
        quantization.quantize_dynamic(plain, small, per_channel=per_channel)
        assert "DynamicQuantizeLSTM" in {n.op_type for n in onnx.load(small).graph.node}
        assert looked(small).parameters == 2560


def test_an_operator_whose_weights_are_kept_in_an_unknown_form_tells_none():
    node = helper.make_node("QMoE", ["x", "w"], ["y"], domain="com.microsoft")
    model = model_of([node], {"x": [1, 4]}, {"y": [1, 4]}, {"w": np.ones((4, 4), np.uint8)})
    found, notes = said(model)
    assert found.parameters is None
    assert "QMoE" in str(notes)


def test_constants_in_short_form_count_as_what_they_are():
    nodes = [
        helper.make_node("Constant", [], ["w"], value_floats=[1.0, 0.0, 2.0]),
        helper.make_node("Constant", [], ["s"], value_float=2.0),
        helper.make_node("Constant", [], ["i"], value_ints=[0, 1, 2]),
        helper.make_node("Gather", ["table", "j"], ["g"]),
        helper.make_node("Mul", ["x", "w"], ["h"]),
        helper.make_node("Mul", ["h", "s"], ["y"]),
    ]
    fixed = {"table": np.ones((5, 2), np.float32), "j": np.array([0, 3, 4], np.int32)}
    model = model_of(nodes, {"x": [3]}, {"y": [3]}, fixed)
    found = looked(model)
    assert (found.parameters, found.nonzeros) == (3 + 10, 2 + 10)


def test_weights_in_constants_and_in_branches_count():
    constant = helper.make_node(
        "Constant", [], ["w"], value=numpy_helper.from_array(np.ones((4, 2), np.float32))
    )
    branch = helper.make_graph(
        [helper.make_node("MatMul", ["x", "v"], ["b"])],
        "branch",
        [],
        [helper.make_tensor_value_info("b", TensorProto.FLOAT, [4, 2])],
        [numpy_helper.from_array(np.ones((4, 2), np.float32), "v")],
    )
    model = model_of(
        [
            constant,
            helper.make_node("MatMul", ["x", "w"], ["h"]),
            helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch),
        ],
        {"x": [4, 4]},
        {"y": [4, 2]},
        {"c": np.array(True)},
    )
    found, notes = said(model)
    assert (found.parameters, found.macs) == (24, None)
    assert "the work of If is not known" in notes[0]


def test_functions_of_the_model_are_looked_into():
    function = helper.make_function(
        "own",
        "Twice",
        ["a", "w"],
        ["c"],
        [helper.make_node("MatMul", ["a", "w"], ["b"]), helper.make_node("MatMul", ["b", "w"], ["c"])],
        [helper.make_opsetid("", 17)],
    )
    model = model_of(
        [helper.make_node("Twice", ["x", "w"], ["y"], domain="own")],
        {"x": [3, 4]},
        {"y": [3, 4]},
        {"w": np.ones((4, 4), np.float32)},
        domains=["own"],
        functions=[function],
    )
    assert (looked(model).parameters, looked(model).macs) == (16, 2 * 3 * 16)


def test_external_data_is_part_of_size_hash_and_weights(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(chain(), str(path), save_as_external_data=True, location="m.data", size_threshold=0)
    found, notes = said(path, np.zeros((1, 4)))
    assert notes == []
    assert found.bytes == path.stat().st_size + (tmp_path / "m.data").stat().st_size
    assert (found.parameters, found.nonzeros, found.macs) == (38, 26, 35)
    content = bytearray((tmp_path / "m.data").read_bytes())
    content[0] ^= 1
    (tmp_path / "m.data").write_bytes(content)
    assert looked(path).sha256 != found.sha256
    (tmp_path / "m.data").unlink()
    found, notes = said(path, np.zeros((1, 4)))
    assert (found.bytes, found.sha256, found.nonzeros, found.macs) == (None, None, None, 35)
    assert "FileNotFoundError" in notes[0]


def test_a_model_reads_no_file_outside_its_folder(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(chain(), str(path), save_as_external_data=True, location="m.data", size_threshold=0)
    model = onnx.load(str(path), load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = "../../etc/passwd"
    found, (note,) = said(written(model, path))
    assert found.bytes is None
    assert "outside its folder" in note
    assert said(model)[0].bytes is None


def test_what_is_no_model_is_a_file_all_the_same(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(b"hello")
    found, (note,) = said(path)
    assert (found.bytes, found.sha256) == (5, hashlib.sha256(b"hello").hexdigest())
    assert "parameters, nonzeros, macs unknown (the file holds no ONNX model)" in note


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    torch = pytest.importorskip("torch", reason="torch is of an extra that is not installed")
    from onnxruntime.quantization.shape_inference import quant_pre_process

    from tests.instrument.networks import small_convolutions

    folder = tmp_path_factory.mktemp("onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            small_convolutions(),
            (torch.zeros(1, 3, 8, 8),),
            str(folder / "m.onnx"),
            dynamo=False,
            input_names=["x"],
            dynamic_axes={"x": {0: "n"}},
        )
    quant_pre_process(str(folder / "m.onnx"), str(folder / "folded.onnx"), skip_symbolic_shape=True)
    return folder


IMAGE = np.zeros((1, 3, 8, 8), np.float32)
FOLDED = 356 - 16
"""The normalisation goes into the convolution before it."""


@pytest.fixture(autouse=True)
def loggers_kept():
    before = logging.getLogger().handlers[:]
    yield
    logging.getLogger().handlers[:] = before


@pytest.mark.slow
def test_an_exported_network_does_the_work_of_its_source(exported):
    found, notes = said(exported / "m.onnx", IMAGE)
    assert (found.parameters, found.macs, notes) == (FOLDED, 16_448, [])


@pytest.mark.slow
def test_dynamic_quantization_by_onnx_runtime(exported):
    from onnxruntime import quantization

    path = exported / "dynamic.onnx"
    quantization.quantize_dynamic(
        str(exported / "folded.onnx"), str(path), weight_type=quantization.QuantType.QUInt8
    )
    found, notes = said(path, IMAGE)
    assert (found.parameters, found.macs, notes) == (FOLDED, 16_448, [])
    assert found.nonzeros == nonzeros_of(path)


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["QDQ", "QOperator"])
def test_static_quantization_by_onnx_runtime(exported, format_):
    from onnxruntime import quantization

    class Images(quantization.CalibrationDataReader):
        def __init__(self):
            self.left = [{"x": np.random.default_rng(0).random((4, 3, 8, 8), np.float32)}]

        def get_next(self):
            return self.left.pop() if self.left else None

    path = exported / f"{format_}.onnx"
    quantization.quantize_static(
        str(exported / "folded.onnx"),
        str(path),
        Images(),
        per_channel=True,
        quant_format=quantization.QuantFormat[format_],
    )
    found, notes = said(path, IMAGE)
    assert found.parameters == FOLDED
    assert found.nonzeros == nonzeros_of(path)
    if format_ == "QDQ":
        assert (found.macs, notes) == (16_448, [])
    else:
        # Shapes are lost behind an operator of ONNX Runtime's own: said, and no part is sold as all.
        assert found.macs is None
        assert "shapes of QGemm are not known" in notes[0]


def nonzeros_of(path):
    """Count by the names that the quantizer gives, which the program does not look at."""
    tensors = {t.name: numpy_helper.to_array(t) for t in onnx.load(str(path)).graph.initializer}
    total = 0
    for name, values in tensors.items():
        if name.endswith(("_scale", "_zero_point")) or values.dtype == np.int64:
            continue
        zero = tensors.get(name.removesuffix("_quantized") + "_zero_point", np.array(0))
        total += int((values != (zero.reshape(-1, *[1] * (values.ndim - 1)) if zero.ndim else zero)).sum())
    return total


@pytest.mark.parametrize(
    ("left", "right", "swapped"),
    [
        ([64, 2], [64, 8], ["transA"]),
        ([2, 64], [8, 64], ["transB"]),
        ([2, 3, 64], [3, 64, 8], ["transBatchA"]),
        ([64, 3, 2], [3, 64, 8], ["transBatchA", "transA"]),
        ([3, 2, 64], [64, 3, 8], ["transBatchB"]),
        ([3, 2, 64], [8, 3, 64], ["transBatchB", "transB"]),
    ],
)
@pytest.mark.parametrize("is_left_known", [True, False])
def test_a_fused_product_of_swapped_sides_is_as_deep_as_before(left, right, swapped, is_left_known):
    out = [2, 8] if len(left) == 2 else [3, 2, 8]
    flags = dict.fromkeys(swapped, 1)
    node = helper.make_node("FusedMatMul", ["x", "w"], ["y"], domain="com.microsoft", **flags)
    sides = {"x": left if is_left_known else ["a"] * len(left), "w": right}
    found = looked(model_of([node], sides, {"y": out}, {}, domains=["com.microsoft"]))
    assert found.macs == int(np.prod(out)) * 64
