"""How a business case is printed: JSON beside the comparison's, or at most 20 lines of 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from carbonlens.cli import output
from carbonlens.domain.business_result import BusinessResult, ScenarioResult, Stream
from carbonlens.domain.comparison import Comparison
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate
from carbonlens.reporting import format as fmt
from carbonlens.reporting import names, number_words
from carbonlens.reporting.business_json import business_json
from carbonlens.reporting.business_words import (
    SIGMAS,
    bar_ends,
    money,
    payback_words,
    rate_words,
    share_above_zero,
)
from carbonlens.reporting.comparison_figures import identified_json
from carbonlens.reporting.figures import exact

_MOST_LINES: Final = 20
_MOST_BARS: Final = 3
_NAMED: Final = 3
_MOST_PARTS: Final = 4
_NAME: Final = 32


def print_as_json(comparison: Comparison, result: BusinessResult) -> None:
    """Print the comparison, with the case below ``business``."""
    output.print_json({**identified_json(comparison), "business": business_json(result)})


def print_as_text(result: BusinessResult) -> None:
    """Print what the case comes to; findings go to the errors' stream, as many as there is room for."""
    lines = [*_head(result), *_table(result), *_below(result)]
    for line in lines:
        output.say(line)
    room = max(_MOST_LINES - len(lines) - 1, 1)
    output.print_findings(result.findings, most_lines=room, cut=True)


def _head(result: BusinessResult) -> list[str]:
    b = result.business
    rate = fmt.percent(exact(b.discount_rate)).text
    span = counted(b.horizon_months, "month")
    first = f"{span} from {b.start} at {rate} a year, real, before tax, in {b.currency}"
    steps = _joined(result.adopted) if result.adopted else "nothing"
    spent = money(result.one_off)
    parts = [f"{output.clip(o.name, _NAME)} {money(o.amount)}" for o in result.one_offs[:_MOST_PARTS]]
    rest = len(result.one_offs) - _MOST_PARTS
    parts += [f"{rest} more"] if rest > 0 else []
    paid = f"paid at the start: {spent}" + (f" ({'; '.join(parts)})" if len(parts) > 1 else "")
    return [*_wrapped(f"{result.study}: {first}"), *_wrapped(f"adopted: {steps}; {paid}")]


def _joined(every: Sequence[str]) -> str:
    """Return the first few names in words, and how many more there are; long ones cut."""
    words = number_words.join_words(output.clip(name, _NAME) for name in every[:_NAMED])
    return words + (f" and {len(every) - _NAMED} more" if len(every) > _NAMED else "")


def _table(result: BusinessResult) -> list[str]:
    """Return the table of volumes; on a narrow line without the unit, then without the cash column."""
    values = [abs(s.npv.value) for s in result.scenarios.values() if s.npv.value is not None]
    scale = fmt.money_scale(max(values, default=None), result.business.currency)
    in_millions = f" {scale.suffix}" if scale.suffix else ""
    npv = f"NPV{in_millions}{', at most' if result.is_at_most else ''}"
    header = ["volume", f"{names.plural(result.unit)}/month", "cash saved", npv, "IRR", "payback"]
    rows = [_row(one, result, scale) for one in result.scenarios.values()]
    shorter = [header[0], "a month", *header[2:]]
    without = [[*row[:2], *row[3:]] for row in (shorter, *rows)]
    for first, others in ((header, rows), (shorter, rows), (without[0], without[1:])):
        lines = output.table(first, others)
        if max(map(output.columns, lines)) <= output.width():
            break
    return [output.clip(line, output.width()) for line in lines]


def _row(one: ScenarioResult, result: BusinessResult, scale: fmt.Scale) -> list[str]:
    stated = result.business.volume[one.name]
    npv = fmt.money(one.npv, scale)
    return [
        one.name,
        fmt.count(exact(stated.units_per_month)).text,
        fmt.money(one.cash, scale).number,
        f"{npv.number} {npv.interval}".rstrip(),
        rate_words(one.rates),
        payback_words(one.payback_years, one),
    ]


def _below(result: BusinessResult) -> list[str]:
    said = [
        *_streams(result),
        _drawn(result),
        _bars(result),
        _delay(result),
        _beside(result),
        _avoided(result),
        _devices(result),
    ]
    return [line for text in said if text for line in _wrapped(text)]


def _streams(result: BusinessResult) -> list[str]:
    """Say what of the saving is no cash, or only later, in one line a rule."""
    told: dict[str, list[Stream]] = {}
    for one in result.streams:
        if one.cash_from != 1:
            told.setdefault(one.name, []).append(one)
    lines = []
    for name, streams in list(told.items())[:_NAMED]:
        first, shown = streams[0], output.clip(name, _NAME)
        what = number_words.join_words(s.what for s in streams if s.what != "customers")
        if first.regime is None:
            continue  # what customers save is said with what is not in NPV
        if first.cash_from is None:
            lines.append(f"{shown}: {what} of {first.regime} hardware, no cash")
        else:
            lines.append(f"{shown}: {what}, {first.regime}, no cash before month {first.cash_from}")
    return lines


