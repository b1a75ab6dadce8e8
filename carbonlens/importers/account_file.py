"""A statement as ``account --json`` printed it, as claims to be audited.

What a file states is evidence and no measurement, whoever wrote it: so this reader yields
claims, as that of model cards does. Fields that an older file lacks leave their checks out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

import msgspec

from carbonlens.domain.claim import Claim, Stated
from carbonlens.domain.decoding import decode_json
from carbonlens.errors import InputFileError

SCHEMA: Final = "carbonlens/account/"
_LINES, _TOTALS, _SCOPES, _COSTS = 1, 2, 3, 4
"""Tables of claims: those of one table are read together."""

_SUMMED: Final = (
    ("facility_kwh", "facility energy"),
    ("location_kg", "location-based emissions"),
    ("market_kg", "market-based emissions"),
    ("water_site_l", "water at the site"),
)
_WIDTH: Final = Decimal("1e-9")
"""Relative width of a number that was printed to all its digits: two ways of reckoning differ by less."""

_COUNTED: Final = ("known", "unbounded")


class _Number(msgspec.Struct, frozen=True):
    value: float | None = None
    unit: str = ""
    state: str = "known"


class _Terms(msgspec.Struct, frozen=True):
    pue: float | None = None
    wue_l_per_kwh: float | None = None
    span: str | None = None
    site_kind: str | None = None


class _Line(msgspec.Struct, frozen=True):
    line: str
    amounts: dict[str, _Number]
    kind: str = "recorded"
    site: str | None = None
    place: str | None = None
    factors: tuple[str, ...] = ()
    terms: _Terms | None = None

    @property
    def at(self) -> _Terms:
        """What holds at its site; nothing where an older file does not say."""
        return self.terms or _Terms()


class _Scope(msgspec.Struct, frozen=True):
    place: str
    method: str


class _CostLine(msgspec.Struct, frozen=True):
    label: str
    amount: _Number
    reported: _Number | None = None


class _Reported(msgspec.Struct, frozen=True):
    total: _Number


class _Cost(msgspec.Struct, frozen=True):
    lines: tuple[_CostLine, ...] = ()
    totals: Mapping[str, _Number] = {}  # a frozen record's default is never mutated
    reported: _Reported | None = None


class _Figure(msgspec.Struct, frozen=True):
    id: str
    estimate: _Number
    inputs: tuple[str, ...] = ()


class _Account(msgspec.Struct, frozen=True):
    schema: str
    period: str
    months: tuple[str, ...]
    sites: tuple[_Line, ...]
    total: _Line
    scopes: tuple[_Scope, ...] = ()
    figures: tuple[_Figure, ...] = ()
    cost: _Cost = _Cost()


def account_claims(content: bytes | str, name: str | None, periods: Mapping[str, str]) -> tuple[Claim, ...]:
    """Return what a statement states: its lines, sums, scopes and cost.

    Args:
        content: JSON as ``account`` prints it.
        name: Of the file in Findings; ``None`` where it is no file.
        periods: Period of each factor that is known, by its id.

    Raises:
        InputFileError: If it is no such JSON.
    """
    try:
        account = decode_json(content, _Account)
    except msgspec.DecodeError as error:
        raise _no_account(name, str(error)) from error
    if not account.schema.startswith(SCHEMA):
        raise _no_account(name, f"its schema is {account.schema}")
    figures = {f.id: f for f in account.figures}
    read = _Reader(account, name, figures, periods)
    return (*read.lines(), *read.totals(), *read.unattributed(), *read.scopes(), *read.costs())


def _no_account(name: str | None, why: str) -> InputFileError:
    return InputFileError(
        f"is no statement ({why})", where=name, mend="give what carbonlens account --json printed"
    )


class _Reader:
    """The claims of one statement."""

    def __init__(
        self, account: _Account, name: str | None, figures: Mapping[str, _Figure], periods: Mapping[str, str]
    ) -> None:
        self._account = account
        self._name = name
        self._figures = figures
        self._periods = periods
        self._at = f"statement.{account.period}"

    def lines(self) -> Iterator[Claim]:
        """Yield each line of energy by itself; what is a lower bound is not checked against a factor."""
        for line in self._account.sites:
            if line.kind == "unattributed":
                continue
            held = {n: _known(line.amounts.get(n)) for n in ("facility_kwh", "it_kwh", "location_kg")}
            factor = self._factor(line)
            yield Claim(
                what=self._named(line),
                file=self._name,
                table=_LINES,
                accounted=True,
                energy=held["facility_kwh"],
                it=held["it_kwh"],
                boundary="facility",
                emissions=held["location_kg"],
                market_emissions=_known(line.amounts.get("market_kg")),
                water=_known(line.amounts.get("water_site_l")),
                pue=_of(line.at.pue),
                wue=_of(line.at.wue_l_per_kwh),
                factor=factor,
                factor_year=self._year(line),
                year=int(self._account.months[0][:4]),
                basis=line.at.span,
                region=line.place or ("the factors'" if line.factors else None),
            )

    def totals(self) -> Iterator[Claim]:
        """Yield each amount of the total with the lines that it sums, lower bounds as far as they reach."""
        by_key = {line.line: line for line in self._account.sites}
        for name, words in _SUMMED:
            figure = self._figures.get(f"{self._at}.{self._account.total.line}.{name}")
            if figure is None:
                continue
            own = [by_key[k] for i in figure.inputs if (k := self._line_of(i, name)) in by_key]
            parts = tuple(self._part(line, name) for line in own)
            yield self._part(self._account.total, name, f"total, {words}", parts)

    def unattributed(self) -> Iterator[Claim]:
        """Yield the energy of each metered line with what is recorded and what is not."""
        for whole in self._account.sites:
            rests = [x for x in self._account.sites if x.site == whole.site and x.kind == "unattributed"]
            # What the statement itself says to be unknown is no row that it forgot.
            told = all(_counted(x.amounts.get("facility_kwh")) is not None for x in rests)
            if whole.kind != "metered" or not rests or not told:
                continue
            own = [x for x in self._account.sites if x.site == whole.site and x.kind == "recorded"]
            parts = tuple(self._part(line, "facility_kwh") for line in (*own, *rests))
            yield self._part(whole, "facility_kwh", f"{whole.line}, recorded and not", parts)

    def scopes(self) -> Iterator[Claim]:
        """Yield each line under each scope in which its emissions stand."""
        by_key = {line.line: line for line in self._account.sites}
        for scope in self._account.scopes:
            figure = self._figures.get(f"{self._at}.{scope.place}.{scope.method}_kg")
            name = f"{scope.method}_kg"
            if figure is None or scope.method != "location":
                continue
            for line in [by_key[k] for i in figure.inputs if (k := self._line_of(i, name)) in by_key]:
                yield Claim(
                    what=self._named(line),
                    file=self._name,
                    table=_SCOPES,
                    energy=_counted(line.amounts.get("facility_kwh")),
                    boundary="facility",
                    scope=scope.place.removeprefix("scope_").replace("_", " "),
                    cloud=None if line.at.site_kind is None else line.at.site_kind == "cloud",
                    region=line.place,
                )

    def costs(self) -> Iterator[Claim]:
        """Yield the cost in each currency with its lines, and that in the reporting currency."""
        cost = self._account.cost
        for currency, total in cost.totals.items():
            own = [x for x in cost.lines if x.amount.unit == currency]
            parts = tuple(self._money(x.label, x.amount) for x in own)
            yield self._money(f"cost in {currency}", total, parts)
        if cost.reported is not None:
            parts = tuple(self._money(x.label, x.reported) for x in cost.lines if x.reported is not None)
            total = cost.reported.total
            yield self._money(f"cost, all in {total.unit}", total, parts)

    def _money(self, what: str, amount: _Number, parts: tuple[Claim, ...] = ()) -> Claim:
        return Claim(what=what, file=self._name, table=_COSTS, cost=_counted(amount), parts=parts)

    def _part(self, line: _Line, name: str, what: str = "", parts: tuple[Claim, ...] = ()) -> Claim:
        """Return one amount of a line alone: of lower bounds no ratio may be taken."""
        amounts: dict[str, Any] = {}
        field = {"kwh": "energy", "kg": "emissions", "l": "water"}[name.rpartition("_")[2]]
        amounts[field] = _counted(line.amounts.get(name))
        basis = line.at.span if name == "location_kg" else None
        return Claim(
            what=what or self._named(line),
            file=self._name,
            table=_TOTALS,
            boundary="facility",
            basis=basis,
            region=line.place or "of its lines",
            parts=parts,
            **amounts,
        )

    def _named(self, line: _Line) -> str:
        return f"{self._account.period} {line.line}"

    def _line_of(self, figure_id: str, name: str) -> str:
        return figure_id.removeprefix(f"{self._at}.").removesuffix(f".{name}")

    def _factor(self, line: _Line) -> Stated | None:
        """Return the factor of a line that has a single one."""
        if len(line.factors) != 1 or line.factors[0] not in self._figures:
            return None
        estimate = self._figures[line.factors[0]].estimate
        return _known(estimate) if estimate.unit == "kg/kWh" else None

    def _year(self, line: _Line) -> int | None:
        """Return the year of the oldest factor of a line."""
        years = [self._periods[f][:4] for f in line.factors if f in self._periods]
        return min((int(y) for y in years if y.isdigit()), default=None)


def _known(number: _Number | None) -> Stated | None:
    if number is None or number.value is None or number.state != "known":
        return None
    return _of(number.value, number.unit)


def _counted(number: _Number | None) -> Stated | None:
    """Return what a sum holds of a number: a lower bound counts as far as it reaches."""
    if number is None or number.value is None or number.state not in _COUNTED:
        return None
    return _of(number.value, number.unit)


def _of(value: float | None, unit: str | None = None) -> Stated | None:
    if value is None:
        return None
    number = Decimal(repr(value))
    return Stated(value=number, unit=unit, half=abs(number) * _WIDTH)
