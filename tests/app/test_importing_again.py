"""Content that was imported before: logs that grow, tables that get rows, options told later."""

import gzip
import itertools
from decimal import Decimal

import pytest

from carbonlens.app.importing import import_files
from carbonlens.app.importing_placing import Placing
from carbonlens.domain.import_map import ImportMap, PlaceRule
from carbonlens.domain.in_study import InStudy
from carbonlens.importers.sources import Source
from carbonlens.ledger import editing
from carbonlens.ledger.records import current
from carbonlens.ledger.store import Ledger

SMI = ["timestamp, index, power.draw [W]"] + [
    f"2026/01/01 00:{s // 60:02}:{s % 60:02}.000, 0, {100 + s % 7}.00 W" for s in range(90)
]
DCGM = [
    f'DCGM_FI_DEV_POWER_USAGE{{gpu="0",UUID="GPU-{h}",Hostname="{h}"}} {100 + s % 5} '
    f"{1767225600000 + s * 1000}"
    for s in range(60)
    for h in ("n1", "n2")
]
TEGRA = [
    f"01-05-2026 10:{s // 60:02}:{s % 60:02} RAM 2000/7772MB (lfb 1x4MB) SWAP 0/3886MB (cached 0MB) "
    f"CPU [1%@1190] VDD_IN {4000 + s % 9}mW/4000mW VDD_CPU 500mW/500mW"
    for s in range(70)
]
PTD = [
    f"Time,01-05-2026 10:00:{s:02}.000,Watts,{50 + s % 3}.0,Volts,230.0,Amps,0.2,PF,1.0,Mark,x"
    for s in range(60)
]
UNTIMED = ["POM_5V_IN (mW)", *["3000"] * 120]
GROWING = {"nvidia-smi": SMI, "dcgm": DCGM, "tegrastats": TEGRA, "ptdaemon": PTD}


@pytest.fixture
def case(tmp_path):
    def write(lines, name="log.txt", *, packed=False):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = ("\n".join(lines) + "\n").encode() if isinstance(lines, list) else lines
        path.write_bytes(gzip.compress(content) if packed else content)
        return path

    def take(lines, name="log.txt", *, packed=False, ledger="ledger", **placing):
        path = write(lines, name, packed=packed)
        return import_files([path], ledger=tmp_path / ledger, placing=Placing(**{"tz": "UTC"} | placing))

    take.write = write
    take.folder = tmp_path
    return take


def codes(result):
    return [f.code for file in result.files for f in file.findings]


def counting(folder, ledger="ledger"):
    return current(Ledger(folder / ledger).view().runs)[0]


def figures(runs):
    """Return what tells runs apart but for their names and where they came from."""
    return sorted(
        (r.start_us, r.end_us, r.host_id or "", [str(e.energy_j) for e in r.energy], r.site, dict(r.tags))
        for r in runs
    )


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", GROWING)
def test_a_log_that_grows_counts_as_if_it_were_imported_once(case, kind, packed):
    lines = GROWING[kind]
    whole = case(lines, "whole.log", ledger="other")
    for part in (0.4, 0.7, 1.0):
        cut = lines[: int(len(lines) * part)]
        result = case(cut, packed=packed)
        assert result.files[0].status == "imported"
        assert ("CL292" in codes(result)) is (part > 0.4)
        assert result.totals.runs_replaced == (0 if part == 0.4 else whole.totals.runs)
    assert figures(counting(case.folder)) == figures(counting(case.folder, "other"))
    assert case(lines, packed=packed).files[0].status == "duplicate"


def test_a_log_that_was_cut_amid_a_line_is_known_when_it_is_whole(case):
    text = ("\n".join(SMI) + "\n").encode()
    case(text[:1001])
    case(text)
    case(SMI, "whole.log", ledger="other")
    assert figures(counting(case.folder)) == figures(counting(case.folder, "other"))


