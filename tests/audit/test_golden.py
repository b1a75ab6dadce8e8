"""Published cases beside the repository: what does not reproduce gets a Finding, what does gets none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from carbonlens.audit.claims import check_claims
from tests.audit.golden_claims import claims_of

GOLDEN = Path(__file__).parents[2] / ".." / "shared" / "golden" / "golden.json"
CASES = {c["id"]: c for c in json.loads(GOLDEN.read_text("utf-8"))} if GOLDEN.exists() else {}
WIDE = {"CL710"}
"""Cases are single rows: their place stands elsewhere in their source."""

BROKEN = {
    "llama2/total-row": ("CL706", "a row of 1038336 h is missing"),
    "llama3.2/hours-total": ("CL706", "3000 h too much in the rows"),
    "olmo/olmo-1b-3t": ("CL705", "PUE applied 0 times"),
    "olmo/olmoe-0924": ("CL705", "PUE applied 0 times"),
    "luccioni2025/llama-7b-row": ("CL704", "a power of ten, 10 would explain it"),
    "climate-awareness-nlp/gpt3-card": ("CL702", "a power of ten, 10"),
    "sci-ai/vision-provider": ("CL716", "a power of ten, 10"),
}
UNRESOLVED = ("gemini2025/carbon-location", "olmo/olmo2-13b")
KNOWN = [c for c in CASES.values() if c["reproduces"] in ("yes", "within-input-rounding", "partly")]
needs_golden = pytest.mark.skipif(not CASES, reason="../shared/golden/golden.json is not here")


def findings(name: str):
    return [f for f in check_claims(claims_of(CASES[name], CASES)) if f.code not in WIDE]


@needs_golden
def test_every_case_that_does_not_reproduce_is_here():
    assert {c["id"] for c in CASES.values() if c["reproduces"] == "no"} == set(BROKEN)
    assert {c["id"] for c in CASES.values() if c["reproduces"] == "unresolved"} == set(UNRESOLVED)


@needs_golden
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_case_names_its_relation(name):
    code, words = BROKEN[name]
    assert any(f.code == code and words in f.message for f in findings(name)), findings(name)


@needs_golden
@pytest.mark.parametrize("name", UNRESOLVED)
def test_an_unresolved_case_says_that_inputs_do_not_give_the_output(name):
    found = findings(name)
    assert [f.code for f in found] == ["CL703"]
    assert "the inputs do not give the output" in found[0].message


@needs_golden
@pytest.mark.parametrize("name", [c["id"] for c in KNOWN])
def test_a_case_that_reproduces_finds_nothing(name):
    claims = claims_of(CASES[name], CASES)
    if not claims:
        pytest.skip("states nothing the audit checks")
    assert findings(name) == []
