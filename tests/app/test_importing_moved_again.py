"""Traces told anew beside records of older versions, older copies, several hosts, and what was redacted."""

import gzip
import json
import zlib

import msgspec
import pytest

from carbonlens.app.importing import Placing, import_files
from carbonlens.app.importing_again import CUT_BESIDE
from carbonlens.domain.run import Run
from carbonlens.ledger.redacting import redact
from carbonlens.ledger.store import Ledger
from tests.app.test_importing_moved import again, lengths
from tests.app.test_importing_overlaps import OTHER, UUID, imported, log
from tests.app.test_importing_rest import counting, told

__all__ = ["imported"]


def cut_run(ledger) -> Run:
    (run,) = [r for r in counting(ledger) if CUT_BESIDE in r.origin.imported_as.told]
    return run


def rewrite(ledger, changed, folder):
    """Write the runs that count into a ledger of its own, each as a change of it makes it."""
    for run in map(changed, counting(ledger)):
        label, sha256 = run.origin.instrument.replace("/", "-"), run.origin.source_sha256
        Ledger(folder).add_batch([run], [], source_sha256=sha256, importer=label)
    return folder


def without_ids(run):
    kept = run.origin.imported_as
    told = {name: text for name, text in kept.told.items() if name != CUT_BESIDE}
    origin = msgspec.structs.replace(run.origin, imported_as=msgspec.structs.replace(kept, told=told))
    return msgspec.structs.replace(run, origin=origin)


@pytest.mark.parametrize("end", [60, 66], ids=["as it is", "grown"])
def test_beside_a_log_that_an_older_version_cut_other_times_are_refused(imported, tmp_path, end):
    imported({"one.csv": log(0, 60), "two.csv": log(30, 90)})
    ledger = rewrite(imported.ledger, without_ids, tmp_path / "old")
    (tmp_path / "one.csv").write_text(log(0, end))
    (file,) = again(ledger, tmp_path / "one.csv").files
    assert (file.status, file.findings[0].code) == ("refused", "CL214")
    assert "has a time that is left out of two.csv" in file.findings[0].message
    assert sum(r.duration_s for r in counting(ledger)) == 89


def test_beside_a_log_that_an_older_version_cut_another_device_may_have_other_times(imported, tmp_path):
    imported({"one.csv": log(0, 60), "two.csv": log(30, 90), "other.csv": log(0, 60, device=OTHER)})
    ledger = rewrite(imported.ledger, without_ids, tmp_path / "old")
    (file,) = again(ledger, tmp_path / "other.csv").files
    assert file.status == "imported"


@pytest.mark.parametrize("option", [{"tz": "Europe/Paris"}, {"tz": "UTC"}, {"tags": {"team": "nlp"}}])
@pytest.mark.parametrize("end", [50, 60, 61, 62, 75, 599])
def test_an_older_copy_of_a_log_that_is_cut_counts_never(imported, tmp_path, end, option):
    imported({"one.csv": log(0, 60), "two.csv": log(30, 600)})
    (tmp_path / "two.csv").write_text(log(30, end))
    (file,) = again(imported.ledger, tmp_path / "two.csv", **option).files
    assert (file.status, [f.code for f in file.findings]) == ("duplicate", ["CL292"])
    assert lengths(imported) == [59, 540]


