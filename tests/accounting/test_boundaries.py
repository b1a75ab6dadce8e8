"""Device, IT and facility energy: each overhead once, and never made up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.accounting.boundaries import Overheads, energies, in_part, site_overheads
from carbonlens.accounting.factor_choice import DEFAULT_PUE_U_RELATIVE
from carbonlens.accounting.propagation import exactly, stated
from carbonlens.accounting.water import water
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.site import Site
from carbonlens.domain.units import J_PER_KWH

KWH = Estimate(value=float(J_PER_KWH), unit="J", grade="B", u_by_source={"gain": 0.02 * J_PER_KWH})
AROUND = Overheads(
    pue=stated(1.5, 0.04, "pue:a", "1"), host=stated(1.2, 0.1, "host_overhead:a", "1"), pue_id="pue:a"
)


def codes(found):
    return [f.code for f in found.findings]


def test_pue_is_applied_once_and_water_to_it_energy():
    """PUE 1.5 on 1 kWh of IT energy is 1.5 kWh; WUE 1.8 gives 1.8 L; grid water is of 1.5 kWh."""
    found = energies(KWH, "it", Overheads(pue=exactly(1.5)))
    assert (found.it_kwh.value, found.facility_kwh.value) == pytest.approx((1.0, 1.5))
    litres = water(found, exactly(1.8, "L/kWh"), exactly(2.0, "L/kWh"))
    assert (litres.site_l.value, litres.site_l.unit) == (pytest.approx(1.8), "L")
    assert litres.source_l.value == pytest.approx(3.0)
    assert codes(litres) == []


def test_facility_energy_takes_no_pue_and_gives_it_energy_back():
    found = energies(KWH, "facility", AROUND)
    assert found.facility_kwh.value == pytest.approx(1.0)
    assert found.it_kwh.value == pytest.approx(1 / 1.5)
    assert found.device_kwh.value == pytest.approx(1 / 1.5 / 1.2)
    assert codes(found) == []


def test_device_energy_takes_host_and_pue():
    found = energies(KWH, "device", AROUND)
    assert [e.value for e in (found.device_kwh, found.it_kwh, found.facility_kwh)] == pytest.approx(
        [1, 1.2, 1.8]
    )
    assert found.facility_kwh.state == "known"
    assert found.facility_kwh.u_by_source == pytest.approx(
        {"gain": 1.8 * 0.02, "pue:a": 1.8 * 0.04, "host_overhead:a": 1.8 * 0.1}
    )
    assert found.facility_kwh.grade == "B"


@given(kwh=st.floats(1e-6, 1e9), pue=st.floats(1, 3), host=st.floats(1, 2))
def test_the_way_out_and_back_is_the_same(kwh, pue, host):
    around = Overheads(pue=exactly(pue), host=exactly(host))
    out = energies(exactly(kwh * J_PER_KWH, "J"), "device", around)
    back = energies(exactly(out.facility_kwh.value * J_PER_KWH, "J"), "facility", around)
    assert back.device_kwh.value == pytest.approx(kwh)
    assert back.it_kwh.value == pytest.approx(out.it_kwh.value)


@pytest.mark.parametrize(
    ("boundary", "around", "it", "facility", "found"),
    [
        ("device", Overheads(pue=exactly(1.5)), (1.0, "unbounded"), (1.5, "unbounded"), ["CL303"]),
        ("device", Overheads(), (1.0, "unbounded"), (1.0, "unbounded"), ["CL303", "CL304"]),
        ("it", Overheads(), (1.0, "known"), (1.0, "unbounded"), ["CL304"]),
        ("facility", Overheads(), (None, "unknown"), (1.0, "known"), ["CL380"]),
        (None, AROUND, (None, "unknown"), (1.0, "unbounded"), ["CL380", "CL302"]),
    ],
)
def test_what_is_not_known_is_at_least_or_unknown(boundary, around, it, facility, found):
    made = energies(KWH, boundary, around)
    assert (made.it_kwh.value, made.it_kwh.state) == (it[0] and pytest.approx(it[0]), it[1])
    assert (made.facility_kwh.value, made.facility_kwh.state) == (pytest.approx(facility[0]), facility[1])
    assert codes(made) == found
    assert all(f.mend for f in made.findings)


def test_an_unknown_energy_is_unknown_at_each_boundary():
    found = energies(unknown("J"), "device", AROUND)
    assert {e.value for e in (found.device_kwh, found.it_kwh, found.facility_kwh)} == {None}
    assert codes(found) == ["CL301"]


def test_lower_bounds_and_unknown_parts_of_a_sum_are_said():
    true = energies(KWH, "it", AROUND).facility_kwh
    least = energies(KWH, "device", Overheads(pue=exactly(1.5))).facility_kwh
    said = in_part([true, least, true, unknown("kWh")])
    assert [(f.code, f.severity) for f in said] == [("CL381", "warning"), ("CL381", "error")]
    assert "1 line is" in said[0].message
    assert in_part([true]) == ()


def test_a_site_brings_its_own_overheads():
    site = Site(site_id="s", kind="own", pue=1.4, pue_u_relative=0.02, host_overhead=1.1)
    around = site_overheads(site)
    assert around.pue.u_by_source == {"pue:s": pytest.approx(0.028)}
    # A width that nobody states is no width of zero.
    assert (around.host.value, around.host.low) == (1.1, None)
    assert site_overheads(Site(site_id="t", kind="own")) == Overheads(
        pue_id="pue:t", host_id="host_overhead:t"
    )


def test_a_declared_pue_without_a_width_has_that_of_a_published_one():
    around = site_overheads(Site(site_id="s", kind="own", pue=1.4))
    assert around.pue.u_by_source == {"pue:s": pytest.approx(1.4 * DEFAULT_PUE_U_RELATIVE)}
    assert [(f.code, f.severity) for f in around.findings] == [("CL489", "info")]
    exact = site_overheads(Site(site_id="s", kind="own", pue=1.0))
    assert (exact.pue.low, exact.pue.high, exact.findings) == (1.0, 1.0, ())


def test_water_without_factors_is_unknown():
    litres = water(energies(KWH, "it", AROUND), None, None)
    assert {litres.site_l.state, litres.source_l.state} == {"unknown"}
    assert codes(litres) == ["CL383", "CL383"]


def test_figures_say_what_they_are_made_of():
    made = energies(KWH, "device", AROUND, source_ids=("run-1",))
    figures = {f.figure_id: f for f in made.figures("site.a")}
    assert figures["site.a.device_kwh"].inputs == ("run-1",)
    assert figures["site.a.it_kwh"].inputs == ("host_overhead", "site.a.device_kwh")[::-1]
    assert figures["site.a.facility_kwh"].formula == "facility_kwh = it_kwh * pue"
    assert figures["site.a.facility_kwh"].inputs == ("site.a.it_kwh", "pue:a")
    litres = water(made, exactly(1.8, "L/kWh"), None, wue_id="wue:a").figures("site.a", "site.a")
    assert litres[0].inputs == ("site.a.it_kwh", "wue:a")
    assert litres[1].inputs == ("site.a.facility_kwh",)
    unstated = energies(KWH, None, AROUND, source_ids=("run-1",)).figures("s")
    assert [f.inputs for f in unstated] == [(), (), ("run-1",)]
