"""What each execution provider did, as ``runs show`` prints it."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.cli.execution_view import execution_lines
from carbonlens.domain.execution import ProviderTime
from carbonlens.domain.run import Run
from carbonlens.ledger.store import Ledger

QNN, CPU = "QNNExecutionProvider", "CPUExecutionProvider"
PROFILED = (
    ProviderTime(provider=QNN, time_s=0.012, share=0.6),
    ProviderTime(provider=CPU, nodes=1, time_s=0.008, share=0.4),
)


def lines(*execution):
    return [
        line.replace("\N{NO-BREAK SPACE}", " ")
        for line in execution_lines(Run(run_id="r", execution=execution))
    ]


def test_a_run_without_a_runtime_has_no_line():
    assert lines() == []


def test_without_a_profile_nothing_is_claimed():
    told = lines(ProviderTime(provider=QNN), ProviderTime(provider=CPU))
    assert told == [f"{QNN}, {CPU}; which ran what is unknown (no profile)"]


def test_shares_nodes_and_time():
    assert lines(*PROFILED) == [f"{QNN} 60.0 %; {CPU} 40.0 %, 1 node (of 20 ms in kernels)"]


def test_kernels_too_short_for_the_clock_have_no_share():
    assert lines(ProviderTime(provider=CPU, nodes=1, time_s=0.0)) == [f"{CPU}; shares unknown"]


def test_many_providers_are_not_all_named():
    many = [ProviderTime(provider=f"P{k}", time_s=1.0, share=0.1) for k in range(10)]
    assert "; 6 more (of 10 s in kernels)" in lines(*many)[0]


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=4))
def test_printed_shares_add_up(times):
    total = sum(times)
    (line,) = lines(
        *(ProviderTime(provider=f"P{k}", time_s=t / 1e6, share=t / total) for k, t in enumerate(times))
    )
    printed = [Decimal(part.split()[1]) for part in line.partition(" (")[0].split("; ")]
    assert sum(printed) == 100


@pytest.mark.slow
def test_runs_show_prints_it_and_the_json_holds_it(shell):
    Ledger(shell.folder / ".carbonlens").append(Run(run_id="r1", status="complete", execution=PROFILED))
    shown = shell("runs", "show", "r1")
    assert "execution     QNNExecutionProvider 60.0 %" in shown.stdout
    told = json.loads(shell("runs", "show", "r1", "--json").stdout)
    assert [t["share"] for t in told["run"]["execution"]] == [0.6, 0.4]
    assert told["record"]["execution"][1]["nodes"] == 1
