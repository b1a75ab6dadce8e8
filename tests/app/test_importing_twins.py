"""Traces that are equal to the last byte: copies count once, two hosts' twice, and it is said."""

import pytest

from carbonlens.app.importing import Placing, import_files
from carbonlens.domain.import_map import ImportMap, PlaceRule
from carbonlens.importers.host_names import host_in, is_copy_by_name
from carbonlens.ledger.records import current
from carbonlens.ledger.store import Ledger

LOG = "timestamp, index, power.draw [W]\n" + "".join(
    f"2026/01/01 00:00:{s:02}.000, 0, 100.00 W\n" for s in range(11)
)
RAILS = "POM_5V_IN (mW)\n" + "3000\n" * 20
HOSTED = "".join(
    f'DCGM_FI_DEV_POWER_USAGE{{gpu="0",UUID="GPU-a",Hostname="n1"}} 100 {1767225600000 + s * 1000}\n'
    for s in range(11)
)


@pytest.fixture
def imported(tmp_path):
    def of(*names, text=LOG, **placing):
        paths = []
        for name in names:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            paths.append(path)
        return import_files(paths, ledger=tmp_path / "ledger", placing=Placing(tz="UTC", **placing))

    of.ledger = tmp_path / "ledger"
    return of


def codes(result):
    return [f.code for file in result.files for f in file.findings]


def joules(result):
    return None if result.totals.energy_kwh is None else round(result.totals.energy_kwh * 3.6e6, 6)


def test_two_hosts_by_their_names_are_two_traces_and_it_is_said(imported):
    """Merged by the device's index alone, half of the energy would be lost."""
    result = imported("c21_host_a.csv", "c21_host_b.csv")
    assert (result.totals.runs, joules(result)) == (2, 2000.0)
    assert codes(result).count("CL291") == 1
    runs = list(Ledger(imported.ledger).view().runs)
    assert sorted(float(r.energy[0].energy_j) for r in runs) == [1000.0, 1000.0]
    assert {r.host_id for r in runs} == {None, "b"}
    for order in (("c21_host_b.csv", "c21_host_a.csv"), ("c21_host_a.csv", "c21_host_b.csv")):
        again = imported(*order)
        assert (again.totals.runs, {f.status for f in again.files}) == (0, {"duplicate"})


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ("gpu.csv", "gpu.csv.bak", False),
        ("gpu.csv", "old/gpu.csv", False),
        ("gpu.csv", "gpu (1).csv", False),
        ("host_a.csv", "old/host_a.csv_1.bak", False),
        ("host_a.csv", "gpu.csv", True),
        ("morning.csv", "evening.csv", True),
        ("run_1.csv", "run_2.csv", True),
    ],
)
def test_a_copy_counts_once_and_one_of_another_name_is_said(imported, one, other, said):
    result = imported(one, other)
    assert (result.totals.runs, joules(result)) == (1, 1000.0)
    assert ("CL291" in codes(result)) is said
    assert ("CL210" in codes(result)) is not said


def test_hosts_that_are_told_go_before_names(imported):
    once = imported("host_a.csv", "host_b.csv", host="n1")
    assert (once.totals.runs, joules(once)) == (1, 1000.0)
    (run,) = Ledger(imported.ledger).view().runs
    assert run.host_id == "n1"
    more = imported("host_b.csv", host="n2")
    assert (more.totals.runs, joules(more)) == (1, 1000.0)
    assert imported("host_b.csv", host="n2").totals.runs == 0


def test_a_map_tells_hosts_by_path(imported):
    rules = ImportMap(place=(PlaceRule(path="x/*", host="x"), PlaceRule(path="y/*", host="y")))
    result = imported("x/gpu.csv", "y/gpu.csv", map=rules)
    assert (result.totals.runs, joules(result)) == (2, 2000.0)
    assert "CL291" not in codes(result)
    assert imported("x/gpu.csv", "y/gpu.csv", map=rules).totals.runs == 0


@pytest.mark.parametrize("text", [LOG, LOG.replace("index", "uuid").replace(" 0,", " GPU-5a3c,")])
@pytest.mark.parametrize("further", [{}, {"tags": {"team": "x"}}])
def test_a_host_that_is_no_longer_told_counts_nothing_twice(imported, text, further):
    imported("gpu.csv", text=text, host="n1")
    imported("gpu.csv", text=text, **further)
    (run,), *_ = current(Ledger(imported.ledger).view().runs)
    assert float(run.energy[0].energy_j) == 1000.0


def test_a_host_that_is_told_later_counts_nothing_twice(imported):
    assert imported("gpu.csv").totals.runs == 1
    assert imported("gpu.csv", host="n1").totals.runs == 0
    assert imported("other.csv").totals.runs == 0
    assert imported("other.csv", host="n2").totals.runs == 1


def test_content_that_names_its_host_is_a_copy_whatever_the_file_is_called(imported):
    result = imported("node1.prom", "node2.prom", text=HOSTED)
    assert (result.totals.runs, joules(result)) == (1, 1000.0)


def test_an_interval_that_is_told_later_completes_the_trace(imported):
    """A log without times has no energy; the mend that is said must be possible."""
    first = imported("rails.csv", text=RAILS)
    assert (first.totals.runs, first.totals.energy_kwh) == (1, None)
    then = imported("rails.csv", text=RAILS, interval_s=0.5)
    assert joules(then) == pytest.approx(30.0)
    runs = Ledger(imported.ledger).view().runs
    counting = [r for r in runs if r.run_id not in {other.supersedes for other in runs}]
    assert [float(r.energy[0].energy_j) for r in counting] == [30.0]
    assert imported("rails.csv", text=RAILS, interval_s=0.5).totals.runs == 0
    assert imported("rails.csv", text=RAILS).totals.runs == 0


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("c21_host_a.csv", "a"),
        ("node-17.log", "17"),
        ("gpu.node3.prom", "3"),
        ("host_paris.csv", "paris"),
        ("server_power.csv", None),
        ("nodejs_a.csv", None),
        ("RANK 4.csv", "4"),
        ("archive.zip::inner/worker_b.txt", "b"),
        ("ghost_a.csv", None),
        ("hosting.csv", None),
        ("emissions.csv", None),
    ],
)
def test_names_of_hosts(name, host):
    assert host_in(name) == host


def test_marks_of_copies():
    assert is_copy_by_name("a.csv", "a (2).csv.bak")
    assert is_copy_by_name("emissions.csv", "emissions.csv_1.bak")
    assert is_copy_by_name("a.csv.gz", "Copy of a.csv")
    assert not is_copy_by_name("a1.csv", "a2.csv")