@pytest.mark.parametrize("kind", GROWING)
def test_an_older_copy_of_a_log_adds_nothing(case, kind):
    lines = GROWING[kind]
    case(lines)
    before = figures(counting(case.folder))
    older = case(lines[: int(len(lines) * 0.6)], "log.txt.bak")
    assert (older.files[0].status, older.totals.runs, codes(older)) == ("duplicate", 0, ["CL292"])
    assert figures(counting(case.folder)) == before


def test_older_and_newer_in_one_folder_count_once_in_any_order(case):
    for number, names in enumerate((("a.csv", "b.csv"), ("b.csv", "a.csv"))):
        short = case.write(SMI[:60], f"{number}/{names[0]}")
        long = case.write(SMI, f"{number}/{names[1]}")
        result = import_files([short.parent], ledger=case.folder / f"l{number}", placing=Placing(tz="UTC"))
        (run,) = counting(case.folder, f"l{number}")
        assert run.origin.source_file == long.name
        assert result.totals.energy_kwh == pytest.approx(float(run.energy[0].energy_j) / 3.6e6)
        assert (result.totals.runs, result.totals.samples) == (1, 90)


def test_a_log_that_branches_off_is_another_one(case):
    """Half of it is the same: it was edited, and nobody can say that it is the log grown."""
    case(SMI[:60])
    other = [*SMI[:40], *(line.replace(", 0, 1", ", 0, 2") for line in SMI[40:80])]
    assert case(other, "other.csv").totals.runs == 1
    assert len(counting(case.folder)) == 2


def test_another_host_s_log_is_not_taken_for_the_same(case):
    case(SMI[:60], "host_a.csv")
    assert case(SMI, "host_b.csv").totals.runs == 1
    assert len(counting(case.folder)) == 2


def test_logs_without_times_that_begin_alike_are_one_by_their_name_alone(case):
    case(UNTIMED[:60], "rails.csv", interval_s=1.0)
    other = case(UNTIMED, "evening.csv", interval_s=1.0)
    assert (other.totals.runs, len(counting(case.folder))) == (1, 2)
    (said,) = (f for f in other.files[0].findings if f.code == "CL292")
    assert said.severity == "warning"
    grown = case(UNTIMED[:100], "rails.csv", interval_s=1.0)
    assert grown.totals.runs_replaced == 1
    assert sorted(float(r.energy[0].energy_j) for r in counting(case.folder)) == pytest.approx([297, 360])


def test_what_was_said_and_corrected_before_stays_when_a_log_grows(case):
    case(SMI[:60], tz="Europe/Paris", tags={"team": "a"}, site="hall")
    (run,) = counting(case.folder)
    Ledger(case.folder / "ledger").append(editing.tagged(run, {"note": "mine"}))
    (run,) = counting(case.folder)
    Ledger(case.folder / "ledger").append(editing.corrected(run, {"step": "tuned"}))
    result = case(SMI, tz=None)
    assert result.totals.runs_replaced == 1
    (now,) = counting(case.folder)
    assert (now.start_us, now.site, now.step) == (run.start_us, "hall", "tuned")
    assert now.tags == {"team": "a", "note": "mine"}
    assert now.duration_s > run.duration_s


def uncounted(result):
    """Return what is said of units that no longer count."""
    said = [f for file in result.files for f in file.findings if "since units were told" in f.message]
    assert all((f.code, f.severity, "--units" in f.mend) == ("CL292", "warning", True) for f in said)
    return [f.message.partition(" grown")[0] for f in said]


@pytest.mark.parametrize("kind", [*GROWING, "codecarbon"])
def test_units_that_were_told_of_a_shorter_log_do_not_count_for_a_longer_one(case, kind):
    """Ten times the energy over the units of a tenth of it would be wrong by as much, and silently."""
    if kind == "codecarbon":
        rows = (
            "2026-01-05T11:00:00,p,r1,600.0,0.0005,0.01,FRA",
            "2026-01-05T11:10:00,p,r1,1200.0,0.001,0.02,FRA",
        )
        short, long = ([CARBON, row] for row in rows)
    else:
        short, long = GROWING[kind][: int(len(GROWING[kind]) * 0.6)], GROWING[kind]
    told = {"in_study": InStudy(unit="image", units=Decimal(100))}
    case(short, **told)
    many = len(counting(case.folder))
    grown = case(long)
    assert {(r.unit, r.units) for r in counting(case.folder)} == {("image", None)}
    assert uncounted(grown) == [f"{many} run has" if many == 1 else f"{many} runs have"]
    later = case(long, in_study=InStudy(units=Decimal(1000)))
    assert {(r.unit, r.units) for r in counting(case.folder)} == {("image", 1000)}
    assert uncounted(later) == []
    case(short, ledger="at once", **told)
    assert uncounted(case(long, ledger="at once", in_study=InStudy(units=Decimal(1000)))) == []
    assert {r.units for r in counting(case.folder, "at once")} == {1000}


