"""Weights that ``torch.ao`` packs into objects of its own, out of sight of a module's parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from carbonlens.instrument.artefact_figures import UntoldError

if TYPE_CHECKING:
    import torch


def packed_of(owner: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors that a module of ``torch.ao`` keeps in objects of its own."""
    import torch

    held = dict(owner.__dict__)
    if isinstance(owner, torch.jit.ScriptModule):
        held = {"_packed_params": getattr(owner, "_packed_params", None)}
    for key, value in held.items():
        if isinstance(value, torch.ScriptObject):
            for number, tensor in enumerate(_tensors_in(value)):
                yield f"{key}.{number}", tensor
    # A dynamic LSTM or GRU keeps a list of such objects in modules outside its children.
    for number, inner in enumerate(held.get("_all_weight_values") or ()):
        for place, tensor in enumerate(_tensors_in(inner.param)):
            yield f"_all_weight_values.{number}.{place}", tensor


def _tensors_in(packed: Any, depth: int = 0) -> Iterator[torch.Tensor]:  # noqa: ANN401  # ScriptObject has no type
    import torch

    if isinstance(packed, torch.Tensor):
        yield packed
    elif isinstance(packed, list | tuple):
        for part in packed:
            yield from _tensors_in(part, depth + 1)
    elif isinstance(packed, torch.ScriptObject):
        if depth > 8:
            raise UntoldError("its packed weights cannot be unpacked")
        inner = packed.unpack() if hasattr(packed, "unpack") else packed.__getstate__()
        yield from _tensors_in(inner, depth + 1)
