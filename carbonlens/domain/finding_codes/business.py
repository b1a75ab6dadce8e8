"""Codes of the business case: what is cash, what is not known, what lies outside the horizon."""

from __future__ import annotations

from typing import Final

from carbonlens.domain.finding_codes.entry import FindingCode

BUSINESS: Final = (
    FindingCode(
        code="CL840",
        severity="warning",
        title="Nothing is adopted",
        meaning="A rejected or undetermined step gives no cash: NPV is that of the one-offs alone.",
        mend="measure until a step is adopted",
        example="no step is adopted, so no saving is counted",
    ),
    FindingCode(
        code="CL841",
        severity="warning",
        title="Cost of making the steps not known",
        meaning="What the steps took is not recorded or not priced, or only in part: NPV is at most what is "
        "stated.",
        mend='record it as runs with role effort, or state it with compute_effort = "stated"',
        example="what making the steps took is not recorded or not priced",
    ),
    FindingCode(
        code="CL842",
        severity="error",
        title="Money saved is unknown",
        meaning="A price or an overhead is missing: cash, NPV and returns are unknown, never 0.",
        mend="state the prices and the facility with --assumptions, or unit_cost in [[saving]]",
        example="what a unit saves in money is unknown, as a price or an overhead is missing",
    ),
    FindingCode(
        code="CL843",
        severity="info",
        title="Commitment over before the start",
        meaning="All of the saving is cash from the first month.",
        mend="check until",
        example="the commitment of 'gpu' ended on 2025-06-30, before the start",
    ),
    FindingCode(
        code="CL844",
        severity="warning",
        title="Commitment to the end of the horizon",
        meaning="None of the saving is cash within the horizon.",
        mend="look at more months, or check until",
        example="the commitment of 'gpu' lasts until 2030-12-31, to the end of the horizon",
    ),
    FindingCode(
        code="CL845",
        severity="warning",
        title="Purchase outside the horizon",
        meaning="Its money is not counted; what is only put off beyond the horizon is paid in its last "
        "month.",
        mend="check the date, or look at more months",
        example="the purchase of 'servers' on 2031-01-01 lies outside the horizon",
    ),
    FindingCode(
        code="CL846",
        severity="warning",
        title="Costs more than before",
        meaning="A negative saving is cash in every regime, and without any rule about it.",
        mend="check prices and machine hours",
        example="'compute' costs more than before",
    ),
    FindingCode(
        code="CL847",
        severity="warning",
        title="Not paid back within the horizon",
        meaning="The running sum of cash ends below zero.",
        mend="look at more months, or do not adopt",
        example="the money is not back within the horizon of 12 months",
    ),
    FindingCode(
        code="CL849",
        severity="info",
        title="Index ends before the horizon",
        meaning="Its last level stays.",
        mend="state the later years in its index",
        example="the index of grid ends in 2027, the horizon in 2028",
    ),
    FindingCode(
        code="CL850",
        severity="warning",
        title="NPV without interval",
        meaning="How sure the saving is nobody says: there is no interval, and nothing is drawn.",
        mend="measure more rounds, or state the errors",
        example="how sure the saving is nobody says",
    ),
    FindingCode(
        code="CL851",
        severity="warning",
        title="Parts of the cost not told apart",
        meaning="Electricity and machine hours in what is saved are not known each: the part asked for is "
        "unknown, or a price trajectory is not used.",
        mend="state both prices and the facility in the assumptions",
        example="electricity and machine hours in what is saved are not told apart",
    ),
    FindingCode(
        code="CL852",
        severity="info",
        title="No one internal rate of return",
        meaning="At no rate, or at several, the flows are worth nothing.",
        mend="decide by NPV, which always exists",
        example="no internal rate of return: no money comes back",
    ),
    FindingCode(
        code="CL853",
        severity="warning",
        title="Device not wholly described",
        meaning="Charging losses are left out of the energy from the grid, or battery life is of the "
        "compared part alone.",
        mend="state charging_efficiency and rest_power_w in [embedded]",
        example="[embedded] does not state charging_efficiency",
    ),
    FindingCode(
        code="CL854",
        severity="warning",
        title="Part of the saving without a rule",
        meaning="No [[saving]] says when the electricity or the machine hours that are saved are cash: "
        "that part is not counted.",
        mend='add a [[saving]] for it, or write of = "cost"',
        example="no [[saving]] is about the machine that is saved: none of it is counted",
    ),
    FindingCode(
        code="CL855",
        severity="warning",
        title="Devices use more than before",
        meaning="By the stated powers a device takes more energy after the change than before it, "
        "whatever the comparison measured.",
        mend="check power_w and seconds_per_unit of [embedded.before] and [embedded.after]",
        example="a device uses more energy after than before: customers pay more, and emissions rise",
    ),
)
