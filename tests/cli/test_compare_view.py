"""The text of a comparison: what is summed, and 80 columns."""

from __future__ import annotations

import math
import re
import unicodedata

import pytest
from msgspec.structs import replace

from carbonlens.cli.compare_view import print_as_text
from carbonlens.compare.study import compare_study
from carbonlens.domain.estimate import unknown
from carbonlens.domain.factor import Vector
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Conditions, Quality
from carbonlens.domain.study import Gate, Step, Study
from carbonlens.reporting import format as fmt
from tests.compare.study_runs import demo_comparison, rounds, run, vector
from tests.compare.test_lattice import H100, SHAPLEY_2, compared
from tests.compare.test_study import STUDY, A, B, unmeasured_gpu
from tests.reporting import comparisons


def text(comparison, capsys):
    print_as_text(comparison)
    return capsys.readouterr().out.splitlines()


def test_a_lattice_prints_the_change_of_its_full_set(capsys):
    lines = text(compared(SHAPLEY_2, n_rounds=5, spread=0.01), capsys)
    assert not any(line.startswith("adopted") for line in lines)
    total = next(line for line in lines if line.startswith("all together: "))
    # 1000 J become 250 J; the last optimization alone saves 40 %.
    assert total.startswith("all together: energy −75.00 % ")
    assert "saves 752 J" in total
    assert [line.split()[4] for line in lines if line.startswith(("1 ", "2 ", "3 "))] == ["off"] * 3


def test_a_lattice_without_its_full_set_claims_nothing(capsys):
    lines = text(compared({"": 1000, "P": 700, "Q": 500}, n_rounds=5), capsys)
    assert "all together were not measured or failed, so nothing is claimed as saved" in lines


def test_a_ladder_prints_the_change_of_its_accepted_path(capsys):
    lines = text(demo_comparison(), capsys)
    assert lines[0].split() == ["example", "energy/image", "vs", "change", "[95", "%]", "gates", "decision"]
    adopted = [line.split()[1] for line in lines if line.endswith("adopt")]
    assert adopted == ["onnx", "pruned", "static-int8"]
    assert any(line.startswith("adopted: energy −8") for line in lines)


def units_of_savings(comparison, capsys):
    """What each line on savings says that it is per."""
    told = " ".join(" ".join(text(comparison, capsys)).split())
    return [
        m[1] for m in re.finditer(r"(?:saves? |carbon saved|cost saved)[^:(]*?per ((?:million )?\w+)", told)
    ]


def test_all_lines_on_savings_are_of_as_many_units(capsys):
    """Money of one image is unreadable: beside money of a million, energy and carbon are of a million too."""
    priced = comparisons.comparison()
    assert units_of_savings(priced, capsys) == ["million images"] * 3
    told = " ".join(text(priced, capsys))
    million = priced.total.energy_j.scale(1e6, "J")
    assert f"saves {fmt.energy(million).text}".replace("\u00a0", " ") in told
    unpriced = replace(priced, total=replace(priced.total, cost=unknown("EUR")))
    assert set(units_of_savings(unpriced, capsys)) == {"image"}
    lattice = compared(SHAPLEY_2, vector(), n_rounds=5, spread=0.01, u_relative=0.05)
    assert units_of_savings(lattice, capsys) == ["image"] * 4


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
    assert any(line.startswith("adopted") for line in lines)
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
    # One a step, the table's head, and five or six of totals.
    assert len(printed.out.splitlines()) <= 12
    assert "would have" in printed.err
    # Break-even with its interval.
    assert re.search(
        r"earned back after: energy, carbon and cost 13600 images \[13\d00, 13\d00\]", printed.out
    )


def test_a_mean_over_orders_is_not_called_shapley_value(capsys):
    lines = text(compared({"": 1000, "P": 700, "Q": 500, "PQ": 380, "PQB": 250}, n_rounds=5), capsys)
    assert "no Shapley values; 2 of 6" in " ".join(" ".join(lines).split())


