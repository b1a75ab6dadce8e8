"""The text of a comparison: what is summed, and 80 columns."""

from __future__ import annotations

from carbonlens.cli.compare_view import print_as_text
from carbonlens.compare.study import compare_study
from carbonlens.domain.factor import Vector
from carbonlens.domain.study import Step, Study
from tests.compare.study_runs import demo_comparison, rounds
from tests.compare.test_lattice import SHAPLEY_2, compared
from tests.compare.test_study import STUDY, A, B, unmeasured_gpu


def text(comparison, capsys):
    print_as_text(comparison)
    return capsys.readouterr().out.splitlines()


def test_a_lattice_prints_the_change_of_its_full_set(capsys):
    lines = text(compared(SHAPLEY_2, n_rounds=5, spread=0.01), capsys)
    assert "all together: P + Q + B" in lines
    assert not any(line.startswith("accepted") for line in lines)
    total = next(line for line in lines if line.startswith("energy "))
    # 1000 J become 250 J; the last optimization alone saves 40 %.
    assert total.startswith("energy −75.00 % ")
    assert "saves 752 J" in total
    assert [line.split()[4] for line in lines if line.startswith(("1 ", "2 ", "3 "))] == ["off"] * 3


def test_a_lattice_without_its_full_set_claims_nothing(capsys):
    lines = text(compared({"": 1000, "P": 700, "Q": 500}, n_rounds=5), capsys)
    assert "all together were not measured or failed, so nothing is claimed as saved" in lines


def test_a_ladder_prints_the_accepted_path(capsys):
    lines = text(demo_comparison(), capsys)
    assert "accepted: torch > onnx > pruned > static-int8" in lines


def test_a_change_of_a_part_of_the_energy_is_not_printed_as_the_change(capsys):
    runs = [*unmeasured_gpu("a", A), *unmeasured_gpu("b", B)]
    rows = text(compare_study(STUDY, runs, Vector(), {}), capsys)
    row = next(line for line in rows if line.startswith("1 b"))
    assert "%" not in row
    assert row.endswith("undetermined")


def test_every_line_fits_80_columns(capsys):
    long = {s: f"{s}-with-a-very-long-name-that-is-cut" for s in ("a", "b", "c", "d", "e")}
    study = Study(name="t", baseline=long["a"], steps=tuple(Step(name=long[s]) for s in "bcde"), unit="image")
    energies = (1000.0, 620.0, 310.0, 105.0, 55.0)
    runs = [
        r
        for name, joules in zip(long.values(), energies, strict=True)
        for r in rounds(name, [joules * x for x in (1.0, 1.09, 0.92, 1.04, 0.97)])
    ]
    lines = text(compare_study(study, runs, Vector(), {}), capsys)
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("accepted") for line in lines)
    assert max(map(len, text(demo_comparison(), capsys))) <= 80


def test_details_show_parts_gates_front_and_break_even_within_80_columns(capsys):
    for comparison in (demo_comparison(), compared(SHAPLEY_2, n_rounds=5, spread=0.01)):
        print_as_text(comparison, details=True)
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= 80
    assert any("first (leave-one-in)" in line for line in lines)
    print_as_text(demo_comparison(), details=True)
    said = capsys.readouterr().out
    assert all(
        t in said for t in ("along the accepted path", "gates of", "Pareto front", "earned back after")
    )


def test_a_small_study_is_about_ten_lines_and_a_rejected_step_tells_its_saving(capsys):
    print_as_text(demo_comparison())
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) <= 13
    assert "would have" in printed.err
    assert "earned back after: energy, carbon and cost 13" in printed.out


def test_a_mean_over_orders_is_not_called_shapley_value(capsys):
    lines = text(compared({"": 1000, "P": 700, "Q": 500, "PQ": 380, "PQB": 250}, n_rounds=5), capsys)
    assert "no Shapley values; 2 of 6" in " ".join(" ".join(lines).split())
