"""``compare`` on bad input: a named error with its mend, by the real command line."""

import re

import pytest

HEAD = "run_id,study,step,repeat,energy_j,units,unit,boundary,cost,currency\n"
GOOD = ["1,s,base,1,5,1,image,it,,", "2,s,fast,1,4,1,image,it,,"]


def imported(shell, tmp_path, *rows):
    (tmp_path / "t.csv").write_text(HEAD + "\n".join(rows) + "\n")
    return shell("import", "t.csv")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["1,s,base,1,5,1,image,it,,"], "only the baseline 'base' is there"),
        (["1,s,base,1,,1,image,it,,", GOOD[1]], "baseline 'base' has no run with a usable energy"),
        (["1,s,base,1,5,1,image,it,1,EUR", "2,s,fast,1,4,1,image,it,1,USD"], "differ in currency: EUR, USD"),
        ([GOOD[0], "2,s,fast,1,4,1,image,device,,"], "differ in boundary: device, it"),
        ([GOOD[0], "2,s,fast,1,4,1,token,it,,"], "image.*token"),
    ],
    ids=["missing arm", "missing energy", "currencies", "boundaries", "units"],
)
def test_arms_that_cannot_be_compared(shell, tmp_path, rows, said):
    imported(shell, tmp_path, *rows)
    for command in (["compare"], ["check", "--fail-if", "energy:>3%"]):
        (line,) = shell(*command, code=2).stderr.splitlines()
        assert re.search(said, line)
        assert re.search(r"\(.+\) \[CL\d{3}\]$", line), "the mend and the code"


def test_negative_energy_is_refused_at_import_and_then_missing(shell, tmp_path):
    said = imported(shell, tmp_path, GOOD[0], "2,s,fast,1,-4,1,image,it,,").stderr
    assert "t.csv:3" in said
    assert "CL202 error" in said
    assert "below 0 (mend the row" in said
    assert "only the baseline" in shell("compare", code=2).stderr


def test_a_step_without_energy_is_undetermined_with_an_error_that_names_it(shell, tmp_path):
    imported(shell, tmp_path, GOOD[0], "2,s,fast,1,,1,image,it,,")
    result = shell.json("compare")
    (finding,) = [f for f in result["findings"] if f["code"] == "CL443"]
    assert (finding["severity"], finding["subject"]) == ("error", "fast")
    assert finding["mend"]
    assert result["steps"][0]["decision"] == "undetermined"
    assert "CL443 error" in shell("compare").stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--step", "nothing"], "known: base, fast"),
        (["--baseline", "step=base", "--step", "step=nothing"], "choose a step that runs state: base, fast"),
        (["--baseline", "step=base", "--step", "tag.p=1"], "none states one"),
        (["--baseline", "step=base", "--step", "x:step=base"], "narrow one of the selectors"),
        (["--baseline", "step=base", "--step", "colour=red"], "KEY=VALUE"),
        (["--gate", "accuracy<1"], "METRIC:KIND=LIMIT"),
        (["--margin", "3"], "0.01 means 1 %"),
        (["--volume", "lots"], "2e9 a year"),
    ],
)
def test_a_wrong_request_names_its_mend(shell, tmp_path, options, said):
    imported(shell, tmp_path, *GOOD)
    assert said in shell("compare", *options, code=2).stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[step]]\nname = "missing"\n', "step 'missing' has no measured run"),
        ('[[step]]\nname = "fast"\nselect = {tag = {p = "1"}}\n', "matches no run"),
        ('[[step]]\nname = "fast"\nmeasured_on = "later"\n', "does not stand before it"),
        ('[lattice]\noptimizations = ["P"]\n', "no run has P on"),
    ],
)
def test_a_study_file_that_does_not_fit_the_ledger(shell, tmp_path, text, said):
    imported(shell, tmp_path, *GOOD)
    head = '[study]\nname = "s"\nbaseline = "base"\nunit = "image"\n'
    (tmp_path / "st.toml").write_text(head + text)
    assert said in shell("compare", "--study", "st.toml", code=2).stderr


