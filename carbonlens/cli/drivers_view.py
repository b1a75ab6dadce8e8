"""How a bridge between two periods is printed: totals, drivers with their signs, and a bar each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from carbonlens.app.drivers import Explained
from carbonlens.cli import output
from carbonlens.compare.drivers_figures import words
from carbonlens.domain.counting import counted
from carbonlens.domain.drivers import NO_UNIT, Bridge, Change, Part
from carbonlens.domain.estimate import Estimate
from carbonlens.reporting import format as fmt
from carbonlens.reporting.drivers_json import drivers_json
from carbonlens.reporting.drivers_lines import Row, change_text, quantity_of, rows, scale_of, shown

_BAR: Final = 22
_MOST_NAMES: Final = 4
_MOST_CLASSES: Final = 3
_MOST_UNITS: Final = 4
_MOST_FINDINGS: Final = 4
_NAME: Final = 24
_MEASURES: Final = {
    "energy": "energy of the facilities",
    "carbon-location": "location-based emissions",
    "carbon-market": "market-based emissions",
    "cost": "cost",
}
_KINDS: Final = {
    "new": "new",
    "vanished": "gone",
    "retagged": "under another name",
    "counting_began": "counts its work only now",
    "counting_ended": "counts no work any more",
}


def print_as_json(made: Explained) -> None:
    """Print all bridges with every figure."""
    payload = drivers_json(made.drivers)
    payload["labels"] = {"period": made.after.label, "against": made.before.label}
    payload["ledger"] = made.after.ledger
    payload["example"] = made.after.example
    payload["inventory_sha256"] = made.after.inventory_sha256
    payload["factors_sha256"] = made.after.factors_sha256
    output.print_json(payload)


def print_as_text(made: Explained) -> None:
    """Print each bridge in about 20 lines, then the worst Findings on stderr."""
    drivers = made.drivers
    for number, bridge in enumerate(drivers.bridges):
        if number:
            output.say("")
        for text in _bridge(bridge, made):
            output.say(text)
    output.print_findings(drivers.findings, most=_MOST_FINDINGS)


def _bridge(bridge: Bridge, made: Explained) -> Iterator[str]:
    drivers = made.drivers
    least = ", lower bounds" if bridge.is_least else ""
    example = " (an example: its inventory is invented)" if made.after.example else ""
    draft = [n for n, m in ((drivers.against, made.before), (drivers.period, made.after)) if m.label]
    told = f", DRAFT: {' and '.join(draft)} may change" if draft else ""
    title = f"Why {_MEASURES[bridge.measure]}{least} changed, {drivers.against} to {drivers.period}"
    yield from output.wrap(f"{title}{told}{example}", output.width())
    found = rows(bridge, (drivers.against, drivers.period), f"{drivers.prefix}.{bridge.key}")
    cells = [[_indented(r), r.number, r.interval, bar] for r, bar in zip(found, _bars(found), strict=True)]
    yield from (output.clip(line, output.width()) for line in _with_bars(cells))
    how = "LMDI" if bridge.method == "lmdi" else "Shapley values, as a value is negative"
    yield from output.wrap(f"Change {change_text(bridge)}; split by {how}", output.width())
    for text in (*_volumes(bridge.parts), *_classes(bridge), *_names(bridge.changes, bridge)):
        yield from output.wrap(text, output.width())


def _indented(row: Row) -> str:
    return row.name if row.kind == "end" else f"  {output.clip(row.name, _NAME)}"


def _with_bars(cells: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table whose last column is of bars: they keep their places, and have no head."""
    plain = output.table(["", "", "95 % interval"], [c[:3] for c in cells])
    width = max(map(output.columns, plain))
    yield plain[0]
    for line, row in zip(plain[1:], cells, strict=True):
        yield f"{line}{' ' * (width - output.columns(line))}  {row[3]}".rstrip()


