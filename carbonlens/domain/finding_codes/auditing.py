"""Codes of the audit: what is stated does not hold together."""

from __future__ import annotations

from typing import Final

from carbonlens.domain.finding_codes.entry import FindingCode

AUDITING: Final = (
    FindingCode(
        code="CL701",
        severity="warning",
        title="Implied kg/kWh not plausible",
        meaning="Emissions over energy lie outside what grids have (0.005 to 1.5 kg/kWh), or are 0.",
        mend="check the units and powers of ten of energy and emissions",
        example="70B: implies 0.00263 kg/kWh (12900 kg of 4900000 kWh), and next to no grid is below 0.005",
    ),
    FindingCode(
        code="CL702",
        severity="error or warning",
        title="Slip",
        meaning="The inputs do not give the output, and a power of ten, a unit or a count explains it.",
        mend="correct the figure or its unit",
        example=(
            "card: 1287000 kWh x 429 g/kWh give 552123 kg, 5521000 kg stated: a power of ten, 10 explains it"
        ),
    ),
    FindingCode(
        code="CL703",
        severity="warning",
        title="Inputs do not give the output",
        meaning="No single slip explains the stated figure.",
        mend="state every input that was used, or correct the figure",
        example="13B: the inputs do not give the output: 90675 kg, 101 t stated (+11.4%)",
    ),
    FindingCode(
        code="CL704",
        severity="warning",
        title="Hours x watts do not give the energy",
        meaning="Stated energy is not that of hours, power and number of devices.",
        mend="check hours, power per device and number of devices",
        example="7B: hours x watts give 36270 kWh, 356 MWh stated (9.82 times as much)",
    ),
    FindingCode(
        code="CL705",
        severity="warning",
        title="PUE applied 0 or 2 times",
        meaning="The stated figure fits with the PUE left out, or applied twice.",
        mend="apply the PUE once, and say which energy is stated",
        example=(
            "1B: 36000 kWh with PUE x 0.332 kg/kWh give 11952 kg, 10 t stated: that fits PUE applied 0 times"
        ),
    ),
    FindingCode(
        code="CL706",
        severity="warning",
        title="Rows and total differ",
        meaning=(
            "The rows do not sum to the total: a row is missing, or one is too many. In a statement, lines "
            "of energy, emissions, water or cost."
        ),
        mend="list the row, or correct the total",
        example="Total: 3 rows sum to 385080 kg, the total states 539000 kg: a row of 153920 kg is missing",
    ),
    FindingCode(
        code="CL707",
        severity="warning",
        title="Stated twice",
        meaning="A row stands twice, with the same figures or with others.",
        mend="count it once, or name the rows apart",
        example="7B: repeats line 4 with the same figures",
    ),
    FindingCode(
        code="CL708",
        severity="warning",
        title="Unit missing or not known",
        meaning="The amount cannot be checked, and is not used.",
        mend="state a unit that the message names",
        example="7B: emissions 31.22 has no unit",
    ),
    FindingCode(
        code="CL709",
        severity="warning",
        title="Impossible power",
        meaning="Stated power, or energy over hours, is beyond what the device draws.",
        mend="check the units, and the number of devices",
        example="7B: energy over hours is 4000 W, and A100 draws at most 440 W",
    ),
    FindingCode(
        code="CL710",
        severity="warning",
        title="Place missing",
        meaning=(
            "Emissions, or energy in a statement, are stated with neither place nor factor; or runs tell no "
            "place."
        ),
        mend="state the place (country, grid zone or region) and the factor",
        example="7B: states emissions with neither place nor emission factor (2 rows more likewise)",
    ),
    FindingCode(
        code="CL711",
        severity="error",
        title="Grams and kilograms in a card",
        meaning=(
            "co2_eq_emissions takes grams, and kilograms, tonnes or pounds were written; or the text of the "
            "card states it in the wrong unit."
        ),
        mend="write co2_eq_emissions in grams",
        example=(
            "co2_eq_emissions: holds 1.87 g in co2_eq_emissions, and line 10 states 1.87 kg: kilograms were "
            "written for grams"
        ),
    ),
    FindingCode(
        code="CL712",
        severity="warning",
        title="Component missing",
        meaning="The energy leaves out the GPU, the CPU or memory: it is a lower bound.",
        mend="measure the part, or state what the energy holds",
        example="run r1: its energy leaves out the GPU: it is a lower bound",
    ),
    FindingCode(
        code="CL713",
        severity="warning",
        title="Factor bases mixed in one total",
        meaning="Rows count by different bases, or imply factors that cannot be one.",
        mend="use one basis, or show a sum for each",
        example="Total: sums rows of different factor bases (direct, life_cycle)",
    ),
    FindingCode(
        code="CL714",
        severity="warning",
        title="Market-based alone",
        meaning="Market-based emissions stand without location-based ones.",
        mend="state both (GHG Protocol Scope 2 Guidance, chapter 7)",
        example="7B: states market-based emissions of 0 without location-based ones",
    ),
    FindingCode(
        code="CL715",
        severity="warning",
        title="WUE on facility energy",
        meaning="Water is that of facility energy; WUE multiplies IT energy.",
        mend="WUE multiplies IT energy: leave the PUE out",
        example="1B: 30000 kWh of IT energy x WUE give 38700 L, 46440 L stated",
    ),
    FindingCode(
        code="CL716",
        severity="warning",
        title="Ratio or percentage slip",
        meaning="A figure per unit, or a saving in percent, is not what its parts give.",
        mend="correct the ratio or its unit",
        example=(
            "vision: 75000 kg over 2.5 units is 30000 kg each, 3000 kg stated: a power of ten, 10 explains it"
        ),
    ),
    FindingCode(
        code="CL717",
        severity="warning",
        title="Scopes overlap",
        meaning="The same energy is in scope 2 and 3, or rented machines are in scope 2.",
        mend="book it in one scope; only upstream is scope 3 too",
        example="hall: the same 500 kWh are in scope 2 and scope 3",
    ),
    FindingCode(
        code="CL718",
        severity="warning",
        title="Stale factor",
        meaning="The factor is more than two years older than the work.",
        mend="use the factor of the year, or of the one before",
        example="run r1: uses a factor of 2019 for work of 2025",
    ),
    FindingCode(
        code="CL719",
        severity="error",
        title="Cell without a possible figure",
        meaning="NaN, infinite, below 0 (a PUE below 1) or not to be read as one number: it is not used.",
        mend="write the figure, or leave the cell empty where nobody knows it",
        example="7B: energy 'nan' is no figure: it stays unknown",
    ),
    FindingCode(
        code="CL720",
        severity="warning",
        title="One factor in several countries",
        meaning="Runs of three countries or more state emissions by one and the same factor: a default "
        "of the tool that made them, as the EU mean of carbontracker was.",
        mend="keep what it states as evidence; carbonlens account uses the factors of each place",
        example="294 g/kWh in 3 countries (NL, TW, US): no grid of one is that of the others, so the source "
        "took a default",
    ),
)
