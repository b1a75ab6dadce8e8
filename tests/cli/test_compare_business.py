"""``carbonlens compare --business``: options, JSON, explanation, report, and bad input in plain words."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.commands import Shell

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "business"
COMPARE = ("compare", "--ledger", "ledger", "--study", "study.toml")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with the demo study of the docs in its ledger."""
    shell = Shell(tmp_path_factory.mktemp("prepared"))
    for file in EXAMPLES.iterdir():
        shutil.copy(file, shell.folder)
    shell("import", "demo_runs.csv", "--ledger", "ledger")
    return shell.folder


@pytest.fixture
def demo(shell, prepared):
    """A shell in a copy of that folder."""
    shutil.copytree(prepared, shell.folder, dirs_exist_ok=True)
    return shell


@pytest.mark.slow
def test_json_holds_the_comparison_and_the_case(demo):
    shape = demo.json(*COMPARE, "--business", "business.toml")
    assert shape["schema"] == "carbonlens/compare/1"
    case = shape["business"]
    assert case["adopted"] == ["ort-fp32", "pruned"]
    undetermined = [s["step"] for s in shape["steps"] if s["decision"] == "undetermined"]
    assert undetermined == ["static-int8"]
    one = case["scenarios"]["expected"]
    per_image = shape["total"]["savings"]["cost"]["value"]
    units = sum(100e9 * 1.1 ** (k / 12) for k in range(6, 36))
    assert float(one["cash"]["amount"]) == pytest.approx(per_image * units, rel=1e-4)
    again = demo.json(*COMPARE, "--business", "business.toml")["business"]
    assert again["monte_carlo"] == case["monte_carlo"]
    other = demo.json(*COMPARE, "--business", "business.toml", "--seed", 5)["business"]
    assert other["monte_carlo"]["npv_low"] != case["monte_carlo"]["npv_low"]
    assert other["monte_carlo"]["seed"] == 5


@pytest.mark.slow
def test_every_id_of_the_case_is_explained(demo):
    case = demo.json(*COMPARE, "--business", "business.toml")["business"]
    ids = [case["scenarios"]["expected"]["npv"]["id"], case["cost_of_delay_per_month"]["id"]]
    for name in ids:
        told = demo.json(
            "explain", name, "--ledger", "ledger", "--study", "study.toml", "--business", "business.toml"
        )
        assert told["schema"] == "carbonlens/explain/1"
        assert "demo_runs.csv" in json.dumps(told)
    listed = demo(
        "explain", "--list", "--ledger", "ledger", "--study", "study.toml", "--business", "business.toml"
    )
    assert set(ids) <= set(listed.stdout.split())
    missing = demo("explain", ids[0], "--ledger", "ledger", "--study", "study.toml", code=2)
    assert "--business" in missing.stderr
    unknown = demo(
        "explain", "business.npv.exspected", "--ledger", "ledger", "--study", "study.toml",
        "--business", "business.toml", code=2,
    )  # fmt: skip
    assert "business.npv.expected" in unknown.stderr


@pytest.mark.slow
def test_a_report_with_a_case_is_verified_from_itself(demo):
    demo(
        "report", "business-case", "--ledger", "ledger", "--study", "study.toml",
        "--business", "business.toml", "--format", "html,pdf,json,md", "-o", "report",
    )  # fmt: skip
    for name in ("pdf", "json"):
        told = demo("verify", f"report/business-case.{name}").stdout
        assert "verified" in told
    page = (demo.folder / "report" / "business-case.html").read_text("utf-8")
    assert 'data-figure="business.npv.expected"' in page
    text = (demo.folder / "report" / "business-case.json").read_text("utf-8")
    wrong = text.replace("business.npv.expected", "business.npv.expectet")
    (demo.folder / "report" / "wrong.json").write_text(wrong, "utf-8")
    demo("verify", "report/wrong.json", code=4)


@pytest.mark.slow
def test_options_state_a_case_and_win_over_a_file(demo):
    options = (
        "--horizon",
        "12 months",
        "--discount-rate",
        "5%",
        "--start",
        "2028-01",
        "--regime",
        "on_demand",
    )
    alone = demo.json(*COMPARE, "--volume", "100e9 a month", *options, "--one-off", "work=1000")["business"]
    assert (alone["horizon_months"], alone["discount_rate"], alone["start"]) == (12, 0.05, "2028-01")
    assert list(alone["scenarios"]) == ["expected"]
    assert alone["scenarios"]["expected"]["units_per_month"] == pytest.approx(100e9)
    assert [o["name"] for o in alone["one_offs"]] == ["work", "making the steps"]
    over = demo.json(*COMPARE, "--business", "business.toml", "--horizon", "2 years")["business"]
    assert (over["horizon_months"], over["discount_rate"]) == (24, 0.08)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--horizon", "soon"), "whole months"),
        (("--horizon", "1.5 months"), "whole months"),
        (("--horizon", "0"), "whole months"),
        (("--discount-rate", "nan"), "0.08, or 8%"),
        (("--one-off", "free"), "NAME=AMOUNT"),
        (("--one-off", "work=nan"), "NAME=AMOUNT"),
        (("--regime", "rented"), "on_demand, committed, reserved, owned"),
        (("--business", "none.toml"), "cannot be read"),
        (("--regime", "on_demand"), "--horizon"),
        (("--business", "business.toml", "--until", "2027-02-30"), "write a date"),
        (("--business", "mixed.toml"), "is in USD, the case in EUR"),
    ],
)
@pytest.mark.slow
def test_bad_input_is_told_in_plain_words(demo, options, words):
    text = (demo.folder / "business.toml").read_text("utf-8")
    mixed = text.replace('name = "engineering"', 'name = "engineering"\ncurrency = "USD"')
    (demo.folder / "mixed.toml").write_text(mixed, "utf-8")
    code = 3 if "none.toml" in options else 2
    done = demo(*COMPARE, *options, code=code)
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.slow
def test_without_a_price_the_text_says_unknown_and_no_number_that_is_none(demo):
    demo("import", "wake_word.csv", "--ledger", "devices")
    done = demo(
        "compare", "--ledger", "devices", "--volume", "1e6 a month", "--horizon", "36",
        "--discount-rate", "0.08", "--start", "2027-01", "--regime", "on_demand",
        "--one-off", "work=1000EUR", code=2,
    )  # fmt: skip
    assert "currency" in done.stderr
    told = demo("compare", "--ledger", "devices", "--business", "business.toml")
    assert "unknown" in told.stdout
    assert "CL842" in told.stderr
    assert not {"nan", "inf"} & set(told.stdout.lower().split())
    assert len(told.stdout.splitlines()) <= 20
