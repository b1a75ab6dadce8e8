"""Terms of a comparison given beside a study: margin, gates, volume."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.study import LATENCIES, SHORT_METRICS, Gate, GateKind, Study
from carbonlens.errors import UsageError

_GATE: Final = re.compile(
    r"\s*(?P<metric>[^:<>=]+?)\s*:\s*"
    r"(?P<kind>max_loss|max_value|min_value|min_retention|max_ratio)\s*=\s*(?P<limit>[^=]+?)\s*"
)
_AMOUNT: Final = (
    r"\s*(?P<units>[0-9]{1,3}(?P<group>[,' \u00a0\u202f])[0-9]{3}(?:(?P=group)[0-9]{3})*(?![0-9.])"
    r"|[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+\.)"
    r"(?:\s*(?P<scale>k|K|thousand|M|million|bn|billion)(?![^\W\d_]))?"
)
_VOLUME: Final = re.compile(
    _AMOUNT + r"(?:(?:\s+|(?=/))(?P<period>(?:/"
    r"|(?:an?|one|per|each|every|half|in|over|for|during|until|by|the|this|next)\b"
    r"|(?:second|minute|hour|day|week|month|quarter|year)s?\b|(?:dai|week|month|quarter|year|annual)ly\b)"
    r"(?:[ -]?\w+)*))?\s*"
)
"""Digits, grouped by one sign or not, or as a float; a word for their size; a period in plain words.

A word that begins no period may be a part of the number (``2 crore``), so it is refused."""

_UNITS_FIRST: Final = re.compile(_AMOUNT + r"\s+(?P<unit>[^\W\d_]+)\s+(?:a|an|per|each|every|in)\s.*")
_SIZE: Final = re.compile(
    r"[0-9]|\b(?:k|m|bn|mio|mrd|lakh|crore|(?:dozen|hundred|thousand|million|billion|trillion)s?)\b",
    re.IGNORECASE,
)
"""What a period does not hold: the number would go on there (``5 one hundred thousand a year``)."""

_SCALES: Final = {
    **dict.fromkeys(("k", "K", "thousand"), 1e3),
    **dict.fromkeys(("M", "million"), 1e6),
    **dict.fromkeys(("bn", "billion"), 1e9),
}


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What counts as no change, what a step must meet, and how much work is expected.

    Attributes:
        margin: Relative change regarded as none.
        gates: Conditions, in addition to the study's.
        volume_units: Expected functional units.
        volume_period: Words for their period.
    """

    margin: float | None = None
    gates: tuple[Gate, ...] = ()
    volume_units: float | None = None
    volume_period: str | None = None


def parse_terms(margin: float | None, gates: Sequence[str], volume: str | None) -> Terms:
    """Return terms as the command line gives them.

    Args:
        margin: For example 0.01.
        gates: Such as ``accuracy:max_loss=0.01`` or ``latency_p95_ms:max_ratio=1.05``.
        volume: Such as ``2e9 a year``.

    Raises:
        UsageError: If one is malformed.
        ConfigError: If one is impossible, as in a study file.
    """
    from carbonlens.inventory.study_check import check_margin, check_volume

    if margin is not None:
        check_margin(margin, "--margin")
    units, period = (None, None) if volume is None else _volume(volume)
    if units is not None:
        check_volume("volume", units, "--volume")
    return Terms(
        margin=margin, gates=tuple(_gate(text) for text in gates), volume_units=units, volume_period=period
    )


def with_terms(study: Study, terms: Terms | None) -> Study:
    """Return the study under other terms; a gate of the same name takes the place of the study's."""
    if terms is None:
        return study
    names = {g.name for g in terms.gates}
    kept = tuple(g for g in study.gates if g.name not in names)
    changed = msgspec.structs.replace(study, gates=(*kept, *terms.gates))
    if terms.margin is not None:
        changed = msgspec.structs.replace(changed, margin=terms.margin)
    if terms.volume_units is not None:
        changed = msgspec.structs.replace(
            changed, volume_units=terms.volume_units, volume_period=terms.volume_period
        )
    return changed


def unmeasured_gates(study: Study, runs: Sequence[Run]) -> tuple[Finding, ...]:
    """Say which gates no run can decide: their metric is neither known nor a recorded quality.

    A quality of that name may be measured yet, so this is no refusal.

    Args:
        study: With its gates.
        runs: Its runs.
    """
    known = {*SHORT_METRICS.values(), *LATENCIES, *(q.name for r in runs for q in r.quality)}
    silent = [g for g in study.gates if g.metric not in known]
    return tuple(
        Finding(
            code="CL448",
            severity="warning",
            message=f"gate {g.name!r} is on {g.metric!r}, which no run records: it stays undetermined",
            subject=g.name,
            mend=f"record a quality of that name, or name one of {', '.join(sorted(known))}",
        )
        for g in silent
    )


def _volume(text: str) -> tuple[float, str | None]:
    """Return units and period of ``2e9 a year``, ``2,000,000 a year``, ``10k a day``, ``2 million a year``.

    Raises:
        UsageError: If a part of it is not understood: half of a number is another number.
    """
    found = _VOLUME.fullmatch(text)
    if found is None or _SIZE.search(found["period"] or ""):
        raise UsageError(
            f"--volume {text!r} is none{_why_none(text, found)}",
            mend='write a number and a plain period: "2e9 a year", "2,000,000 a year", "10k a day"',
        )
    digits = found["units"].replace(found["group"], "") if found["group"] else found["units"]
    return float(digits) * _SCALES.get(found["scale"] or "", 1.0), found["period"]


def _why_none(text: str, found: re.Match[str] | None) -> str:
    if found is not None:
        return f": {found['period']!r} is no plain period, the number may go on in it"
    unit = _UNITS_FIRST.fullmatch(text)
    if unit is None or _SIZE.fullmatch(unit["unit"]):
        return ""
    return f": {unit['unit']!r} is no period; leave the unit out, it is the study's"


def _gate(text: str) -> Gate:
    from carbonlens.inventory.study_check import check_gate

    found = _GATE.fullmatch(text)
    limit = _number(found["limit"]) if found else None
    if found is None or limit is None:
        raise UsageError(
            f"--gate {text!r} is none",
            mend="write METRIC:KIND=LIMIT, KIND one of max_loss, max_value, min_value, min_retention, "
            "max_ratio",
        )
    metric = SHORT_METRICS.get(found["metric"], found["metric"])
    kind: GateKind = found["kind"]  # type: ignore[assignment]  # narrowed above in a way mypy does not follow
    gate = Gate(name=found["metric"], metric=metric, kind=kind, limit=limit)
    check_gate(gate, "--gate")
    return gate


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
