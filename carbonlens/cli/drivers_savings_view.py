"""How a register of initiatives is printed: claimed, found and the verdict, then how it was found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from carbonlens.app.drivers_savings import Checked
from carbonlens.cli import output
from carbonlens.domain.counting import counted
from carbonlens.domain.drivers_savings import SavingFound
from carbonlens.domain.estimate import Estimate
from carbonlens.reporting import format as fmt
from carbonlens.reporting.drivers_lines import shown
from carbonlens.reporting.drivers_savings_json import register_json

_MOST: Final = 8
_MOST_TOLD: Final = 3
_NAME: Final = 24
_MOST_FINDINGS: Final = 3


def print_as_json(made: Checked) -> None:
    """Print the register with every figure."""
    payload = register_json(made.register)
    payload["label"] = made.made.label
    payload["ledger"] = made.made.ledger
    payload["example"] = made.made.example
    output.print_json(payload)


def print_as_text(made: Checked) -> None:
    """Print a table of the initiatives, then how the first ones were found."""
    register = made.register
    example = " (an example: its inventory is invented)" if made.made.example else ""
    title = f"Savings of {register.period}{output.of_period(made.made.label)}{example}"
    for line in output.wrap(title, output.width()):
        output.say(line)
    rows = [_row(one) for one in register.found[:_MOST]]
    for line in output.table(["initiative", "claimed", "found", "95 % interval", "verdict"], rows):
        output.say(output.clip(line, output.width()))
    if len(register.found) > _MOST:
        output.say(f"... and {counted(len(register.found) - _MOST, 'more initiative')} (--json lists all)")
    for one in register.found[:_MOST_TOLD]:
        for text in _told(one):
            for line in output.wrap(text, output.width()):
                output.say(line)
    output.print_findings(register.findings, most=_MOST_FINDINGS)


def _row(one: SavingFound) -> list[str]:
    claimed, found = one.claimed.get("energy_kwh"), one.savings.get("energy_kwh")
    printed = None if found is None else fmt.energy(shown(found))
    return [
        output.clip(one.initiative.initiative_id, _NAME),
        "-" if claimed is None else fmt.energy(_plain(shown(claimed))).text,
        fmt.UNKNOWN if printed is None else printed.text,
        "" if printed is None else printed.interval,
        one.verdict,
    ]


def _told(one: SavingFound) -> Iterator[str]:
    name = one.initiative.initiative_id
    if not one.savings:
        yield f"{name}: {one.reason}"
        return
    adjusted, measured = (fmt.energy(shown(_plain(e))).text for e in (one.adjusted_kwh, one.measured_kwh))
    yield f"{name}: {one.reason}. Baseline {one.baseline} at this work {adjusted}, measured {measured}"
    for stated in one.adjustments:
        kwh = fmt.energy(shown(Estimate(value=stated.kwh, unit="kWh", signed=True)), plus=True).text
        yield f"  not routine: {kwh} in it, {stated.why}"
    more = [_amount(n, e) for n, e in one.savings.items() if n != "energy_kwh"]
    if more:
        yield f"  that is {', '.join(more)}"
    for event in one.events:
        yield f"  not adjusted: {event}"


def _amount(name: str, estimate: Estimate) -> str:
    if name == "money":
        return output.figure(fmt.money(estimate), estimate)
    return f"{output.figure(fmt.mass(estimate), estimate)} {name.split('_')[1]}-based"


def _plain(estimate: Estimate) -> Estimate:
    return Estimate(value=estimate.value, unit=estimate.unit, signed=True)
