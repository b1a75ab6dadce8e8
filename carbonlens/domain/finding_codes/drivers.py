"""Codes of drivers of change, and of savings that are looked for again."""

from __future__ import annotations

from typing import Final

from carbonlens.domain.finding_codes.entry import FindingCode

DRIVERS: Final = (
    FindingCode(
        code="CL650",
        severity="warning",
        title="Period not over, or not closed",
        meaning="Figures may change; of a period that is not over the volume holds the days that are.",
        mend="ask for a period that is over, and close it",
        example="2026Q3 is not closed: its figures may change",
    ),
    FindingCode(
        code="CL651",
        severity="warning",
        title="Periods of different lengths",
        meaning="The effect of volume holds the days that one has more.",
        mend="compare periods of one length",
        example="the periods have 31 and 92 days: the volume tells of that too",
    ),
    FindingCode(
        code="CL652",
        severity="warning",
        title="No work counted",
        meaning="Volume, mix and energy per unit cannot be told apart; the energy has a line of its own.",
        mend="record units with the runs",
        example="no run of 2026Q3 counts its work",
    ),
    FindingCode(
        code="CL653",
        severity="warning",
        title="Unit without a number",
        meaning="The energy of these runs is in the energy per unit, their work is not.",
        mend="correct the runs with their units",
        example="2 runs of chat in 2026Q3 name the unit token and no number of it",
    ),
    FindingCode(
        code="CL654",
        severity="info",
        title="No classes of work",
        meaning="No run states the label: all work of a unit is one class.",
        mend="choose another label with --by",
        example="no run states workload: all work of a unit is one class, and there is no mix",
    ),
    FindingCode(
        code="CL655",
        severity="error",
        title="Bridge does not close",
        meaning="More than rounding of the change is in no line.",
        mend="ask again; where it stays, report it",
        example="the bridge of energy does not close: 1.2 kWh of the change are in no line",
    ),
    FindingCode(
        code="CL656",
        severity="warning",
        title="Split by Shapley values",
        meaning="A value is negative, of which there is no logarithm.",
        mend="see which price or factor is negative",
        example="a value of cost.EUR is negative: its change is split by Shapley values",
    ),
    FindingCode(
        code="CL657",
        severity="warning",
        title="Known in one period only",
        meaning="Work has no factor, no price or no true energy in one of the periods: its part has a line "
        "of its own.",
        mend="state factors, prices and overheads of both periods",
        example="carbon-location, known in one period only: chat at lab (no factor in 2026Q2)",
    ),
    FindingCode(
        code="CL658",
        severity="warning",
        title="Perhaps renamed",
        meaning="Work that ended and work that began state the same model or workload; they are two.",
        mend="join them with --same OLD=NEW",
        example="chat ended and assistant began with the same model llama-8b",
    ),
    FindingCode(
        code="CL659",
        severity="warning",
        title="Overhead known in one period only",
        meaning="What it adds in that period is no change of the site.",
        mend="state it for both periods",
        example="the PUE of lab is known in 2026Q3 only",
    ),
    FindingCode(
        code="CL660",
        severity="warning",
        title="Claimed saving not confirmed",
        meaning="The interval of the saving lies below the claim, or below 0.",
        mend="correct the claim, or state --adjust where something else changed",
        example="int8 in 2026Q3: not confirmed, less is saved than is claimed",
    ),
    FindingCode(
        code="CL661",
        severity="warning",
        title="Claimed saving undetermined",
        meaning="Neither a saving nor its absence is shown.",
        mend="as the message says: tags, units of work, an earlier period, more days",
        example="int8 in 2026Q3: undetermined, the interval holds no saving too",
    ),
    FindingCode(
        code="CL662",
        severity="info",
        title="In effect in a part of the period",
        meaning="The saving is of the whole period, the claim of the days in effect.",
        mend="ask for a period in which it was in effect throughout",
        example="int8 was in effect on 46 of 92 days of 2026Q3",
    ),
    FindingCode(
        code="CL663",
        severity="warning",
        title="Not routine and not adjusted",
        meaning="Something else changed beside the initiative and the work; no figure holds it.",
        mend="state what it comes to with --adjust",
        example="int8, not routine and not adjusted: guard: no work of the baseline, 75 kWh left out",
    ),
)
