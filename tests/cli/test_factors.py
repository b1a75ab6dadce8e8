"""carbonlens factors: list, show, diff, import; and the factor set in a close."""

import zipfile
from pathlib import Path

import pytest

import carbonlens
from carbonlens.factors.store import bundled
from carbonlens.factors.table_file import write_csv
from tests.factors.rows import row
from tests.factors.test_foreign import EMBER_LONG, NEW, maps

DATA = Path(carbonlens.__file__).parent / "factors" / "data"


def lines(done):
    return done.stdout.splitlines()


def test_list_alone_says_what_each_table_holds(shell):
    printed = lines(shell("factors", "list"))
    assert any(line.split()[:4] == ["electricity_maps_yearly.csv", "grid", "1760", "352"] for line in printed)
    assert f"{len(bundled().rows)} factors in force" in printed[-2]
    assert len(printed) <= 20
    assert max(map(len, printed)) <= 80


@pytest.mark.parametrize("place", ["FR", "fra", "France"])
def test_list_takes_a_place_however_it_is_written(shell, place):
    printed = lines(shell("factors", "list", "--zone", place, "--year", "2024", "--kind", "grid"))
    assert [line.split()[0] for line in printed[1:]] == ["electricity-maps/FR/2024", "ember/FR/2024"]
    assert "0.033  kg/kWh  life-cycle consumption" in printed[1]


def test_list_of_a_cloud_region_has_its_grid_and_its_pue(shell):
    listed = shell.json("factors", "list", "--zone", "gcp:europe-west1", "--year", "2024")
    assert {"gcp:europe-west1", "BE"} <= set(listed["subjects"])
    kinds = {(f["kind"], f["subject"]) for f in listed["factors"]}
    assert {("grid", "gcp:europe-west1"), ("grid", "BE")} <= kinds
    assert listed["factor_set_sha256"] == bundled().sha256


def test_a_long_list_is_cut_and_says_so(shell):
    printed = lines(shell("factors", "list", "--kind", "grid"))
    assert len(printed) <= 20
    assert "--all prints every one" in printed[-1]
    assert max(map(len, printed)) <= 80


def test_an_unknown_place_or_kind_is_an_error_not_a_default(shell):
    assert "XXX" in shell("factors", "list", "--zone", "XXX", code=2).stderr
    assert "no kind 'grit'" in shell("factors", "list", "--kind", "grit", code=2).stderr
    assert "no such factor" in shell("factors", "list", "--zone", "FR", "--year", "1999").stdout


def test_show_prints_source_licence_and_hash(shell):
    done = shell("factors", "show", "electricity-maps/FR/2024")
    text = " ".join(done.stdout.split())
    for words in (
        "0.033 kg/kWh",
        "FR, France",
        "ODbL-1.0",
        "life-cycle",
        "one sigma not stated",
        "@tgwf/co2",
    ):
        assert words in text
    shown = shell.json("factors", "show", "electricity-maps/FR/2024")
    assert shown["factor"]["value"] == "0.033"
    assert "electricity-maps/FR/2024" in shell("factors", "show", "electricity-maps/FR/204", code=2).stderr


def own_france(folder, value="0.424584"):
    folder.mkdir(exist_ok=True)
    (folder / "mine.csv").write_text(write_csv([row(factor_id="mine/FR", value=value, source="Old table")]))


def test_a_users_row_is_marked_warned_of_and_shown_with_what_it_replaces(shell):
    """Case C27: the override is named as source, with a warning that it is far from ours."""
    own_france(shell.folder / "own")
    (shell.folder / "pyproject.toml").write_text('[tool.carbonlens]\nfactors = "own"\n')
    done = shell("factors", "list", "--zone", "FR", "--year", "2024", "--kind", "grid")
    assert "* mine/FR" in done.stdout
    assert "ember/FR/2024" not in done.stdout
    assert "CL347" in done.stderr
    shown = shell("factors", "show", "mine/FR").stdout
    assert "mine.csv, line 2" in " ".join(shown.split())
    assert "0.033 electricity-maps/FR/2024" in " ".join(shown.split())


def test_a_refused_row_stops_with_file_line_and_mend(shell):
    own_france(shell.folder / "own", value="56")
    done = shell("factors", "list", "--factors", "own", code=2)
    said = " ".join(done.stderr.split())
    assert "mine.csv, line 2" in said
    assert "divide it by 1000" in said


