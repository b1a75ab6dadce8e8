"""Figures of arrays, state dicts and bytes."""

import hashlib

import numpy as np
import pytest

from tests.instrument.looking_at import looked, said

torch = pytest.importorskip("torch", reason="torch is of an extra that is not installed")
from tests.instrument.networks import mlp, small_convolutions  # noqa: E402  # torch is an extra


def test_an_array():
    found, notes = said(np.array([[0.0, 1.5], [np.nan, 0.0]]))
    assert (found.kind, found.bytes, found.parameters, found.nonzeros) == ("numpy.ndarray", 32, 4, 2)
    assert notes == []
    turned = np.arange(6).reshape(2, 3).T
    assert looked(turned).sha256 == looked(np.ascontiguousarray(turned)).sha256 != looked(np.arange(6)).sha256


def test_an_array_of_objects_has_no_figures():
    found, notes = said(np.array([object()], dtype=object))
    assert (found.bytes, found.parameters, found.nonzeros, found.sha256) == (None, None, None, None)
    assert "its values are Python objects" in notes[0]


def test_a_state_dict_counts_every_value_and_says_so():
    network = small_convolutions()
    found, notes = said(network.state_dict())
    assert found.kind == "state dict"
    assert found.parameters == sum(t.numel() for t in network.state_dict().values()) == 356 + 17
    assert found.bytes == looked(network).bytes
    assert [n[:5] for n in notes] == ["CL143"]


@pytest.mark.slow
def test_a_checkpoint_does_not_take_the_optimizers_state_for_parameters():
    network = mlp()
    optimizer = torch.optim.Adam(network.parameters())
    network(torch.zeros(1, 64)).sum().backward()
    optimizer.step()
    found, notes = said({"model": network.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3})
    assert (found.kind, found.parameters, found.nonzeros) == ("checkpoint", None, None)
    assert found.bytes > 2 * looked(network).bytes
    assert found.sha256 is not None
    assert [n[:5] for n in notes] == ["CL140"]


def test_what_cannot_be_hashed_is_said():
    found, notes = said({"w": torch.ones(3), "tokenizer": object()})
    assert (found.bytes, found.parameters, found.sha256) == (12, 3, None)
    assert "sha256 unknown" in " ".join(notes)


def test_a_mapping_that_holds_itself():
    loop = {"w": torch.ones(1)}
    loop["again"] = loop
    assert "nested too deeply" in said(loop)[1][0]


def test_bytes():
    found = looked(bytearray(b"abc"))
    assert (found.kind, found.bytes, found.sha256) == ("bytes", 3, hashlib.sha256(b"abc").hexdigest())


class Hostile:
    """A thing that raises over everything."""

    def __getattr__(self, name):
        raise RuntimeError("never")

    def __iter__(self):
        raise RuntimeError("never")


@pytest.mark.parametrize(
    "make", [lambda: None, lambda: print, lambda: 3, Hostile, lambda: iter(()), lambda: {"a": 1}, dict, set]
)
def test_a_thing_of_no_known_kind_is_said(make):
    found, (note,) = said(make())
    assert (found.bytes, found.parameters, found.nonzeros, found.macs, found.sha256) == (None,) * 5
    assert note.startswith("CL140 input model: nothing is known of it (")


def test_looking_ends_when_its_time_is_up():
    found, (note,) = said(mlp(), torch.zeros(1, 64), limit_s=-1)
    assert (found.parameters, found.sha256) == (None, None)
    assert "for which the job had waited" in note


def test_a_tensor_under_two_names_of_a_state_dict_is_stored_once():
    tied = torch.nn.Sequential(torch.nn.Embedding(100, 10), torch.nn.Linear(10, 100, bias=False))
    tied[1].weight = tied[0].weight
    found = looked(tied.state_dict())
    assert (found.parameters, found.bytes) == (1000, 4000)
    assert looked({k: v.numpy() for k, v in tied.state_dict().items()}).bytes == 4000
    assert looked({"a": torch.ones(6)[:3], "b": torch.ones(6)[3:]}).parameters == 6
