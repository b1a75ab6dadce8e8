"""What a bench prints: ten lines at most, and where the rest of its findings stands."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carbonlens.app.bench import BenchOutcome
from carbonlens.cli import bench_view, output
from carbonlens.compare.study import compare_study
from carbonlens.domain.factor import Vector
from carbonlens.domain.finding import Finding
from carbonlens.instrument.bench import BenchResult
from tests.compare.study_runs import rounds
from tests.compare.test_study import STUDY, A, B

LONG = "the load of other processes was more than the work keeps busy " * 4


def warnings(count: int, message: str = LONG) -> tuple[Finding, ...]:
    return tuple(
        Finding(code=f"CL1{k:02}", severity="warning", message=message, mend="mend it") for k in range(count)
    )


@pytest.mark.parametrize("kept", [{}, {"b": 1}])
@pytest.mark.parametrize("count", [0, 1, 2, 9])
@pytest.mark.parametrize("message", ["short", LONG])
def test_a_bench_on_a_noisy_machine_prints_ten_lines_at_most(capsys, monkeypatch, kept, count, message):
    monkeypatch.setenv("COLUMNS", "80")
    made = compare_study(STUDY, [*rounds("a", A), *rounds("b", B)], Vector(), {})
    made = replace(made, findings=(*made.findings, *warnings(count, message)))
    outcome = BenchOutcome(
        comparison=made,
        result=BenchResult(rounds=10, ended="budget", in_one_process=kept),
        ledger=Path("ledger"),
        study="bench-2",
    )
    bench_view.print_outcome(outcome, json=False)
    printed = capsys.readouterr()
    lines = [*printed.out.splitlines(), *printed.err.splitlines()]
    assert len(lines) <= 10, "\n".join(lines)
    assert max(map(len, lines)) <= 80
    if count == 9:
        (rest,) = [line for line in lines if line.startswith("... and ")]
        # The same command with --json would measure again.
        assert rest.endswith("(carbonlens compare --study bench-2 --json)")


@given(st.integers(1, 6), st.integers(1, 5))
def test_findings_that_are_cut_take_no_more_than_their_lines(count, most_lines):
    told: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "note", told.append)
        output.print_findings(warnings(count), most_lines=most_lines, cut=True)
    shown = [line for line in told if not line.startswith("... and ")]
    assert 1 <= len(shown) <= most_lines
    assert max(map(output.columns, shown)) <= output.width()
    assert shown[-1].endswith("…") == (most_lines < 4)
