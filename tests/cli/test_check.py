"""``check`` as a pipeline meets it: exit 1 only for a change beyond its limit."""

import pytest

from tests.cli.test_compare import table


@pytest.fixture
def study(shell, tmp_path):
    (tmp_path / "t.csv").write_text(table({"base": 100.0, "fast": 60.0, "slow": 110.0}))
    shell("import", "t.csv")
    return shell


def test_a_regression_for_sure_gives_exit_code_1(study):
    done = study("check", "--fail-if", "energy:>+3%@95%", code=1)
    first = done.stdout.splitlines()[0]
    assert first.startswith("fail: slow energy:>+3%@95%: +10")
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_no_regression_gives_exit_code_0(study):
    assert "pass: fast" in study("check", "--step", "fast", "--fail-if", "energy:>+3%@95%").stdout


def test_several_conditions_and_one_failing_is_enough(study):
    conditions = ["--fail-if", "energy:>+50%", "--fail-if", "energy:<-20%"]
    result = study.json("check", *conditions, code=1)
    assert result["schema"] == "carbonlens/check/1"
    assert result["failed"] is True
    outcomes = {(c["fail_if"], c["step"]): c["outcome"] for c in result["conditions"]}
    assert outcomes == {
        ("energy:>+50%", "fast"): "pass",
        ("energy:>+50%", "slow"): "pass",
        ("energy:<-20%", "fast"): "fail",
        ("energy:<-20%", "slow"): "pass",
    }
    bounds = {c["bound_is"] for c in result["conditions"] if c["fail_if"] == "energy:<-20%"}
    assert bounds == {"upper"}


def test_check_uses_the_figures_of_compare(study):
    change = study.json("check", "--step", "fast", "--fail-if", "energy:>+3%")["conditions"][0]["change"]
    ratio = study.json("compare")["steps"][0]["vs_baseline"]["ratio"]["value"]
    assert change == pytest.approx(ratio - 1)


def test_what_cannot_be_determined_fails_only_when_strict(shell, tmp_path):
    (tmp_path / "t.csv").write_text(table({"base": 100.0, "slow": 150.0}, rounds=3))
    shell("import", "t.csv")
    assert "undetermined: slow" in shell("check", "--fail-if", "energy:>+3%").stdout
    assert shell.json("check", "--strict", "--fail-if", "energy:>+3%", code=1)["failed"] is True


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--fail-if", "energy>3"], "write METRIC"),
        (["--fail-if", "bleu:<-1%"], "recorded qualities"),
        (["--fail-if", "energy:>3%", "--step", "nothing"], "known: base"),
        ([], "fail-if"),
    ],
)
def test_a_wrong_request_is_2_and_never_1(study, options, said):
    assert said in study("check", *options, code=2).stderr


def test_sure_is_said_of_95_percent_only(study):
    said = study("check", "--step", "fast", "--fail-if", "energy:>+3%@50%", "--fail-if", "energy:>+3%").stdout
    assert "at 50 % confidence" in said
    assert said.count("for sure") == 1


def test_a_bound_reads_the_same_way_above_and_below_zero(study):
    """At least -45 % would read as a saving of 45 % or more, and means the contrary."""
    said = study("check", "--step", "fast", "--fail-if", "energy:>+3%", "--fail-if", "energy:<-90%").stdout
    assert "at least" not in said
    assert "at most" not in said
    assert "not below" in said
    assert "not above" in said


def test_a_long_condition_is_cut_and_its_figures_are_not(study):
    condition = "energy:" + " " * 60 + ">+3%@95%"
    line = study("check", "--step", "fast", "--fail-if", condition).stdout.splitlines()[0]
    assert len(line) <= 80
    assert line.endswith("for sure")
    assert "…: −4" in line


def test_an_unknown_metric_lists_all_that_are_known(study):
    said = study("check", "--fail-if", "Energy:>+3%", code=2).stderr
    assert "metrics: energy, carbon" in said
