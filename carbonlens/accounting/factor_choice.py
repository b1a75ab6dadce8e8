"""Which row of the factor tables a use takes, and the words that say why.

The order is fixed and shown: the row of the hour of use, else of its month, else of its
year, else of the nearest earlier year. Never a later one: a factor is chosen by the date of
use. Within one period combustion (``direct``) stands before life-cycle, as scope 2 asks
(GHG Protocol Scope 2 Guidance, table 6.2), then consumption before production, then the
later publication, then the larger value, so that no tie goes to the favourable side.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.factor import Factor
from carbonlens.domain.factor_row import Averaging, FactorKind, FactorRow, Flow, Method, Span
from carbonlens.domain.finding import Finding, Severity
from carbonlens.domain.units import Z_95
from carbonlens.errors import SelectionError

DEFAULT_GRID_U_RELATIVE: Final = 0.24
"""One relative sigma of a yearly grid average whose source states none (docs/adr/0011)."""

DEFAULT_PUE_U_RELATIVE: Final = 0.023
"""One relative sigma of a published yearly PUE whose source states none.

It is the root mean square of the logarithmic change from one year to the next over the 61
pairs of years in ``factors/data/pue.csv``: what a year's figure may be off for another year.
"""

STALE_YEARS: Final = 3
"""From so many years between figure and use on, a Finding says that the figure is old."""

_USE = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2}T\d{2})?)?")
_SPANS: Final[tuple[Span | None, ...]] = ("direct", None, "life_cycle")
_FLOWS: Final[tuple[Flow | None, ...]] = ("consumption", "production", None)
_METHODS: Final[dict[Method, tuple[Method, ...]]] = {
    "location": ("location",),
    "residual": ("residual",),
    # GHG Protocol Scope 2 Guidance, table 6.3: a supplier's rate, the residual mix, another average.
    "market": ("market", "residual", "location"),
}
_WORDS: Final = {"life_cycle": "life-cycle", "direct": "direct (combustion)"}

SPAN_WORDS: Final = tuple(_WORDS.values())
"""Words in a factor's ``basis`` that tell its span."""


class Basis(msgspec.Struct, frozen=True, kw_only=True):
    """What factors of one request count; all rows of a request are of one basis.

    Attributes:
        method: ``market`` takes a supplier's rate, else the residual mix, else the grid
            average, which is disclosed.
        averaging: ``marginal`` only where it is asked for.
        span: ``None`` prefers direct factors and labels life-cycle ones.
        flow: ``None`` prefers consumption.
    """

    method: Method = "location"
    averaging: Averaging = "average"
    span: Span | None = None
    flow: Flow | None = None


