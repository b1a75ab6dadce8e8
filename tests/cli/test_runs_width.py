"""``carbonlens runs`` fits a terminal of 80 columns, whatever its runs are."""

import io
from contextlib import redirect_stdout
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.accounting.allocation import allocate
from carbonlens.accounting.allocation_totals import totals
from carbonlens.app.runs import Listing
from carbonlens.cli import runs_view
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Reading, Run

START_US = 1_780_000_000_000_000


def reading(joules, state="known", grade="D"):
    return Reading(
        component="cpu",
        energy_j=None if joules is None else Decimal(str(joules)),
        boundary="it",
        grade=grade,
        method="model",
        state=state if joules is not None else "unknown",
        u_by_source_j={} if joules is None else {"model:x": 0.3 * float(joules)},
    )


def run(status, readings, duration_s=0.0623, study="a-study-of-some-length", step="structured-pruning-50"):
    return Run(
        run_id="01990000-0000-7000-8000-0123456789ab",
        study=study,
        step=step,
        status=status,
        start_us=START_US,
        end_us=START_US + int((duration_s or 0) * 1e6),
        duration_s=duration_s,
        energy=tuple(readings),
    )


def lines_of(capsys, runs):
    runs_view.print_list(
        Listing(ledger="ledger", runs=tuple(runs), billed=tuple(r.total_energy for r in runs)), 10
    )
    return capsys.readouterr().out.splitlines()


joules = st.one_of(st.none(), st.floats(1e-7, 1e14).map(lambda x: float(f"{x:.4g}")))
runs = st.builds(
    run,
    st.sampled_from(["complete", "running", "recovered", "failed"]),
    st.lists(st.builds(reading, joules, st.sampled_from(["known", "unbounded"])), max_size=2),
    st.one_of(st.none(), st.floats(1e-6, 1e7)),
)


@given(st.lists(runs, min_size=1, max_size=6))
def test_every_line_fits(listed):
    made = runs_view._table([runs_view._row(r) for r in listed])
    assert max(map(len, made)) <= 80, "\n".join(made)
    assert all(len(line.split("  ")) > 3 for line in made)


def test_a_run_that_was_recovered_with_a_part_of_its_energy(capsys):
    whole, part = run("complete", [reading(1.9)]), run("recovered", [reading(1.32), reading(None)])
    header, first, second = lines_of(capsys, [whole, part])[1:4]
    assert max(map(len, (header, first, second))) <= 80
    assert "1.32 J" in second
    assert "≥ " in second
    assert "recovered" in second


def test_a_start_that_nobody_knows_is_said_whole(capsys):
    from msgspec.structs import replace

    wide = run("recovered", [reading(123456.0)], duration_s=7_000_000.0)
    listed = [replace(wide, start_us=None), wide]
    assert "unknown" in "\n".join(lines_of(capsys, listed)[1:])


@pytest.mark.parametrize("name", ["s", "a-study-of-some-length"])
def test_the_year_stands_there_where_it_fits(capsys, name):
    row = lines_of(capsys, [run("failed", [], duration_s=1.0, study=name, step="b")])[2]
    assert "2026-05-28 20:26" in row


def test_the_widest_cells_of_all_columns_fit_together():
    wide = [
        ["run-00000000", "study/step", "played, running", "2026-05-28 20:26", "unknown", "8.45 MWh", "-"],
        ["run-00000001", "study/step", "complete", "2026-05-28 20:26", "1.47 min", "550 MWh", "[500, 1 630]"],
    ]
    made = runs_view._table(wide)
    assert max(map(len, made)) <= 80
    assert [line.split()[0] for line in made] == ["run", "run-00000000", "run-00000001"]
    assert "8.45 MWh" in made[1]


def total_lines(capsys, runs):
    allocation = allocate(runs)
    listing = Listing(ledger="ledger", runs=tuple(runs), billed=tuple(runs), totals=totals(runs, allocation))
    runs_view.print_list(listing, 10)
    return capsys.readouterr().out.splitlines()[1 + len(runs) :]


def numbered(made):
    return [msgspec.structs.replace(r, run_id=f"run-{k:08}") for k, r in enumerate(made)]


PLAYED = Finding(code="CL157", severity="warning", message="played from a recording")


@given(st.lists(st.tuples(runs, st.booleans()), min_size=1, max_size=6))
def test_runs_played_from_a_recording_are_marked_and_counted(made):
    listed = numbered(msgspec.structs.replace(r, findings=(PLAYED,) if p else ()) for r, p in made)
    rows = runs_view._table([runs_view._row(r) for r in listed])[1:]
    assert [" played" in row for row in rows] == [p for _, p in made]
    assert max(map(len, rows)) <= 80
    out = io.StringIO()
    with redirect_stdout(out):
        runs_view.print_list(
            Listing(ledger="l", runs=tuple(listed), totals=totals(listed, allocate(listed))), 10
        )
    some = sum(p for _, p in made)
    assert ("played from a recording, not measured" in out.getvalue()) == bool(some)
    assert not some or f"  {some} of them w" in out.getvalue()


def test_totals_of_several_boundaries_stand_in_one_unit(capsys):
    small, large = run("complete", [reading(283)]), run("complete", [reading(7200)])
    device = msgspec.structs.replace(small.energy[0], boundary="device")
    small = msgspec.structs.replace(small, energy=(device,))
    lines = total_lines(capsys, numbered([small, large]))
    assert [line.split(": ")[1].split()[1] for line in lines] == ["Wh", "Wh"]


def test_a_total_without_an_interval_is_no_lower_bound(capsys):
    bare = msgspec.structs.replace(reading(7200, grade=None), u_by_source_j={}, method="imported")
    lines = total_lines(capsys, numbered([run("complete", [bare]), run("complete", [reading(None)])]))
    assert "2.00 Wh counted [interval unknown]" in lines[0] or "2 Wh counted [interval unknown]" in lines[0]