def _drawn(result: BusinessResult) -> str:
    drawn, currency = result.monte_carlo, result.business.currency
    if drawn is None:
        return ""
    ends = [money(Estimate(value=v, unit=currency, signed=True)) for v in (drawn.low, drawn.high)]
    share = fmt.percent(share_above_zero(drawn)).text
    return (
        f"NPV of the expected case over {drawn.draws} draws: 95 % within {ends[0]} to {ends[1]}, "
        f"above 0 in {share} (seed {drawn.seed})"
    )


def _bars(result: BusinessResult) -> str:
    currency = result.business.currency
    told = []
    for bar in result.tornado[:_MOST_BARS]:
        ends = [money(Estimate(value=v, unit=currency, signed=True)) for v in (bar.npv_low, bar.npv_high)]
        low, high = bar_ends(result, bar)
        of = "" if SIGMAS in low else f" ({low} to {high})"
        told.append(f"{output.clip(bar.label, _NAME)}{of} {ends[0]} to {ends[1]}")
    missing = f"; no range stated: {_joined(result.unranged)}" if result.unranged else ""
    return f"NPV hangs on: {'; '.join(told)}{missing}" if told else missing.removeprefix("; ")


def _delay(result: BusinessResult) -> str:
    cost, even = result.cost_of_delay, result.break_even
    if cost.value is None:
        return ""
    what = "costs" if cost.value >= 0 else "saves"
    size = cost if cost.value >= 0 else cost.scale(-1.0, cost.unit)
    told = f"a month's delay {what} {money(size, with_interval=True)}"
    units = names.plural(result.unit)
    if even.outcome in ("never", "unknown"):
        return f"{told}; no volume breaks even" if even.outcome == "never" else told
    printed = fmt.count(even.units, no_bound="never")
    return f"{told}; breaks even at {printed.text} {units} a month {printed.interval}".rstrip()


def _beside(result: BusinessResult) -> str:
    one = result.expected
    parts = []
    if one.non_cash_value.value:
        is_customers = all(s.regime is None for s in result.streams if s.cash_from is None)
        value, words = one.non_cash_value, "value that is no cash"
        if is_customers and result.embedded:
            is_saved = one.non_cash_value.value > 0
            words = "saved by customers" if is_saved else "paid more by customers"
            value = value if is_saved else value.scale(-1.0, value.unit)
        parts.append(f"{words} {money(value)}")
    if one.carbon_location is not None and one.carbon_location.value is not None:
        parts.append(f"carbon at the internal price {money(one.carbon_location)} location-based")
    if one.carbon_market is not None and one.carbon_market.value is not None:
        parts.append(f"{money(one.carbon_market)} market-based")
    if one.embodied_kg.value is not None:
        parts.append(f"embodied {fmt.mass(one.embodied_kg).text}")
    return f"not in NPV (expected): {', '.join(parts)}" if parts else ""


def _avoided(result: BusinessResult) -> str:
    one = result.expected
    uses_more = (one.energy_j.value or 0.0) < 0
    sign, word = (-1.0, "used more") if uses_more else (1.0, "avoided")
    location, market = one.emissions_location_kg, one.emissions_market_kg
    kinds = (("location", location.scale(sign, "kg")), ("market", market.scale(sign, "kg")))
    emitted = [(fmt.mass(kg), name) for name, kg in kinds if kg.value is not None]
    parts = [] if one.energy_j.value is None else [fmt.energy(one.energy_j.scale(sign, "J")).text]
    parts += [f"{p.text} {p.interval} {name}-based".replace("  ", " ") for p, name in emitted]
    parts += [f"{name}-based unknown" for name, kg in kinds if kg.value is None and parts]
    where = " of devices in use (scope 3 category 11)" if result.embedded is not None else ""
    return f"{word} over the horizon{where}: {', '.join(parts)}" if parts else ""


def _devices(result: BusinessResult) -> str:
    devices = result.embedded
    if devices is None:
        return ""
    scale = fmt.energy_scale(devices.before.energy_per_day_j.value)
    days = [fmt.energy(u.energy_per_day_j, scale).text for u in (devices.before, devices.after)]
    text = f"a device uses {days[0]} a day before, {days[1]} after"
    duty = [u.duty_cycle for u in (devices.before, devices.after)]
    if duty[0] is not None and duty[1] is not None:
        text += f"; computes {' to '.join(fmt.percent(exact(d)).text for d in duty)} of the day"
    gain = devices.battery_gain
    if gain.value is not None:
        of_part = " (of this part alone)" if devices.is_of_part else ""
        text += f"; battery life {fmt.percent(gain, plus=True).text}{of_part}"
    return text


def _wrapped(text: str) -> list[str]:
    return output.wrap(text, output.width())
