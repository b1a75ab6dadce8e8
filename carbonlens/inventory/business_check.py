"""What a business case may not say: contradictions between its parts, each with its place and mend."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from carbonlens.compare.business_streams import month_number
from carbonlens.compare.embedded import S_PER_DAY, duty_cycle
from carbonlens.domain.business import MONTHS_PER_YEAR, MOST_MONTHS, Business, SavingRule, Trajectory
from carbonlens.domain.counting import counted
from carbonlens.domain.limits import MOST

HEAD: Final = "business"
_MOST_LEVEL: Final = 1e6
"""Times today's level that no price or grid comes to within a horizon, nor a part of it."""

LEAST_RATE: Final = -0.5
MOST_RATE: Final = 1.0
"""Discount rates a year that are none of a slip of the pen: 8 instead of 0.08 is one."""


class Fault(NamedTuple):
    """What is wrong, and in which block of the file.

    Attributes:
        section: Path of the table: ``volume.low``.
        number: Which of several blocks of that name, from 0.
    """

    section: str
    number: int
    key: str
    what: str
    mend: str


def faults_of(business: Business) -> Iterator[Fault]:
    """Yield every contradiction of a case whose single values may stand.

    Args:
        business: From a file or from options.
    """
    yield from _of_head(business)
    if not 1 <= business.horizon_months <= MOST_MONTHS:
        return
    yield from _of_volume(business)
    yield from _of_savings(business)
    yield from _of_costs(business)
    yield from _of_trajectories(business)
    yield from _of_devices(business)
    yield from _of_money(business)


def _of_head(business: Business) -> Iterator[Fault]:
    if not 1 <= business.horizon_months <= MOST_MONTHS:
        is_most = business.horizon_months > MOST_MONTHS
        what = f"looks at {counted(MOST_MONTHS if is_most else business.horizon_months, 'month')}"
        what = what.replace("looks at", "looks at more than") if is_most else what
        yield Fault(HEAD, 0, "horizon_months", what, f"write months, from 1 to {MOST_MONTHS}")
    rates = ("discount_rate", "discount_low", "discount_high")
    for name in rates:
        rate = getattr(business, name)
        if rate is not None and not LEAST_RATE <= rate <= MOST_RATE:
            yield Fault(HEAD, 0, name, f"{name} is {rate:g}", "write a share a year: 0.08 means 8 %")
    low, high = business.discount_low, business.discount_high
    yield from _ordered(HEAD, 0, "discount_rate", low, business.discount_rate, high)
    if not 1_000 <= business.draws <= 1_000_000:
        yield Fault(HEAD, 0, "draws", f"draws is {business.draws}", "write 1000 to 1000000")
    if business.seed < 0:
        yield Fault(HEAD, 0, "seed", f"seed is {business.seed}", "write a whole number, 0 or more")


def _of_volume(business: Business) -> Iterator[Fault]:
    if "expected" not in business.volume:
        mend = "state [volume.expected] units_per_month, or --volume"
        yield Fault("volume", 0, "expected", "no volume is stated", mend)
        return
    if ("low" in business.volume) != ("high" in business.volume):
        yield Fault("volume", 0, "low", "states one of low and high", "state both, or none")
    for name, one in business.volume.items():
        if not -1 < one.growth <= 10:
            mend = "write a relative change a year: 0.2 means 20 % more"
            yield Fault(f"volume.{name}", 0, "growth", f"growth is {one.growth:g}", mend)
        elif not _at_end(one.growth, business) * one.units_per_month < MOST:
            what = f"grows to more than {MOST:.0e} a month within the horizon"
            yield Fault(f"volume.{name}", 0, "growth", what, "check growth and horizon")
    sizes = [one.units_per_month for one in (business.volume.get(n) for n in ("low", "high")) if one]
    if len(sizes) == 2:
        middle = business.expected.units_per_month
        yield from _ordered("volume", 0, "units_per_month", sizes[0], middle, sizes[1])


def _at_end(change: float, business: Business) -> float:
    """Return the level at the end of the horizon of what changes by a share a year."""
    level: float = (1.0 + change) ** (business.horizon_months / MONTHS_PER_YEAR)
    return level


