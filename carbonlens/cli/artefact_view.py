"""How ``runs show`` prints what a stage took in and gave out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from carbonlens.domain.artefact import Artefact
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.run import Run
from carbonlens.reporting import format as fmt

_HASH_LENGTH: Final = 12


def artefact_lines(run: Run) -> list[str]:
    """Return a line for each name that a stage took in or gave out, before to after.

    Args:
        run: Any run; without artefacts there are no lines.
    """
    names = dict.fromkeys(a.name for a in run.artefacts)
    by_place = {(a.direction, a.name): a for a in run.artefacts}
    return [_line(name, by_place.get(("in", name)), by_place.get(("out", name))) for name in names]


def _line(name: str, before: Artefact | None, after: Artefact | None) -> str:
    parts = [
        _change(before, after, "", lambda a: a.bytes, _size),
        _change(before, after, "parameters", lambda a: a.parameters, _count),
        _change(before, after, "not 0", lambda a: a.nonzeros, _count),
        _change(before, after, "MACs", lambda a: a.macs, _count),
    ]
    # Where it went in and came out under one hash, nothing was changed.
    same = before is not None and after is not None and before.sha256 == after.sha256 is not None
    hashes = " -> ".join((a.sha256 or "unknown")[:_HASH_LENGTH] for a in (before, after) if a is not None)
    side = " (in)" if after is None else " (out)" if before is None else ""
    figures = [p for p in parts if p is not None]
    return f"{name}{side}: " + "; ".join((*figures, "unchanged" if same else f"sha256 {hashes}"))


def _change(
    before: Artefact | None,
    after: Artefact | None,
    what: str,
    figure: Callable[[Artefact], int | None],
    printed: Callable[[int], str],
) -> str | None:
    """Return a figure before and after, and how much less or more that is; ``None`` if never told."""
    told = [figure(a) for a in (before, after) if a is not None]
    if all(t is None for t in told):
        return None
    texts = ["unknown" if t is None else printed(t) for t in told]
    change = ""
    if len(told) == 2 and told[0] and told[1] is not None:
        share = (told[1] - told[0]) / told[0]
        change = f" ({fmt.fixed(100 * share, 1)} %)" if told[0] != told[1] else ""
    joined = " -> ".join(dict.fromkeys(texts) if told[0] == told[-1] else texts)
    return " ".join(filter(None, (joined, what))) + change


def _size(size: int) -> str:
    return fmt.size(Estimate(value=size, unit="B")).text


def _count(count: int) -> str:
    return fmt.fixed(count, 0)