def test_units_that_were_corrected_do_not_count_for_a_longer_log_and_those_of_another_host_do(case):
    case(DCGM[:60], "n.prom", in_study=InStudy(units=Decimal(100)))
    first = next(r for r in counting(case.folder) if r.host_id == "n1")
    Ledger(case.folder / "ledger").append(editing.corrected(first, {"units": Decimal(9)}))
    grown = case([*DCGM[:60], *(line for line in DCGM[60:] if '"n1"' in line)], "n.prom")
    assert {r.host_id: r.units for r in counting(case.folder)} == {"n1": None, "n2": 100}
    assert uncounted(grown) == ["1 run has"]


def test_a_file_that_grows_between_hash_and_reading_is_read_as_it_was_hashed(case):
    for packed in (False, True):
        path = case.write(SMI[:50], packed=packed)
        source = Source(path)
        before = source.sha256
        more = ("\n".join(SMI[50:]) + "\n").encode()
        with path.open("ab") as log:
            log.write(gzip.compress(more) if packed else more)
        assert [line for _, line in source.lines()] == SMI[:50]
        assert b"".join(block for _, block in source.blocks()).decode().splitlines() == SMI[:50]
        assert Source(path).sha256 != before


def test_a_file_that_became_shorter_is_refused_and_not_read_in_part(case):
    path = case.write(SMI)
    source = Source(path)
    assert source.sha256
    assert source.first_lines
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(Exception, match="became shorter"):
        list(source.lines())


CARBON = "timestamp,project_name,run_id,duration,emissions,energy_consumed,country_iso_code"


def carbon(number, at=None):
    hour = 10 + number if at is None else at
    return f"2026-01-05T{hour:02}:00:00,p,r{number},600.0,0.0005,0.01,FRA"


def test_rows_that_a_table_gets_count_and_the_others_once_whatever_zone_is_left_out(case):
    case([CARBON, *(carbon(i) for i in range(4))], "emissions.csv", tz="America/New_York")
    before = {r.run_id: r.start_us for r in counting(case.folder)}
    for count, tz in ((6, None), (8, "America/New_York")):
        result = case([CARBON, *(carbon(i) for i in range(count))], "emissions.csv", tz=tz)
        assert (result.totals.runs, result.totals.runs_known) == (2, count - 2)
        assert result.totals.runs_replaced == 0
    now = {r.run_id: r.start_us for r in counting(case.folder)}
    assert len(now) == 8
    assert before.items() <= now.items()
    assert now["r7"] - now["r0"] == 7 * 3_600_000_000, "rows that came later are in the zone that was said"


def test_rows_of_another_zone_are_not_a_second_run_in_a_file_of_other_order(case):
    case([CARBON, carbon(1), carbon(2)], "emissions.csv", tz="America/New_York")
    mixed = case([CARBON, carbon(2), carbon(1)], "emissions.csv", tz=None)
    assert (mixed.totals.runs, mixed.totals.runs_known) == (0, 2)
    moved = case([CARBON, carbon(2), carbon(1), carbon(3)], "emissions.csv", tz="Europe/Paris")
    assert (moved.totals.runs, moved.totals.runs_replaced) == (3, 2)
    starts = {r.run_id.partition("~")[0]: r.start_us for r in counting(case.folder)}
    assert starts["r3"] - starts["r1"] == 2 * 3_600_000_000


