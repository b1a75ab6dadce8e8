"""How shares of services are printed: a table a service, whose column adds up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from carbonlens.accounting.service_shares import ServiceShares
from carbonlens.accounting.sharing import Line
from carbonlens.app.allocation import Allocated
from carbonlens.app.explain_allocation import line_id, total_id
from carbonlens.cli import output
from carbonlens.domain.counting import counted
from carbonlens.reporting import format as fmt

SCHEMA: Final = "carbonlens/allocate/1"
_MOST: Final = 12
_NAME_WIDTH: Final = 32
_PLACES: Final = 3
_BASES: Final = {
    "measured": "measured use",
    "activity": "activity share",
    "requests": "requests",
    "tokens": "tokens",
    "request_or_usage": "the larger of request and use",
}
_KINDS: Final = {"consumer": "", "idle": "idle", "undivided": "not divided", "rounding": "rounding"}


def print_as_json(found: Allocated) -> None:
    """Print all lines; exact joules are texts."""
    output.print_json(
        {
            "schema": SCHEMA,
            "period": found.period,
            "draft": found.is_draft,
            "label": found.label,
            "ledger": found.ledger,
            "services": [_service(one, found.period) for one in found.services],
            "findings": found.findings,
        }
    )


def print_as_text(found: Allocated) -> None:
    """Print a table a service and boundary, then Findings on stderr."""
    output.say(f"Allocation of {found.period}{output.of_period(found.label)}")
    for one in found.services:
        _print_service(one)
    if not found.services:
        output.say("No service has energy in it.")
    output.print_findings(found.findings)


def _print_service(one: ServiceShares) -> None:
    service = one.service
    boundary = one.boundary or "boundary not stated"
    output.say_words(
        f"{service.service_id}: {fmt.energy(one.total.estimate).text} ({boundary}), "
        f"by {_BASES[service.basis]}, {counted(len(one.months), 'month')}"
    )
    # Less than any digit printed; --json has it.
    lines = [x for x in one.lines if x.kind != "rounding"]
    shown, rest = lines, []
    if len(lines) > _MOST:
        ranked = sorted(lines, key=lambda x: (x.kind != "consumer", -(x.exact or 0)))
        others = [x for x in ranked if x.kind != "consumer"]
        keep = _MOST - len(others)
        shown, rest = [*ranked[:keep], *others], [x for x in ranked[keep:] if x.kind == "consumer"]
    names = [_name(x) for x in shown]
    values = [x.estimate.value for x in shown]
    if rest:
        names.append(counted(len(rest), "more consumer"))
        values.append(sum(x.estimate.value or 0.0 for x in rest))
    unit = fmt.energy_scale(one.total.estimate.value).unit
    for text in output.table(["consumer", "share", unit], _rows(one, names, values)):
        output.say(text)


def _rows(one: ServiceShares, names: Sequence[str], values: Sequence[float | None]) -> list[list[str]]:
    """Return the rows; parts are rounded by largest remainder, so that the column adds up."""
    total = one.total.estimate.value
    scale = fmt.energy_scale(total)
    printed = iter(fmt.apportion([v * scale.factor for v in values if v is not None], _PLACES))
    rows = []
    for name, value in zip(names, values, strict=True):
        if value is None:
            rows.append([name, fmt.UNKNOWN, fmt.UNKNOWN])
        else:
            share = f"{value / total:.1%}" if total else "-"
            rows.append([name, share, f"{next(printed):.{_PLACES}f}"])
    return rows


def _name(line: Line) -> str:
    if line.kind != "consumer":
        return _KINDS[line.kind]
    # A consumer may be called as a line of ours is.
    name = f'"{line.name}"' if line.name in _KINDS.values() else line.name
    return output.clip(name, _NAME_WIDTH)


def _service(one: ServiceShares, period: str) -> dict[str, Any]:
    return {
        "service": one.service.service_id,
        "site": one.service.site,
        "boundary": one.boundary,
        "basis": one.service.basis,
        "idle": one.service.idle,
        "months": one.months,
        "energy_j": one.total.estimate.as_json() | {"id": total_id(period, one)},
        "exact_j": one.total.exact,
        "lines": [
            {
                "name": line.name,
                "kind": line.kind,
                "share": line.share,
                "energy_j": line.estimate.as_json() | {"id": line_id(period, one, line)},
                "exact_j": line.exact,
                "of_idle_j": line.of_idle,
            }
            for line in one.lines
        ],
    }