def _changes(section: str, number: int, key: str, change: float, business: Business) -> Iterator[Fault]:
    """Yield the fault of a change a year that is none, or that leads beyond any price."""
    if not -1 < change <= 10:
        mend = "write a relative change a year: -0.05 means 5 % less"
        yield Fault(section, number, key, f"{key} is {change:g}", mend)
    elif not 1 / _MOST_LEVEL <= _at_end(change, business) <= _MOST_LEVEL:
        what = f"{key} {change:g} leads to {_at_end(change, business):.2g} times the level of today"
        yield Fault(section, number, key, what, "check the change and the horizon")


def _of_savings(business: Business) -> Iterator[Fault]:
    if not business.savings:
        mend = "add [[saving]] with name and regime, or regime in [business]"
        yield Fault(HEAD, 0, "regime", "no regime says when a saving is cash", mend)
    measured = [r.of for r in business.savings if r.of != "stated"]
    names = [r.name for r in business.savings]
    for number, rule in enumerate(business.savings):
        yield from _of_saving(business, rule, number)
        if names.index(rule.name) != number:
            yield Fault("saving", number, "name", f"is the second {rule.name!r}", "give each its own name")
        if rule.of != "stated" and measured.count(rule.of) + ("cost" in measured and rule.of != "cost") > 1:
            what = f"{rule.name!r} counts {rule.of} that another saving counts too"
            yield Fault("saving", number, "of", what, 'state each part once; "cost" is all of it')


def _of_saving(business: Business, rule: SavingRule, number: int) -> Iterator[Fault]:
    yield from _changes("saving", number, "change_per_year", rule.change_per_year, business)
    fixed = rule.regime in ("committed", "reserved")
    if fixed and rule.until is None:
        mend = f"add until: the last day for which it is {rule.regime}"
        yield Fault("saving", number, "until", f"{rule.name!r} is {rule.regime} without an end", mend)
    if not fixed and rule.until is not None:
        mend = "take until out, or write committed or reserved"
        yield Fault("saving", number, "until", f"{rule.name!r} is {rule.regime} and has an end", mend)
    if (rule.of == "stated") != (rule.unit_cost is not None):
        mend = 'state unit_cost with of = "stated", and only there'
        yield Fault("saving", number, "unit_cost", f"{rule.name!r} has of and unit_cost that differ", mend)
    if rule.electricity_cost is not None and rule.regime != "owned":
        mend = "take electricity_cost out: it is the cash of owned hardware"
        yield Fault("saving", number, "electricity_cost", f"{rule.name!r} is {rule.regime}", mend)
    if (rule.purchase_amount is None) != (rule.purchase_date is None):
        mend = "state purchase_amount and purchase_date, or neither"
        yield Fault("saving", number, "purchase_amount", f"{rule.name!r} states half a purchase", mend)
    if rule.purchase_amount is not None and rule.regime != "owned":
        mend = 'state the purchase with regime = "owned"'
        yield Fault("saving", number, "purchase_amount", f"{rule.name!r} is {rule.regime}", mend)
    if rule.deferred_to is not None and (rule.purchase_date or "") >= rule.deferred_to:
        mend = "write a day after purchase_date"
        what = f"{rule.name!r} defers a purchase to {rule.deferred_to}, not later than it was due"
        yield Fault("saving", number, "deferred_to", what, mend)
    if rule.purchase_date is not None and month_number(rule.purchase_date, business.start) < 1:
        what = f"{rule.name!r} has a purchase on {rule.purchase_date}, before the start in {business.start}"
        yield Fault("saving", number, "purchase_date", what, "check the date: what is past is not saved")


def _of_costs(business: Business) -> Iterator[Fault]:
    if business.carbon_price is not None:
        change = business.carbon_price.change_per_year
        yield from _changes("carbon_price", 0, "change_per_year", change, business)
    names = [o.name for o in business.one_offs]
    for number, one in enumerate(business.one_offs):
        is_hours = one.hours is not None or one.rate is not None
        if (one.amount is not None) == is_hours or (one.hours is None) != (one.rate is None):
            mend = "state amount, or hours and rate"
            yield Fault("one_off", number, "amount", f"{one.name!r} has no one amount", mend)
        if (one.hours_low is None) != (one.hours_high is None) or (one.hours_low and one.hours is None):
            mend = "state hours, hours_low and hours_high, or hours alone"
            yield Fault("one_off", number, "hours_low", f"{one.name!r} has half a range of hours", mend)
        ends = [None if h is None else float(h) for h in (one.hours_low, one.hours, one.hours_high)]
        if ends[1] is not None:
            yield from _ordered("one_off", number, "hours", ends[0], ends[1], ends[2])
        if names.index(one.name) != number:
            yield Fault("one_off", number, "name", f"is the second {one.name!r}", "give each its own name")


