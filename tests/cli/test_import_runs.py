"""``import`` and ``runs`` as a user meets them."""

import os

import pytest

TABLE = (
    "run_id,study,step,energy_j,units,boundary,energy_grade,duration_s\n"
    "r1,s,base,3600000,10,it,B,5\nr2,s,fast,1800000,10,it,B,3\n"
)


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "runs.csv"
    file.write_text(TABLE)
    return file


def test_import_json_has_the_promised_shape(shell, table):
    printed = shell.json("import", table)
    assert printed["schema"] == "carbonlens/import/1"
    assert printed["totals"] == {
        "runs": 2,
        "rows": 2,
        "rows_rejected": 0,
        "energy_kwh": 1.5,
        "emissions_reported_kg": None,
        "duration_s": 8.0,
    }
    (file,) = printed["files"]
    assert (file["path"], file["format"], file["status"]) == (str(table), "run-table", "imported")
    assert file["findings"] == []


def test_the_same_content_counts_once_under_any_name(shell, table, tmp_path):
    shell("import", table)
    copy = tmp_path / "runs.csv.bak"
    copy.write_text(TABLE)
    assert shell.json("import", copy)["files"][0]["status"] == "duplicate"
    overlap = tmp_path / "more.csv"
    overlap.write_text(TABLE + "r3,s,fast,1,10,it,B,1\n")
    printed = shell.json("import", overlap)
    assert printed["totals"]["runs"] == 1
    assert [f["code"] for f in printed["files"][0]["findings"]] == ["CL212", "CL212"]
    assert len(shell.json("runs")["runs"]) == 3


def test_a_changed_row_of_a_known_id_is_not_counted_twice(shell, table, tmp_path):
    shell("import", table)
    other = tmp_path / "other.csv"
    other.write_text(TABLE.replace("3600000", "7200000"))
    printed = shell.json("import", other)
    codes = {f["code"] for f in printed["files"][0]["findings"]}
    assert codes == {"CL213", "CL212"}
    assert len(shell.json("runs")["runs"]) == 2


def test_text_output_says_what_was_saved(shell, table):
    done = shell("import", table)
    assert done.stdout.startswith("saved 2 runs, 1.5 kWh, in ")
    assert done.stderr == ""


def test_a_named_file_of_no_known_format_exits_3(shell, tmp_path):
    (tmp_path / "x.bin").write_bytes(b"\x00\x01\x02")
    done = shell("import", "x.bin", code=3)
    assert "no known format" in done.stderr
    assert "saved" not in done.stdout


def test_a_missing_file_exits_3(shell):
    assert "CL214" in shell("import", "nowhere.csv", code=3).stderr


def test_a_folder_is_walked_and_strange_files_are_listed(shell, table, tmp_path):
    folder = tmp_path / "data"
    (folder / "deep").mkdir(parents=True)
    table.rename(folder / "deep" / "runs.csv")
    (folder / "notes.txt").write_text("hello")
    printed = shell.json("import", folder)
    assert sorted(f["status"] for f in printed["files"]) == ["imported", "refused"]
    shell("import", folder, "--strict", code=3)


def test_tags_and_site_are_put_on_every_run(shell, table):
    shell("import", table, "--tag", "team=vision", "--site", "berlin")
    assert {r["tags"]["team"] for r in shell.json("runs")["runs"]} == {"vision"}
    shell("import", table, "--tag", "vision", code=2)


def test_runs_json_has_the_promised_shape(shell, table):
    shell("import", table)
    first = shell.json("runs")["runs"][0]
    wanted = {"run_id", "study", "step", "status", "start_us", "duration_s", "energy", "units", "unit"}
    assert wanted | {"coverage", "findings"} <= set(first)
    total = first["energy"]["total"]
    assert set(total) == {"value", "low", "high", "unit", "grade", "state", "confidence"}
    assert (total["value"], total["unit"], total["grade"], total["state"]) == (3.6e6, "J", "B", "known")
    assert total["low"] < total["value"] < total["high"]


def test_runs_list_and_show_print_few_lines_within_80_columns(shell, table):
    shell("import", table)
    for command in (["runs"], ["runs", "list"], ["runs", "show", "r1"]):
        lines = shell(*command).stdout.splitlines()
        assert 0 < len(lines) <= 12
        assert max(map(len, lines)) <= 80


def test_an_empty_ledger_says_so(shell):
    assert shell("runs").stdout.startswith("no runs in ")
    assert shell.json("runs")["runs"] == []


def test_an_unknown_run_exits_2(shell, table):
    shell("import", table)
    assert "carbonlens runs" in shell("runs", "show", "zzzz", code=2).stderr


