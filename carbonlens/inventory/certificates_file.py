"""``certificates.toml`` or ``.csv``: instruments of the market-based method, with the eight criteria."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from carbonlens.domain.certificate import CRITERIA, Certificate
from carbonlens.domain.counting import with_article
from carbonlens.inventory.records import Kind, Problem
from carbonlens.inventory.toml_entries import INVALID
from carbonlens.inventory.values import a_date, a_sigma, a_year_or_month, above_0, at_least_0, criteria

_ANSWERS: Final = {"yes": True, "true": True, "no": False, "false": False}


def _shape(values: dict[str, Any]) -> Iterator[Problem]:
    """Join the columns of the criteria; in TOML they are a table of their own."""
    values.setdefault("energy_mwh", None)
    if type(values.get("period")) is int:  # a year without quotes
        values["period"] = str(values["period"])
    if "value_kg_per_kwh" not in values:
        yield (
            "value_kg_per_kwh",
            "lacks 'value_kg_per_kwh'",
            "state the emission rate that it conveys; write 0 where it conveys none",
        )
        values["value_kg_per_kwh"] = INVALID
    answers = {name: values.pop(name) for name in CRITERIA if name in values}
    stated = values.get("criteria", {})
    if not answers or not isinstance(stated, dict):
        return
    found: dict[str, Any] = dict(stated)
    for name, answer in answers.items():
        known = _ANSWERS.get(answer.lower()) if isinstance(answer, str) else answer
        if isinstance(known, bool):
            found[name] = known
        else:
            yield name, f"{name} is {answer!r}", "write yes or no; leave it empty where nobody knows"
    values["criteria"] = found


def _check(certificate: Certificate) -> Iterator[Problem]:
    if certificate.energy_mwh is None and certificate.kind != "supplier":
        mend = "state what it covers; only a supplier's rate may cover all that it delivered"
        yield "energy_mwh", f"{with_article(certificate.kind)} has no energy_mwh", mend


KIND: Final = Kind(
    name="certificates",
    table="certificate",
    type=Certificate,
    id_field="certificate_id",
    formats=(".toml", ".csv"),
    rules={
        "energy_mwh": above_0,
        "period": a_year_or_month,
        "value_kg_per_kwh": at_least_0,
        "u_relative": a_sigma,
        "retired": a_date,
        "criteria": criteria,
    },
    left_out=frozenset({"hourly_mwh"}),
    columns=CRITERIA,
    shape=_shape,
    check=_check,
)
"""How an instrument stands in its file; whether it may be claimed is for ``check_certificates``."""
