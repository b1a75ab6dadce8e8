"""Print how far integrated power is from an external meter (public traces beside the project).

Run ``python -m pytest -m bench -s tests/bench/bench_meter.py``.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from tests.signals.meter_scores import AVERAGE, SENSOR, Score, cross_scored, lengths_s, score
from tests.signals.meter_traces import ABSENT, METER, load, windows

N = 1000
LENGTHS_S = (0.1, 0.15, 0.25, 0.35, 0.5, 0.75, 1.0, 2.0, 5.0)
HEAD = "window       n  median    bias     p95  covered  half-width  /p95  trapezoid  change-point"


def row(name: str, s: Score) -> str:
    return (
        f"{name:8} {s.n:5d}  {s.median:6.2%} {s.bias:+7.2%}  {s.p95:6.2%}  {s.covered:7.1%}  "
        f"{s.half_width:10.2%}  {s.width_ratio:4.2f}  {s.trapezoid:9.1%}  {s.change_point:12.1%}"
    )


def spans_of(trace, name):
    if isinstance(name, float):
        return windows(trace.span_us, [name] * N, seed=1)
    return windows(trace.span_us, lengths_s(4 * N, even=name), seed=1)


@pytest.mark.bench
@pytest.mark.skipif(not METER.exists(), reason=ABSENT)
def test_print_the_meter_table():
    cases = (
        ("RTX 3090, power.draw.instant, nothing known but 100 ms", load("3090"), SENSOR),
        (
            "RTX 3090, power.draw.instant, known to see all of each update",
            load("3090"),
            msgspec.structs.replace(SENSOR, duty=1.0),
        ),
        ("RTX 3090, power.draw (mean of 1 s)", load("3090", "power.draw [W]"), AVERAGE),
        ("A100, power.draw.instant, nothing known but 100 ms", load("A100"), SENSOR),
    )
    print()
    for title, trace, sensor in cases:
        print(f"\n{title}\n{HEAD}")
        for name in (*LENGTHS_S, "length", "logarithm"):
            label = f"{name:g} s" if isinstance(name, float) else f"any, {name[:3]}"
            print(row(label, score(trace, sensor, spans_of(trace, name))))
    print_calibrations()
    print_seeds()


def print_calibrations() -> None:
    trace, sensor = load("3090"), msgspec.structs.replace(SENSOR, duty=1.0)
    print(f"\nRTX 3090, fitted on one half, scored on windows of the other\n{HEAD}")
    for fit_on, half in enumerate(("first", "second")):
        for even in ("length", "logarithm"):
            found, scored = cross_scored(trace, fit_on, N, even=even, sensor=sensor)
            print(row(f"any, {even[:3]}", scored))
        print(
            f"  fitted on the {half} half: gain {found.gain.value:.4f} +- {found.gain.u_random:.4f}, offset "
            f"{found.offset_w.value:.1f} +- {found.offset_w.u_random:.1f} W, lag "
            f"{found.lag_us.value / 1000:.0f} +- {found.lag_us.u_random / 1000:.0f} ms (1 sigma)"
        )


def print_seeds() -> None:
    trace = load("3090")
    bare = replace(trace)
    medians = [
        score(bare, SENSOR, windows(bare.span_us, lengths_s(N, seed=seed), seed=seed)).median
        for seed in range(10)
    ]
    print(
        f"\nRTX 3090, any length: median error over ten draws of {N} windows "
        f"{np.min(medians):.3%} to {np.max(medians):.3%}, mean {np.mean(medians):.3%}"
    )
