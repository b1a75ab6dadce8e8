"""``sci`` and ``account --hourly`` as users run them: width, JSON, what is missing."""

import pytest

from tests.app import sci_case as case
from tests.app.test_hourly_matching import with_hours
from tests.cli.commands import Shell

OPTIONS = ("--inventory", "inventory", "--factors", "factors.csv", "--ledger", "ledger")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sci")
    case.write(folder, [*case.served(), case.headroom()])
    return folder


@pytest.fixture
def shell(place):
    return Shell(place)


def test_the_score_and_all_inputs_are_printed_in_80_columns(shell):
    text = shell("sci", "--study", "chat", "--unit", "request", *OPTIONS).stdout
    assert all(len(line) <= 80 for line in text.splitlines())
    told = " ".join(text.split())
    for words in (
        "per request",
        "R 10000 requests (measured, counted by 10 runs)",
        "E facility",
        "PUE 1.25 (stated: test)",
        "own/DE",
        "TE 150 kg",
        "10 h / 35040 h x 1/1",
        "I is location-based",
    ):
        assert words in told


def test_json_has_score_inputs_and_figures(shell):
    found = shell.json("sci", "--period", case.PERIOD, "--unit", "requests", "--per", "1000", *OPTIONS)
    assert found["schema"] == "carbonlens/sci/1"
    assert found["unit"]["label"] == "1000 requests"
    assert found["score_g"]["value"] == pytest.approx(
        1000 * (found["operational_kg"]["value"] + found["embodied_kg"]["value"]) / 10
    )
    ids = {f["id"] for f in found["figures"]}
    assert found["score_g"]["id"] in ids
    assert {c["energy_kwh"]["id"] for c in found["components"]} <= ids
    assert {i["evidence"] for c in found["components"] for i in c["inputs"]} == {
        "measured",
        "stated",
        "modelled",
    }
    assert found["intensity_basis"] == "location"


def test_a_missing_input_is_named_and_the_score_is_null(tmp_path):
    case.write(tmp_path, case.served(), assets=None)
    shell = Shell(tmp_path)
    done = shell("sci", "--study", "chat", "--unit", "request", *OPTIONS)
    assert "Score unknown: M of lab, serving missing" in done.stdout
    assert "CL300" in done.stderr
    found = shell.json("sci", "--study", "chat", "--unit", "request", *OPTIONS)
    assert found["score_g"]["value"] is None
    assert found["at_least_g"]["value"] > 0
    assert found["missing"] == ["M of lab, serving"]


def test_sci_for_ai_says_role_and_normalisation(shell):
    arguments = ("--study", "chat", "--unit", "parameter", "--units", "7e9", "--ai", "provider")
    refused = shell("sci", *arguments, *OPTIONS, code=2).stderr
    assert "no run" in refused
    assert "stage=NAME" in refused
    assert "no functional unit of a consumer" in (
        shell("sci", "--study", "chat", "--unit", "request", "--ai", "consumer", *OPTIONS, code=2).stderr
    )


def test_account_prints_the_hourly_score_or_why_there_is_none(tmp_path):
    from tests.app import statement_case

    statement_case.write(tmp_path)
    shell = Shell(tmp_path)
    ask = ("account", "--period", statement_case.PERIOD, *OPTIONS)
    assert "Hourly matching" not in shell(*ask).stdout
    assert "Hourly matching: none, no certificate states its hours" in shell(*ask, "--hourly").stdout
    assert "certificate_hours" in shell.json(*ask)["hourly_matching"]["why_none"]
    with_hours(tmp_path, {0: 100.0, 7: 100.0})
    assert "Hourly matching, Test Ltd in DE:" in shell(*ask).stdout
    told = " ".join(shell(*ask, "--hourly").stdout.split())
    assert "at the residual mix" in told
    (match,) = shell.json(*ask)["hourly_matching"]["matches"]
    assert 0 < match["score"]["value"] < 1
    tree = shell("explain", match["score"]["id"], *OPTIONS).stdout
    assert "matched / load" in tree
    assert "GO-1" in tree
