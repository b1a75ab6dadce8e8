"""Periods sum to the whole: what lies in two of them, in another one, or in a circle of parents."""

from decimal import Decimal

import msgspec
import pytest

from carbonlens.app.ledger_care import export, supersede
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.ledger import compaction, parquet, schema
from carbonlens.ledger.accounts import account
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.reading import open_view
from carbonlens.ledger.records import Stored
from carbonlens.ledger.store import Ledger
from carbonlens.ledger.verify import verify

MAR = Calendar().period("2026-03").first_hour * US_PER_HOUR
APR = Calendar().period("2026-04").first_hour * US_PER_HOUR
NOW_US = APR + 90 * 24 * US_PER_HOUR


def reading(component, energy):
    state = "unknown" if energy is None else "known"
    value = None if energy is None else Decimal(energy)
    return Reading(component=component, energy_j=value, boundary="it", grade="B", method="m", state=state)


def run(run_id, energy="1", start_us=MAR, component="cpu", **more):
    return Run(run_id=run_id, start_us=start_us, energy=(reading(component, energy),), **more)


def found(ledger, period=None):
    with open_view(ledger, period) as view:
        return account(view)


def joules(ledger, period=None):
    return sum((t.energy.exact or 0 for t in found(ledger, period).totals), Decimal(0))


def codes(ledger, period=None):
    return [f.code for f in found(ledger, period).findings]


def compact(ledger):
    compaction.compact(ledger, before="209912")


def test_an_unknown_part_is_unknown_in_every_period_the_run_reaches(tmp_path):
    energy = (reading("cpu", "1000"), reading("gpu", None))
    times = {"start_us": APR - US_PER_HOUR, "end_us": APR + US_PER_HOUR}
    Ledger(tmp_path).append(Run(run_id="r", energy=energy, **times))
    Ledger(tmp_path).append(Run(run_id="nothing", units=Decimal(4), unit="u", **times))
    for _ in range(2):
        for period in ("2026-03", "2026-04"):
            account_of = found(tmp_path, period)
            sums = {t.boundary: t.energy for t in account_of.totals}
            assert (sums["it"].exact, sums["it"].estimate.state) == (500, "unbounded")
            assert account_of.unknown_runs == 2
            assert [f.code for f in account_of.findings if f.code == "CL521"] == ["CL521"]
        compact(tmp_path)
    bare = Stored(run=Run(run_id="n", units=Decimal(4), **times), text=b"{}", file="f")
    assert [r.units for r in schema.rows(bare)] == [2, 2]


def test_a_file_of_the_version_before_is_read_the_same_and_is_no_altered_one(tmp_path):
    times = {"start_us": APR - US_PER_HOUR, "end_us": APR + US_PER_HOUR}
    one = Run(run_id="r", energy=(reading("cpu", "1000"), reading("gpu", None)), **times)
    stored = Stored(run=one, text=msgspec.json.encode(one), file="f")
    file = tmp_path / "imports" / "f.parquet"
    parquet.write(file, schema.COLUMNS, schema.rows_of([stored], version=2))
    assert len(schema.rows(stored, version=2)) == 3
    april = found(tmp_path, "2026-04").totals
    assert [(t.energy.exact, t.energy.estimate.state) for t in april] == [(500, "unbounded")]
    assert joules(tmp_path) == 1000
    assert [f for f in verify(tmp_path, now_us=NOW_US).findings if f.severity == "error"] == []


@pytest.mark.parametrize("form", ["live", "files", "both"])
def test_a_run_that_lies_in_two_months_counts_in_one_of_them(tmp_path, form):
    first, second = run("twice", "5", MAR), run("twice", "7", APR)
    if form == "live":
        for one in (first, second):
            Ledger(tmp_path).append(one)
    else:
        for one in (first, second):
            Ledger(tmp_path / one.energy[0].energy_j.to_eng_string()).append(one)
        for name, month in (("5", "202603"), ("7", "202604")):
            other = tmp_path / name
            if form == "files" or name == "5":
                compact(other)
                target = tmp_path / "months" / month
                target.parent.mkdir(exist_ok=True)
                (other / "months" / month).rename(target)
            else:
                (other / "runs").rename(tmp_path / "runs")
    Ledger(tmp_path).append(run("alone", "1", APR))
    parts = joules(tmp_path, "2026-03") + joules(tmp_path, "2026-04")
    assert parts == joules(tmp_path) == 6
    assert "CL505" in codes(tmp_path, "2026-04")


