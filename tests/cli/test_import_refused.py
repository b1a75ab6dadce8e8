"""What ``import`` prints of files that it refused: which one, and what for."""

import pytest

from carbonlens.cli import import_view
from carbonlens.domain.finding import Finding

UUID = "GPU-11111111-2222-3333-4444-555555555555"
UNPOWERED = """\
timestamp, index, name, utilization.gpu [%]
2026/03/01 10:00:00.000, 0, Tesla V100S-PCIE-32GB, 0 %
"""
HEAD = "run_id,study,step,energy_j,units,boundary,energy_grade,duration_s\n"


def power(first, end, *more):
    rows = [f"2026/03/01 10:00:{s:02}.000, {UUID}, {100 + s % 7}.00 W" for s in range(first, end)]
    return "\n".join(["timestamp, uuid, power.draw [W]", *rows[:3], *more, *rows[3:]]) + "\n"


def filled(folder, count=9):
    """Put files of no format beside others: of many files one line a file says what is refused."""
    for number in range(count):
        (folder / f"zz{number}.csv").write_text("a,b\n1,2\n")


def plain(printed):
    return " ".join(printed.split())


def test_a_log_is_refused_for_what_it_overlaps_and_not_for_a_row_of_it(shell, tmp_path):
    (tmp_path / "one.csv").write_text(power(0, 59))
    cut_off = [f"2026/03/01 10:00:13.{n}00, {UUID}, 12.3" for n in range(1, 9)]
    (tmp_path / "two.csv").write_text(power(10, 50, *cut_off))
    filled(tmp_path)
    printed = plain(shell("import", tmp_path, "--tz", "UTC").stdout)
    assert f"two.csv tells of 39 s of {UUID} that one.csv tells of too" in printed
    (two,) = [f for f in shell.json("import", tmp_path)["files"] if f["path"].endswith("two.csv")]
    assert [f["code"] for f in two["findings"]].count("CL202") == len(cut_off)
    assert two["findings"][0]["code"] == "CL295"


@pytest.mark.parametrize(
    ("changed", "torn", "reason"),
    [
        (3, 1, "is in the ledger with other content"),
        (1, 1, "is in the ledger with other"),
        (1, 3, "energy_j"),
    ],
)
def test_a_table_is_refused_for_what_most_of_it_is_left_out_for(shell, tmp_path, changed, torn, reason):
    rows = [f"r{n},s,base,360{n},10,it,B,5\n" for n in range(changed)]
    (tmp_path / "runs.csv").write_text(HEAD + "".join(rows))
    shell("import", "runs.csv")
    (tmp_path / "runs.csv").unlink()
    bad = [f"t{n},s,base,many,10,it,B,5\n" for n in range(torn)]
    (tmp_path / "other.csv").write_text(HEAD + "".join(bad) + "".join(rows).replace(",360", ",720"))
    filled(tmp_path)
    (line,) = plain(shell("import", tmp_path).stdout).split("refused ")[1:2]
    assert "other.csv" in line
    assert reason in line


def test_refused_files_whose_names_end_alike_are_told_apart(shell, tmp_path):
    paths = []
    for part in ("alpha", "beta"):
        folder = tmp_path / part / "a-rather-long-name-of-a-folder-of-node" / "2026-03-01"
        folder.mkdir(parents=True)
        paths += [folder / f"smi{n}.csv" for n in range(5)]
    for path in paths:
        path.write_text(UNPOWERED + "#" * len(path.name))
    paths[0].write_text(power(0, 30))
    printed = shell("import", tmp_path).stdout
    # One that was imported ends like one that was refused: that is told apart too.
    for path in paths[1:]:
        assert printed.split().count(str(path)) == 1
    assert str(paths[0]) not in printed
    few = shell("import", *paths[:2], *paths[5:7], code=3).stdout
    rows = [line.split()[0] for line in few.splitlines() if ".csv" in line]
    assert len(set(rows)) == 4
    assert sum("alpha" in name for name in rows) == 2
    assert all(len(name) <= 40 and name.endswith(("smi0.csv", "smi1.csv")) for name in rows)


@pytest.mark.parametrize(
    "paths",
    [
        ["alpha/long-name-of-a-folder/of-a-node/smi.csv", "beta/long-name-of-a-folder/of-a-node/smi.csv"],
        ["data/a/long-name-of-a-folder/of-a-node/smi.csv", "data/b/long-name-of-a-folder/of-a-node/smi.csv"],
        ["x" * 60 + "/1/" + "y" * 60, "x" * 60 + "/2/" + "y" * 60],
        ["/a/" + "名" * 30 + "/smi.csv", "/b/" + "名" * 30 + "/smi.csv", "/b/smi.csv"],
        ["a" + "-" * 60 + "b" + "-" * 60, "a" + "-" * 60 + "c" + "-" * 60],
        ["runs.csv", "other.csv"],
    ],
)  # fmt: skip
def test_shortened_paths_never_read_alike(paths):
    names = import_view._told_apart(paths, 40)
    assert len(set(names.values())) == len(paths)
    assert list(names) == paths
    assert all(import_view.output.columns(n) <= 40 or n == path for path, n in names.items())


def test_a_file_of_a_set_that_is_refused_names_the_set():
    file = import_view.FileResult(
        path="b.csv", format="x", status="refused", totals=import_view.Totals(), part_of="a.csv"
    )
    assert import_view._unsaid(file) == "is read with a.csv, of which nothing can be used"


def test_errors_of_which_most_come_first_and_notes_last():
    from carbonlens.app.importing_kept import reason_first

    def of(code, severity="error"):
        return Finding(code=code, severity=severity, message=code)

    every = [of("CL202"), of("CL241", "warning"), of("CL248"), of("CL248"), of("CL213"), of("CL212", "info")]
    assert [f.code for f in reason_first(every)] == ["CL213", "CL202", "CL248", "CL248", "CL241", "CL212"]
    assert [f.code for f in reason_first([*every, of("CL202")])][:3] == ["CL202", "CL202", "CL213"]
