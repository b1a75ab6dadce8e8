"""``compare`` as a user meets it: selection, baseline, unknowns, refusals."""

import math

import pytest

HEAD = "run_id,study,step,repeat,energy_j,units,unit,boundary,energy_grade,start_utc\n"


def table(arms, study="s", rounds=6, start="2026-01-01T00:00:00"):
    rows = [
        f"{study}{step}{i},{study},{step},{i},{energy * (1 + 0.01 * (i % 3))},10,image,it,B,{start}"
        for step, energy in arms.items()
        for i in range(1, rounds + 1)
    ]
    return HEAD + "\n".join(rows) + "\n"


@pytest.fixture
def study(shell, tmp_path):
    (tmp_path / "t.csv").write_text(table({"base": 100.0, "fast": 60.0, "small": 30.0}))
    shell("import", "t.csv")
    return shell


def test_the_only_study_is_taken_and_parts_sum(study):
    result = study.json("compare")
    assert [s["step"] for s in result["steps"]] == ["fast", "small"]
    parts = [s["attribution"]["ladder_j"]["value"] for s in result["steps"]]
    assert math.fsum(parts) == pytest.approx(result["total"]["savings"]["energy_j"]["value"])
    assert "CL430" in [f["code"] for f in result["findings"]]


def test_the_baseline_is_the_first_row_whatever_the_clock_says(shell, tmp_path):
    first = table({"base": 100.0}, start="2026-01-02T00:00:00")
    later = table({"fast": 60.0}, start="2026-01-01T00:00:00").removeprefix(HEAD)
    (tmp_path / "t.csv").write_text(first + later)
    shell("import", "t.csv")
    assert shell.json("compare")["baseline"] == "base"


def test_files_imported_one_after_the_other_keep_their_order(shell, tmp_path):
    (tmp_path / "z.csv").write_text(table({"base": 100.0}))
    (tmp_path / "a.csv").write_text(table({"fast": 60.0}))
    shell("import", "z.csv", "a.csv")
    assert shell.json("compare")["baseline"] == "base"


def test_baseline_and_steps_can_be_chosen(study):
    result = study.json("compare", "--baseline", "fast", "--step", "small")
    assert (result["baseline"], [s["step"] for s in result["steps"]]) == ("fast", ["small"])


@pytest.mark.parametrize("chosen", ["fast", "small"])
def test_the_study_s_own_baseline_is_a_step_where_another_takes_its_place(study, chosen):
    result = study.json("compare", "--baseline", chosen)
    others = {s["step"]: s for s in result["steps"]}
    assert sorted([chosen, *others]) == ["base", "fast", "small"]
    assert others["base"]["measured_on"] == chosen
    forward = study.json("compare")
    rise = next(s for s in forward["steps"] if s["step"] == chosen)["vs_baseline"]["ratio"]["value"]
    assert others["base"]["vs_previous"]["ratio"]["value"] == pytest.approx(1 / rise)


def test_two_arms_can_be_swapped(shell, tmp_path):
    """The finding that tells of a guessed baseline advises it, so it must not say that nothing is there."""
    (tmp_path / "t.csv").write_text(table({"fast": 60.0, "base": 100.0}))
    shell("import", "t.csv")
    (step,) = shell.json("compare", "--baseline", "base")["steps"]
    assert (step["step"], step["verdict"]) == ("fast", "better")


def test_a_baseline_that_nothing_measured_is_no_step_of_another(study, tmp_path):
    steps = "".join(f'[[step]]\nname = "{name}"\n' for name in ("fast", "small"))
    head = '[study]\nname = "s"\nunit = "image"\nbaseline = "never"\n'
    (tmp_path / "s.toml").write_text(head + steps)
    result = study.json("compare", "--study", "s.toml", "--baseline", "fast")
    assert [s["step"] for s in result["steps"]] == ["small"]


def test_runs_without_units_are_no_units_of_a_study_file(shell, tmp_path):
    (tmp_path / "t.csv").write_text(table({"base": 100.0, "fast": 60.0}).replace(",10,image", ",,"))
    shell("import", "t.csv")
    step = '[[step]]\nname = "fast"\n'
    (tmp_path / "s.toml").write_text('[study]\nname = "s"\nunit = "query"\nbaseline = "base"\n' + step)
    assert "no run states how many" in shell("compare", "--study", "s.toml", code=2).stderr
    assert shell.json("compare")["unit"] == "run"


