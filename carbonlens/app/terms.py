"""Terms of a comparison given beside a study: margin, gates, volume."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from carbonlens.domain.study import Gate, GateKind, Study
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
    """
    if margin is not None and not 0 < margin < 1:
        raise UsageError(f"--margin {margin}", mend="give a share between 0 and 1: 0.01 is 1 %")
    found = _VOLUME.fullmatch(volume) if volume is not None else None
    units = _number(found["units"]) if found else None
    if volume is not None and (units is None or units <= 0):
        raise UsageError(f"--volume {volume!r} is none", mend='write units and a period: "2e9 a year"')
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


def _gate(text: str) -> Gate:
    found = _GATE.fullmatch(text)
    limit = _number(found["limit"]) if found else None
    if found is None or limit is None:
        raise UsageError(
            f"--gate {text!r} is none",
            mend="write METRIC:KIND=LIMIT, KIND one of max_loss, max_value, min_value, min_retention, "
            "max_ratio",
        )
    kind: GateKind = found["kind"]  # type: ignore[assignment]  # narrowed above in a way mypy does not follow
    return Gate(name=found["metric"], metric=found["metric"], kind=kind, limit=limit)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