def test_a_step_whose_verdict_and_joules_disagree_is_explained_where_it_stands(capsys):
    comparison = compared(H100, n_rounds=6, spread=0.003, u_relative=1e-9)
    print_as_text(comparison)
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert [line for line in lines if line.endswith(" *")] == [next(x for x in lines if " L " in x)]
    told = " ".join(lines[lines.index(next(x for x in lines if x.startswith("* L"))) :][:2])
    assert "* L: better as a mean of ratios, but costs " in told
    assert "saves where little is used, costs where much is" in " ".join(told.split())
    assert "CL444" not in printed.err  # said once
    assert max(map(len, lines)) <= 80


def test_no_mark_where_they_agree(capsys):
    assert not any("*" in line for line in text(compared(SHAPLEY_2, n_rounds=5, spread=0.01), capsys))
    assert not any("*" in line for line in text(demo_comparison(), capsys))


def test_an_undetermined_gate_tells_its_reason(capsys):
    study = Study(
        name="t",
        baseline="a",
        steps=(Step(name="b"),),
        unit="image",
        gates=(Gate(name="peak", metric="peak_memory_bytes", kind="max_ratio", limit=1.1),),
    )
    runs = [*rounds("a", [1.0, 1.01, 0.99, 1.0, 1.02]), *rounds("b", [0.5, 0.51, 0.49, 0.5, 0.5])]
    print_as_text(compare_study(study, runs, Vector(), {}))
    printed = capsys.readouterr()
    assert "undetermined" in printed.out
    told = " ".join(printed.err.split())
    assert "b: gate peak is undetermined: the peak of memory is not recorded in every round" in told


def test_details_print_power_and_memory_where_an_arm_tells_them(capsys):
    def made(step, joules):
        return [
            replace(r, conditions=Conditions(wall_s=0.1, cpu_s=0.1, peak_rss_bytes=5_000_000))
            for r in rounds(step, joules)
        ]

    study = Study(name="t", baseline="a", steps=(Step(name="b"),), unit="image")
    runs = [*made("a", [1.0, 1.01, 0.99, 1.0, 1.02]), *made("b", [0.5, 0.51, 0.49, 0.5, 0.5])]
    print_as_text(compare_study(study, runs, Vector(), {}), details=True)
    lines = capsys.readouterr().out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("measured"))
    assert lines[at].split() == ["measured", "power", "peak", "memory", "images/s"]
    assert [word in lines[at + 1] for word in ("10.0 W", "5 MB", "10")] == [True] * 3
    assert max(map(len, lines)) <= 80


def amount(cell):
    """Return the number of a cell such as ``1 200 mg CO₂e`` or ``EUR −1.20``."""
    return float(re.search(r"−?\d[\d ]*(?:\.\d+)?", cell)[0].replace("−", "-").replace(" ", ""))


@pytest.mark.parametrize("spread", [0.0, 0.003, 0.01, 0.05])
def test_the_parts_of_a_lattice_add_up_as_printed(capsys, spread):
    for cells in (SHAPLEY_2, H100, {"": 1000, "P": 701, "Q": 499, "PQ": 333}):
        lines = text(compared(cells, n_rounds=6, spread=spread), capsys)
        total = re.search(r"saves ([\d ]+(?:\.\d+)?) J", " ".join(lines))
        parts = next(line for line in lines if line.startswith("parts of it:")).partition("(")[0]
        found = [float(x.replace("−", "-").replace(" ", "")) for x in re.findall(r" ([−\d. ]+) J", parts)]
        assert len(found) == max(map(len, cells))
        assert math.fsum(found) == pytest.approx(float(total[1].replace(" ", "")), abs=1e-9)


def test_the_columns_of_details_add_up_as_printed(capsys):
    for comparison in (demo_comparison(), compared(SHAPLEY_2, vector(), n_rounds=5, spread=0.01)):
        print_as_text(comparison, details=True)
        lines = capsys.readouterr().out.splitlines()
        at = next(i for i, line in enumerate(lines) if line.startswith("part "))
        end = next(i for i in range(at, len(lines)) if lines[i].startswith("total"))
        rows = [re.split(r" {2,}", line)[1:] for line in lines[at + 1 : end + 1]]
        columns = [column for column in zip(*rows, strict=True) if "unknown" not in column]
        assert len(columns) >= 3
        for *parts, total in columns:
            assert math.fsum(map(amount, parts)) == pytest.approx(amount(total), rel=1e-9)


