"""What the ledger's commands print in 80 columns, and how empty selections end."""

from carbonlens.cli import output
from carbonlens.domain.finding import Finding
from tests.cli.test_ledger import RUNS


def filled(shell):
    (shell.folder / "runs.csv").write_text(RUNS)
    shell("import", "runs.csv")
    return shell


def test_tags_are_shown(shell):
    filled(shell)("runs", "tag", "a1", "team=vision", "owner=x")
    run = next(r["run_id"] for r in shell.json("runs")["runs"] if r["run_id"] != "a2")
    assert any(
        line.split() == ["tags", "owner=x", "team=vision"] for line in _lines(shell("runs", "show", run))
    )


def test_empty_selections_are_refused(shell):
    filled(shell)
    assert shell("ledger", "export", "--study", "nosuch", code=2).stdout == ""
    assert shell("ledger", "export", "--period", "2019", code=2).stdout == ""
    for month in ("2026-99", "2026-00", "20261"):
        assert "is no month" in shell("ledger", "compact", "--month", month, code=2).stderr


def test_an_adjusted_period_says_so_and_has_its_difference_in_one_unit(shell):
    filled(shell)("ledger", "close", "2026-03")
    assert "ADJUSTED" not in shell("account", "--period", "2026-03").stdout
    shell("runs", "supersede", "a1", "--by", "energy=[]")
    lines = _lines(shell("account", "--period", "2026-03"))
    assert lines[0] == "Statement of 2026-03, ADJUSTED: records came or changed after it was closed"
    assert shell.json("account", "--period", "2026-03")["label"] == "ADJUSTED"
    head, *rows = _lines(shell("ledger", "adjustments"))
    assert head.split()[-1] == "difference"
    (device,) = [r for r in rows if "device" in r]
    *_, closed, unit_closed, now, unit_now, change, unit_change = device.split()
    assert (unit_closed, unit_now, unit_change) == ("J", "J", "J")
    assert (closed, change) == ("181", "−100")
    assert now.startswith("80")


def test_one_run_counts(shell):
    (shell.folder / "runs.csv").write_text("\n".join(RUNS.splitlines()[:2]) + "\n")
    shell("import", "runs.csv")
    assert _lines(shell("ledger", "verify"))[-1].endswith("1 run counts, 0 corrected records beside it.")
    assert _lines(shell("ledger", "close", "2026-03"))[0].startswith("Closed 2026-03: 1 run counts,")


def test_a_verdict_fits_its_line(shell):
    filled(shell)
    (batch,) = (shell.folder / ".carbonlens" / "imports").glob("*.parquet")
    batch.write_bytes(b"PAR1")
    lines = _lines(shell("ledger", "verify", code=4))
    assert any(line.startswith("The ledger does NOT hold") for line in lines)
    assert max(map(len, lines)) <= 80


def test_help_names_what_it_wants(shell):
    for command in (["runs", "show"], ["runs", "tag"], ["ledger", "export"], ["ledger", "redact"]):
        told = shell(*command, "--help").stdout
        assert "<str>" not in told
        assert "{run_id}" not in told
        assert "run_id" not in told.splitlines()[0] + "".join(told.splitlines()[1:3])


def test_hidden_errors_are_called_errors_and_a_path_ends_before_the_words(capsys):
    error = Finding(code="CL501", severity="error", message="cannot be read", file="/a/b.json")
    warning = Finding(code="CL512", severity="warning", message="odd", file="/a/c.json", line=3)
    output.print_findings([error, error, warning, warning], most=1)
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "CL501 error: /a/b.json: cannot be read",
        "... and 1 more error and 2 more warnings (--json lists all)",
    ]
    output.print_findings([warning])
    assert capsys.readouterr().err == "CL512 warning: /a/c.json:3: odd\n"


def _lines(done):
    return done.stdout.splitlines()
