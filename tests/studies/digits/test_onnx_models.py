"""ONNX models: the export computes the same, the quantized ones really are int8."""

from __future__ import annotations

import logging

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is of an extra that is not installed")
onnx = pytest.importorskip("onnx", reason="onnx is of an extra that is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is of an extra that is not installed")

from carbonlens.studies.digits import onnx_models
from carbonlens.studies.digits.data import SIDE
from carbonlens.studies.digits.network import build_network, one_thread, predict


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).standard_normal((70, 1, SIDE, SIDE), dtype=np.float32)


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return build_network((16, 16, 32, 32)).eval()


@pytest.fixture(scope="module")
def models(tmp_path_factory, network, images):
    folder = tmp_path_factory.mktemp("models")
    paths = {name: folder / f"{name}.onnx" for name in ("plain", "folded", "static", "dynamic")}
    handlers = logging.getLogger().handlers[:]
    with one_thread():
        onnx_models.export(network, paths["plain"])
        onnx_models.preprocess(paths["plain"], paths["folded"])
        onnx_models.quantize_static(paths["folded"], paths["static"], images)
        onnx_models.quantize_dynamic(paths["folded"], paths["dynamic"])
    # The quantizer's own logging must not make other libraries talk.
    assert logging.getLogger().handlers == handlers
    return paths


def operators(path):
    return {node.op_type for node in onnx.load(path).graph.node}


def scores(path, images):
    return onnx_models.predict(onnx_models.open_session(path), images)


def test_the_export_computes_what_the_network_does_for_any_batch(models, network, images):
    with one_thread():
        expected = predict(network, images)
    assert np.allclose(scores(models["plain"], images), expected, atol=1e-4)
    session = onnx_models.open_session(models["plain"])
    assert onnx_models.run_session(session, images[:3]).shape == (3, 10)


@pytest.mark.parametrize("name", ["static", "dynamic"])
def test_quantized_models_are_a_third_of_the_size_and_near_the_original(models, images, name):
    assert models[name].stat().st_size < models["plain"].stat().st_size / 2
    exact, near = scores(models["plain"], images), scores(models[name], images)
    assert np.abs(near - exact).max() < 0.1 * np.abs(exact).max()
    assert not np.array_equal(near, exact)


def test_the_static_model_has_its_scales_and_the_dynamic_one_finds_them(models):
    assert {"QuantizeLinear", "DequantizeLinear"} <= operators(models["static"])
    assert {"ConvInteger", "DynamicQuantizeLinear"} <= operators(models["dynamic"])
    assert not operators(models["plain"]) & {"QuantizeLinear", "ConvInteger"}


def test_every_convolution_of_the_static_model_has_a_scale_a_channel(models):
    graph = onnx.load(models["static"]).graph
    constants = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
    convolutions = [n for n in graph.node if n.op_type == "Conv"]
    producers = {o: n for n in graph.node for o in n.output}
    assert len(convolutions) == 4
    for node in convolutions:
        weights = producers[node.input[1]]
        values, scale = constants[weights.input[0]], constants[weights.input[1]]
        assert scale.shape == (values.shape[0],)
        # Seven bits: no sum of two products overflows 16 bits.
        assert values.dtype == np.int8
        assert np.abs(values.astype(int)).max() <= 64


def test_sessions_use_one_thread(models):
    options = onnx_models.open_session(models["plain"]).get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
