"""Counting the work of a module changes nothing of it, whatever its forward does."""

import random
import threading
import time
import weakref
from collections import deque

import numpy as np
import pytest

from carbonlens.instrument.artefact_figures import Allowance, UntoldError
from tests.instrument.looking_at import looked, said

torch = pytest.importorskip("torch", reason="torch is of an extra that is not installed")
from torch import nn  # noqa: E402  # torch is an extra

from carbonlens.instrument.artefact_torch_copy import copy_of  # noqa: E402  # as above

ROW = torch.ones(1, 4)


class History:
    """An object of the user's own."""

    def __init__(self):
        self.seen = []


class Meddling(nn.Module):
    """Fills what it holds and, where it needs values, changes its own weights."""

    def __init__(self, *, needs_values):
        super().__init__()
        self.needs_values = needs_values
        self.weight = nn.Parameter(torch.ones(4, 4) * 3)
        self.register_buffer("calls", torch.zeros(()))
        self.cache, self.queue, self.names, self.history = {}, deque(maxlen=3), set(), History()
        self.parts = [nn.BatchNorm1d(4)]
        self.array = np.zeros(3)

    def forward(self, x):
        self.cache.setdefault("mask", torch.ones(4, device=x.device))
        self.queue.append(x)
        self.names.add("called")
        self.history.seen.append(x.shape)
        self.array += random.gauss() + np.random.rand() + 1
        self.calls.add_(1)
        if self.needs_values and x.abs().max().item() < 0:
            return x
        self.weight.data.div_(2)
        return self.parts[0](x + torch.rand_like(x)) @ self.weight


@pytest.mark.parametrize("needs_values", [False, True])
def test_nothing_of_the_module_is_changed(needs_values):
    module = Meddling(needs_values=needs_values)
    random.seed(3)
    np.random.seed(3)
    torch.manual_seed(3)
    expected = random.gauss(), np.random.rand(), float(torch.rand(()))
    random.seed(3)
    np.random.seed(3)
    torch.manual_seed(3)
    assert looked(module, ROW).macs == 16
    assert (random.gauss(), np.random.rand(), float(torch.rand(()))) == expected
    assert torch.equal(module.weight, torch.ones(4, 4) * 3)
    assert (module.cache, list(module.queue), module.names, module.history.seen) == ({}, [], set(), [])
    assert (float(module.calls), int(module.parts[0].num_batches_tracked)) == (0, 0)
    assert not module.array.any()
    assert module.training


def held(kind):
    module = nn.Sequential(nn.Linear(4, 4))
    seen = []
    module.extra = {
        "lock": threading.Lock,
        "closure": lambda: [lambda x: seen.append(2 * x)],
        "method": lambda: (seen.append,),
        "default": lambda: {"f": lambda x, kept=seen: kept.append(x)},
        "reference": lambda: weakref.ref(module),
    }[kind]()
    return module


@pytest.mark.parametrize("kind", ["lock", "closure", "method", "default", "reference"])
def test_what_cannot_be_copied_is_not_called(kind):
    found, (note,) = said(held(kind), ROW)
    assert (found.parameters, found.macs) == (20, None)
    assert note.startswith("CL140 input model: macs unknown (it ")
    assert "cannot be copied" in note


def test_hooks_of_others_are_neither_copied_nor_called():
    module, lock = nn.Sequential(nn.Linear(4, 4)), threading.Lock()
    module[0].register_forward_hook(lambda *_: lock.acquire())
    assert looked(module, ROW).macs == 16
    assert not lock.locked()


def test_values_of_a_large_module_are_not_copied():
    with torch.device("meta"):  # 2 GiB that nobody holds
        large = nn.Linear(1 << 14, 1 << 15)
    assert copy_of(large, Allowance(), on_meta=True).weight.shape == large.weight.shape
    with pytest.raises(UntoldError, match="it needs values, which are copied up to 1 GiB only"):
        copy_of(large, Allowance(), on_meta=False)


@pytest.mark.parametrize("needs_values", [False, True])
def test_a_call_ends_with_the_operator_during_which_its_time_is_up(needs_values):
    class Long(nn.Module):
        def forward(self, x):
            if needs_values:
                float(x.sum())
            for _ in range(1000):
                time.sleep(0.01)
                x = x + 1
            return x

    module = nn.Sequential(nn.Linear(4, 4), Long())
    found, (note,) = said(module, ROW, limit_s=1.0)
    assert (found.parameters, found.macs) == (20, None)
    assert "it was left after 1 s" in note
