"""Codes of allocation and statements."""

from __future__ import annotations

from typing import Final

from carbonlens.domain.finding_codes.entry import FindingCode

STATEMENTS: Final = (
    FindingCode(
        code="CL470",
        severity="warning",
        title="Nobody used it",
        meaning="A shared device or machine has no use to divide it by: all of it is idle.",
        mend="state who used it",
        example="nobody used it: all of it is idle",
    ),
    FindingCode(
        code="CL471",
        severity="warning or info",
        title="Shared costs found nobody",
        meaning="Nobody has costs or use of their own by which they could be carried.",
        mend="share them by another weight, or check the uses",
        example="shared costs of support found nobody with costs of its own to carry them",
    ),
    FindingCode(
        code="CL472",
        severity="warning",
        title="Use unknown in part",
        meaning="What a part of the users used is unknown, so that the sharing is not complete.",
        mend="state each one's use",
        example="the use of search is unknown",
    ),
    FindingCode(
        code="CL473",
        severity="warning",
        title="No idle is left",
        meaning="What is charged or measured for the parts is as much as the whole, or more.",
        mend="check which runs the meter feeds, or what the parts state",
        example="workloads are charged 120 of a machine that costs 100: no idle is left",
    ),
    FindingCode(
        code="CL474",
        severity="warning",
        title="Cost without hours",
        meaning="A resource that nobody had by its own hours costs something: kept apart.",
        mend="check the tool that made the figures",
        example="12.00 GPU cost with 0 GPU hours (ns1): kept apart, not in the total",
    ),
    FindingCode(
        code="CL475",
        severity="info",
        title="Dedicated host counted once",
        meaning="Its instances stated an amount of the host again.",
        mend="nothing",
        example="2 instances on dedicated hosts stated an amount of its host again",
    ),
    FindingCode(
        code="CL476",
        severity="error",
        title="Energy of two services",
        meaning="Two services claim the same runs: none of them has the energy.",
        mend="let site and tags of services.toml tell them apart",
        example="3 kWh would belong to the services chat and search: none of them has it",
    ),
    FindingCode(
        code="CL477",
        severity="warning or info",
        title="Service without energy or meter",
        meaning="No run or reading is its own, or its meter is of another boundary.",
        mend="tag its runs, or check tags, site and meter in services.toml",
        example="service chat has no energy in 2026-01",
    ),
    FindingCode(
        code="CL478",
        severity="info",
        title="Divided by activity",
        meaning="No counter tells the energy of a MIG device or a process apart: evidence grade D.",
        mend="nothing",
        example=(
            "divided by shares of activity: no counter tells the energy of a MIG device or a process apart"
        ),
    ),
    FindingCode(
        code="CL479",
        severity="warning",
        title="Use of a month not stated",
        meaning="The energy of the month is not divided.",
        mend="add the month's uses to services.toml or service_uses*.csv",
        example="no use is stated for 2026-01: its energy is not divided",
    ),
    FindingCode(
        code="CL480",
        severity="warning",
        title="Site not in the inventory",
        meaning="Its scope, PUE and market are unknown.",
        mend="declare it in sites.toml",
        example="hq2 is no site of the inventory: scope, PUE and market are unknown",
    ),
    FindingCode(
        code="CL481",
        severity="warning",
        title="Place of a site unclear",
        meaning="Runs and inventory name different zones, or no known one.",
        mend="declare the zone of the site, and correct the runs",
        example="runs at hq state several zones (FR, DE)",
    ),
    FindingCode(
        code="CL482",
        severity="warning",
        title="Meters do not cover the period",
        meaning="They are no activity data then: the runs stand alone.",
        mend="import the missing readings",
        example="1 meter of site hq (m1) cover 80 % of the period: no activity data",
    ),
    FindingCode(
        code="CL483",
        severity="warning",
        title="Runs exceed the meters",
        meaning="The meters stand, and the excess is a negative unattributed line.",
        mend="check PUE and host overhead, the meters' boundary, and runs counted twice",
        example="recorded runs at hq come to 12 kWh more than its meters counted",
    ),
    FindingCode(
        code="CL484",
        severity="warning",
        title="Market-based by the grid average",
        meaning="No residual mix and no provider's factor is known; this is to be disclosed.",
        mend="import the residual mix of its market, or the provider's factor",
        example="no residual mix and no provider's factor of hq",
    ),
    FindingCode(
        code="CL485",
        severity="warning or info",
        title="Asset named by no run",
        meaning="Its use is unknown, or its embodied emissions are idle.",
        mend="state in assets.csv the hosts on which it stands",
        example="no run of the period names a host or the hardware of asset a1",
    ),
    FindingCode(
        code="CL486",
        severity="info",
        title="No price of electricity at a site",
        meaning="Its cost is unknown.",
        mend="add a tariff of the site, or a price of electricity",
        example="no price of electricity at hq: its cost is unknown",
    ),
)