def test_a_hostile_name_cannot_rewrite_the_terminal(shell, tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("run_id,study,step,energy_j,units\nx\x1b[2J,s\x07,b\x1b]0;x\x07,1,1\n")
    shell("import", file)
    done = shell("runs")
    assert "\x1b" not in done.stdout + done.stderr
    assert "\x07" not in done.stdout


def test_the_ledger_is_found_by_variable_and_option(shell, table, tmp_path):
    shell("import", table, CARBONLENS_LEDGER=str(tmp_path / "v"))
    assert len(shell.json("runs", "--ledger", tmp_path / "v")["runs"]) == 2
    assert shell.json("runs")["runs"] == []


def test_an_unwritable_ledger_is_refused_before_reading(shell, table, tmp_path):
    (tmp_path / "file").write_text("")
    done = shell("import", table, "--ledger", tmp_path / "file" / "l", code=2)
    assert "cannot be written" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_no_command_prints_help_and_a_wrong_one_exits_2(shell):
    assert "import" in shell("--help").stdout
    shell("importt", code=2)
    shell("runs", "--nonsense", code=2)
    assert shell("--version").stdout.startswith("carbonlens ")


def test_output_survives_a_terminal_without_utf8(shell, table):
    shell("import", table)
    done = shell("runs", PYTHONIOENCODING="ascii", PYTHONUTF8="0", LC_ALL="C")
    assert "kWh" in done.stdout


def test_no_color_codes_and_no_home_are_needed(shell, table):
    shell("import", table, HOME=os.devnull, XDG_STATE_HOME=os.devnull)


def test_a_file_of_which_nothing_can_be_used_is_refused(shell, tmp_path):
    (tmp_path / "bad.csv").write_text("run_id,study,step,energy_j,units\nr,s,b,-1,1\n")
    assert "below 0" in shell("import", "bad.csv", code=3).stderr


def test_a_misspelt_column_is_named(shell, tmp_path):
    (tmp_path / "t.csv").write_text("run_id,study,step,energy_j,units,boundry\nr,s,b,1,1,it\n")
    codes = [f["code"] for f in shell.json("import", "t.csv")["files"][0]["findings"]]
    assert "CL208" in codes


def test_a_doubled_column_is_refused(shell, tmp_path):
    (tmp_path / "t.csv").write_text("run_id,study,step,energy_j,energy_j,units\nr,s,b,1,2,1\n")
    assert "twice" in shell("import", "t.csv", code=3).stderr


def test_impossible_dates_are_rejected_by_row(shell, tmp_path):
    rows = "a,s,b,1,1,0001-01-01T00:00:00+14:00\nb,s,b,1,1,2026-01-01T00:00:00Z\n"
    (tmp_path / "t.csv").write_text(f"run_id,study,step,energy_j,units,start_utc\n{rows}")
    assert shell.json("import", "t.csv")["totals"]["runs"] == 1
    shell("runs")


def test_options_before_a_sub_command_are_not_dropped(shell, table, tmp_path):
    shell("import", table, "--ledger", tmp_path / "x")
    assert "after it" in shell("runs", "--ledger", tmp_path / "x", "list", code=2).stderr
    assert "r1" in shell("runs", "list", "--ledger", tmp_path / "x").stdout


def test_a_second_import_with_a_tag_is_no_conflict(shell, table, tmp_path):
    shell("import", table)
    more = tmp_path / "more.csv"
    more.write_text(TABLE + "r3,s,fast,1,10,it,B,1\n")
    codes = [f["code"] for f in shell.json("import", more, "--tag", "team=a")["files"][0]["findings"]]
    assert codes == ["CL212", "CL212"]


def test_an_existing_folder_keeps_its_own_gitignore(shell, table, tmp_path):
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "code.py").write_text("")
    shell("import", table, "--ledger", "project")
    assert not (tmp_path / "project" / ".gitignore").exists()


def test_a_home_that_does_not_exist_is_a_usage_error(shell, table):
    assert "write the path in full" in shell("runs", CARBONLENS_LEDGER="~nosuchuser/x", code=2).stderr


def test_of_a_long_path_the_file_and_the_reason_are_shown(shell, tmp_path):
    """The begin of a path is what all files of a folder have in common."""
    deep = tmp_path / ("a_very_long_name_of_a_folder_" * 4)
    deep.mkdir()
    for number in range(9):
        (deep / f"empty_{number}.csv").write_text("")
    (deep / "runs.csv").write_text(TABLE)
    printed = shell("import", deep).stdout
    lines = [line for line in printed.splitlines() if line.startswith("refused ")]
    assert len(lines) == 9
    assert all(len(line) <= 80 and f"empty_{n}.csv is empty" in line for n, line in enumerate(lines))
    few = shell("import", deep / "runs.csv", deep / "empty_1.csv", code=3).stdout
    assert "runs.csv" in few
    assert "empty_1.csv" in few


UNPOWERED = """\
timestamp, index, name, utilization.gpu [%]
2026/03/01 10:00:00.000, 0, Tesla V100S-PCIE-32GB, 0 %
"""


def test_of_each_refused_file_the_whole_reason_and_the_mend_are_shown(shell, tmp_path):
    """Nothing else would show them: a list of many files has a line or two for each."""
    for number in range(9):
        (tmp_path / f"no_power_{number}.csv").write_text(UNPOWERED)
    (tmp_path / "runs.csv").write_text(TABLE)
    printed = shell("import", tmp_path).stdout
    refused = [line for line in printed.splitlines() if line.startswith(("refused", "  "))]
    assert all(len(line) <= 80 for line in refused), refused
    plain = " ".join(printed.split())
    for file in shell.json("import", tmp_path)["files"]:
        for finding in file["findings"] if file["status"] == "refused" else ():
            assert f"{finding['message']} ({finding['mend']})" in plain


def test_a_trace_that_is_counted_in_part_is_an_error_when_strict(shell, tmp_path):
    """A log that was rotated begins with lines of the one before: said, and --strict fails on it."""
    for name, seconds in (("one.csv", range(30)), ("two.csv", range(20, 50))):
        rows = (
            f"2026/03/01 10:00:{s:02}.000, GPU-11111111-2222-3333-4444-555555555555, 100.00 W"
            for s in seconds
        )
        (tmp_path / name).write_text("\n".join(["timestamp, uuid, power.draw [W]", *rows]) + "\n")
    printed = shell.json("import", "one.csv", "two.csv", "--tz", "UTC")
    assert [f["code"] for file in printed["files"] for f in file["findings"]] == ["CL297"]
    assert printed["totals"]["energy_kwh"] == pytest.approx(4900 / 3.6e6)
    shell("import", "one.csv", "two.csv", "--tz", "UTC", "--strict", "--ledger", "other", code=3)
