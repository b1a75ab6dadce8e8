"""Table: watts per hardware thread of idle and fully loaded servers, by CPU family.

Source: SPECpower_ssj2008 results up to 2026-03, as collected in
``SPECpower-2026-03-09.csv`` of cloud-carbon-footprint/ccf-coefficients, commit
b0032d9 (2026-04-24), Apache-2.0. Facts of 1,088 published results; the watts are
those of the whole server (or servers) at the plug, power supplies included.

How the rows were computed, and what the test beside this table recomputes:

1. 14 results are left out because their own columns disagree (threads are not
   cores x threads a core, or cores not chips x cores a chip): 1,074 remain.
2. Each is assigned to the first family whose pattern its CPU description holds.
   Descriptions that name no generation, families of fewer than 3 results and
   generations before 2008 (Core 2 and older) stay out: 983 results remain.
3. Watts are divided by the server's hardware threads, because a virtual CPU is a
   thread. Idle and full watts of a family are geometric means.
4. ``spread`` is one sigma of the logarithm for one more server of the family:
   ``s sqrt(1 + 1/n) t(0.975, n-1) / 1.96``, so that the normal 95 % interval
   drawn from it is the prediction interval of Student's t.
5. The class default counts each family once: the geometric mean over the families,
   and as variance that between families plus the mean one within them.

The thermal design power (TDP) of the packages alone, for figures at the boundary of
the device, comes from codecarbon's ``cpu_power.csv`` (3.3.2, MIT):

6. A result counts if the table has its CPU's whole name (``cpu_names``): 920 of the
   983, and 29 families with at least 3. ``tdp_w`` is the geometric mean of
   TDP x chips / threads, ``tdp_spread`` by rule 4; both are ``None`` elsewhere.
7. ``WALL_IDLE`` and ``WALL_FULL`` are what a server draws at the plug for each watt of
   TDP in it: idle and full watts over TDP x chips, by rule 5 over the same results.
"""

from __future__ import annotations

from typing import Final, NamedTuple

SOURCE: Final = "SPECpower_ssj2008 to 2026-03 via ccf-coefficients b0032d9"
TDP_SOURCE: Final = "TDP of its SPECpower results by codecarbon 3.3.2"


class Row(NamedTuple):
    """One family: figures in watts per hardware thread, spreads as in the module's text.

    ``n`` results hold ``idle_w``, ``full_w`` and ``spread``; ``tdp_n`` of them ``tdp_w``
    and ``tdp_spread``.
    """

    family: str
    pattern: str
    n: int
    idle_w: float
    full_w: float
    spread: float
    tdp_w: float | None = None
    tdp_n: int = 0
    tdp_spread: float = 0.0


class TdpRatio(NamedTuple):
    """Watts at a server's plug for each watt of TDP, and one sigma of its logarithm."""

    ratio: float
    spread: float


