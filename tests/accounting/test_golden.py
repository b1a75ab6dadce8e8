"""Published and computed cases beside the repository, through the public formulas.

The same checks on small examples stand in the other modules of this folder, so that
nothing rests on files outside of the repository.
"""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest

from carbonlens.accounting.embodied_range import embodied_range
from carbonlens.factors.table_file import read_csv
from tests.accounting.golden_adaptors import ADAPTORS

GOLDEN = Path(__file__).parents[2] / ".." / "shared" / "golden" / "golden.json"
ELSEWHERE = ("attr/", "ab/", "mv/", "serve/")
"""Attribution, paired runs and verification are tested in tests/compare; serving is of a later part."""


def strict_cases():
    if not GOLDEN.exists():
        return []
    return [
        c
        for c in json.loads(GOLDEN.read_text("utf-8"))
        if c["strict_test"] and not c["id"].startswith(ELSEWHERE)
    ]


CASES = strict_cases()


@pytest.mark.skipif(not CASES, reason="../shared/golden/golden.json is not here")
@pytest.mark.parametrize("case", CASES, ids=[c["id"] for c in CASES])
def test_golden(case):
    family = case["id"].partition("/")[0]
    assert family in ADAPTORS, f"no adaptor for {family}: write one"
    got = ADAPTORS[family](case["inputs"])
    for name, wanted in case["outputs"].items():
        tolerance = case["tolerance"]
        allowed = tolerance[name] if isinstance(tolerance, dict) else tolerance
        assert name in got, f"{case['id']} states {name}, which the adaptor does not give"
        if isinstance(wanted, bool):
            assert got[name] is wanted
        else:
            assert abs(float(got[name]) - wanted) <= allowed, f"{name}: {got[name]} is not {wanted}"


@pytest.mark.skipif(not CASES, reason="../shared/golden/golden.json is not here")
def test_no_adaptor_is_left_over():
    assert {c["id"].partition("/")[0] for c in CASES} == set(ADAPTORS)


def test_factor_table_is_there_without_the_cases():
    """The Boavizta figures rest on bundled rows, so these are looked at in any case."""
    table = resources.files("carbonlens.factors") / "data" / "embodied.csv"
    rows = read_csv(table.read_text("utf-8"), where="embodied.csv").rows
    found = embodied_range(rows, "nvidia-h100-sxm-80gb", "boavizta")
    assert (found.kg.value, found.kg.unit) == (pytest.approx(575.1), "kg")
