"""Runs as bills know them: money goes by the time and the joules that count."""

from __future__ import annotations

from decimal import Decimal

from carbonlens.app.charges import consumers
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import US_PER_S


def run(run_id, window_s, joules, process, above=(), parent=None):
    reading = Reading(component="cpu", energy_j=Decimal(joules), boundary="it", grade="D", method="m")
    return Run(
        run_id=run_id,
        parent_run_id=parent,
        host_id="h",
        start_us=window_s[0] * US_PER_S,
        end_us=window_s[1] * US_PER_S,
        energy=(reading,),
        process=process,
        ancestors=(*above, "init"),
    )


BLOCK = run("block", (0, 3600), 100, "p")


def seen(*runs):
    return {
        c.run_id: (c.start_us // US_PER_S, c.end_us // US_PER_S, c.weight)
        for c in consumers(runs, by_energy=True)
    }


def test_a_worker_inside_a_block_carries_nothing_and_what_outlives_it_its_own_part():
    worker = run("worker", (600, 3000), 50, "w", ("p",))
    later = run("later", (3000, 5000), 50, "l", ("p",), parent="block")
    assert seen(BLOCK, worker, later) == {"block": (0, 3600, 100), "later": (3600, 5000, 35)}


def test_what_a_daemon_started_carries_its_own():
    rank = run("rank", (600, 3000), 50, "r", ("daemon",), parent="block")
    assert seen(BLOCK, rank) == {"block": (0, 3600, 100), "rank": (600, 3000, 50)}


def test_a_run_without_times_is_left_out():
    undated = Run(run_id="undated", energy=BLOCK.energy)
    assert seen(BLOCK, undated) == {"block": (0, 3600, 100)}