ROWS: Final[tuple[Row, ...]] = (
    # The first pattern found in a CPU's name wins: the order matters.
    Row("AMD EPYC 4004/4005", r"EPYC 4\d\d[45]", 4, 1.293, 4.244, 0.253, 3.251, 4, 0.388),
    Row("AMD EPYC 1st gen", r"EPYC 7\d\d1", 10, 0.789, 2.496, 0.253, 2.980, 9, 0.271),
    Row("AMD EPYC 2nd gen", r"EPYC 7\w\w2", 36, 0.455, 1.687, 0.091, 1.690, 36, 0.059),
    Row("AMD EPYC 3rd gen", r"EPYC 7\w\w3", 28, 0.444, 1.946, 0.115, 2.170, 28, 0.044),
    Row("AMD EPYC 4th gen, Zen 4c", r"EPYC (8\w\w4|97\w4)", 51, 0.394, 1.712, 0.434, 1.658, 51, 0.352),
    Row("AMD EPYC 4th gen", r"EPYC 9\w\w4", 20, 0.342, 1.874, 0.085, 1.875, 20, 0.000),
    Row("AMD EPYC 5th gen", r"EPYC 9\w\w5", 39, 0.230, 1.297, 0.228, 1.367, 39, 0.220),
    Row("AMD Opteron", r"Opteron", 64, 4.819, 14.407, 0.528, 7.724, 31, 0.184),
    Row("Ampere Altra", r"Altra", 7, 0.709, 1.659, 0.353),
    Row("Intel Core Ultra 200H", r"Core Ultra \d 2\d\dH|Core\(TM\) Ultra \d 2\d\dH", 6, 1.378, 2.835, 0.052),
    Row("Intel Granite Rapids", r"(Xeon|Xeon\(R\)) 6[79]\d\dP", 27, 0.605, 2.626, 0.148, 2.026, 27, 0.014),
    Row("Intel Sierra Forest", r"\b67\d\dE", 19, 0.686, 2.518, 0.249, 2.164, 17, 0.197),
    Row("Intel Raptor Lake E", r"6369P|E-24\d\d", 10, 1.339, 5.826, 0.099, 5.937, 6, 0.000),
    Row("Intel Rocket Lake E", r"E-23\d\d", 15, 1.226, 4.792, 0.087, 6.124, 15, 0.060),
    Row("Intel Coffee Lake E", r"E-2[12]\d\d", 9, 1.115, 5.185, 0.402, 6.414, 9, 0.072),
    Row("Intel Ice Lake D", r"D[- ]27\d\d", 5, 1.607, 4.276, 0.030, 3.125, 4, 0.000),
    Row("Intel Ivy Bridge E3", r"(?i)E3-\d+L? ?v2", 8, 3.146, 9.169, 0.423, 7.596, 8, 0.503),
    Row("Intel Ivy Bridge", r"(?i)E[57]-\d+L? ?v2", 4, 1.547, 5.424, 0.103, 4.750, 4, 0.000),
    Row("Intel Haswell E3", r"(?i)E3-\d+L? ?v3", 5, 2.033, 7.357, 0.254, 5.625, 5, 0.000),
    Row("Intel Skylake/Kaby Lake E3", r"(?i)E3-\d+L? ?v[56]", 7, 1.634, 6.174, 0.100, 6.451, 6, 0.600),
    Row("Intel Sandy Bridge E3", r"E3-\d+", 9, 2.871, 10.499, 0.538, 8.689, 9, 0.569),
    Row("Intel Haswell", r"(?i)E[57]-\d+L? ?v3", 16, 0.664, 3.893, 0.062, 4.010, 16, 0.020),
    Row("Intel Broadwell", r"(?i)E[57]-\d+L? ?v4", 17, 0.624, 3.500, 0.342, 3.341, 17, 0.053),
    Row("Intel Sandy Bridge", r"E5-\d+", 115, 2.022, 8.215, 0.221, 6.349, 115, 0.175),
    Row(
        "Intel Nehalem/Westmere",
        r"E7-\d+|[XLE]55\d\d|[XLE]?56\d\d|X75\d\d|X34[3-8]\d",
        147,
        3.625,
        11.431,
        0.220,
        8.378,
        146,
        0.238,
    ),
    Row("Intel Cooper Lake", r"Platinum 83[78]\dH", 8, 0.757, 4.407, 0.206, 4.355, 8, 0.090),
    Row(
        "Intel Emerald Rapids",
        r"(Xeon|Gold|Platinum|Silver|\(R\)) [3-8]5\d\d",
        33,
        0.823,
        3.516,
        0.313,
        2.937,
        31,
        0.238,
    ),
    Row(
        "Intel Sapphire Rapids",
        r"(Xeon|Gold|Platinum|Silver|\(R\)) [3-8]4\d\d",
        67,
        0.977,
        3.987,
        0.201,
        3.086,
        63,
        0.102,
    ),
    Row("Intel Ice Lake", r"(Gold|Platinum|Silver) [3-8]3\d\d", 43, 0.976, 4.106, 0.143, 3.360, 43, 0.046),
    Row(
        "Intel Cascade Lake", r"(Gold|Platinum|Silver) [3-8]2\d\d", 77, 0.649, 4.013, 0.165, 3.551, 76, 0.091
    ),
    Row("Intel Skylake", r"(Gold|Platinum|Silver) [3-8]1\d\d", 77, 0.550, 4.018, 0.156, 3.474, 77, 0.121),
)

DEFAULT: Final = Row("all servers", "", 983, 1.003, 4.010, 0.687, 3.764, 920, 0.600)
"""Class default of an unknown family: each of the 31 families above counts once."""

WALL_IDLE: Final = TdpRatio(0.261, 0.468)
WALL_FULL: Final = TdpRatio(1.097, 0.233)
"""Idle and full power of a server at the plug, over the TDP of its packages."""