def test_diff_holds_a_users_table_against_ours(shell):
    own_france(shell.folder / "own")
    file = shell.folder / "own" / "mine.csv"
    shell("factors", "import", file, "--factors", "taken")
    (shell.folder / "own" / "mine.csv").write_text(
        write_csv(
            [row(span="life_cycle", flow="production", method="location", averaging="average", value="0.09")]
        )
    )
    done = shell("factors", "diff", file)
    assert lines(done)[1].split()[:5] == ["FR", "2024", "life_cycle", "0.04418", "0.09"]
    assert "1 figure changed, 0 alike" in done.stdout
    found = shell.json("factors", "diff", file)
    changed = found["changed"]
    # What stands in one set only is named, and why only some of the bundled rows are counted.
    ids = [f["factor_id"] for f in found["only_old"]]
    assert len(ids) > 3
    assert [i for i in ids if f"only in bundled: {i}" in done.stdout] == ids[:3]
    assert f"{len(ids) - 3} more only in bundled" in done.stdout
    every = shell("factors", "diff", file, "--all").stdout
    assert all(i in every for i in ids)
    assert "same kinds and subjects" in done.stdout
    assert changed[0]["ratio"] == pytest.approx(0.09 / 0.04418)


def test_diff_of_two_versions_reads_folders_and_wheels(shell):
    wheel = shell.folder / "carbonlens-0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as made:
        text = (DATA / "gcp_regions.csv").read_text("utf-8").replace(",0.10337,", ",0.2,")
        made.writestr("carbonlens/factors/data/gcp_regions.csv", text)
        made.writestr("carbonlens/factors/data/places/zones.csv", "zone\nFR\n")
    found = shell.json("factors", "diff", wheel, DATA)
    assert [(c["new"]["subject"], c["old"]["value"]) for c in found["changed"]] == [
        ("gcp:europe-west1", "0.2")
    ]
    assert (found["same"], found["only_old"]) == (202, [])
    assert "no such file" in shell("factors", "diff", "0.0.9", code=3).stderr


def test_import_takes_refuses_and_says_what(shell):
    (shell.folder / "ember.csv").write_text(
        EMBER_LONG.replace("Narnia,XNA", "Central African Republic,CAF").replace(",10\n", ",0\n")
    )
    done = shell("factors", "import", "ember.csv", "--factors", "own")
    text = " ".join(done.stdout.split())
    assert "saved 1 factor of ember.csv (Ember yearly, long)" in text
    assert "left out: 1 line before 2019" in done.stdout
    assert "refused: 1 factor" in done.stdout
    assert "CL341 error: ember.csv:5: grid CF 2024 is 0 kg/kWh" in " ".join(done.stderr.split())
    listed = shell.json("factors", "list", "--zone", "FR", "--year", "2024", "--factors", "own")
    own = [f for f in listed["factors"] if f["own"]]
    assert [(f["value"], f["factor_id"]) for f in own] == [("0.04418", "ember-csv/FR/2024")]


def test_import_does_not_replace_unasked_nor_say_a_thing_twice(shell):
    (shell.folder / "FR.csv").write_text(maps(["2023-01-01 00:00:00", "2024-01-01 00:00:00"], NEW))
    shell("factors", "import", "FR.csv", "--factors", "own")
    assert "--replace" in shell("factors", "import", "FR.csv", "--factors", "own", code=2).stderr
    shell("factors", "import", "FR.csv", "--factors", "own", "--replace")
    (shell.folder / "copy.csv").write_text((shell.folder / "FR.csv").read_text())
    assert "CL344" in shell("factors", "import", "copy.csv", "--factors", "own", code=2).stderr
    assert not (shell.folder / "own" / "copy.csv").exists()


def test_import_of_nothing_good_writes_nothing(shell):
    (shell.folder / "bad.csv").write_text(write_csv([row(value=0), row(value=1, subject="MS")]))
    done = shell("factors", "import", "bad.csv", "--factors", "own", code=3)
    assert "nothing taken" in done.stdout
    assert not (shell.folder / "own").exists()
    assert "--factors" in shell("factors", "import", "bad.csv", code=2).stderr
    # A file that is not there is told before a folder is asked for.
    assert "no such file" in shell("factors", "import", "gone.csv", code=3).stderr


def test_a_close_names_the_factor_set(shell):
    own_france(shell.folder / "own")
    (shell.folder / "runs.csv").write_text(
        "run_id,study,step,energy_j,units,start_utc,duration_s\nr1,s,base,3600000,1,2024-03-01T00:00:00Z,60\n"
    )
    shell("import", "runs.csv")
    plain = shell.json("ledger", "close", "2024-03")
    assert (plain["factor_set_sha256"], plain["factor_set_note"]) == (bundled().sha256, None)
    other = shell.json("ledger", "close", "2024-04", CARBONLENS_FACTORS=str(shell.folder / "own"))
    assert other["factor_set_sha256"] not in {None, bundled().sha256}
    listed = shell.json("factors", "list", "--factors", "own")
    assert listed["factor_set_sha256"] == other["factor_set_sha256"]


def test_no_licence_is_cut(shell):
    listed = shell("factors", "list").stdout
    told = " ".join(listed.split())
    for table in shell.json("factors", "list")["tables"]:
        assert "…" not in listed
        for licence in table["licences"]:
            assert " ".join(licence.split()) in told