def _of_trajectories(business: Business) -> Iterator[Fault]:
    first = business.start[:4]
    for name in ("electricity_price", "machine_price", "grid", "market"):
        one: Trajectory = getattr(business, name)
        section = f"trajectory.{name}"
        for key in ("change_per_year", "low", "high"):
            change = getattr(one, key)
            if change is not None:
                yield from _changes(section, 0, key, change, business)
        yield from _ordered(section, 0, "change_per_year", one.low, one.change_per_year, one.high)
        if (one.low is None) != (one.high is None):
            yield Fault(section, 0, "low", "states one of low and high", "state both, or none")
        if one.index and (one.change_per_year or one.low is not None):
            yield Fault(section, 0, "index", "has an index and a change a year", "state one of them")
        if any(len(y) != 4 or not (y.isascii() and y.isdigit()) for y in one.index):
            yield Fault(section, 0, "index", "an index is by year", "write index = {2026 = 1.0, 2027 = 0.9}")
        elif one.index and min(one.index) > first:
            mend = f"state the year {first} too"
            yield Fault(section, 0, "index", f"the index begins in {min(one.index)}, after the start", mend)
        if any(not 0 < level <= 1e3 for level in one.index.values()):
            yield Fault(section, 0, "index", "an index has a level that is none", "write levels above 0")


def _of_devices(business: Business) -> Iterator[Fault]:
    devices = business.embedded
    if devices is None:
        return
    for number, rule in enumerate(business.savings):
        if rule.of != "stated":
            mend = 'write of = "stated" and unit_cost a device, such as a cheaper battery'
            what = f"{rule.name!r} counts what customers pay: {rule.of}"
            yield Fault("saving", number, "of", what, mend)
    if (devices.before is None) != (devices.after is None):
        mend = "state both, or none to take what the comparison measured"
        yield Fault("embedded", 0, "before", "one of [embedded.before] and [embedded.after] is missing", mend)
    for name in ("before", "after"):
        way = getattr(devices, name)
        if way is not None and duty_cycle(way, devices.units_per_day) > 1:
            seconds = way.seconds_per_unit * devices.units_per_day
            what = f"{way.name!r} computes {seconds:g} s a day, which has {S_PER_DAY}"
            yield Fault(f"embedded.{name}", 0, "seconds_per_unit", what, "check seconds and units_per_day")
    for key in ("usable_share", "charging_efficiency"):
        share = getattr(devices, key)
        if share is not None and not 0 < share <= 1:
            yield Fault("embedded", 0, key, f"{key} is {share:g}", "write a share above 0, at most 1")


def _of_money(business: Business) -> Iterator[Fault]:
    blocks = [("saving", n, r.currency) for n, r in enumerate(business.savings)]
    blocks += [("one_off", n, o.currency) for n, o in enumerate(business.one_offs)]
    blocks += [("running_cost", n, c.currency) for n, c in enumerate(business.running_costs)]
    if business.carbon_price is not None:
        blocks.append(("carbon_price", 0, business.carbon_price.currency))
    for section, number, currency in blocks:
        if currency not in (None, business.currency):
            what = f"is in {currency}, the case in {business.currency}"
            mend = f"write it in {business.currency}; rates are never guessed"
            yield Fault(section, number, "currency", what, mend)


def _ordered(
    section: str, number: int, key: str, low: float | None, middle: float, high: float | None
) -> Iterator[Fault]:
    if (low is not None and low > middle) or (high is not None and high < middle):
        mend = "write the least, the expected and the most in that order"
        yield Fault(section, number, key, f"{key} does not lie between its low and high", mend)
