"""Network, pruning and training on a scale that needs no patience."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is of an extra that is not installed")

from carbonlens.studies.digits.data import SIDE
from carbonlens.studies.digits.network import (
    WIDTHS,
    build_network,
    count_macs,
    one_thread,
    predict,
    saved_bytes,
)
from carbonlens.studies.digits.pruning import CHANNEL_BLOCK, prune, pruned_widths
from carbonlens.studies.digits.training import Schedule, train


@pytest.fixture(autouse=True)
def quiet_machine():
    with one_thread():
        yield


@pytest.fixture
def images():
    return np.random.default_rng(0).standard_normal((6, 1, SIDE, SIDE), dtype=np.float32)


def network_of(widths, seed=0):
    torch.manual_seed(seed)
    network = build_network(widths)
    for layer in network:
        if isinstance(layer, torch.nn.BatchNorm2d):
            # As after training: every channel has a scale and statistics of its own.
            layer.weight.data.uniform_(0.5, 1.5)
            layer.running_mean.uniform_(-0.1, 0.1)
    return network.eval()


def test_macs_agree_with_a_count_by_hand():
    first, second, third, fourth = WIDTHS
    by_hand = (
        16 * 16 * first * 9 * 1
        + 16 * 16 * second * 9 * first
        + 8 * 8 * third * 9 * second
        + 8 * 8 * fourth * 9 * third
        + fourth * 10
    )
    assert count_macs(build_network(WIDTHS).eval()) == by_hand == 13_382_592


def test_counting_leaves_no_hook_behind():
    network = build_network((16, 16, 16, 16)).eval()
    assert count_macs(network) == count_macs(network)
    assert not any(m._forward_hooks for m in network.modules())


def test_saved_bytes_hold_every_parameter():
    network = build_network((16, 16, 16, 16))
    values = sum(v.numel() * v.element_size() for v in network.state_dict().values())
    assert values < saved_bytes(network) < values + 20_000


@pytest.mark.parametrize(
    ("widths", "keep", "expected"),
    [
        (WIDTHS, 2 / 3, (32, 32, 64, 64)),
        (WIDTHS, 1.0, WIDTHS),
        (WIDTHS, 0.01, (16, 16, 16, 16)),
        ((16, 32, 48, 64), 0.5, (16, 16, 32, 32)),
    ],
)
def test_pruned_widths_fill_whole_blocks(widths, keep, expected):
    narrow = pruned_widths(widths, keep)
    assert narrow == expected
    assert all(w % CHANNEL_BLOCK == 0 for w in narrow)


def test_pruning_nothing_changes_nothing(images):
    network = network_of((16, 16, 32, 32))
    assert np.array_equal(predict(prune(network, (16, 16, 32, 32)), images), predict(network, images))


def test_pruning_channels_that_do_nothing_changes_nothing(images):
    network = network_of((32, 32, 32, 32))
    for layer in network:
        if isinstance(layer, torch.nn.BatchNorm2d):
            # Every second channel is multiplied by zero and offset by nothing.
            layer.weight.data[::2] = 0
            layer.bias.data[::2] = 0
    narrow = prune(network, (16, 16, 16, 16))
    assert [m.out_channels for m in narrow if isinstance(m, torch.nn.Conv2d)] == [16] * 4
    assert np.allclose(predict(narrow, images), predict(network, images), atol=1e-5)


def test_pruning_leaves_the_network_as_it_is(images):
    network = network_of((32, 32, 32, 32))
    before = predict(network, images)
    prune(network, (16, 16, 16, 16))
    assert np.array_equal(predict(network, images), before)


@pytest.mark.slow
def test_training_learns_and_is_repeatable():
    random = np.random.default_rng(0)
    labels = np.tile(np.arange(2), 48)
    # Two classes told apart by their brightness.
    images = (labels[:, None, None, None] + 0.1 * random.standard_normal((96, 1, SIDE, SIDE))).astype("f4")
    scores = []
    for _ in range(2):
        network = network_of((16, 16, 16, 16))
        train(network, images, labels, Schedule(epochs=12, learning_rate=1e-2), seed=5)
        assert not network.training
        scores.append(predict(network, images))
    assert np.array_equal(*scores)
    assert (scores[0].argmax(1) == labels).mean() > 0.9


@pytest.mark.slow
def test_a_student_follows_its_teacher_where_the_labels_are_wrong():
    random = np.random.default_rng(0)
    truth = np.tile(np.arange(2), 48)
    images = (truth[:, None, None, None] + 0.1 * random.standard_normal((96, 1, SIDE, SIDE))).astype("f4")
    pace = Schedule(epochs=12, learning_rate=1e-2)
    teacher = network_of((16, 16, 16, 16))
    train(teacher, images, truth, pace, seed=1)
    wrong = random.permutation(truth)
    guided, alone = network_of((16, 16, 16, 16), seed=2), network_of((16, 16, 16, 16), seed=2)
    train(guided, images, wrong, pace, seed=3, teacher=teacher)
    train(alone, images, wrong, pace, seed=3)
    right = [(predict(n, images).argmax(1) == truth).mean() for n in (guided, alone)]
    assert right[0] > right[1] + 0.1


def test_one_thread_gives_the_threads_back():
    torch.set_num_threads(2)
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
