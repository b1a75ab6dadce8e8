"""Readings: units, local times, counters, and each one once."""

from decimal import Decimal

import pytest

from tests.inventory.inventory_files import METER, SITE, TERMS, codes, inventory_of, lay, loaded

KWH = 3_600_000
HEAD = "meter,start,end,energy,unit\n"
DECLARED = {"sites_toml": SITE, "meters_toml": METER, "reporting_toml": TERMS}


def energies(inventory):
    return [r.energy_j for r in inventory.readings]


@pytest.mark.parametrize(
    ("stated", "unit", "joules"),
    [
        ("1", "kWh", "3600000"),
        ("1", "KWH", "3600000"),
        ("0.1", "MWh", "360000000.0"),
        ("0.000001", "GWh", "3600000.000000"),
        ("7", "Wh", "25200"),
        ("1.5", "GJ", "1500000000.0"),
        ("2", "MJ", "2000000"),
        ("3", "J", "3"),
        ("12345678901234.567", "Wh", "44444444044444441.2"),
    ],
)
def test_units_are_exact(tmp_path, stated, unit, joules):
    rows = f"{HEAD}m1,2026-01-01,2026-01-02,{stated},{unit}\n"
    assert energies(inventory_of(tmp_path, **DECLARED, readings_csv=rows)) == [Decimal(joules)]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("meter,start,end,energy\nm1,2026-01-01,2026-01-02,1\n", "add the column unit"),
        (f"{HEAD}m1,2026-01-01,2026-01-02,1,\n", "add the column unit"),
        (f"{HEAD}m1,2026-01-01,2026-01-02,1,mWh\n", "write one of Wh, kWh"),
        (f"{HEAD}m1,2026-01-01,2026-01-02,1,kW\n", "write one of Wh, kWh"),
        (f"{HEAD}m1,2026-01-01,2026-01-01,1,kWh\n", "check start and end"),
        (f"{HEAD}m1,01/02/2026,2026-01-02,1,kWh\n", "start is '01/02/2026'"),
        (f"{HEAD}m1,,2026-01-02,1,kWh\n", "lacks 'start'"),
        (f"{HEAD},2026-01-01,2026-01-02,1,kWh\n", "lacks 'meter'"),
        (f"{HEAD}m1,2026-01-01,2026-01-02,1e30,kWh\n", "beyond any plausible figure"),
        (f"{HEAD}m1,2026-01-01,2026-01-02,one,kWh\n", "is no number"),
        ("meter,time,unit\nm1,2026-01-01,kWh\n", "add counter"),
        ("meter,time,counter,energy,unit\nm1,2026-01-01,1,1,kWh\n", "time and counter, or"),
        ("meter,start,end,direktion,energy,unit\nm1,2026-01-01,2026-01-02,export,1,kWh\n", "'direction'"),
        ("meter,start,end,direction,energy,unit\nm1,2026-01-01,2026-01-02,out,1,kWh\n", "import, export"),
        ("meter,start,end,counter_start,unit\nm1,2026-01-01,2026-01-02,1,kWh\n", "write both"),
        (
            "meter,start,end,energy,unit,reading_id\nm1,2026-01-01,2026-01-02,1,kWh,r\n"
            "m1,2026-01-01,2026-01-02,2,kWh,r\n",
            "stands twice with different content",
        ),
    ],
)
def test_what_is_malformed_is_told_with_its_mend(tmp_path, rows, said):
    faults = loaded(tmp_path, **DECLARED, readings_csv=rows).faults
    assert any(said in str(f) for f in faults), faults
    assert {f.file for f in faults} == {"readings.csv"}


def test_a_local_time_without_a_stated_zone_is_refused_and_one_with_offset_is_not(tmp_path):
    rows = f"{HEAD}m1,2026-01-01,2026-01-02,1,kWh\nm1,2026-01-02,2026-01-03,1,kWh\n"
    (fault,) = loaded(tmp_path, readings_csv=rows).faults
    assert "2 rows have a local time" in fault.what
    assert "reporting.toml" in fault.mend
    assert not loaded(tmp_path, readings_csv=f"{HEAD}m1,2026-01-01T00Z,2026-01-02T00Z,1,kWh\n").faults


def test_local_days_follow_the_clocks_and_offsets_count(tmp_path):
    rows = (
        f"{HEAD}m1,2026-03-28,2026-03-29,1,kWh\nm1,2026-03-29,2026-03-30,1,kWh\n"
        "m1,2026-03-30T00:00+02:00,2026-03-30T22:00Z,1,kWh\n"
    )
    inventory = inventory_of(tmp_path, **DECLARED, readings_csv=rows)
    assert [(r.end_us - r.start_us) / 3.6e9 for r in inventory.readings] == [24, 23, 24]
    assert codes(inventory) == []


HOURS = (
    "2026-10-25T00:00,2026-10-25T01:00 2026-10-25T01:00,2026-10-25T02:00 2026-10-25T02:00,2026-10-25T03:00 "
    "2026-10-25T02:00,2026-10-25T03:00 2026-10-25T03:00,2026-10-25T04:00"
).split()


