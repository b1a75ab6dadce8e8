"""Print how well CPU power is told from load, on public RAPL profiles beside the project.

Run ``python -m pytest -m bench -s tests/bench/bench_cpu_profiles.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import pytest

from carbonlens.signals.cpu_curve import TDP_SHARES
from tests.signals.cpu_profiles import (
    ABSENT,
    PROFILES,
    TDP_W,
    calibrated,
    cubic,
    errors,
    left_out,
    linear,
    points,
)


@pytest.mark.bench
@pytest.mark.skipif(not PROFILES.exists(), reason=ABSENT)
def test_print_the_profiles_table():
    every = points()

    def by_machine(share_at):
        return {m: [share_at(p.load) / p.share for p in every if p.machine == m] for m in TDP_W}

    ways: Mapping[str, Mapping[str, list[float]]] = {
        "codecarbon cubic x TDP": by_machine(cubic),
        "linear, floor 10 %, x TDP": by_machine(linear),
        "our curve x TDP, machine left out": left_out(),
        "our curve x TDP, fitted to all": by_machine(TDP_SHARES.at),
        "our curve, machine's own two points": calibrated(),
    }
    print(f"\nmean error on {len(every)} points of {len(TDP_W)} machines; x/ factor that holds 90 %")
    print(f"{'':36}{'all':>7}{'x/':>6}  " + "".join(f"{m:>18}" for m in TDP_W))
    for name, ratios in ways.items():
        whole = errors(list(chain(*ratios.values())))
        each = "".join(f"{errors(ratios[m]).mean:18.1%}" for m in TDP_W)
        print(f"{name:36}{whole.mean:7.1%}{whole.factor_90:6.2f}  {each}")
