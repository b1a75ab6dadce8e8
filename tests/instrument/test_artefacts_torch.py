"""Figures of torch modules, against sizes that are published or counted another way."""

import copy
import warnings
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from tests.instrument.looking_at import looked, said

torch = pytest.importorskip("torch", reason="torch is of an extra that is not installed")
from torch import nn  # noqa: E402  # torch is an extra
from torch.nn.utils import parametrizations, prune  # noqa: E402  # as above

from tests.instrument.networks import mlp, mobilenet_v2, resnet, small_convolutions  # noqa: E402  # as above

IMAGE = torch.zeros(1, 3, 8, 8)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.ao announces its successor
        yield


def stored_bytes(module):
    return sum(t.numel() * t.element_size() for t in module.state_dict().values())


def test_a_network_of_layers_is_counted_exactly():
    network = mlp()
    found = looked(network, torch.zeros(1, 64))
    assert (found.kind, found.parameters, found.macs) == ("torch.nn.Module", 9610, 64 * 128 + 128 * 10)
    assert (found.bytes, found.nonzeros) == (4 * 9610, 9610)
    assert looked(network, torch.zeros(7, 64)).macs == 7 * 9472
    assert looked(network).macs is None


@settings(max_examples=25)
@given(widths=st.lists(st.integers(1, 40), min_size=2, max_size=5), batch=st.integers(1, 4))
def test_any_network_of_layers_is_counted_exactly(widths, batch):
    pairs = list(pairwise(widths))
    network = nn.Sequential(*(nn.Linear(a, b) for a, b in pairs))
    found = looked(network, torch.zeros(batch, widths[0]))
    assert found.parameters == sum(a * b + b for a, b in pairs)
    assert found.macs == batch * sum(a * b for a, b in pairs)
    assert found.nonzeros == sum(int(torch.count_nonzero(p)) for p in network.parameters())


@pytest.mark.parametrize(
    ("build", "parameters", "macs"),
    [
        # torchvision's documentation: 3,504,872 and 0.30 GFLOPS; 11,689,512 and 1.81; 25,557,032 and 4.09,
        # where one multiply-accumulate is one operation.
        (mobilenet_v2, 3_504_872, 300_774_272),
        (lambda: resnet((2, 2, 2, 2), bottleneck=False), 11_689_512, 1_814_073_344),
        (lambda: resnet((3, 4, 6, 3), bottleneck=True), 25_557_032, 4_089_184_256),
    ],
    ids=["MobileNetV2", "ResNet-18", "ResNet-50"],
)
def test_published_networks_have_their_published_sizes(build, parameters, macs):
    with torch.device("meta"):
        network = build()
    found, notes = said(network, torch.zeros(1, 3, 224, 224, device="meta"))
    assert (found.parameters, found.macs) == (parameters, macs)
    # On the meta device there is nothing to hash or to compare with 0.
    assert (found.sha256, found.nonzeros) == (None, None)
    assert notes == [
        "CL140 input model: nonzeros, sha256 unknown (its values are on the meta device: there are none)"
    ]


def test_buffers_are_stored_and_are_no_parameters():
    found = looked(small_convolutions(), IMAGE)
    assert (found.parameters, found.macs) == (356, 16_448)
    assert found.bytes == stored_bytes(small_convolutions()) == 4 * (356 + 16) + 8


def test_a_transposed_convolution_works_once_an_input_value():
    found = looked(nn.ConvTranspose2d(4, 6, 3, stride=2), torch.zeros(1, 4, 5, 5))
    assert found.macs == 5 * 5 * 4 * 6 * 9


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrap", [nn.DataParallel, torch.compile, lambda m: torch.compile(nn.DataParallel(m))]
)
def test_a_wrapper_changes_nothing(wrap):
    network = mlp()
    assert looked(wrap(network), torch.zeros(1, 64)) == looked(network, torch.zeros(1, 64))


def test_a_scripted_module_has_the_figures_of_its_source():
    network = small_convolutions()
    assert looked(torch.jit.script(network), IMAGE) == looked(network, IMAGE)


@pytest.mark.filterwarnings(
    "ignore:.*LeafSpec:FutureWarning"
)  # of torch's own parts, where a program is copied
def test_an_exported_program_has_the_figures_of_its_source():
    network = small_convolutions().eval()
    exported = looked(torch.export.export(network, (IMAGE,)), IMAGE)
    assert exported.kind == "torch.export.ExportedProgram"
    assert structs.replace(exported, kind="torch.nn.Module") == looked(network, IMAGE)


