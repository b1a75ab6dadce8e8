"""Billed time of runs: own compute covers, another line never does, and the rest cannot be told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.accounting.billed_time import BilledTime, billed_time, is_compute, without
from carbonlens.accounting.charge_joining import Part
from carbonlens.domain.charge import Charge

SPANS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)).map(sorted).map(tuple), max_size=6)


def line(name="c", **fields):
    return Charge(charge_id=name, **{"start_us": 0, "end_us": 100, "category": "usage", **fields})


def part(how, name="c", run="r"):
    return Part(charge_id=name, run_id=run, how=how, share=0.5)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"service": "Amazon Elastic Compute Cloud"}, True),
        ({"service": "Virtual Machines"}, True),
        ({"service": "AWS", "unit": "Hours"}, True),
        ({"service": "Amazon Simple Storage Service"}, False),
        ({"service": "EC2", "sku": "EU-DataTransfer-Out-Bytes"}, False),
        ({"service": "EC2", "unit": "GB-month"}, False),
        ({"service": "Support"}, False),
        ({"service": "Acme", "sku": "7QK"}, None),
        ({}, None),
    ],
)
def test_a_line_is_compute_by_service_sku_or_unit(fields, expected):
    assert is_compute(line(**fields)) is expected


@pytest.mark.parametrize(
    ("how", "service", "kind"),
    [
        ("resource", None, "covered"),
        ("resource", "EBS", None),
        ("tags", "EC2", "covered"),
        ("tags", None, "untold"),
        ("tags", "S3", None),
        ("time", "EC2", "untold"),
        ("time", None, "untold"),
        ("time", "S3", None),
    ],
)
def test_only_lines_of_its_own_cover_a_run(how, service, kind):
    found = billed_time([line(service=service)], [part(how)])
    expected = {} if kind is None else {"r": BilledTime(**{kind: ((0, 100),)})}
    assert found == expected


def test_purchases_taxes_and_what_no_run_carries_cover_nothing():
    lines = [line("p", category="purchase"), line("t", category="tax"), line("u")]
    parts = [part("resource", "p"), part("resource", "t"), part("none", "u", None)]
    assert billed_time(lines, parts) == {}


@given(SPANS, SPANS)
def test_what_is_left_of_spans_is_exactly_what_the_others_do_not_hold(spans, taken):
    rest = without(spans, taken)
    held = [sum(a <= at < b for a, b in rest) for at in range(50)]
    given_spans = [sum(a <= at < b for a, b in spans) for at in range(50)]
    assert held == [n * (not any(a <= at < b for a, b in taken)) for at, n in enumerate(given_spans)]