LOCATION: Final = Basis()
MARKET: Final = Basis(method="market")


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The row that a use takes.

    Attributes:
        row: ``None`` when no row fits: the figure is unknown.
        how: Which period and place were taken for which, in words.
        findings: What a reader must know about it.
    """

    row: FactorRow | None
    how: str
    findings: tuple[Finding, ...] = ()


def choose(
    rows: Iterable[FactorRow],
    kind: FactorKind,
    subjects: str | Sequence[str],
    when: str,
    basis: Basis = LOCATION,
    own: Collection[FactorRow] = (),
) -> Choice:
    """Return the row that a use takes, the same in whatever order the rows are.

    Args:
        rows: Rows of factor tables; others than those asked for may be among them.
        kind: What is asked for.
        subjects: Zone, region, provider or device, then those declared to stand for it:
            the zone around it, the provider of a region. One of these is taken only where
            the one before has no row, with a Finding (CL351).
        when: Time of use: a year ``2026``, a month ``2026-03``, an hour in UTC
            ``2026-03-01T13``.
        basis: What the factor counts.
        own: Rows of the user's, which stand before others of the same period.

    Raises:
        SelectionError: If ``when`` is none of these.
    """
    if not _USE.fullmatch(when):
        raise SelectionError(
            f"{when!r} is no time of use", mend="give a year 2026, a month 2026-03 or an hour 2026-03-01T13"
        )
    chain = (subjects,) if isinstance(subjects, str) else tuple(subjects)
    asked = [row for row in rows if row.kind == kind and row.subject in chain]
    own_ids = frozenset(row.factor_id for row in own)
    for method in _METHODS[basis.method] if kind == "grid" else (None,):
        fitting = [row for row in asked if _fits(row, basis, method)]
        for subject in chain:
            stage = _nearest([row for row in fitting if row.subject == subject], when)
            if stage:
                ordered = _by_preference(stage, own_ids)
                return _chosen(ordered, chain, when, basis)
    return _none(asked, kind, chain, when, basis)


def as_factor(row: FactorRow) -> Factor:
    """Return a grid row as the factor of a comparison.

    Args:
        row: A row of kind ``grid``. A residual mix becomes a market-based factor.

    Raises:
        ValueError: If the row is of another kind.
    """
    if row.kind != "grid":
        raise ValueError(f"{row.factor_id} is no grid factor but {row.kind}")
    words = [row.averaging, _WORDS.get(row.span or "", row.span), row.flow]
    return Factor(
        factor_id=row.factor_id,
        zone=row.subject,
        period=row.period,
        method="location" if row.method == "location" else "market",
        basis=tuple(w for w in ("residual mix" if row.method == "residual" else None, *words) if w),
        value_kg_per_kwh=float(row.value),
        u_relative=relative_sigma(row, DEFAULT_GRID_U_RELATIVE),
        source=f"{row.source}, {row.address} ({row.licence})",
    )


def relative_sigma(row: FactorRow, default: float) -> float:
    """Return one relative sigma of a row: as stated, else of its interval, else the default.

    Args:
        row: The row.
        default: What holds where the source states neither.
    """
    if row.u_relative is not None:
        return row.u_relative
    if row.low is not None and row.high is not None and row.low > 0:
        return math.log(float(row.high / row.low)) / (2 * Z_95)
    return default


def _fits(row: FactorRow, basis: Basis, method: Method | None) -> bool:
    if method is None:
        return True
    return (
        row.method == method
        and row.averaging == basis.averaging
        and basis.span in (None, row.span)
        and basis.flow in (None, row.flow)
    )


def _nearest(rows: Sequence[FactorRow], when: str) -> list[FactorRow]:
    """Return the rows of the period that comes first in the order of this module."""
    for period in dict.fromkeys((when, when[:7], when[:4])):
        exact = [row for row in rows if row.period == period]
        if exact:
            return exact
    earlier = [row for row in rows if len(row.period) == 4 and row.period < when[:4]]
    latest = max((row.period for row in earlier), default=None)
    return [row for row in earlier if row.period == latest]


def _by_preference(rows: Sequence[FactorRow], own_ids: Collection[str]) -> list[FactorRow]:
    """Return rows of one period, the preferred first: the user's, then by the order of this module."""
    by_name = sorted(rows, key=lambda r: (-r.value, r.factor_id))
    by_vintage = sorted(by_name, key=lambda r: r.vintage, reverse=True)
    return sorted(
        by_vintage,
        key=lambda r: (r.factor_id not in own_ids, _SPANS.index(r.span), _FLOWS.index(r.flow)),
    )


def _chosen(ordered: Sequence[FactorRow], chain: Sequence[str], when: str, basis: Basis) -> Choice:
    row = ordered[0]
    used = row.period if when.startswith(row.period) else f"{row.period} figure used for {when}"
    how = used if used != row.period else f"{row.period} figure"
    findings: list[Finding] = []
    if row.subject != chain[0]:
        how += f", of {row.subject}, because {chain[0]} has none"
        findings.append(_around(row, chain[0]))
    years = int(when[:4]) - int(row.period[:4])
    if years >= STALE_YEARS:
        findings.append(_stale(row, when, years))
    if row.kind == "grid":
        findings += _of_basis(row, basis)
        how += f"; {_basis_words(row)}"
    if len(ordered) > 1:
        findings.append(_others(ordered))
    return Choice(row=row, how=how, findings=tuple(findings))


