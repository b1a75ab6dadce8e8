"""Comparisons whose runs keep their power over time: phases, peaks, a gap, idle power."""

import msgspec

from carbonlens.domain.comparison import ArmPower, PhasePower
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.trace import PhaseSpan, PowerTrace

PHASES = (
    ("load", 0.0, 3.0, 90.0),
    ("warm-up", 3.0, 4.5, 180.0),
    ("steady", 4.5, 14.0, 212.0),
    ("evaluation", 14.0, 20.0, 150.0),
)


def watts(value):
    return Estimate(value=value, unit="W", grade="B", u_by_source={"sensor": 0.02 * value})


def trace(factor=1.0, *, phases=PHASES, gap=(), seconds=20.0, bin_s=0.1):
    """A curve of phases; one reading in a hundred is a peak, every fifth differs a little."""
    mean, low, high = [], [], []
    for k in range(round(seconds / bin_s)):
        t_s = k * bin_s
        level = next((w for _, start, end, w in phases if start <= t_s < end), 40.0) * factor
        level += 3.0 * (k % 5)
        known = not any(start <= t_s < end for start, end in gap)
        mean.append(level if known else None)
        low.append(level - 5 if known else None)
        high.append((level + (90 if k % 100 == 60 else 6)) if known else None)
    spans = tuple(PhaseSpan(name=name, start_s=start, end_s=end) for name, start, end, _ in phases)
    return PowerTrace(
        bin_s=bin_s, power_w=tuple(mean), low_w=tuple(low), high_w=tuple(high), spans=spans
    )  # fmt: skip


def power(step, factor=1.0, *, phases=PHASES, unknown_phase="", idle_w=None, gap=(), seconds=20.0, **more):
    curve = trace(factor, phases=phases, gap=gap, seconds=seconds)
    told = [w for w in curve.power_w if w is not None]
    given = {"role": "evaluation", "kept": 1, "alike": 1, "run_id": f"0192-{step}-5196e5201dc8"} | more
    return ArmPower(
        step=step,
        boundary="device",
        duration_s=seconds,
        trace=curve,
        power_w=watts(sum(told) / len(told)),
        peak_w=max(w for w in curve.high_w if w is not None),
        phases=tuple(
            PhasePower(
                name=name,
                duration_s=end - start,
                power_w=unknown("W") if name == unknown_phase else watts((level + 6) * factor),
            )
            for name, start, end, level in phases
        ),
        idle_w=None if idle_w is None else watts(idle_w),
        **given,
    )


def traced(comparison):
    """The comparison with curves of its baseline and two steps: each shows something of its own."""
    steps = [comparison.study.baseline, *(s.step for s in comparison.steps)]
    made = (
        power(steps[0], idle_w=61.0),
        power(steps[1], 0.7, unknown_phase="warm-up", gap=((8.0, 10.0),), role="variant", kept=5, alike=3),
        power(steps[2], 0.5, phases=(), seconds=12.0, kept=2, role="training"),
    )
    return msgspec.structs.replace(comparison, power=made)


def hostile(comparison, names):
    """Phases whose names would break a page, more of them than there is room for."""
    phases = tuple((name, 2.0 * i, 2.0 * i + 1.9, 60.0 + 10 * i) for i, name in enumerate(names))
    step = comparison.study.baseline
    return msgspec.structs.replace(comparison, power=(power(step, phases=phases, seconds=2.0 * len(names)),))
