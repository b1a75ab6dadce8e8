"""``carbonlens audit`` as users call it."""

from __future__ import annotations

from tests.audit.examples import LLAMA_2


def test_a_card(shell):
    (shell.folder / "card.md").write_text(LLAMA_2)
    done = shell("audit", "card.md")
    assert "CL706 warning card.md:7" in done.stdout
    assert "a row of 153920 kg is missing" in " ".join(done.stdout.split())
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stdout.splitlines()[-1].startswith("4 claims checked in card.md")


def test_strict_exits_with_3(shell):
    (shell.folder / "card.md").write_text(LLAMA_2)
    shell("audit", "card.md", "--strict", code=3)
    (shell.folder / "good.csv").write_text("model,energy (kWh),emissions (kg),country\na,10,4,DE\n")
    shell("audit", "good.csv", "--strict")


def test_json(shell):
    (shell.folder / "card.md").write_text(LLAMA_2)
    told = shell.json("audit", "card.md")
    assert told["schema"] == "carbonlens/audit/1"
    assert told["checked"] == {"claim": 4}
    assert {"code", "severity", "message", "file", "line", "mend", "subject"} == set(told["findings"][0])


def test_a_file_that_cannot_be_read(shell):
    done = shell("audit", "gone.md", code=3)
    assert "gone.md: cannot be read" in done.stderr


def test_files_and_a_ledger_are_apart(shell):
    (shell.folder / "card.md").write_text(LLAMA_2)
    shell("audit", "card.md", "--ledger", "x", code=2)


def test_the_ledger(shell):
    table = "run_id,study,step,energy_j,units,duration_s,energy_grade,boundary\n"
    (shell.folder / "runs.csv").write_text(f"{table}r1,s,a,720000000,1,60,C,it\nr2,s,a,100,1,60,C,it\n")
    shell("import", "runs.csv")
    told = shell.json("audit")
    assert told["checked"] == {"run": 2}
    assert {f["code"] for f in told["findings"]} == {"CL709", "CL710"}
    assert "2 runs checked in" in shell("audit").stdout


def test_an_empty_ledger(shell):
    assert "0 runs checked" in shell("audit").stdout
