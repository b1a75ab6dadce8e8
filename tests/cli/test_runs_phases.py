"""``runs show`` prints a run's phases as a table, and JSON has them."""

from decimal import Decimal

import msgspec
import pytest

from carbonlens.domain.phase import Phase
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.tokens import Tokens
from carbonlens.ledger.store import Ledger
from carbonlens.reporting.run_phases import phase_lines

GAIN = {"sensor:x": 0.02}


def energy(joules, **more):
    sources = {name: u * joules for name, u in GAIN.items()}
    return Reading(
        component="cpu",
        energy_j=Decimal(joules),
        boundary="it",
        grade="B",
        method="counter",
        u_by_source_j=sources,
        **more,
    )


def phase(name, seconds, joules, **more):
    known = {} if joules is None else {"energy_j": Decimal(joules), "grade": "B"}
    sources = {} if joules is None else {n: u * joules for n, u in GAIN.items()}
    state = "unknown" if joules is None else "known"
    return Phase(
        **{
            "name": name,
            "entries": 1,
            "duration_s": seconds,
            "state": state,
            "u_by_source_j": sources,
            **known,
            **more,
        }
    )


@pytest.fixture
def written(tmp_path):
    run = Run(
        run_id="a",
        duration_s=100.0,
        unit="sample",
        units=Decimal(9000),
        energy=(energy(1000),),
        phases=(
            phase("load", 10.0, 50),
            phase("a phase whose name is longer than any line of a terminal would allow " * 2, 60.0, 800),
            phase("steady", 20.0, 100, entries=12345, units=Decimal(8000)),
            phase("checkpoint", 0.02, None),
        ),
    )
    Ledger(tmp_path / ".carbonlens").append(run)
    return run


def test_a_table_of_80_columns_sums_to_the_run(shell, written):
    lines = shell("runs", "show", "a").stdout.splitlines()
    table = lines[lines.index("") + 1 :]
    assert max(map(len, table)) <= 80
    assert table[0].split() == ["phase", "entered", "time", "energy", "95", "%", "share", "samples"]
    assert table[1].split() == ["load", "1", "10", "s", "50.0", "J", "[48.1,", "52.0]", "5.0", "%", "-"]
    assert "12345" in table[3]
    assert table[3].endswith(" 8000")
    assert table[4].split() == ["checkpoint", "1", "20", "ms", "unknown", "-", "-", "-"]
    assert table[5].startswith("(the rest)")
    assert "50.0 J" in table[5]
    assert table[6] == "the energy of a phase that is not known is in that of the rest"


def test_shares_and_times_sum_to_the_whole(written):
    lines = phase_lines(written)
    assert sum(line.share for line in lines if line.share is not None) == pytest.approx(100.0)
    assert sum(line.duration_s for line in lines) == pytest.approx(100.0)
    assert sum(line.energy.value or 0 for line in lines) == pytest.approx(1000.0)
    assert lines[-1].units == 1000
    # What the gain of one sensor does to the whole it does to the rest.
    assert lines[-1].energy.u_total == pytest.approx(0.02 * 50)


def test_a_run_that_is_all_phases_has_no_rest():
    run = Run(
        run_id="a", duration_s=3.0, energy=(energy(30),), phases=(phase("a", 1.0, 10), phase("b", 2.0, 20))
    )
    assert [line.name for line in phase_lines(run)] == ["a", "b"]
    assert [line.share for line in phase_lines(run)] == [33.3, 66.7]


@pytest.mark.parametrize("state", ["unbounded", "unknown"])
def test_of_a_run_that_is_not_known_no_rest_is(state):
    reading = energy(30, state=state)
    if state == "unknown":
        reading = msgspec.structs.replace(reading, energy_j=None, grade=None)
    run = Run(run_id="a", duration_s=3.0, energy=(reading,), phases=(phase("a", 1.0, 10),))
    first, rest = phase_lines(run)
    assert (first.share, rest.share, rest.energy.value) == (None, None, None)
    assert rest.duration_s == 2.0


def test_a_run_without_phases_prints_no_table(shell, tmp_path):
    run = Run(run_id="b", duration_s=3.0, energy=(energy(30),))
    Ledger(tmp_path / ".carbonlens").append(run)
    assert "phase" not in shell("runs", "show", "b").stdout
    assert shell.json("runs", "show", "b")["run"]["phases"] == []
    assert phase_lines(run) == ()


def test_json_has_them(shell, written):
    told = shell.json("runs", "show", "a")["run"]["phases"]
    assert [p["name"] for p in told] == [p.name for p in written.phases]
    assert set(told[0]) == {"name", "entries", "duration_s", "energy", "units"}
    assert (told[0]["energy"]["value"], told[0]["energy"]["state"], told[0]["units"]) == (50.0, "known", None)
    assert told[2]["units"] == 8000.0
    assert told[3]["energy"]["value"] is None
    assert shell.json("runs")["runs"][0]["phases"] == told


@pytest.mark.parametrize("unit", ["output token", "prompt token"])
def test_tokens_that_are_the_units_are_of_no_phase_and_not_of_the_rest(unit):
    run = Run(
        run_id="t",
        duration_s=10.0,
        unit=unit,
        units=Decimal(30),
        tokens=Tokens(prompt=30, output=30),
        energy=(energy(100),),
        phases=(phase("steady", 8.0, 90),),
    )
    assert [line.units for line in phase_lines(run)] == [None, None]
    counted = msgspec.structs.replace(run, tokens=None)
    assert [line.units for line in phase_lines(counted)] == [None, Decimal(30)]