def test_a_repeated_hour_is_a_finding_and_no_guess(tmp_path):
    rows = HEAD + "".join(f"m1,{span},1,kWh\n" for span in HOURS)
    inventory = inventory_of(tmp_path, **DECLARED, readings_csv=rows)
    assert len(inventory.readings) == 2
    first, gap = inventory.findings
    assert (first.code, first.line, "3 rows" in first.message, "repeat" in first.message) == (
        *("CL361", 3),
        *(True, True),
    )
    assert (gap.code, "3 h in all" in gap.message) == ("CL363", True)


def test_a_repeated_hour_with_offsets_is_whole(tmp_path):
    spans = (
        "2026-10-25T00:00,2026-10-25T01:00 2026-10-25T01:00,2026-10-25T02:00+02:00 "
        "2026-10-25T02:00+02:00,2026-10-25T02:00+01:00 2026-10-25T02:00+01:00,2026-10-25T03:00 "
        "2026-10-25T03:00,2026-10-25T04:00"
    ).split()
    rows = HEAD + "".join(f"m1,{span},1,kWh\n" for span in spans)
    inventory = inventory_of(tmp_path, **DECLARED, readings_csv=rows)
    assert (len(inventory.readings), codes(inventory)) == (5, [])


def test_a_skipped_hour_is_a_finding_but_a_span_may_end_where_it_begins(tmp_path):
    good = f"{HEAD}m1,2026-03-29T01:00,2026-03-29T02:00,1,kWh\nm1,2026-03-29T03:00,2026-03-29T04:00,1,kWh\n"
    inventory = inventory_of(tmp_path, **DECLARED, readings_csv=good)
    assert codes(inventory) == []
    assert [(r.end_us - r.start_us) / 3.6e9 for r in inventory.readings] == [1, 1]
    inside = f"{good}m1,2026-03-29T02:00,2026-03-29T04:00,1,kWh\nm1,2026-03-29T00:00,2026-03-29T02:30,1,kWh\n"
    inventory = inventory_of(tmp_path, **DECLARED, readings_csv=inside)
    assert (len(inventory.readings), codes(inventory)) == (2, ["CL361"])
    assert "2 rows" in inventory.findings[0].message


COUNTS = "meter,time,counter,unit\n"


def test_counters_of_all_files_give_the_spans_between(tmp_path):
    lay(tmp_path, readings_a_csv=f"{COUNTS}m1,2026-02-01,130,kWh\nm1,2026-01-01,100,kWh\n")
    inventory = inventory_of(
        tmp_path, **DECLARED, readings_b_csv=f"{COUNTS}m1,2026-03-01,0.15,MWh\nm1,2026-02-01,130.0,kWh\n"
    )
    assert energies(inventory) == [30 * KWH, 20 * KWH]
    assert codes(inventory) == []
    first = inventory.readings[0]
    assert (first.counter_start_j, first.counter_end_j, first.grade) == (100 * KWH, 130 * KWH, "A")


def test_a_counter_that_runs_back_is_unknown_and_the_rest_is_not(tmp_path):
    rows = f"{COUNTS}m1,2026-01-01,100,kWh\nm1,2026-02-01,130,kWh\nm1,2026-03-01,5,kWh\nm1,2026-04-01,9,kWh\n"
    inventory = inventory_of(tmp_path, **DECLARED, readings_csv=rows)
    assert energies(inventory) == [30 * KWH, None, 4 * KWH]
    (finding,) = inventory.findings
    assert (finding.code, finding.severity, finding.line) == ("CL367", "error", 4)
    assert "1 counter runs back" in finding.message


def test_counts_that_contradict_are_left_out(tmp_path):
    counts = ("2026-01-01,100", "2026-02-01,130", "2026-02-01,131", "2026-03-01,140")
    rows = COUNTS + "".join(f"m1,{c},kWh\n" for c in counts)
    inventory = inventory_of(tmp_path, **DECLARED, readings_csv=rows)
    assert energies(inventory) == [40 * KWH]
    assert codes(inventory) == ["CL362"]


def test_an_energy_beside_its_counters_is_theirs_or_unknown(tmp_path):
    head = "meter,start,end,energy,counter_start,counter_end,unit\n"
    rows = f"{head}m1,2026-01-01,2026-01-02,5,10,15.0,kWh\nm1,2026-01-02,2026-01-03,4,15,20,kWh\n"
    rows += "m1,2026-01-03,2026-01-04,,20,22,kWh\n"
    inventory = inventory_of(tmp_path, **DECLARED, readings_csv=rows)
    assert energies(inventory) == [5 * KWH, None, 2 * KWH]
    (finding,) = inventory.findings
    assert (finding.code, "1 energy differs" in finding.message) == ("CL367", True)


def test_an_empty_energy_is_unknown_and_never_0(tmp_path):
    rows = f"{HEAD}m1,2026-01-01,2026-01-02,,kWh\nm1,2026-01-02,2026-01-03,n/a,kWh\n"
    inventory = inventory_of(tmp_path, **DECLARED, readings_csv=rows)
    assert energies(inventory) == [None, None]
    assert codes(inventory) == ["CL367"]