def test_shared_weights_count_once():
    tied = nn.Sequential(nn.Embedding(50, 16), nn.Linear(16, 50, bias=False))
    tied[1].weight = tied[0].weight
    found = looked(tied, torch.zeros(1, 3, dtype=torch.long))
    assert (found.parameters, found.bytes, found.nonzeros) == (800, 3200, 800)
    assert found.macs == 3 * 16 * 50
    tied[1].weight = nn.Parameter(tied[0].weight.detach())  # another parameter over the same memory
    assert looked(tied).parameters == 800
    tied[1].weight = nn.Parameter(tied[0].weight.detach().clone())
    assert looked(tied).parameters == 1600


def test_the_hash_is_that_of_the_values_and_their_names():
    network = mlp()
    before = looked(network).sha256
    assert looked(copy.deepcopy(network)).sha256 == before
    assert looked(copy.deepcopy(network).train()).sha256 == before
    strided = small_convolutions()
    assert (
        looked(copy.deepcopy(strided).to(memory_format=torch.channels_last)).sha256 == looked(strided).sha256
    )
    assert looked(copy.deepcopy(network).half()).sha256 != before
    assert looked(nn.Sequential(network[0], nn.Identity(), nn.ReLU(), network[2])).sha256 != before
    with torch.no_grad():
        network[0].weight[3, 5] += 1e-3
    assert looked(network).sha256 != before


def test_looking_changes_nothing_and_calls_no_hook():
    network = small_convolutions().train()
    called = []
    network.register_forward_hook(lambda *_: called.append(1))
    network[0].register_forward_pre_hook(lambda *_: called.append(1))
    image = torch.rand(1, 3, 8, 8)
    kept, before, chance = image.clone(), copy.deepcopy(network.state_dict()), torch.get_rng_state()
    assert looked(network, image).macs == 16_448
    assert called == []
    assert network.training
    assert all(torch.equal(before[k], v) for k, v in network.state_dict().items())
    assert torch.equal(chance, torch.get_rng_state())
    assert torch.equal(image, kept)
    assert torch.backends.mha.get_fastpath_enabled()


def test_no_module_outside_the_children_is_called():
    class Listed(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(4)
            self.steps = [self.norm, nn.BatchNorm1d(4)]
            self.linear = nn.Linear(4, 3)

        def forward(self, x):
            for step in self.steps:
                x = step(x)
            return self.linear(x)

    network = Listed().train()
    assert looked(network, torch.rand(2, 4)).macs == 24
    assert [int(step.num_batches_tracked) for step in network.steps] == [0, 0]


def test_a_forward_that_was_replaced():
    network = nn.Sequential(nn.BatchNorm1d(64), mlp()).train()
    called, plain = [], network.forward
    network.forward = plain  # bound to the module, as a patch leaves it
    assert looked(network, torch.zeros(2, 64)).macs == 2 * 9472
    network.forward = lambda x: called.append(1) or plain(x)
    found, notes = said(network, torch.zeros(2, 64))
    assert (found.macs, called, int(network[0].num_batches_tracked)) == (None, [], 0)
    assert "its forward was replaced" in notes[0]


def test_a_mask_decides_what_is_0_and_is_stored():
    network = mlp()
    prune.l1_unstructured(network[0], "weight", 0.75)
    found = looked(network, torch.zeros(1, 64))
    assert found.nonzeros == 9610 - 64 * 128 * 3 // 4
    assert (found.parameters, found.macs) == (9610, 9472)  # zeros are multiplied like other values
    assert found.bytes == 4 * (9610 + 64 * 128)
    prune.remove(network[0], "weight")
    assert looked(network).bytes == 4 * 9610
    assert (
        looked(network).nonzeros == found.nonzeros == int(sum((p != 0).sum() for p in network.parameters()))
    )


def test_parametrized_weights():
    class Third(nn.Module):
        def forward(self, weight):
            mask = torch.zeros_like(weight)
            mask[:, ::3] = 1
            return weight * mask

    layer = nn.Linear(12, 5)
    nn.utils.parametrize.register_parametrization(layer, "weight", Third())
    found = looked(layer, torch.zeros(1, 12))
    assert (found.parameters, found.nonzeros, found.macs) == (65, 5 * 4 + 5, 60)
    normed = looked(parametrizations.weight_norm(nn.Linear(12, 5)), torch.zeros(1, 12))
    assert (normed.parameters, normed.macs) == (60 + 5 + 5, 60)
    spectral = parametrizations.spectral_norm(nn.Linear(12, 5)).train()
    before = copy.deepcopy(spectral.state_dict())
    assert looked(spectral).nonzeros == 65
    assert all(torch.equal(before[k], v) for k, v in spectral.state_dict().items())


def test_structured_pruning_by_torch_pruning():
    pruning = pytest.importorskip(
        "torch_pruning", reason="torch_pruning is of an extra that is not installed"
    )
    network = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 8, 3, padding=1),
        nn.Flatten(),
        nn.Linear(512, 4),
    ).eval()
    image = torch.zeros(1, 3, 8, 8)
    pruner = pruning.pruner.MagnitudePruner(
        network,
        image,
        importance=pruning.importance.MagnitudeImportance(),
        pruning_ratio=0.5,
        ignored_layers=[network[4]],
    )
    pruner.step()
    found = looked(network, image)
    assert (network[0].out_channels, network[2].out_channels, network[4].in_features) == (8, 4, 256)
    assert found.parameters == 3 * 8 * 9 + 8 + 8 * 4 * 9 + 4 + 256 * 4 + 4
    assert found.macs == 64 * (3 * 8 * 9 + 8 * 4 * 9) + 256 * 4