def _of_basis(row: FactorRow, basis: Basis) -> list[Finding]:
    findings: list[Finding] = []
    about = f"{row.subject} {row.period}"
    if basis.method == "market" and row.method == "location":
        findings.append(
            _finding(
                "CL356",
                "warning",
                f"no residual mix of {row.subject} is known: the market-based figure takes the grid "
                "average, which is to be disclosed",
                row,
                "import the residual mix of that market (AIB, Green-e)",
            )
        )
    if basis.span is None and row.span == "life_cycle":
        findings.append(
            _finding(
                "CL354",
                "warning",
                f"{about} has no direct (combustion) factor: the life-cycle one is used, which counts "
                "fuel supply and plants too",
                row,
                "import a direct factor for scope 2, or say span = 'life_cycle'",
            )
        )
    if basis.span is None and row.span is None:
        findings.append(
            _finding(
                "CL355",
                "warning",
                f"the source of {about} does not say whether it counts combustion alone or life cycles",
                row,
                "import a factor whose source says so",
            )
        )
    return findings


def _around(row: FactorRow, asked: str) -> Finding:
    mend = f"import a row of {asked}"
    return _finding(
        "CL351", "warning", f"{asked} has no {row.kind} figure: that of {row.subject} is used", row, mend
    )


def _stale(row: FactorRow, when: str, years: int) -> Finding:
    return _finding(
        "CL353",
        "warning",
        f"the {row.kind} figure of {row.subject} is of {row.period}, {counted(years, 'year')} "
        f"before its use in {when}",
        row,
        "import a newer one",
    )


def _others(ordered: Sequence[FactorRow]) -> Finding:
    row = ordered[0]
    named = "; ".join(f"{r.value:f} ({r.source}{_in_brackets(r)})" for r in ordered[1:])
    return _finding(
        "CL357",
        "info",
        f"{row.kind} of {row.subject} {row.period}: {row.value:f} ({row.source}{_in_brackets(row)}) is used; "
        f"there {'is' if len(ordered) == 2 else 'are'} also {named}",
        row,
        "state the figure, or import a row of your own, to use another",
    )


def _none(
    asked: Sequence[FactorRow], kind: FactorKind, chain: Sequence[str], when: str, basis: Basis
) -> Choice:
    about = f"no {kind} figure of {' or '.join(chain)} for {when}"
    if kind == "grid":
        words = (basis.method, basis.averaging, _WORDS.get(basis.span or ""), basis.flow)
        about += f" ({', '.join(w for w in words if w)})"
    periods = sorted({row.period for row in asked})
    there = f": there are {', '.join(periods)}, of a later time or another basis" if periods else ""
    finding = Finding(
        code="CL358",
        severity="warning",
        message=f"{about}{there}; it stays unknown",
        subject=chain[0],
        mend="state it with its source, or import a factor table",
    )
    return Choice(row=None, how=about, findings=(finding,))


def _basis_words(row: FactorRow) -> str:
    span = _WORDS[row.span] if row.span else "direct or life-cycle not stated"
    method = {"residual": "residual mix", "market": "market-based"}.get(row.method or "")
    return ", ".join(w for w in (method, row.averaging, span, row.flow) if w)


def _in_brackets(row: FactorRow) -> str:
    said = [w for w in (row.name if row.kind != "grid" else "", _WORDS.get(row.span or ""), row.flow) if w]
    return f", {', '.join(said)}" if said and row.kind in ("grid", "pue", "wue") else ""


def _finding(code: str, severity: Severity, message: str, row: FactorRow, mend: str) -> Finding:
    return Finding(code=code, severity=severity, message=message, subject=row.factor_id, mend=mend)