def test_a_negative_energy_is_unknown_and_feed_in_is_said(tmp_path):
    head = "meter,start,end,energy,unit,direction\n"
    rows = f"{head}m1,2026-01-01,2026-01-02,-3,kWh,\nm1,2026-01-01,2026-01-02,2,kWh,export\n"
    inventory = inventory_of(tmp_path, **DECLARED, readings_csv=rows)
    assert {r.direction: r.energy_j for r in inventory.readings} == {"import": None, "export": 2 * KWH}
    assert sorted(codes(inventory)) == ["CL366", "CL366", "CL367"]
    assert {f.severity for f in inventory.findings if f.code == "CL366"} == {"error", "info"}


def test_the_same_reading_counts_once_and_another_of_its_span_is_an_overlap(tmp_path):
    lay(tmp_path, readings_a_csv=f"{HEAD}m1,2026-01-01,2026-01-02,1,kWh\n")
    again = f"{HEAD}m1,2026-01-01,2026-01-02,1.0,kWh\nm1,2025-12-31T23:00Z,2026-01-01T23:00Z,0.001,MWh\n"
    inventory = inventory_of(tmp_path, **DECLARED, readings_b_csv=again)
    assert energies(inventory) == [KWH]
    (finding,) = inventory.findings
    assert (finding.code, finding.file, finding.line) == ("CL369", "readings-b.csv", 2)
    assert "2 readings repeat" in finding.message
    lay(tmp_path, readings_b_csv=f"{HEAD}m1,2026-01-01T12:00,2026-01-03,1,kWh\n")
    inventory = inventory_of(tmp_path)
    assert (len(inventory.readings), codes(inventory)) == (2, ["CL362"])


def test_a_correction_takes_the_place_of_what_it_corrects(tmp_path):
    head = "meter,start,end,energy,unit,reading_id,supersedes,method\n"
    rows = (
        f"{head}m1,2026-01-01,2026-01-02,1,kWh,r1,,estimated\nm1,2026-01-01,2026-01-02,3,kWh,r2,r1,actual\n"
    )
    inventory = inventory_of(tmp_path, **DECLARED, readings_csv=rows)
    assert (energies(inventory), codes(inventory)) == ([3 * KWH], [])
    estimated = inventory_of(tmp_path, readings_csv=rows.splitlines(keepends=True)[0] + rows.splitlines()[1])
    assert [r.grade for r in estimated.readings] == ["D"]


def test_gaps_and_unknown_meters_are_said(tmp_path):
    spans = ("m1,2026-01-01,2026-01-02", "m1,2026-01-04,2026-01-05", "m2,2026-01-04,2026-01-05")
    rows = HEAD + "".join(f"{span},1,kWh\n" for span in spans)
    inventory = inventory_of(tmp_path, **DECLARED, readings_csv=rows)
    gap, unknown = inventory.findings
    assert (gap.code, gap.line, "1 gap" in gap.message, "48 h" in gap.message or "2 days" in gap.message) == (
        *("CL363", 3),
        *(True, True),
    )
    assert (unknown.code, unknown.subject) == ("CL364", "m2")
    assert [(r.site, r.boundary) for r in inventory.readings] == [("berlin", "facility")] * 2 + [(None, None)]


def test_readings_within_a_longer_one_overlap_it_and_leave_no_gap(tmp_path):
    spans = ("m1,2026-01-01,2026-02-01", "m1,2026-01-01,2026-01-02", "m1,2026-01-20,2026-01-21")
    rows = HEAD + "".join(f"{span},1,kWh\n" for span in (*spans, "m1,2026-02-01,2026-02-02"))
    (finding,) = inventory_of(tmp_path, **DECLARED, readings_csv=rows).findings
    assert (finding.code, "2 readings overlap" in finding.message) == ("CL362", True)


@pytest.mark.parametrize(
    ("pairs", "left", "said"),
    [
        ([("a", "a"), ("b", "")], {"a", "b"}, ["CL508"]),
        ([("a", "b"), ("b", "a")], {"b"}, ["CL508"]),
        ([("a", "b"), ("b", "c"), ("c", "a")], {"c"}, ["CL508"]),
        ([("a", ""), ("b", "a"), ("c", "a")], {"c"}, ["CL507"]),
        ([("a", ""), ("b", "a"), ("c", "b")], {"c"}, []),
    ],
)
def test_no_reading_vanishes_however_they_correct_each_other(tmp_path, pairs, left, said):
    head = "meter,start,end,energy,unit,reading_id,supersedes\n"
    rows = "".join(f"m1,2026-01-01,2026-01-02,1,kWh,{name},{of}\n" for name, of in pairs)
    if "CL508" in said and pairs[-1] == ("b", ""):
        rows = rows.replace("m1,2026-01-01,2026-01-02,1,kWh,b,", "m1,2026-01-02,2026-01-03,1,kWh,b,")
    inventory = inventory_of(tmp_path, **DECLARED, readings_csv=head + rows)
    assert {r.reading_id for r in inventory.readings} == left
    assert [c for c in codes(inventory) if c.startswith("CL50")] == said
