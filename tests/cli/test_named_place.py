"""A place named in the assumptions gives the carbon figure, and the terminal says from which row."""

import pytest

TABLE = "run_id,study,step,repeat,energy_j,units,unit,boundary,energy_grade\n" + "".join(
    f"{step}{n},ranker,{step},{n},{joules + n},1000,query,it,B\n"
    for n in range(1, 6)
    for step, joules in (("fp32", 2000000), ("int8", 1400000))
)


@pytest.fixture
def ranker(shell):
    (shell.folder / "runs.csv").write_text(TABLE)
    shell("import", "runs.csv", "--ledger", "ledger")
    return shell


def write(shell, text):
    (shell.folder / "a.toml").write_text(text)
    return ("compare", "--ledger", "ledger", "--assumptions", "a.toml")


@pytest.mark.slow
def test_place_factor_and_source_are_printed(ranker):
    done = ranker(*write(ranker, '[place]\ncloud = "gcp:europe-west1"\nyear = 2024\n'))
    assert "gcp:europe-west1, Belgium: 103 g/kWh, 2024" in " ".join(done.stdout.split())
    notes = " ".join(done.stderr.split())
    assert "location factor filled in: 0.10337 kg/kWh of gcp:europe-west1" in notes
    assert "PUE filled in: 1.09 of gcp:europe-west1 (2023 figure used for 2024)" in notes
    found = ranker.json(*write(ranker, '[place]\ncloud = "gcp:europe-west1"\nyear = 2024\n'))
    assert found["vector"]["pue"] == 1.09
    savings = found["steps"][0]["savings"]
    # 600 J a query at the plug of the servers: x PUE x factor.
    assert savings["emissions_location_kg"]["value"] == pytest.approx(600 / 3.6e6 * 1.09 * 0.10337, rel=1e-3)
    assert sum(f["code"] == "CL352" for f in found["findings"]) == 2


@pytest.mark.slow
def test_a_study_file_may_name_the_place_of_serving_and_that_of_the_effort(ranker):
    (ranker.folder / "study.toml").write_text(
        '[study]\nname = "ranker"\nbaseline = "fp32"\nunit = "query"\n[[step]]\nname = "int8"\n'
        '[[effort_place]]\nzone = "PL"\n[effort_place.assumptions.place]\nzone = "PL"\nyear = 2025\n'
        '[assumptions.place]\nzone = "SE3"\nyear = 2025\n'
    )
    found = ranker.json("compare", "--ledger", "ledger", "--study", "study.toml")
    assert found["vector"]["location"]["zone"] == "SE-SE3"
    assert sum(f["code"] == "CL352" for f in found["findings"]) == 2


@pytest.mark.slow
def test_a_place_that_nobody_knows_ends_the_command_with_what_was_perhaps_meant(ranker):
    done = ranker(*write(ranker, '[place]\nzone = "Frnace"\nyear = 2024\n'), code=2)
    assert "FR (France)" in done.stderr
    done = ranker(*write(ranker, '[place]\ncloud = "aws:us-east-1"\ncountry = "FRA"\nyear = 2024\n'), code=2)
    assert "United States (US)" in done.stderr
    assert "France (FR)" in done.stderr
