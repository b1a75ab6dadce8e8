"""How qualities and gates are printed: percent only of what is a share."""

import pytest

from carbonlens.domain.comparison import GateResult
from carbonlens.domain.estimate import Estimate
from carbonlens.reporting.metrics import gate_format, is_fraction


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("accuracy", [], True),
        ("accuracy", [0.912, 1.0, None], True),
        ("accuracy", [91.2, 0.5], False),
        ("accuracy", [-0.1], False),
        ("perplexity", [0.5], False),
    ],
)
def test_a_share_has_the_name_and_the_range_of_one(name, values, expected):
    assert is_fraction(name, values) == expected


@pytest.mark.parametrize(("kind", "share"), [("min_value", "90.90 %"), ("max_loss", "90.9 points")])
def test_a_gate_on_a_figure_of_0_to_100_prints_the_figure(kind, share):
    fields = {"name": "g", "metric": "accuracy", "outcome": "pass", "limit": 90.0, "kind": kind}
    gate = GateResult(observed=Estimate(value=90.9, unit="1"), is_share=False, **fields)
    assert gate_format(gate)(gate.observed).text == "90.9"
    gate = GateResult(observed=Estimate(value=0.909, unit="1"), **fields)
    assert gate_format(gate)(gate.observed).text.replace("\xa0", " ") == share
