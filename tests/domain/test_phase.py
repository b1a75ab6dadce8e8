"""A phase's energy as an estimate: unknown is no zero, and a width that nobody knows is none."""

from decimal import Decimal

from carbonlens.domain.phase import Phase


def test_an_energy_that_is_not_known_is_unknown():
    energy = Phase(name="load", entries=1, duration_s=1.0, state="unknown").energy
    assert (energy.value, energy.state) == (None, "unknown")


def test_an_energy_without_a_width_has_no_interval():
    bare = Phase(name="load", entries=1, duration_s=1.0, energy_j=Decimal(5)).energy
    assert (bare.value, bare.low, bare.high) == (5.0, None, None)
    told = Phase(name="load", entries=1, duration_s=1.0, energy_j=Decimal(5), u_random_j=0.1).energy
    assert told.low < 5.0 < told.high
