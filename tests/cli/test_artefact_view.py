"""How artefacts are printed, and that they reach JSON and ``runs show``."""

import json

from carbonlens.cli.artefact_view import artefact_lines
from carbonlens.domain.artefact import Artefact
from carbonlens.domain.run import Run
from carbonlens.ledger.store import Ledger
from carbonlens.reporting.run_json import run_json

BEFORE = Artefact(
    name="model",
    direction="in",
    sha256="a" * 64,
    bytes=589_000,
    parameters=147_000,
    nonzeros=146_999,
    macs=37_600_000,
)
AFTER = Artefact(
    name="model", direction="out", sha256="b" * 64, bytes=78_000, parameters=147_000, nonzeros=140_000
)


def run(*artefacts):
    return Run(run_id="r", role="effort", study="s", step="int8", artefacts=artefacts)


def test_before_and_after_stand_in_one_line():
    (line,) = artefact_lines(run(BEFORE, AFTER))
    assert line.replace("\N{NO-BREAK SPACE}", " ") == (
        "model: 589 kB -> 78 kB (−86.8 %); 147\u202f000 parameters; "
        "146\u202f999 -> 140\u202f000 not 0 (−4.8 %); "
        "37\u202f600\u202f000 -> unknown MACs; sha256 aaaaaaaaaaaa -> bbbbbbbbbbbb"
    )


def test_one_side_alone_says_which():
    other = Artefact(name="table", direction="out", kind="file", bytes=12)
    lines = artefact_lines(run(BEFORE, other))
    assert [line.partition(":")[0] for line in lines] == ["model (in)", "table (out)"]
    assert lines[1].replace("\N{NO-BREAK SPACE}", " ") == "table (out): 12 B; sha256 unknown"


def test_what_was_not_changed_says_so():
    same = Artefact(name="model", direction="out", sha256="a" * 64, bytes=589_000)
    assert artefact_lines(run(BEFORE, same))[0].endswith("unchanged")


def test_no_artefacts_no_lines():
    assert artefact_lines(run()) == []


def test_they_are_in_the_json_of_a_run():
    assert run_json(run(BEFORE))["artefacts"] == [BEFORE]


def test_runs_show_prints_them(shell):
    Ledger(shell.folder / "ledger").append(run(BEFORE, AFTER))
    shown = shell("runs", "show", "r", "--ledger", "ledger").stdout
    assert "artefacts" in shown
    assert "140000 not 0" in " ".join(shown.split())
    told = json.loads(shell("runs", "show", "r", "--ledger", "ledger", "--json").stdout)
    assert [a["parameters"] for a in told["run"]["artefacts"]] == [147_000, 147_000]
