"""A torch module as an artefact: what it stores, what of that is not 0, and its work.

Nothing of the module is changed, called or moved: multiply-accumulates are counted on a
copy (``artefact_torch_macs``). Parameters count once however often they
are shared; weights that ``torch.ao`` packs are unpacked; a mask of ``torch.nn.utils.prune``
and a parametrization decide what is 0, and the mask is in the bytes, since it is stored.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carbonlens.instrument.artefact_figures import Allowance, Figures, UntoldError
from carbonlens.instrument.artefact_tensors import Named, count, hash_of, nonzeros, place_of, size
from carbonlens.instrument.artefact_torch_macs import count_macs
from carbonlens.instrument.artefact_torch_packed import packed_of

if TYPE_CHECKING:
    import torch

_WRAPPERS: Final = {
    "DistributedDataParallel": "module",
    "DataParallel": "module",
    "OptimizedModule": "_orig_mod",
}
_SHARDED: Final = frozenset({"FullyShardedDataParallel", "DeepSpeedEngine"})
_PACKED_BY_OTHERS: Final = frozenset({"qweight", "Params4bit"})
"""Names under which GPTQ and AWQ, and bitsandbytes, keep several weights in one number."""

_ORIGINAL, _MASK = "_orig", "_mask"
"""Ends of the names that ``torch.nn.utils.prune`` gives to a weight and its mask."""


class Entry(NamedTuple):
    """A tensor of a module.

    Attributes:
        owner: The module that it belongs to.
        local: Its name there.
        is_weight: A parameter or a packed weight; else a buffer.
    """

    name: str
    value: Any
    owner: torch.nn.Module
    local: str
    is_weight: bool


def look(module: Any, figures: Figures, example: object) -> None:  # noqa: ANN401  # a module by the caller's word
    """Fill in the figures of a module.

    Args:
        module: It may be wrapped for data parallelism or compiled.
        figures: Filled in.
        example: Input of one call, see ``artefact_torch_macs``; without one no work is counted.
    """
    figures.kind = "torch.nn.Module"
    bare = unwrapped(module)
    if any(type(m).__name__ in _SHARDED for m in bare.modules()):
        figures.withdraw("its weights are spread over several processes")
        return
    entries = list(entries_of(bare))
    once = list({place_of(e.value): e for e in entries}.values())
    weights = [e for e in once if e.is_weight]
    figures.tell("bytes", lambda: sum(size(e.value) for e in once))
    figures.tell("parameters", lambda: sum(count(e.value) for e in _unpacked(once, weights)))
    figures.tell(
        "nonzeros", lambda: sum(_effective_nonzeros(e, figures.allowance) for e in _unpacked(once, weights))
    )
    figures.tell_hash(lambda: hash_of((Named(e.name, e.value) for e in entries), figures.allowance))
    if example is not None:
        figures.tell("macs", lambda: count_macs(bare, example, figures.allowance))


def unwrapped(module: Any) -> Any:  # noqa: ANN401  # as above
    """Return the module that a wrapper of torch's (data parallel, compiled) holds."""
    while type(module).__module__.startswith("torch.") and type(module).__name__ in _WRAPPERS:
        module = getattr(module, _WRAPPERS[type(module).__name__])
    return module


def entries_of(module: torch.nn.Module) -> Iterator[Entry]:
    """Yield every parameter, buffer and packed weight, shared ones under each of their names.

    Raises:
        UntoldError: If a packed weight cannot be unpacked.
    """
    for prefix, owner in module.named_modules():
        at = f"{prefix}." if prefix else ""
        for local, value in owner.named_parameters(recurse=False, remove_duplicate=False):
            yield Entry(at + local, value, owner, local, True)
        for local, value in owner.named_buffers(recurse=False, remove_duplicate=False):
            yield Entry(at + local, value, owner, local, False)
        for local, value in packed_of(owner):
            yield Entry(at + local, value, owner, local, True)


def _unpacked(once: list[Entry], weights: list[Entry]) -> list[Entry]:
    """Return the weights, unless another library packs several into one number."""
    if any(e.local in _PACKED_BY_OTHERS or type(e.value).__name__ in _PACKED_BY_OTHERS for e in once):
        raise UntoldError("several weights are packed into one number, in a way that is not known here")
    return weights


def _effective_nonzeros(entry: Entry, allowance: Allowance) -> int:
    """Return how many values of a weight are not 0 once masked and parametrized."""
    owner, local = entry.owner, entry.local
    mask = getattr(owner, local.removesuffix(_ORIGINAL) + _MASK, None) if local.endswith(_ORIGINAL) else None
    if mask is not None:
        allowance.check()
        return int(((entry.value.detach() != 0) & (mask != 0)).sum())
    if local == "original" and type(owner).__name__ == "ParametrizationList":
        allowance.check()
        # A copy: calling one may change it, as a spectral norm does in training.
        effective = copy.deepcopy(owner).eval()().detach()
        if tuple(effective.shape) == tuple(entry.value.shape):
            return nonzeros(effective, allowance)
    return nonzeros(entry.value, allowance)