SELECTING = (
    '[study]\nname = "s"\nbaseline = "base"\nunit = "image"\n'
    '[[step]]\nname = "fast"\n[[step]]\nname = "later"\nselect = {step = "not-yet"}\n'
)


def test_a_step_that_is_not_asked_for_needs_no_runs(shell, tmp_path):
    imported(shell, tmp_path, *GOOD)
    (tmp_path / "st.toml").write_text(SELECTING)
    result = shell.json("compare", "--study", "st.toml", "--step", "fast")
    assert [s["step"] for s in result["steps"]] == ["fast"]
    assert "'later' matches no run" in shell("compare", "--study", "st.toml", code=2).stderr


def test_selectors_compare_runs_across_studies_without_a_file(shell, tmp_path):
    rows = [f"{s}{i},{s},m,{i},{e * (1 + 0.01 * (i % 3))},1,image,it,," for s, e in
            (("old", 10), ("new", 6)) for i in range(1, 7)]  # fmt: skip
    imported(shell, tmp_path, *rows)
    chosen = ["--baseline", "before:study=old", "--step", "after:study=new"]
    terms = ["--volume", "1e6 a day", "--gate", "power_w:max_ratio=1.5", "--margin", "0.02"]
    result = shell.json("compare", *chosen, *terms)
    assert (result["baseline"], result["steps"][0]["step"]) == ("before", "after")
    assert (result["unit"], result["units_per_day"], result["margin"]) == ("image", 1e6, 0.02)
    assert result["steps"][0]["gates"][0]["outcome"] == "undetermined"
    assert result["steps"][0]["vs_baseline"]["ratio"]["value"] == pytest.approx(0.6)
    assert "pass" in shell("check", *chosen, "--fail-if", "energy:>+3%").stdout


def test_a_gate_that_no_run_can_decide_is_told(shell, tmp_path):
    imported(shell, tmp_path, *GOOD)
    found = shell.json("compare", "--gate", "bleu:min_retention=0.98", "--gate", "power:max_ratio=1.5")[
        "findings"
    ]
    assert [f["subject"] for f in found if f["code"] == "CL448"] == ["bleu"]


EFFORT_HEAD = HEAD.replace("step,", "step,role,")
PLACES = """
[study]
name = "s"
baseline = "base"
unit = "image"
[[step]]
name = "fast"
[[effort_place]]
zone = "US"
[effort_place.assumptions.electricity]
id = "u"
amount_per_kwh = "0.1"
currency = "USD"
period = "2026"
source = "s"
[assumptions.electricity]
id = "e"
amount_per_kwh = "0.2"
currency = "EUR"
period = "2026"
source = "s"
"""


def test_effort_priced_in_another_currency_is_a_named_error_and_no_exceeded_limit(shell, tmp_path):
    """Exit code 1 of ``check`` means that a limit is exceeded, and nothing else."""
    rows = [
        "1,s,base,variant,1,5,1,image,it,,,", "2,s,fast,variant,1,4,1,image,it,,,",
        "3,s,fast,effort,,50,,image,it,,,US", "4,s,fast,effort,,50,,image,it,,,DE",
    ]  # fmt: skip
    (tmp_path / "t.csv").write_text(EFFORT_HEAD.strip() + ",zone\n" + "\n".join(rows) + "\n")
    (tmp_path / "st.toml").write_text(PLACES)
    shell("import", "t.csv")
    for command in (["compare"], ["check", "--fail-if", "energy:>3%"]):
        (line,) = shell(*command, "--study", "st.toml", code=2).stderr.splitlines()
        assert "priced in USD" in line
        assert "one currency" in line


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (("base",), "'base' is the baseline: it cannot be a step too"),
        (("fast", "base"), "'base' is the baseline: it cannot be a step too"),
        (("fast", "fast"), "the step 'fast' is named twice"),
    ],
)
def test_a_step_that_is_named_where_it_cannot_stand_is_told_apart(shell, tmp_path, steps, said):
    imported(shell, tmp_path, *GOOD)
    options = [word for step in steps for word in ("--step", step)]
    assert said in shell("compare", "--baseline", "base", *options, code=2).stderr
