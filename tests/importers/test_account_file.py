"""A statement as JSON: read as claims, refused where it is none, older ones read as far as they go."""

import json

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.account_file import account_claims

SMALL = {
    "schema": "carbonlens/account/1",
    "period": "2026-05",
    "months": ["2026-05"],
    "sites": [
        {
            "line": "lab",
            "site": "lab",
            "kind": "recorded",
            "place": None,
            "factors": [],
            "amounts": {"facility_kwh": {"value": 10.0, "unit": "kWh", "state": "known"}},
        }
    ],
    "total": {"line": "total", "site": None, "amounts": {}, "terms": None},
}


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"schema": "carbonlens/runs/1"}', json.dumps({**SMALL, "schema": "x/1"})]
)
def test_what_is_no_statement_is_refused(text):
    with pytest.raises(InputFileError, match="is no statement"):
        account_claims(text, "a.json", {})


def test_a_file_without_terms_gives_its_lines():
    (line,) = account_claims(json.dumps(SMALL), "a.json", {})
    assert (line.what, line.accounted, line.pue, line.factor) == ("2026-05 lab", True, None, None)
    assert line.energy is not None
    assert float(line.energy.value) == 10.0
