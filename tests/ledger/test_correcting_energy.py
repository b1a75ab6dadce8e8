"""A run's energy is corrected in the words of the run table, and its error goes with it."""

from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.domain.grades import default_relative_sigma
from carbonlens.domain.trace import NO_POWER, PowerTrace
from carbonlens.errors import UsageError
from carbonlens.ledger.correcting_energy import COLUMNS
from carbonlens.ledger.editing import corrected, parse_changes
from tests.ledger.test_store import make_run


def changed(run, *pairs):
    (reading,) = corrected(run, parse_changes(pairs)).energy
    return reading


def test_the_figure_stays_exact_and_the_rest_of_the_reading_as_it_was():
    run = make_run(energy="100")
    reading = changed(run, "energy_j=3700000.000001")
    assert (reading.energy_j, reading.state, reading.method) == (
        Decimal("3700000.000001"),
        "known",
        "as corrected",
    )
    as_it_was = ("component", "boundary", "grade")
    assert [getattr(reading, n) for n in as_it_was] == [getattr(run.energy[0], n) for n in as_it_was]


@given(
    old=st.decimals("0.001", "1e9", places=3),
    new=st.decimals("0", "1e9", places=3),
    u=st.floats(0.0, 1.0),
)
def test_the_error_keeps_its_size_relative_to_the_figure(old, new, u):
    run = make_run(energy=str(old))
    before = msgspec.structs.replace(run.energy[0], u_random_j=u * float(old))
    run = msgspec.structs.replace(run, energy=(before,))
    if new == old:
        return
    after = changed(run, f"energy_j={new}")
    for was, now in (
        (before.u_random_j, after.u_random_j),
        (before.u_by_source_j["cpu_model:x"], after.u_by_source_j["cpu_model:x"]),
    ):
        assert now / 1e9 == pytest.approx(was * float(new) / float(old) / 1e9)


def test_what_was_unknown_gets_the_usual_error_of_its_grade():
    reading = changed(make_run(energy=None), "energy_j=10", "energy_grade=C")
    (sigma,) = reading.u_by_source_j.values()
    assert sigma == pytest.approx(10 * default_relative_sigma("C"))
    # Grade A has none: its width is unknown, not none.
    assert changed(make_run(energy=None), "energy_j=10", "energy_grade=A").estimate.low is None


def test_an_interval_is_stated_with_the_figure_or_goes():
    reading = changed(make_run(), "energy_j=10", "energy_low_j=8", "energy_high_j=13")
    assert (reading.low_j, reading.high_j, reading.u_by_source_j) == (8, 13, {})
    again = changed(msgspec.structs.replace(make_run(), energy=(reading,)), "energy_j=20")
    assert (again.low_j, again.high_j) == (None, None)
    (sigma,) = again.u_by_source_j.values()
    assert sigma == pytest.approx(20 * default_relative_sigma("D"))


@pytest.mark.parametrize("text", ["null", ""])
def test_unknown_is_unknown_and_an_empty_text_is_no_figure(text):
    if text:
        reading = changed(make_run(), f"energy_j={text}")
        assert (reading.energy_j, reading.state) == (None, "unknown")
        assert (reading.u_random_j, reading.u_by_source_j) == (0, {})
    else:
        with pytest.raises(UsageError):
            changed(make_run(), f"energy_j={text}")


@pytest.mark.parametrize("text", ["nan", "-1", "many", "1e19", "[1]", "Infinity"])
def test_what_is_no_energy_is_refused(text):
    with pytest.raises(UsageError):
        changed(make_run(), f"energy_j={text}")


@pytest.mark.parametrize("column", COLUMNS)
def test_of_several_readings_no_column_says_which(column):
    run = make_run()
    two = msgspec.structs.replace(
        run, energy=(*run.energy, msgspec.structs.replace(run.energy[0], component="gpu"))
    )
    with pytest.raises(UsageError, match=f"2 readings .cpu, gpu., and {column}"):
        corrected(two, {column: "1"})
    with pytest.raises(UsageError, match="twice"):
        corrected(run, {column: "1", "energy": []})


