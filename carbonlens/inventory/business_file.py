"""``business.toml``: what a business case states beside a comparison; all its faults at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar

import msgspec

from carbonlens.domain.business import (
    Business,
    CarbonPrice,
    Embedded,
    OneOff,
    Powered,
    Regime,
    RunningCost,
    SavingRule,
    Scenario,
    ScenarioName,
    Trajectory,
)
from carbonlens.domain.counting import counted
from carbonlens.domain.limits import LEAST_UNITS, MOST
from carbonlens.errors import ConfigError, InputFileError
from carbonlens.inventory import toml_entries
from carbonlens.inventory.business_check import HEAD, faults_of
from carbonlens.inventory.faults import Fault, nearest, shown
from carbonlens.inventory.records import Kind, build
from carbonlens.inventory.toml_entries import Entry
from carbonlens.inventory.values import Rule, a_currency, a_date, a_month, a_sigma, above_0, at_least_0

_T = TypeVar("_T", bound=msgspec.Struct)

_HEADER: Final = re.compile(r"\s*\[\[?\s*([\w.-]+)\s*\]\]?\s*(?:#.*)?$")
_KEY: Final = re.compile(r"\s*[\"']?([\w-]+)[\"']?\s*=")
_MOST_NAMED: Final = 20
_MONTHS: Final = 12


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The table ``[business]``; what it leaves out is asked for elsewhere, or has no default.

    Attributes:
        regime, until: For all of the comparison's saving, where no ``[[saving]]`` says more.
    """

    currency: str | None = None
    horizon_months: int | None = None
    discount_rate: float | None = None
    discount_low: float | None = None
    discount_high: float | None = None
    start: str | None = None
    regime: Regime | None = None
    until: str | None = None
    compute_effort: Literal["ledger", "stated"] = "ledger"
    seed: int = 20261129
    draws: int = 10_000


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What options and the study say: each is used before, or beside, what the file says.

    Attributes:
        head: Values of options, by key of ``[business]``.
        units_per_month: Expected volume where the file states none.
        currency: Of the comparison, where the file states none.
        one_offs: Of options.
    """

    head: Mapping[str, Any] = {}  # a frozen record's default is never mutated
    units_per_month: float | None = None
    currency: str | None = None
    one_offs: tuple[OneOff, ...] = ()


class _Section(NamedTuple):
    line: int
    lines: dict[str, int]


_MONEY: Final[dict[str, Rule]] = {"currency": a_currency, "u_relative": a_sigma}


def _units(value: float) -> str | None:
    if LEAST_UNITS <= value < MOST:
        return None
    return f"write units a month, above 0 and below {MOST:.0e}"


_HEAD: Final = Kind(
    name=HEAD,
    table=HEAD,
    type=Head,
    rules={"currency": a_currency, "start": a_month, "until": a_date},
)
_SCENARIO: Final = Kind(name="volume", table="volume", type=Scenario, rules={"units_per_month": _units})
_SAVING: Final = Kind(
    name="saving",
    table="saving",
    type=SavingRule,
    rules={
        **_MONEY,
        "until": a_date,
        "electricity_cost": at_least_0,
        "purchase_amount": above_0,
        "purchase_date": a_date,
        "deferred_to": a_date,
    },
)
_ONE_OFF: Final = Kind(
    name="one_off",
    table="one_off",
    type=OneOff,
    rules={
        **_MONEY,
        "amount": at_least_0,
        "hours": at_least_0,
        "hours_low": at_least_0,
        "hours_high": at_least_0,
        "rate": at_least_0,
    },
)
_RUNNING: Final = Kind(
    name="running_cost",
    table="running_cost",
    type=RunningCost,
    rules={"currency": a_currency, "amount_per_month": at_least_0},
)
_TRAJECTORY: Final = Kind(name="trajectory", table="trajectory", type=Trajectory)
_CARBON: Final = Kind(
    name="carbon_price",
    table="carbon_price",
    type=CarbonPrice,
    rules={"currency": a_currency, "amount_per_tonne": at_least_0},
)
_EMBEDDED: Final = Kind(
    name="embedded",
    table="embedded",
    type=Embedded,
    left_out=frozenset({"before", "after"}),
    rules={
        "units_per_day": above_0,
        "life_years": lambda v: None if 0 < v <= 50 else "write years, above 0 and at most 50",
        "battery_wh": above_0,
        "rest_power_w": at_least_0,
    },
)
_POWERED: Final = Kind(
    name="powered",
    table="embedded",
    type=Powered,
    rules={
        "power_w": at_least_0,
        "seconds_per_unit": above_0,
        "idle_power_w": at_least_0,
        "u_relative": a_sigma,
    },
)

_TABLES: Final = (
    HEAD,
    "volume",
    "saving",
    "one_off",
    "running_cost",
    "trajectory",
    "carbon_price",
    "embedded",
)
_TRAJECTORIES: Final = ("electricity_price", "machine_price", "grid", "market")
_OPTIONS: Final = {
    "currency": "prices with --assumptions",
    "horizon_months": "--horizon",
    "discount_rate": "--discount-rate",
    "start": "--start",
}
_LISTS: Final = ("saving", "one_off", "running_cost")


def load(path: Path, given: Given = Given()) -> Business:  # noqa: B008 - frozen
    """Read a business file.

    Args:
        path: The file.
        given: What options and the study say.

    Raises:
        InputFileError: If it cannot be read.
        ConfigError: If it has faults; all are named, each with its line.
    """
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        reason = f"cannot be read ({error.strerror or error})"
        raise InputFileError(reason, where=str(path), mend="check the path") from error
    except UnicodeDecodeError as error:
        raise ConfigError("is not UTF-8 text", where=str(path), mend="save it as UTF-8") from error
    return read(text, path.name, str(path), given)


def of_options(given: Given) -> Business:
    """Return a case that options and the study alone state.

    Raises:
        ConfigError: If something is missing or contradicts itself; all of it is named.
    """
    return read("", "", "the business case", given)


def read(text: str, file: str, where: str, given: Given) -> Business:
    """Return the case of a text.

    Args:
        text: TOML.
        file: Its name, which stands before the line of a fault.
        where: Of the error.
        given: What options and the study say.

    Raises:
        ConfigError: If it has faults.
    """
    reader = _Reader(text, file)
    business = reader.business(given)
    if business is not None:
        for wrong in faults_of(business):
            reader.faults.append(reader.fault(wrong.section, wrong.number, wrong.key, wrong.what, wrong.mend))
    if business is None or reader.faults:
        found = sorted(dict.fromkeys(reader.faults))
        named = [str(f) if file else f"{f.what} ({f.mend})" for f in found[:_MOST_NAMED]]
        more = [f"and {len(found) - _MOST_NAMED} more"] if len(found) > _MOST_NAMED else []
        raise ConfigError(
            f"has {counted(len(found), 'fault')}: {'; '.join([*named, *more])}",
            where=where,
            mend="mend them; the keys stand in docs/business.md",
        )
    return business


class _Reader:
    """Reads one text; gathers every fault of it."""

    def __init__(self, text: str, file: str) -> None:
        self._file = file
        self._sections = _sections(text)
        self.faults: list[Fault] = []
        self._tables = toml_entries.tables(text, file, self.faults)
        # What is no TOML at all has no other faults that could be told.
        self._is_toml = not self.faults
        for name in self._tables:
            if name not in _TABLES:
                self.faults.append(
                    self.fault(name, 0, "", f"unknown table {shown(name)}", nearest(name, _TABLES))
                )

    def fault(self, section: str, number: int, key: str, what: str, mend: str) -> Fault:
        """Return a fault at the line of a key, else of its table, else of the table around that."""
        path = section
        while path and (path, number) not in self._sections:
            key, number = path.rpartition(".")[2], 0
            path = path.rpartition(".")[0]
        place = self._sections.get((path, number), _Section(0, {}))
        named = f"[{section}] {what}" if section and not what.startswith("[") else what
        return Fault(file=self._file, line=place.lines.get(key, place.line), what=named, mend=mend)

    def business(self, given: Given) -> Business | None:
        """Return the case; ``None`` if a value of it cannot stand."""
        if not self._is_toml:
            return None
        head = self._head(given)
        volume = self._volume(given)
        savings = self._list(_SAVING)
        one_offs = [*self._list(_ONE_OFF), *given.one_offs]
        running = self._list(_RUNNING)
        moved = self._named("trajectory", _TRAJECTORY, _TRAJECTORIES)
        carbon = self._one("carbon_price", _CARBON)
        embedded = self._embedded()
        if head is None:
            return None
        rest = {f: getattr(head, f) for f in head.__struct_fields__ if f not in ("regime", "until")}
        for name in ("currency", "horizon_months", "discount_rate", "start"):
            if rest[name] is None:
                mend = f"state {name} in [business], or {_OPTIONS[name]}"
                self.faults.append(self.fault(HEAD, 0, name, f"does not state {name}", mend))
        if not savings and head.regime is not None and "saving" not in self._tables:
            savings = [SavingRule(name="saving", regime=head.regime, until=head.until)]
        if self.faults:
            return None
        business = Business(
            **rest,
            volume=volume,
            savings=tuple(savings),
            one_offs=tuple(one_offs),
            running_costs=tuple(running),
            carbon_price=carbon,
            embedded=embedded,
        )
        return msgspec.structs.replace(business, **moved)

    def _head(self, given: Given) -> Head | None:
        values = self._table(HEAD)
        if "horizon_years" in values:
            years = values.pop("horizon_years")
            is_number = isinstance(years, int | Decimal) and not isinstance(years, bool)
            months = years * _MONTHS if is_number and Decimal(years).is_finite() else None
            if months is None or months != int(months):
                what = f"horizon_years {shown(years)} is no whole number of months"
                self.faults.append(self.fault(HEAD, 0, "horizon_years", what, "write horizon_months"))
            elif "horizon_months" in values:
                what = "states horizon_years and horizon_months"
                self.faults.append(self.fault(HEAD, 0, "horizon_years", what, "state one of them"))
            else:
                values["horizon_months"] = int(months)
        if given.currency is not None:
            values.setdefault("currency", given.currency)
        return self._built(_HEAD, {**values, **given.head}, HEAD, 0)

    def _volume(self, given: Given) -> dict[ScenarioName, Scenario]:
        named: dict[Any, Scenario] = self._named("volume", _SCENARIO, ("low", "expected", "high"))
        # A device is no unit of the study: how many are sold only the case says.
        is_of_units = "embedded" not in self._tables and "expected" not in self._table("volume")
        if is_of_units and given.units_per_month is not None:
            named["expected"] = Scenario(units_per_month=given.units_per_month)
        return named

    def _embedded(self) -> Embedded | None:
        values = self._table("embedded")
        if not values:
            return None
        ways = {n: values.pop(n) for n in ("before", "after") if n in values}
        found = self._built(_EMBEDDED, values, "embedded", 0)
        built = {n: self._built(_POWERED, w, f"embedded.{n}", 0) for n, w in ways.items()}
        if found is None or None in built.values():
            return None
        return msgspec.structs.replace(found, **built)

    def _table(self, name: str) -> dict[str, Any]:
        held = self._tables.get(name, {})
        if isinstance(held, dict):
            return dict(held)
        self.faults.append(self.fault(name, 0, "", "is no table", f"begin it with a line [{name}]"))
        return {}

    def _named(self, table: str, kind: Kind[_T], names: tuple[str, ...]) -> dict[str, _T]:
        """Return the records of the tables in a table."""
        found = {}
        for name, values in self._table(table).items():
            if name not in names:
                what, mend = f"unknown key {shown(name)}", nearest(name, names)
                path = f"{table}.{name}" if (f"{table}.{name}", 0) in self._sections else table
                at = self.fault(path, 0, name, what, mend)
                self.faults.append(msgspec.structs.replace(at, what=f"[{table}] {what}"))
                continue
            one = self._built(kind, values, f"{table}.{name}", 0)
            if one is not None:
                found[name] = one
        return found

    def _one(self, name: str, kind: Kind[_T]) -> _T | None:
        return self._built(kind, self._table(name), name, 0) if name in self._tables else None

    def _list(self, kind: Kind[_T]) -> list[_T]:
        blocks = self._tables.get(kind.table, [])
        if not isinstance(blocks, list):
            mend = f"begin each with a line [[{kind.table}]]"
            self.faults.append(self.fault(kind.table, 0, "", "is no list of blocks", mend))
            return []
        built = [self._built(kind, b, kind.table, n) for n, b in enumerate(blocks)]
        return [b for b in built if b is not None]

    def _built(self, kind: Kind[_T], values: object, section: str, number: int) -> _T | None:
        if not isinstance(values, dict):
            mend = f"begin it with a line [{section}]"
            self.faults.append(self.fault(section, number, "", "is no table", mend))
            return None
        place = self._sections.get((section, number), _Section(0, {}))
        found: list[Fault] = []
        record = build(kind, Entry(values, self._file, place.line, place.lines), found)
        name = f"[[{section}]]" if section in _LISTS else f"[{section}]"
        self.faults += [msgspec.structs.replace(f, what=f"{name} {f.what}") for f in found]
        return record


def _sections(text: str) -> dict[tuple[str, int], _Section]:
    """Return line and lines of keys of each table, by its path and which of that name it is."""
    found: dict[tuple[str, int], _Section] = {}
    seen: dict[str, int] = {}
    current = _Section(0, {})
    for number, line in enumerate(text.splitlines(), start=1):
        header, key = _HEADER.match(line), _KEY.match(line)
        if header:
            name = header[1]
            current = _Section(number, {})
            found[name, seen.setdefault(name, 0)] = current
            seen[name] += 1
        elif key:
            current.lines.setdefault(key[1], number)
    return found
