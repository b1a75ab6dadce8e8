"""Embodied emissions: a range over all sources, or the one that is chosen."""

from decimal import Decimal

import pytest

from carbonlens.accounting.embodied_range import embodied_range, sources_of
from carbonlens.domain.factor_row import FactorRow
from carbonlens.errors import SelectionError


def row(source, subject, kg):
    return FactorRow(
        factor_id=f"{source}/{subject}",
        kind="embodied",
        subject=subject,
        period="2025",
        value=Decimal(kg),
        source=source,
        address="a page",
        licence="MIT",
        vintage="2025",
    )


ROWS = (row("a", "h100", "575.1"), row("b", "h100", "164"), row("c", "h100", "462.5"), row("d", "gpu", "150"))


def test_by_default_the_range_over_all_sources():
    found = embodied_range(ROWS, "h100")
    assert (found.kg.low, found.kg.high) == (pytest.approx(164), pytest.approx(575.1))
    assert found.kg.low < found.kg.value < found.kg.high
    assert [r.factor_id for r in found.rows] == ["b/h100", "c/h100", "a/h100"]
    assert "164 kg (b)" in found.how


def test_a_source_can_be_chosen_and_an_unknown_one_is_refused():
    assert sources_of(ROWS, "h100") == ("a", "b", "c")
    one = embodied_range(ROWS, "h100", source="b")
    assert one.kg.value == pytest.approx(164)
    # A single figure without an interval is of grade E: times or divided by two.
    assert (one.kg.low, one.kg.high) == (pytest.approx(82), pytest.approx(328))
    with pytest.raises(SelectionError, match="a, b, c"):
        embodied_range(ROWS, "h100", source="z")


def test_what_stands_for_a_device_is_said_and_what_nobody_knows_stays_unknown():
    stands = embodied_range(ROWS, ("mi300", "gpu"))
    assert (stands.subject, [f.code for f in stands.findings]) == ("gpu", ["CL351"])
    nothing = embodied_range(ROWS, "mi300")
    assert (nothing.kg.value, [f.code for f in nothing.findings]) == (None, ["CL358"])