def test_dynamic_quantization_keeps_its_packed_weights():
    network = mlp()
    small = torch.ao.quantization.quantize_dynamic(network, {nn.Linear}, dtype=torch.qint8)
    found = looked(small, torch.zeros(1, 64))
    weights = [w for layer in (small[0], small[2]) for w in [layer.weight()]]
    assert (found.parameters, found.macs) == (9610, 9472)
    # One byte a weight, four a bias, and a scale and a zero point a layer.
    assert found.bytes == 9472 + 4 * 138 + 2 * 16
    assert found.nonzeros == sum(int((w.int_repr() != w.q_zero_point()).sum()) for w in weights) + 138
    assert found.sha256 == looked(copy.deepcopy(small)).sha256 != looked(network).sha256


def test_a_dynamic_lstm_keeps_its_packed_weights():
    network = nn.Sequential(nn.LSTM(8, 16))
    small = torch.ao.quantization.quantize_dynamic(network, {nn.LSTM}, dtype=torch.qint8)
    assert type(small[0]).__module__.startswith("torch.ao")
    sequence = torch.zeros(5, 2, 8)
    whole = looked(network, sequence)
    assert (whole.parameters, whole.macs) == (64 * 8 + 64 * 16 + 128, 5 * 2 * 64 * (8 + 16))
    found, notes = said(small, sequence)
    assert found.parameters == whole.parameters
    assert found.bytes < whole.bytes / 2
    assert found.macs is None
    assert "macs unknown (the work of quantized_lstm" in notes[0].replace("aten::", "").replace("aten.", "")


@pytest.mark.slow
def test_static_quantization_keeps_its_packed_weights():
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

    network = small_convolutions()
    prepared = prepare_fx(network, torch.ao.quantization.get_default_qconfig_mapping("x86"), (IMAGE,))
    prepared(torch.rand(4, 3, 8, 8))
    watched = copy.deepcopy(prepared.state_dict())
    assert looked(prepared, IMAGE).macs == 16_448
    assert all(torch.equal(watched[k], v) for k, v in prepared.state_dict().items())
    small = convert_fx(prepared)
    found = looked(small, IMAGE)
    # The normalisation went into the convolution before it.
    assert (found.parameters, found.macs) == (356 - 16, 16_448)
    assert found.bytes < looked(network).bytes
    assert looked(torch.jit.script(small), IMAGE).parameters == found.parameters


