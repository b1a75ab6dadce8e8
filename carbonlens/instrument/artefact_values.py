"""Arrays and state dicts as artefacts: every value counts, named or not."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

from carbonlens.instrument.artefact_figures import Figures, UntoldError, values_as_parameters
from carbonlens.instrument.artefact_tensors import PLAIN, Named, count, hash_of, nonzeros, place_of, size

_DEEPEST: Final = 20


def look(thing: object, figures: Figures) -> None:
    """Fill in the figures of an array, or of a mapping that holds arrays.

    Args:
        thing: A tensor, a numpy array, or a mapping; a mapping within it makes it a
            checkpoint, whose parameters cannot be told from the state of its optimizer.
        figures: Filled in.
    """
    if not isinstance(thing, Mapping):
        figures.kind = f"{type(thing).__module__.partition('.')[0]}.{type(thing).__name__}"
        _fill(figures, [Named("", thing)])
        return
    nested = any(isinstance(value, Mapping) for value in thing.values())
    figures.kind = "checkpoint" if nested else "state dict"
    entries = list(_entries(thing))
    arrays = [e for e in entries if is_array(e.value)]
    if not arrays:
        figures.withdraw("there is no array in it")
        return
    _fill(figures, entries)
    if nested:
        figures.withdraw(
            "a checkpoint does not tell parameters from the optimizer's state", "parameters", "nonzeros"
        )
    else:
        figures.note(values_as_parameters(figures.name, figures.direction))


def _fill(figures: Figures, entries: list[Named]) -> None:
    # A tensor under two names is stored once; a state dict makes a view of it for each.
    arrays = list({place_of(e.value): e.value for e in entries if is_array(e.value)}.values())
    figures.tell("bytes", lambda: sum(size(a) for a in arrays))
    figures.tell("parameters", lambda: sum(count(a) for a in arrays))
    figures.tell("nonzeros", lambda: sum(nonzeros(a, figures.allowance) for a in arrays))
    figures.tell_hash(lambda: hash_of(entries, figures.allowance))


def is_array(value: object) -> bool:
    """Tell whether a value is a tensor or a numpy array."""
    kinds = (("torch", "Tensor"), ("numpy", "ndarray"))
    return any(
        isinstance(kind, type) and isinstance(value, kind)
        for kind in (getattr(sys.modules.get(m), n, None) for m, n in kinds)
    )


def _entries(values: Mapping[Any, object], prefix: str = "", depth: int = 0) -> Iterator[Named]:
    """Yield the leaves of a mapping.

    Raises:
        UntoldError: If something in it is neither an array, a plain value, nor made of them.
    """
    if depth > _DEEPEST:
        raise UntoldError("it is nested too deeply")
    for key, value in values.items():
        name = f"{prefix}{key!r}" if isinstance(key, PLAIN) else f"{prefix}?"
        inner = value
        if isinstance(value, list | tuple):
            inner = dict(enumerate(value))
        if isinstance(inner, Mapping):
            yield from _entries(inner, f"{name}/", depth + 1)
        else:
            yield Named(name, value)