def _bars(found: Sequence[Row]) -> list[str]:
    """Return a bar of each row: what rises as ``+``, what falls as ``-``, at the place it moves."""
    ends = [x for r in found if r.kind != "remainder" for x in (r.start, r.end)]
    least = (
        min(r for row in found if row.kind == "effect" for r in (row.start, row.end))
        if any(r.kind == "effect" for r in found)
        else 0.0
    )
    high = max(ends, default=0.0)
    # The bars of drivers are what matters: the axis begins a little below the lowest of them.
    base = max(least - 0.5 * (high - least), 0.0) if least > 0 else min(least, 0.0)
    span = high - base
    if span <= 0:
        return ["" for _ in found]

    def at(value: float) -> int:
        return round((max(value, base) - base) / span * _BAR)

    bars = []
    for row in found:
        if row.kind == "end":
            bars.append("=" * at(row.end))
        elif row.kind == "effect":
            first, last = sorted((at(row.start), at(row.end)))
            mark = "+" if row.end >= row.start else "-"
            bars.append(" " * first + mark * max(last - first, 1))
        else:
            bars.append("")
    return bars


def _volumes(parts: Sequence[Part]) -> Iterator[str]:
    """Yield the work of each unit; volumes of different units are never added."""
    told = []
    for part in parts:
        if part.unit == NO_UNIT:
            continue
        before, after = (v or 0.0 for v in part.volumes)
        change = "new" if not before else fmt.percent(_share(after / before - 1), plus=True).text
        texts = [fmt.count(Estimate(value=v, unit="1")).text for v in (before, after)]
        told.append(f"{part.unit} {texts[0]} to {texts[1]} ({change})")
    more = f"; and {counted(len(told) - _MOST_UNITS, 'more unit')}" if len(told) > _MOST_UNITS else ""
    if told:
        yield f"Work done: {'; '.join(told[:_MOST_UNITS])}{more}"


def _classes(bridge: Bridge) -> Iterator[str]:
    """Yield the classes of work that moved most, each with its largest driver."""
    moved = sorted(bridge.classes, key=lambda c: -_size(c))
    for part in moved[:_MOST_CLASSES]:
        if not _size(part):
            continue
        total = sum(e.change.value or 0.0 for e in part.effects)
        largest = max(part.effects, key=lambda e: abs(e.change.value or 0.0))
        sums = (Estimate(value=total, unit=bridge.unit, signed=True), largest.change)
        texts = [_plain(e, bridge) for e in sums]
        why = f", of it {words(largest.name)} {texts[1]}" if len(part.effects) > 1 else ""
        unit = "" if part.unit == NO_UNIT else f" ({part.unit})"
        yield f"{part.name}{unit}: {texts[0]}{why}"


def _size(part: Part) -> float:
    return max((abs(e.change.value or 0.0) for e in part.effects), default=0.0)


def _names(changes: Sequence[Change], bridge: Bridge) -> Iterator[str]:
    for change in changes[:_MOST_NAMES]:
        to = f" is now {change.to}" if change.to else ""
        unit = "" if change.unit == NO_UNIT else f" ({change.unit})"
        ends = [_plain(e, bridge, plus=False) for e in (change.before, change.after)]
        amount = {"new": ends[1], "vanished": ends[0]}.get(change.kind, f"{ends[0]} to {ends[1]}")
        yield f"{_KINDS[change.kind].capitalize()}: {change.name}{to}{unit}, {amount}"
    if len(changes) > _MOST_NAMES:
        yield f"... and {counted(len(changes) - _MOST_NAMES, 'more name')} (--json lists all)"


def _plain(estimate: Estimate, bridge: Bridge, *, plus: bool = True) -> str:
    value = shown(estimate).value
    if value is None or not math.isfinite(value):
        return fmt.UNKNOWN
    bare = Estimate(value=value, unit=shown(estimate).unit, signed=True)
    return quantity_of(bridge)(bare, scale_of(bridge), plus=plus).text


def _share(value: float) -> Estimate:
    return Estimate(value=value, unit="1", signed=True)