@pytest.mark.slow
@pytest.mark.parametrize("config", ["Int8WeightOnlyConfig", "Int8DynamicActivationInt8WeightConfig"])
def test_quantization_by_torchao(config):
    quantization = pytest.importorskip(
        "torchao.quantization", reason="torchao is of an extra that is not installed"
    )
    network = mlp()
    quantization.quantize_(network, getattr(quantization, config)())
    found = looked(network, torch.zeros(1, 64))
    assert (found.parameters, found.macs) == (9610, 9472)
    parts = [getattr(w, n) for w in (network[0].weight, network[2].weight) for n in w.__tensor_flatten__()[0]]
    assert found.bytes == sum(p.numel() * p.element_size() for p in parts) + 4 * 138
    kept = sum(int((layer.weight.dequantize() != 0).sum()) for layer in (network[0], network[2]))
    assert found.nonzeros == kept + 138
    assert found.bytes < 12_000


def test_attention_is_counted_though_torch_has_one_operator_for_the_layer():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    tokens, width = 5, 16
    by_hand = tokens * width * 3 * width + 2 * tokens * tokens * width + tokens * width * width
    assert looked(layer, torch.zeros(1, tokens, width)).macs == by_hand + 2 * tokens * width * 32


def test_an_operator_that_is_not_known_makes_the_work_unknown():
    class Spectrum(nn.Module):
        def forward(self, x):
            return torch.fft.rfft(x).abs()

    found, notes = said(nn.Sequential(mlp(), Spectrum()), torch.zeros(1, 64))
    assert (found.parameters, found.macs) == (9610, None)
    assert "macs unknown (the work of " in notes[0]
    assert "fft" in notes[0]


def test_an_example_that_does_not_fit_is_said():
    found, notes = said(mlp(), torch.zeros(1, 65))
    assert found.parameters == 9610
    assert notes == ["CL140 input model: macs unknown (a call on the example raised RuntimeError)"]


def test_a_module_that_needs_values_is_called_with_them():
    class Choosy(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            return self.layer(x) if float(x.sum()) == 0 else x

    assert looked(Choosy(), torch.zeros(1, 4)).macs == 16
    assert looked(Choosy(), {"x": torch.ones(1, 4)}).macs == 0


def test_sharded_weights_are_not_sold_as_the_whole():
    class FullyShardedDataParallel(nn.Module):
        def __init__(self):
            super().__init__()
            self.flat = nn.Parameter(torch.zeros(3))

    found, notes = said(nn.Sequential(FullyShardedDataParallel()))
    assert (found.parameters, found.bytes, found.sha256) == (None, None, None)
    assert "spread over several processes" in notes[0]


def test_weights_packed_by_others_are_unknown():
    layer = nn.Module()
    layer.register_buffer("qweight", torch.zeros(4, 4, dtype=torch.int32))
    layer.bias = nn.Parameter(torch.zeros(4))
    found, notes = said(layer)
    assert (found.parameters, found.nonzeros, found.bytes) == (None, None, 80)
    assert "packed into one number" in notes[0]


class DeadTensor(torch.Tensor):
    """A tensor on a device that is gone: its shape is known, and any work on it fails."""

    @staticmethod
    def __new__(cls, values):
        return torch.Tensor._make_wrapper_subclass(cls, values.shape, dtype=values.dtype)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if "detach" in str(func):
            return args[0]
        raise RuntimeError("CUDA error: device-side assert at /home/somebody")


def test_a_model_on_a_dead_device_has_the_figures_that_need_no_device():
    network = mlp()
    network[0].weight = nn.Parameter(DeadTensor(network[0].weight))
    found, notes = said(network, torch.zeros(1, 64))
    assert (found.parameters, found.sha256, found.nonzeros) == (9610, None, None)
    assert "RuntimeError" in notes[0]
    assert "somebody" not in notes[0]


def test_sparse_weights():
    layer = nn.Linear(6, 4, bias=False)
    with torch.no_grad():
        layer.weight[:] = 0
        layer.weight[1, 2] = 3
    layer.weight = nn.Parameter(layer.weight.detach().to_sparse(), requires_grad=False)
    found = looked(layer)
    assert (found.parameters, found.nonzeros, found.bytes) == (24, 1, 4 + 16)


@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.complex64, torch.int8]
)
def test_every_type_of_number_is_counted_and_hashed(dtype):
    values = torch.tensor([0.0, 1.0, 2.0, 0.0]).to(dtype)
    found = looked(values)
    assert (found.parameters, found.nonzeros, found.bytes) == (4, 2, 4 * values.element_size())
    assert found.sha256 is not None
