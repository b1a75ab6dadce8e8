"""``runs`` and ``compare`` on a ledger whose runs shared devices, as a user meets them."""

import pytest

from carbonlens.ledger.store import Ledger
from tests.accounting.device_runs import gpu, run

KWH = 3_600_000


@pytest.fixture
def write(tmp_path):
    """Return a function that writes records into the ledger of the shell's folder."""

    def store(*runs):
        ledger = Ledger(tmp_path / ".carbonlens")
        for one in runs:
            ledger.append(one)

    return store


def test_a_node_counts_once_however_many_ranks_read_it(shell, write):
    write(*(run(f"rank-{i}", (0, 3600), gpu(KWH), job_id="7", rank=i) for i in range(8)))
    printed = shell.json("runs")
    assert printed["totals"]["runs"] == 8
    assert printed["totals"]["energy_billed"]["value"] == KWH
    assert printed["totals"]["energy_unattributed"] is None
    assert {r["energy"]["total"]["value"] for r in printed["runs"]} == {KWH}
    assert {r["energy_billed"]["value"] for r in printed["runs"]} == {KWH / 8}
    assert [f["code"] for f in printed["findings"]] == ["CL320"]
    lines = shell("runs").stdout.splitlines()
    assert [line.split()[1:5] for line in lines[1:-1]] == [["8", "x", "-/-", "complete"]]
    assert lines[-1] == "total of 1 run: 1.00 kWh [0.96, 1.04] (device boundary)"
    assert max(map(len, lines)) <= 80
    (job,) = printed["jobs"]
    assert (job["job_id"], job["attempt"], job["ranks"], job["hosts"]) == ("7", 1, list(range(8)), 1)
    assert job["energy_billed"]["value"] == KWH


def test_two_attempts_of_a_job_are_two_lines(shell, write):
    write(
        *(
            run(
                f"{attempt}-{rank}",
                (100 * attempt, 100 * attempt + 50 + rank),
                gpu(1000),
                job_id="7",
                rank=rank,
                attempt=attempt,
                units=10 + rank,
                status="failed" if (attempt, rank) == (1, 1) else "complete",
            )
            for attempt in (1, 2)
            for rank in (0, 1)
        )
    )
    printed = shell.json("runs")
    told = [(j["attempt"], j["status"], j["units"], j["duration_s"]) for j in printed["jobs"]]
    assert told == [(1, "failed", 21.0, 51.0), (2, "complete", 21.0, 51.0)]
    assert [line.split()[1:5] for line in shell("runs").stdout.splitlines()[1:-1]] == [
        ["2", "x", "-/-", "failed"],
        ["2", "x", "-/-", "complete"],
    ]
    assert "job           7, attempt 2, rank 1" in shell("runs", "show", "2-1").stdout


def test_the_list_has_idle_and_unknown_lines(shell, write):
    write(
        run("a", (0, 3600), gpu(KWH, share=0.5)),
        run("b", (0, 3600), gpu(KWH, share=0.25)),
        run("c", (0, 60), gpu(None, "GPU-c", state="unknown")),
        run("a-part", (0, 60), gpu(60_000), parent_run_id="a"),
    )
    lines = shell("runs").stdout.splitlines()
    assert lines[-3] == "total of 3 runs and 1 inside them: 750 Wh counted [at least 721] (device boundary)"
    assert lines[-2] == "  idle or unrecorded work on their devices: 250 Wh [240, 260] (device boundary)"
    assert lines[-1] == "energy unknown, in no total: c"
    totals = shell.json("runs")["totals"]
    assert totals["runs_unknown"] == ["c"]
    assert totals["runs_nested"] == 1
    assert totals["energy_billed"]["state"] == "unbounded"
    assert totals["energy_billed"]["value"] + totals["energy_unattributed"]["value"] == KWH


def test_a_study_filter_divides_by_all_runs_of_the_ledger(shell, write):
    write(run("a", (0, 3600), gpu(KWH), study="s"), run("x", (0, 3600), gpu(KWH), study="t"))
    printed = shell.json("runs", "--study", "s")
    assert [r["run_id"] for r in printed["runs"]] == ["a"]
    assert printed["totals"]["energy_billed"]["value"] == KWH / 2


def test_two_boundaries_have_a_line_each(shell, write):
    write(run("a", (0, 60), gpu(KWH)), run("b", (90, 120), gpu(KWH, boundary="it")))
    assert shell("runs").stdout.splitlines()[-2:] == [
        "total of 1 run: 1.00 kWh [0.96, 1.04] (device boundary)",
        "total of 1 run: 1.00 kWh [0.96, 1.04] (it boundary)",
    ]
    assert shell.json("runs")["totals"]["energy_billed"]["value"] is None


def variant(step, repeat, start, joules, **fields):
    return run(
        f"{step}-{repeat}",
        (start, start + 10),
        gpu(joules, **fields),
        study="s",
        step=step,
        repeat=repeat,
        role="variant",
        units=1,
        unit="image",
    )


def test_compare_refuses_steps_that_ran_at_once_on_a_device_that_nothing_divides(shell, write):
    write(*(variant(step, i, 20 * i, 1000 + i) for step in ("base", "fast") for i in range(1, 6)))
    done = shell("compare", code=2)
    assert "shared a device" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_compare_uses_the_part_that_activity_gives(shell, write):
    shares = {"base": 0.6, "fast": 0.3}
    write(*(variant(s, i, 20 * i, 1000 + i, share=share) for s, share in shares.items() for i in range(1, 6)))
    printed = shell.json("compare", "--baseline", "base", "--step", "fast")
    assert "CL321" in {f["code"] for f in printed["findings"]}
    assert printed["steps"][0]["energy_per_unit_j"]["value"] == pytest.approx(300.9, abs=0.01)
    assert printed["steps"][0]["energy_per_unit_j"]["grade"] == "D"
