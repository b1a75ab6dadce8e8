"""What a score's boundary holds: units by either name, stages by role or tag, work that is counted."""

from decimal import Decimal

import pytest

from carbonlens.accounting.sci_boundary import RunGroup, software_boundary, unit_of

TOKENS = RunGroup(role="serving", unit="tokens", runs=3, units=Decimal(30), energy_j=Decimal(3_600_000))


@pytest.mark.parametrize(
    ("text", "name", "plural"),
    [
        ("tokens", "token", "tokens"),
        ("token", "token", "tokens"),
        ("seconds of audio", "second of audio", "seconds of audio"),
        ("FLOP", "FLOP", "FLOP"),
        ("requests", "request", "requests"),
        ("queries", "query", "queries"),
        # Kept as they are written: no rule tells the one of many.
        ("glass", "glass", "glass"),
        ("movies", "movies", "movies"),
        ("movie", "movie", "movie"),
        ("cookies", "cookies", "cookies"),
        ("batches", "batches", "batches"),
        ("axes", "axes", "axes"),
        ("bus", "bus", "bus"),
        ("news", "news", "news"),
        ("m²s", "m²s", "m²s"),
    ],
)
def test_a_unit_is_named_by_one_or_by_several(text, name, plural):
    unit = unit_of(text)
    assert (unit.name, unit.plural) == (name, plural)


def test_a_tag_says_another_stage_than_the_role():
    tagged = RunGroup(role="training", stage="operation", runs=1, unit="tokens", units=Decimal(1))
    found = software_boundary([TOKENS, tagged], unit_of("token"), "consumer")
    assert found.parts == {"operation": (TOKENS, tagged)}
    assert found.count.value == 31
    assert found.findings == ()


def test_a_run_without_a_count_leaves_r_unknown_but_headroom_does_not():
    idle = RunGroup(role="idle", runs=2, without_units=2)
    silent = RunGroup(role="serving", runs=2, without_units=2)
    assert software_boundary([TOKENS, idle], unit_of("token")).count.value == 30
    found = software_boundary([TOKENS, silent], unit_of("token"))
    assert (found.count.value, found.missing) == (None, "2 runs do not say how many tokens")
    assert software_boundary([TOKENS, silent], unit_of("token"), None, 5.0).count.value == 5
