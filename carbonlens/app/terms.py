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
_VOLUME: Final = re.compile(r"\s*(?P<units>[0-9.]+(?:e[+-]?[0-9]+)?)\s*(?P<period>.*?)\s*", re.IGNORECASE)


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
    found = _VOLUME.fullmatch(volume) if volume is not None else None
    units = _number(found["units"]) if found else None
    if volume is not None:
        if units is None:
            raise UsageError(f"--volume {volume!r} is none", mend='write units and a period: "2e9 a year"')
        check_volume("volume", units, "--volume")
    return Terms(
        margin=margin,
        gates=tuple(_gate(text) for text in gates),
        volume_units=units,
        volume_period=found["period"] or None if found else None,
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