def test_many_known_rows_are_counted_and_not_listed(case):
    rows = [f"r{i},s,base,{i}.5,1,it,B,1" for i in range(300)]
    head = "run_id,study,step,energy_j,units,boundary,energy_grade,duration_s"
    case([head, *rows[:250]], "runs.csv")
    result = case([head, *rows], "runs.csv")
    assert (result.totals.runs, result.totals.runs_known) == (50, 250)
    assert codes(result).count("CL212") == 101
    assert "150 more runs are" in [f.message for f in result.files[0].findings if f.code == "CL212"][-1]


KINDS = {
    "trace": (SMI, "gpu.csv"),
    "hosts": (DCGM, "n.prom"),
    "rows": ([CARBON, carbon(1), carbon(2)], "emissions.csv"),
    "steps": (
        ["run_id,study,step,energy_j,units", "a,s,base,10,1", "b,s,fast,5,1"],
        "runs.csv",
    ),
    "relative": (UNTIMED, "rails.csv"),
}
OPTIONS = {
    "tz": {"tz": "Asia/Tokyo"},
    "tag": {"tags": {"team": "a"}},
    "site": {"site": "hall"},
    "boundary": {"boundary": "it"},
    "start": {"start_us": 1_770_000_000_000_000},
    "interval": {"interval_s": 2.0},
    "map": {"map": ImportMap(place=(PlaceRule(path="*", team="x", zone="FR", tz="Asia/Tokyo"),))},
}


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_option_that_is_given_later_does_what_it_does_at_first(case, kind, option):
    """What counts is as if it had been given at once; where it changes nothing, that is said."""
    lines, name = KINDS[kind]
    first = {"tz": None, "interval_s": 1.0 if kind == "relative" else None}
    case(lines, name, ledger="other", **first | OPTIONS[option])
    plain = case(lines, name, **first)
    before = figures(counting(case.folder))
    later = case(lines, name, **{"tz": None} | OPTIONS[option])
    assert figures(counting(case.folder)) == figures(counting(case.folder, "other"))
    if figures(counting(case.folder)) == before and option != "boundary":
        assert later.files[0].status == "duplicate"
        assert [f.code for f in later.files[0].findings] == ["CL210"]
        assert f"--{option}" in later.files[0].findings[0].message
    else:
        assert later.totals.runs_replaced in {0, plain.totals.runs}
    again = case(lines, name, **{"tz": None} | OPTIONS[option])
    assert (again.files[0].status, again.totals.runs) == ("duplicate", 0)


@pytest.mark.parametrize(("one", "other"), list(itertools.permutations(["tz", "tag", "site", "boundary"], 2)))
def test_options_that_are_given_one_after_the_other_add_up(case, one, other):
    case(SMI, "gpu.csv", ledger="other", **{"tz": None} | OPTIONS[one] | OPTIONS[other])
    case(SMI, "gpu.csv", tz=None)
    case(SMI, "gpu.csv", **{"tz": None} | OPTIONS[one])
    case(SMI, "gpu.csv", **{"tz": None} | OPTIONS[other])
    assert figures(counting(case.folder)) == figures(counting(case.folder, "other"))


def test_an_option_can_be_taken_back_by_saying_the_first_again(case):
    for zone in ("UTC", "Asia/Tokyo", "UTC"):
        case(SMI, "gpu.csv", tz=zone)
        case(SMI, "once.csv", ledger=zone, tz=zone)
        assert figures(counting(case.folder)) == figures(counting(case.folder, zone))


def test_readings_that_are_in_the_ledger_are_not_moved_and_it_is_said(case):
    lines = ["meter,unit,start,end,energy", "m1,kWh,2026-01-01T00:00:00Z,2026-01-02T00:00:00Z,5"]
    case(lines, "readings.csv", site="hall")
    same = case(lines, "readings.csv", site="hall")
    assert "CL293" not in codes(same)
    moved = case(lines, "readings.csv", site="yard")
    assert "CL293" in codes(moved)
    more = case(
        [*lines, lines[1].replace("01-02T", "01-03T").replace("01-01T", "01-02T")], "r.csv", site="yard"
    )
    assert "CL293" in codes(more)
