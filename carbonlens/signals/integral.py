"""Integral: the energy of one window, what it covers and what must be said of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import US_PER_S
from carbonlens.signals.interval_parts import COMMON_PARTS, Window, parts
from carbonlens.signals.sensor import GRADES

_UNIT = "J"


class Integral(msgspec.Struct, frozen=True, kw_only=True):
    """Energy of a window and how much of it rests on readings.

    Attributes:
        estimate: Joules over the covered time. ``unbounded``, a lower bound, when
            more than one update period or 5 % of the window is not covered.
        covered_s: Seconds of the window that readings stand for.
        uncovered_s: The other seconds; nothing is assumed about them.
        findings: What a reader must know.
        parts_j: Standard uncertainty by cause, in joules (``interval_parts``).
        update_period_us: Update period the interval rests on; ``None`` if unknown.
    """

    estimate: Estimate
    covered_s: float
    uncovered_s: float
    findings: tuple[Finding, ...] = ()
    parts_j: Mapping[str, float] = msgspec.field(default_factory=dict)
    update_period_us: float | None = None

    @property
    def coverage(self) -> float:
        """Share of the window that is covered, 0 to 1; 1 for an empty window."""
        length = self.covered_s + self.uncovered_s
        return self.covered_s / length if length else 1.0


def known(window: Window, findings: Sequence[Finding]) -> Integral:
    """Return the integral of a window of which something is known.

    Joules, or a width, beyond what a number holds are no figure: the window is unknown.

    Args:
        window: The window, integrated.
        findings: What was found on the way.
    """
    made_of = _finite_parts(window)
    if made_of is None:
        return nothing(window.start_us, window.end_us, [*findings, _beyond()])
    estimate = Estimate(
        value=window.energy_j,
        unit=_UNIT,
        state="known" if window.complete else "unbounded",
        grade=GRADES[window.sensor.kind],
        u_random=math.hypot(*(u for name, u in made_of.items() if name not in COMMON_PARTS)),
        u_by_source={f"{n}:{window.sensor.source}": made_of[n] for n in COMMON_PARTS if n in made_of},
    )
    holes = () if window.complete else (_uncovered(window),)
    short = (_short(window),) if window.length_s < 2 * window.period_s else ()
    return Integral(
        estimate=estimate,
        covered_s=window.covered_s,
        uncovered_s=window.uncovered_s,
        findings=(*findings, *holes, *short),
        parts_j=made_of,
        update_period_us=window.period_us,
    )


def _finite_parts(window: Window) -> Mapping[str, float] | None:
    if not math.isfinite(window.energy_j):
        return None
    try:
        found = parts(window)
    except OverflowError:
        return None
    return found if all(map(math.isfinite, found.values())) else None


def nothing(start_us: float, end_us: float, findings: Sequence[Finding]) -> Integral:
    """Return the integral of a window of which no reading tells: unknown, not zero.

    Only a window of no length has no energy.

    Args:
        start_us: Start of the window.
        end_us: End of the window.
        findings: What was found on the way.
    """
    length_s = (end_us - start_us) / US_PER_S
    if not length_s:
        empty = Estimate(value=0.0, unit=_UNIT)
        return Integral(estimate=empty, covered_s=0.0, uncovered_s=0.0, findings=tuple(findings))
    blank = Finding(
        code="CL120",
        severity="error",
        message=f"no reading tells the energy of this window of {length_s:g} s: it is unknown, not zero",
        mend="read the sensor before the window starts and after it ends",
    )
    return Integral(estimate=unknown(_UNIT), covered_s=0.0, uncovered_s=length_s, findings=(*findings, blank))


def _beyond() -> Finding:
    return Finding(
        code="CL144",
        severity="error",
        message="the readings amount to more than a number holds: they are at fault",
        mend="see what the sensor tells, and its unit",
    )


def _uncovered(window: Window) -> Finding:
    return Finding(
        code="CL121",
        severity="warning",
        message=f"{window.uncovered_s:g} s of {window.length_s:g} s are not covered by readings; "
        f"at the highest power seen they would add {window.uncovered_s * window.profile.highest_w:.4g} J",
        mend="read the sensor at least every 3 update periods, from before the start until after the end",
    )


def _short(window: Window) -> Finding:
    return Finding(
        code="CL127",
        severity="warning",
        message=f"a window of {window.length_s:g} s is hardly longer than the sensor's update period "
        f"of {window.period_s:g} s: the interval is wide",
        mend="repeat the work within one window",
    )