@pytest.mark.parametrize(
    "options",
    [
        ["--baseline", "base", "--step", "base"],
        ["--step", "fast", "--step", "fast"],
        ["--step", "base"],
        ["--step", "nothing"],
        ["--study", "nothing"],
        ["--study", "nothing.toml"],
    ],
)
def test_a_wrong_selection_is_one_line_and_never_a_hang(study, options):
    done = study("compare", *options, code=3 if options[-1].endswith(".toml") else 2)
    assert len(done.stderr.splitlines()) == 1


def test_two_studies_ask_for_a_choice(study, tmp_path):
    (tmp_path / "u.csv").write_text(table({"base": 9.0, "fast": 5.0}, study="other"))
    study("import", "u.csv")
    assert "--study" in study("compare", code=2).stderr
    assert study.json("compare", "--study", "other")["baseline"] == "base"


def test_without_a_place_carbon_is_unknown_and_says_how_to_mend_it(study):
    result = study.json("compare")
    carbon = result["total"]["savings"]["emissions_location_kg"]
    assert (carbon["value"], carbon["state"]) == (None, "unknown")
    assert any(f["code"].startswith("CL3") and f["mend"] for f in result["findings"])
    assert "place unknown" in study("compare").stdout


def test_assumptions_give_carbon_and_money(study, tmp_path):
    (tmp_path / "a.toml").write_text(
        """
[place]
name = "Here"
[grid.location]
id = "l"
zone = "Z"
period = "2025"
value_kg_per_kwh = 0.36
source = "test"
[facility]
pue = 1.5
source = "test"
[electricity]
id = "e"
amount_per_kwh = "0.36"
currency = "EUR"
period = "2025"
source = "test"
"""
    )
    savings = study.json("compare", "--assumptions", "a.toml")["total"]["savings"]
    kwh = savings["energy_j"]["value"] / 3.6e6
    assert savings["emissions_location_kg"]["value"] == pytest.approx(kwh * 1.5 * 0.36)
    codes = [f["code"] for f in study.json("compare", "--assumptions", "a.toml")["findings"]]
    assert "CL310" in codes


def test_text_stays_within_80_columns_for_any_names(shell, tmp_path):
    long = "a_very_long_step_name_that_goes_on_and_on"
    (tmp_path / "t.csv").write_text(table({"base": 100.0, long: 99.9, f"{long}_too": 98.0}))
    shell("import", "t.csv")
    assert max(map(len, shell("compare").stdout.splitlines())) <= 80


def test_an_empty_ledger_asks_for_runs(shell):
    assert "import a run table" in shell("compare", code=2).stderr


def test_a_single_run_an_arm_is_inconclusive(shell, tmp_path):
    (tmp_path / "t.csv").write_text(table({"base": 100.0, "fast": 60.0}, rounds=1))
    shell("import", "t.csv")
    (step,) = shell.json("compare")["steps"]
    assert (step["verdict"], step["decision"]) == ("inconclusive", "undetermined")
    assert step["savings"]["energy_j"]["value"] == pytest.approx(4.0, rel=0.05)


def test_a_study_file_with_another_unit_than_the_runs_is_refused(study, tmp_path):
    (tmp_path / "study.toml").write_text(
        '[study]\nname = "s"\nbaseline = "base"\nunit = "token"\n[[step]]\nname = "fast"\n'
    )
    assert "image" in study("compare", "--study", "study.toml", code=2).stderr


@pytest.mark.parametrize(("boundary", "said"), [("device", True), ("it", False)])
def test_a_host_overhead_of_unknown_width_says_why_carbon_has_no_interval(shell, tmp_path, boundary, said):
    rows = table({"base": 100.0, "fast": 60.0}).replace(",it,", f",{boundary},")
    (tmp_path / "t.csv").write_text(rows)
    shell("import", "t.csv")
    (tmp_path / "a.toml").write_text(
        '[place]\nname = "Here"\n[grid.location]\nid = "l"\nzone = "Z"\nperiod = "2025"\n'
        'value_kg_per_kwh = 0.36\nsource = "test"\nu_relative = 0.05\n'
        '[facility]\npue = 1.5\nsource = "test"\nhost_overhead = 1.1\nhost_overhead_source = "test"\n'
    )
    found = shell.json("compare", "--assumptions", "a.toml")["findings"]
    told = [f for f in found if f["code"] == "CL310" and "host_overhead" in f["message"]]
    assert [f["severity"] for f in told] == (["warning"] if said else [])
    assert all("host_overhead_u_relative" in f["mend"] for f in told)
