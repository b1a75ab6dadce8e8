"""``carbonlens runs`` fits a terminal of 80 columns, whatever its runs are."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.app.runs import Listing
from carbonlens.cli import runs_view
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