def prometheus(*series):
    result = [
        {
            "metric": {"__name__": "DCGM_FI_DEV_POWER_USAGE", "UUID": uuid, "gpu": "0", "Hostname": host},
            "values": [[1_772_359_200 + s, str(100 + s % 7)] for s in range(first, end)],
        }
        for host, uuid, first, end in series
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


@pytest.mark.parametrize(("times", "code"), [((30, 91), "CL295"), ((0, 61), "CL291")], ids=["other", "copy"])
def test_what_was_left_out_of_a_file_of_two_hosts_stays_so_when_it_is_told_anew(
    imported, tmp_path, times, code
):
    one = prometheus(("n1", UUID, 0, 61))
    two = prometheus(("n1", UUID, *times), ("n2", OTHER, *times))
    imported({"one.json": one, "two.json": two})
    assert sorted(r.host_id for r in counting(imported.ledger)) == ["n1", "n2"]
    placing = Placing(tags={"team": "nlp"})
    (file,) = import_files([tmp_path / "two.json"], ledger=imported.ledger, placing=placing).files
    assert code in {f.code for f in file.findings}
    runs = counting(imported.ledger)
    assert sorted((r.host_id, r.tags.get("team")) for r in runs) == [("n1", None), ("n2", "nlp")]


def test_a_grown_log_whose_rest_is_as_before_holds_the_other_one(imported, tmp_path):
    imported({"one.csv": log(0, 61), "two.csv": log(60, 91)})
    (file,) = imported({"one.csv": log(0, 76)}).files
    assert file.status == "imported"
    assert cut_run(imported.ledger).origin.imported_as.size_bytes == len(log(0, 76))
    (file,) = again(imported.ledger, tmp_path / "two.csv").files
    assert file.status == "refused"
    assert "has a time that is left out of one.csv" in file.findings[0].message
    assert lengths(imported) == [60, 30]
    (file,) = imported({"one.csv": log(0, 76)}).files
    assert [f.code for f in file.findings] == ["CL210"]


def test_a_cut_log_whose_content_is_redacted_holds_the_other_one(imported, tmp_path):
    imported({"one.csv": log(0, 60), "two.csv": log(30, 90)})
    run = cut_run(imported.ledger)
    fields = ["origin.source_file", "origin.source_sha256"]
    redact(imported.ledger, [run], fields, by="me", when_us=1_772_400_000_000_000, why="asked for")
    (file,) = again(imported.ledger, tmp_path / "one.csv").files
    assert file.status == "refused"
    assert f"has a time that is left out of run {run.run_id}, and tz" in file.findings[0].message


def test_what_gets_other_times_makes_room_for_what_has_grown(tmp_path):
    """A log that was moved on, and the one that it ended, read as UTC first: CL241 asks for the zone."""
    paths = [tmp_path / "gpu.log", tmp_path / "gpu.log.1"]
    paths[0].write_text(log(1800, 2000))
    paths[1].write_text(log(0, 1800))
    import_files(paths, ledger=tmp_path / "ledger")
    # What was read an hour late ends where the grown one begins, told an hour earlier.
    late = log(1800, 3000).replace(" 10:", " 11:")
    paths[0].write_text(log(1800, 2000) + late.partition("\n")[2])
    result = again(tmp_path / "ledger", *paths)
    assert [f.status for f in result.files] == ["imported", "imported"]
    assert not {"CL295", "CL296", "CL297"} & {f.code for file in result.files for f in file.findings}


def test_all_that_a_moved_trace_stands_on_are_counted(imported, tmp_path):
    late = log(0, 90).replace(" 10:", " 11:").replace("W\n", " W\n")
    imported({"one.csv": log(0, 40), "two.csv": log(40, 90), "late.csv": late})
    (file,) = again(imported.ledger, tmp_path / "late.csv").files
    (finding,) = [f for f in file.findings if f.code == "CL296"]
    assert "that two.csv (and 1 further trace) tells of too, now that" in finding.message


def test_of_a_compressed_log_that_is_cut_off_it_is_said_though_a_part_is_left_out(imported):
    packed = gzip.compress(log(30, 91).encode())[:-12]
    assert zlib.decompressobj(31).decompress(packed)
    imported({"one.csv": log(0, 61)})
    result = imported({"two.csv.gz": packed})
    assert told(result)
    assert [f.code for f in result.files[0].findings].count("CL240") == 1


def test_of_a_compressed_log_that_is_cut_off_it_is_said_though_its_times_were_asked_for(tmp_path):
    """Whether the zone changes its times is found by reading it, which says nothing itself."""
    paths = [tmp_path / "one.csv", tmp_path / "two.csv", tmp_path / "one.csv.gz"]
    paths[0].write_text(log(0, 61))
    paths[1].write_text(log(30, 91))
    import_files(paths[:2], ledger=tmp_path / "ledger")
    paths[2].write_bytes(gzip.compress(log(0, 90).encode())[:-12])
    (file,) = again(tmp_path / "ledger", paths[2], tz="UTC").files
    assert [f.code for f in file.findings].count("CL240") == 1