PAIR = Study(name="t", baseline="a", steps=(Step(name="b"),), unit="image")
QUIET = (1.0, 1.01, 0.99, 1.0, 1.02, 1.0)


def test_findings_on_the_comparison_come_before_those_on_place_and_price(capsys):
    runs = [*rounds("a", QUIET), *rounds("b", [0.5 * x for x in QUIET])]
    comparison = compare_study(PAIR, runs, Vector(), {})
    own = [
        Finding(code=code, severity="info" if code == "CL412" else "warning", message=f"on {code}")
        for code in ("CL418", "CL403", "CL412")
    ]
    print_as_text(replace(comparison, findings=(*comparison.findings, *own)))
    printed = capsys.readouterr()
    assert [line.split()[0] for line in printed.err.splitlines()] == ["CL418", "CL403", "CL412"]
    # Missing place and price are one line of the text, with their mend.
    assert "place unknown, so no carbon figure, and no price, so no cost (--assumptions)" in printed.out
    placed = replace(comparison, vector=vector(), findings=(*comparison.findings, *own))
    print_as_text(placed)
    assert next(x for x in capsys.readouterr().err.splitlines() if x.startswith("CL")).startswith("CL418")


def test_a_plain_comparison_is_at_most_ten_lines(capsys):
    runs = [*rounds("a", QUIET), *rounds("b", [0.5 * x for x in QUIET])]
    print_as_text(compare_study(PAIR, runs, Vector(), {}))
    printed = capsys.readouterr()
    assert len((printed.out + printed.err).splitlines()) <= 8  # two more are where it is saved


def test_long_findings_leave_room_for_the_table(capsys):
    runs = [*rounds("a", QUIET), *rounds("b", [0.5 * x for x in QUIET])]
    long = [Finding(code=f"CL49{i}", severity="warning", message="word " * 60) for i in range(3)]
    comparison = compare_study(PAIR, runs, Vector(), {})
    print_as_text(replace(comparison, findings=(*comparison.findings, *long)))
    told = capsys.readouterr().err
    assert "CL490" in told
    assert "and 2 more warnings" in told


def test_against_a_baseline_of_zero_the_difference_is_told(capsys):
    runs = [*rounds("a", [0.0] * 6), *rounds("b", [10.0 * x for x in QUIET])]
    print_as_text(compare_study(PAIR, runs, Vector(), {}))
    said = " ".join(capsys.readouterr().err.split())
    assert re.search(r"no ratio of energies can be made, so there is no verdict; it uses 10(\.\d+)? J", said)
    assert "more per image" in said


def test_a_step_of_zero_energy_tells_why_there_is_no_verdict():
    runs = [*rounds("a", QUIET), *rounds("b", [0.0] * 6)]
    step = compare_study(PAIR, runs, Vector(), {}).steps[0]
    assert "used exactly nothing" in step.reasons[0]
    assert "complete round" not in step.reasons[0]


def test_a_disturbed_arm_tells_so_and_not_that_there_may_be_no_change():
    noisy = Conditions(wall_s=10.0, cpu_s=9.0, throttled_s=5.0)
    runs = [
        *rounds("a", QUIET),
        *(replace(r, conditions=noisy) for r in rounds("b", [0.5 * x for x in QUIET])),
    ]
    step = compare_study(PAIR, runs, Vector(), {}).steps[0]
    assert step.verdict == "inconclusive"
    assert "no round was measured on a quiet, unchanged machine" in step.reasons[0]
    assert "may be no change" not in step.reasons[0]


