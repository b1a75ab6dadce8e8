"""``runs show`` says what the work could use of its machine where that was not all of it."""

import pytest

from carbonlens.cli.runs_view import print_run
from carbonlens.domain.allowance import Allowance
from carbonlens.domain.run import Run
from carbonlens.reporting.run_json import run_json

WHOLE = Allowance(cpus=8, machine_cpus=8, memory_bytes=16 * 10**9, machine_memory_bytes=16 * 10**9)
PART = Allowance(cpus=1.5, machine_cpus=8, memory_bytes=4 * 10**9, machine_memory_bytes=16 * 10**9)


def shown(capsys, allowed):
    print_run(Run(run_id="r", allowance=allowed))
    lines = capsys.readouterr().out.splitlines()
    return next((line.removeprefix("may use").strip() for line in lines if line.startswith("may use")), None)


@pytest.mark.parametrize(
    ("allowed", "text"),
    [
        (None, None),
        (WHOLE, None),
        (Allowance(), None),
        (PART, "1.5 of 8 CPUs, 4 GB of 16 GB of memory"),
        (Allowance(cpus=1, machine_cpus=8), "1 of 8 CPUs"),
        (Allowance(cpus=2), "2 CPUs"),
        (Allowance(memory_bytes=10**9), "1 GB of memory"),
        (Allowance(machine_cpus=8), "an unknown part of 8 CPUs"),
        (
            Allowance(cpus=8, machine_cpus=8, machine_memory_bytes=16 * 10**9),
            "an unknown part of 16 GB of memory",
        ),
    ],
)
def test_a_part_of_the_machine_has_a_line(capsys, allowed, text):
    assert shown(capsys, allowed) == text


def test_json_has_what_may_be_used_and_null_for_no_limit():
    assert run_json(Run(run_id="r"))["allowance"] is None
    part, whole = (run_json(Run(run_id="r", allowance=a))["allowance"] for a in (PART, WHOLE))
    assert (part["cpu_limit"], part["memory_limit_bytes"]) == (1.5, 4 * 10**9)
    assert (whole["cpus"], whole["cpu_limit"]) == (8, None)
    assert (whole["memory_bytes"], whole["memory_limit_bytes"]) == (16 * 10**9, None)
