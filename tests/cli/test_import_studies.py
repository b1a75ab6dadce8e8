"""Two files of another tool, compared: imported with a study, a step and the work that was done."""

import pytest

from tests.importers.test_codecarbon_columns import many


@pytest.fixture
def files(tmp_path):
    """Write eight runs each of a baseline and of a step that takes three quarters of its energy."""
    for name, share in (("fp32", 1.0), ("int8", 0.75)):
        parts = {"cpu_energy": 0.00125, "gpu_energy": 0.00275, "ram_energy": 0.001, "energy_consumed": 0.005}
        scattered = {
            column: (lambda i, kwh=kwh, share=share: repr(kwh * share * (1 + (i % 5 - 2) / 500)))
            for column, kwh in parts.items()
        }
        powers = dict.fromkeys(("cpu_power", "gpu_power", "ram_power"), "")
        text = many(8, **scattered, **powers, run_id=lambda i, name=name: f"{name}-{i}")
        (tmp_path / f"{name}.csv").write_text(text)


WORK = ("--unit", "inference", "--units", "10000")


@pytest.mark.slow
def test_two_imported_files_come_to_a_verdict_per_unit(shell, files):
    for step in ("fp32", "int8"):
        shell("import", f"{step}.csv", "--tz", "UTC", "--study", "net", "--step", step, *WORK)
    found = shell.json("compare")
    (step,) = found["steps"]
    assert (found["baseline"], found["unit"]) == ("fp32", "inference")
    assert (step["step"], step["verdict"], step["decision"]) == ("int8", "better", "adopt")
    assert step["vs_previous"]["ratio"]["value"] == pytest.approx(0.75, rel=1e-3)
    assert step["energy_per_unit_j"]["value"] == pytest.approx(0.75 * 0.005 * 3.6e6 / 10_000, rel=1e-2)


@pytest.mark.slow
def test_a_map_tells_it_by_path(shell, files, tmp_path):
    places = "".join(f'[[place]]\npath = "{n}.csv"\nstudy = "net"\nstep = "{n}"\n' for n in ("fp32", "int8"))
    (tmp_path / "map.toml").write_text(places)
    shell("import", "fp32.csv", "int8.csv", "--tz", "UTC", "--map", "map.toml")
    printed = shell("compare")
    assert "adopt" in printed.stdout
    assert "energy/run" in printed.stdout, "without units whole runs are compared"


@pytest.mark.slow
def test_what_lacks_is_named_and_can_be_told_later(shell, files):
    shell("import", "fp32.csv", "--tz", "UTC")
    assert "import with --study NAME --step STEP" in shell("compare", code=2).stderr
    shell("import", "fp32.csv", "--study", "net", "--step", "fp32")
    shell("import", "int8.csv", "--tz", "UTC", "--study", "net", "--step", "int8", *WORK)
    said = shell("compare", code=2).stderr
    assert "'fp32' does not tell its units of work" in said
    assert "--units N" in said
    # The baseline stays the first step, though its runs were recorded anew after the others.
    shell("import", "fp32.csv", *WORK)
    found = shell.json("compare")
    assert (found["baseline"], [s["decision"] for s in found["steps"]]) == ("fp32", ["adopt"])


def test_a_tag_of_a_fields_name_is_a_slip(shell, files):
    said = shell("import", "fp32.csv", "--tag", "step=fp32", code=2).stderr
    assert "step is a field of a run, and no tag" in said
    assert "--step" in said


def test_options_that_a_source_goes_before_are_named_at_the_first_import(shell, tmp_path):
    """A note that a terminal shows all the same, and no reason for --strict to fail."""
    table = "run_id,study,step,energy_j,units,boundary,energy_grade,unit\n{},own,base,5,10,it,B,token\n"
    for number in range(5):
        (tmp_path / f"t{number}.csv").write_text(table.format(f"r{number}"))
    told = ("--study", "m", "--step", "z", "--unit", "image", "--strict")
    said = shell("import", "t0.csv", *told).stderr
    assert "t0.csv: --study, --step, --unit: left aside for 1 run" in " ".join(said.split())
    files = [f"t{number}.csv" for number in range(1, 5)]
    said = shell("import", *files, *told).stderr
    assert said.count("left aside") == 3
    assert "... and 1 more such note (--json lists all)" in said


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--units", "0"], "no positive number"),
        (["--units", "1e30"], "more than a record holds"),
        (["--role", "x"], "no role is named 'x' (give variant"),
        (["--study", " "], "--study: the name is empty"),
        (["--step", ""], "--step: the name is empty"),
    ],
)
def test_a_wrong_option_names_its_mend(shell, files, option, said):
    assert said in shell("import", "fp32.csv", *option, code=2).stderr