def test_a_narrow_terminal_gets_sentences_with_whole_figures(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    runs = [*rounds("a", QUIET), *rounds("b", [0.5 * x for x in QUIET])]
    print_as_text(compare_study(PAIR, runs, Vector(), {}))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 40
    assert "change −50" in " ".join(lines)
    assert "adopt" in " ".join(lines)


def wide(text):
    """Return the columns that a terminal gives a text."""
    marks = ("Mn", "Me", "Cf")
    return sum(
        0 if unicodedata.category(c) in marks else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


ACC = Quality(name="accuracy", value=0.91, n=1000)
GATES = (
    Gate(name="acc", metric="accuracy", kind="max_loss", limit=0.01),
    Gate(name="any", metric="accuracy", kind="min_value", limit=0.5),
    Gate(name="p99", metric="latency_p99_ms", kind="max_value", limit=5.0),
)


def ladder(names, factor=0.8, gates=GATES):
    """Return a ladder of as many steps, each with an undetermined gate and one that passes."""
    study = Study(
        name="t", baseline=names[0], steps=tuple(Step(name=n) for n in names[1:]), unit="image", gates=gates
    )
    runs = [
        r
        for i, name in enumerate(names)
        for r in rounds(
            name,
            [1000.0 * factor**i * x * (1 + (i * k) % 5 / 1e3) for k, x in enumerate(QUIET)],
            quality=(ACC,),
        )
    ]
    return compare_study(study, runs, Vector(), {})


@pytest.mark.parametrize(
    "names",
    [
        [
            "fp32 baseline of a very long name",
            *(f"step number {i} with a very long name {'x' * i}" for i in range(13)),
        ],
        ["base", *("long" * 8 + str(i) for i in range(12))],
        [
            "基準モデル全体の名前が長い説明",
            "量子化された八ビット整数モデルの名前",
            "量子化された八ビット整数モデルの別名",
        ],
        ["a🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀", "b🚀", "e\u0301tape"],
    ],
    ids=["long", "no blanks", "east asian", "emoji and combining marks"],
)
def test_names_of_any_width_and_several_outcomes_of_gates_fit_80_columns_and_stay_apart(names, capsys):
    lines = text(ladder(names), capsys)
    assert max(map(wide, lines)) <= 80
    table = lines[: len(names) + 1]
    # Columns stand below each other: all decisions end in one.
    assert len({wide(line) for line in table}) == 1
    shown = [re.split(r"  +", line)[0].split(" ", 1)[1] for line in table[1:]]
    assert len(set(shown)) == len(names)


@pytest.mark.parametrize("n", [12, 40])
def test_reasons_are_a_few_lines_and_say_how_many_more(n, capsys):
    comparison = ladder([f"s{i}" for i in range(n)])
    print_as_text(comparison)
    said = capsys.readouterr().err.splitlines()
    assert len(said) <= 10
    more = next(line for line in said if line.startswith("... and ") and "--details" in line)
    told = sum(bool(re.match(r"s[0-9]+: ", line)) for line in said)
    assert int(more.split()[2]) + told == n - 1
    print_as_text(comparison, details=True)
    all_of_them = capsys.readouterr().err.splitlines()
    assert sum(bool(re.match(r"s[0-9]+: ", line)) for line in all_of_them) == n - 1


def test_steps_that_disagree_are_a_few_lines_too(capsys):
    names = "ABCDEFGH"
    step = replace(demo_comparison().steps[0], verdict="better")
    lost = replace(step.attribution, energy_j=replace(step.attribution.energy_j.scale(-1.0, "J")))
    steps = tuple(replace(step, step=n, attribution=lost) for n in names)
    lines = text(replace(demo_comparison(), steps=steps), capsys)
    assert sum(line.startswith("* ") for line in lines) <= 5
    assert any(line.startswith("... and ") for line in lines)


def test_a_break_even_of_unknown_width_is_no_bound(capsys):
    """One round, or a source without a width: the best value, and not "at least" it."""
    work = [run("b", 5000.0, repeat=None, units=None, role="effort")]
    result = compare_study(
        PAIR, [*rounds("a", QUIET), *rounds("b", [0.7 * x for x in QUIET]), *work], Vector(), {}
    )
    said = " ".join(text(result, capsys))
    assert "earned back after: energy about " in said
    assert "how sure is unknown; may never" in said
    assert "at least" not in said