CURVE = PowerTrace(bin_s=1.0, power_w=(1.5,), low_w=(1.0,), high_w=(2.0,))


def whole(run, energy_j):
    return [msgspec.to_builtins(run.energy[0]) | {"energy_j": energy_j}]


@pytest.mark.parametrize("energy_j", ["3", None])
@pytest.mark.parametrize("form", ["column", "whole"])
def test_the_power_over_time_of_another_energy_goes_and_the_record_says_so(form, energy_j):
    run = msgspec.structs.replace(make_run(energy="1.5"), power=CURVE)
    made = corrected(run, {"energy_j": energy_j} if form == "column" else {"energy": whole(run, energy_j)})
    assert made.power is None
    (said,) = [f for f in made.findings if f.code == NO_POWER]
    assert "corrected by hand" in said.message
    # Nothing is said of what was not there.
    bare = corrected(make_run(energy="1.5"), {"energy_j": energy_j})
    assert NO_POWER not in [f.code for f in bare.findings]


def test_the_power_over_time_of_the_same_energy_stays():
    run = msgspec.structs.replace(make_run(energy="1.5"), power=CURVE)
    for changes in ({"step": "b"}, {"boundary": "facility"}, {"energy_j": "1.5", "step": "b"}):
        made = corrected(run, changes)
        assert made.power == CURVE
        assert NO_POWER not in [f.code for f in made.findings]
    again = corrected(run, {"energy": whole(run, "1.50"), "beside": whole(run, "7")})
    assert again.power == CURVE


TIMED = msgspec.structs.replace(make_run(energy="1.5"), end_us=1_700_000_010_000_000, duration_s=10.0)


def covering(seconds):
    return [msgspec.to_builtins(TIMED.energy[0]) | {"covered_s": seconds}]


@pytest.mark.parametrize("covered_s", [10.0, None])
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"duration_s": 20.0}, "length was"),
        ({"duration_s": 5.0}, "length was"),
        ({"duration_s": None}, "length was"),
        ({"start_us": 1_700_000_005_000_000}, "length was"),
        ({"end_us": 1_700_000_005_000_000}, "length was"),
        ({"duration_s": 5.0, "end_us": 1_700_000_005_000_000}, "length was"),
        ({"duration_s": 5.0, "energy_j": "3"}, "energy and length were"),
        ({"energy": covering(4.0)}, "energy was"),
        ({"power": None}, ": it was"),
    ],
)
def test_the_power_over_time_of_another_length_goes_and_the_record_says_so(changes, said, covered_s):
    (reading,) = TIMED.energy
    energy = (msgspec.structs.replace(reading, covered_s=covered_s),)
    made = corrected(msgspec.structs.replace(TIMED, power=CURVE, energy=energy), changes)
    assert made.power is None
    (finding,) = [f for f in made.findings if f.code == NO_POWER]
    assert f"{said} corrected by hand" in finding.message


@pytest.mark.parametrize(
    "changes",
    [
        {"start_us": 1_700_003_600_000_000, "end_us": 1_700_003_610_000_000},
        {"duration_s": 10, "step": "b"},
        {"end_us": None},
    ],
)
def test_a_run_that_moves_as_a_whole_keeps_its_power_over_time(changes):
    """It is told from the run's start, by a clock of its own."""
    made = corrected(msgspec.structs.replace(TIMED, power=CURVE), changes)
    assert made.power == CURVE
    assert NO_POWER not in [f.code for f in made.findings]
    early = msgspec.structs.replace(TIMED, power=CURVE, end_us=None)
    assert corrected(early, {"end_us": TIMED.end_us}).power == CURVE


def test_what_changes_nothing_is_refused():
    with pytest.raises(UsageError, match="changes nothing"):
        corrected(make_run(energy="1.5"), {"energy_j": "1.5"})