@pytest.mark.parametrize("parent", ["unknown", "no end", "known"])
def test_compaction_changes_no_period_of_a_run_inside_another(tmp_path, parent):
    """A parent without a row in the period is held all the same: its part is not a run of its own."""
    outer = {
        "unknown": run("outer", None, MAR, end_us=APR + US_PER_HOUR),
        "no end": run("outer", "50", MAR),
        "known": run("outer", "50", MAR, end_us=APR + US_PER_HOUR),
    }[parent]
    Ledger(tmp_path).append(outer)
    Ledger(tmp_path).append(run("inner", "3", APR, parent_run_id="outer"))
    Ledger(tmp_path).append(run("orphan", "4", APR, parent_run_id="gone"))
    periods = (None, "2026-03", "2026-04")
    before = [joules(tmp_path, p) for p in periods]
    assert before[0] == sum(before[1:])
    compact(tmp_path)
    assert [joules(tmp_path, p) for p in periods] == before
    with open_view(tmp_path, "2026-04") as view:
        assert view.orphans == ["gone"]


@pytest.mark.parametrize(
    "links", [{"a": "a"}, {"a": "b", "b": "a"}, {"a": "b", "b": "c", "c": "a", "d": "a"}]
)
@pytest.mark.parametrize("apart", [False, True])
def test_parents_in_a_circle_stand_for_themselves_with_a_finding(tmp_path, links, apart):
    starts = [MAR, APR] if apart else [MAR, MAR]
    for i, (name, parent) in enumerate(links.items()):
        Ledger(tmp_path).append(run(name, "2", starts[i % 2], parent_run_id=parent))
    Ledger(tmp_path).append(run("root", "10", MAR))
    Ledger(tmp_path).append(run("inner", "9", MAR, parent_run_id="root"))
    for _ in range(2):
        assert joules(tmp_path) == 10 + 2 * len(links)
        assert "CL525" in codes(tmp_path)
        assert joules(tmp_path, "2026-03") + joules(tmp_path, "2026-04") == joules(tmp_path)
        compact(tmp_path)


def test_a_circle_over_a_correction_is_one_too(tmp_path):
    Ledger(tmp_path).append(run("aaaa", "2", MAR, parent_run_id="bbbb"))
    Ledger(tmp_path).append(run("bbbb", "3", MAR))
    # `supersede` refuses this; a record of another host's may say it all the same.
    Ledger(tmp_path).append(run("cccc", "3", MAR, supersedes="bbbb", parent_run_id="aaaa"))
    assert joules(tmp_path) == 5
    assert "CL525" in codes(tmp_path)
    compact(tmp_path)
    assert joules(tmp_path) == 5


@pytest.mark.parametrize("folded", ["none", "all", "before"])
def test_a_run_that_a_correction_dates_is_not_counted_as_undated(tmp_path, folded):
    Ledger(tmp_path).append(run("undated", "2", None))
    if folded == "before":
        compact(tmp_path)
    assert "CL520" in codes(tmp_path, "2026-03")
    supersede("undated", {"start_us": MAR}, ledger=tmp_path)
    if folded == "all":
        compact(tmp_path)
    assert codes(tmp_path, "2026-03") == []
    assert joules(tmp_path, "2026-03") == 2


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_an_export_of_a_period_says_what_of_a_run_lies_in_it(tmp_path, format_):
    Ledger(tmp_path).append(run("r", "1000", APR - US_PER_HOUR, end_us=APR + 3 * US_PER_HOUR))
    Ledger(tmp_path).append(run("u", None, APR - US_PER_HOUR, end_us=APR + 3 * US_PER_HOUR))
    inside = []
    for period in ("2026-03", "2026-04"):
        content = export(format_=format_, ledger=tmp_path, period=period)
        assert content.label == "DRAFT"
        if format_ == "json":
            cells = msgspec.json.decode(content.content)["period"]["energy_in_period_j"]
        else:
            head, *lines = [line.split(",") for line in content.content.decode().splitlines()]
            cells = [line[head.index("energy_in_period_j")] or None for line in lines]
        inside.append([None if c is None else Decimal(c) for c in cells])
    assert inside == [[250, None], [750, None]]


def test_values_of_tags_come_back_as_they_were_given(tmp_path):
    Ledger(tmp_path).append(run("r", tags={"path": "a=b%3D\x1fc", "plain": "x"}))
    with open_view(tmp_path) as view:
        (total,) = account(view, ["tag:path", "tag:plain"]).totals
    assert total.group == {"tag:path": "a=b%3D\x1fc", "tag:plain": "x"}
