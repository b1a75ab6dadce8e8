"""Units: exact conversion constants and the vocabulary of closed word lists.

Conversions are plain arithmetic (``* /`` with exact constants), so that the
same expression serves a float, a Decimal, an array or a column.
"""

from __future__ import annotations

from typing import Final, Literal

J_PER_KWH: Final = 3_600_000
S_PER_HOUR: Final = 3_600
US_PER_S: Final = 1_000_000
US_PER_HOUR: Final = 3_600_000_000
HOURS_PER_DAY: Final = 24
HOURS_PER_YEAR: Final = 8_760
"""Of a year of 365 days, in which lives of hardware are counted."""

G_PER_KG: Final = 1_000
KG_PER_TONNE: Final = 1_000
W_PER_KW: Final = 1_000
WH_PER_KWH: Final = 1_000
KWH_PER_MWH: Final = 1_000
KG_PER_1E8_LB: Final = 45_359_237
"""The avoirdupois pound is 0.45359237 kg exactly; a whole number, so that Decimals stay exact."""

Z_95: Final = 1.959963984540054
"""Two-sided 95 % quantile of the standard normal distribution."""

Boundary = Literal["device", "it", "facility"]
"""What a joule includes: the device, the whole server, or the building."""

Grade = Literal["A", "B", "C", "D", "E"]
"""Evidence: A external meter, B counter, C integrated power, D model, E datasheet."""

IdleConvention = Literal["reserved", "dynamic"]
"""Whether a device's energy over a window holds the power it would draw idle."""

State = Literal["known", "unknown", "unbounded", "not_applicable"]
"""``unbounded``: a lower bound, because a part of the sum is unknown."""

Role = Literal["variant", "effort", "idle", "training", "serving", "evaluation", "other"]
RunStatus = Literal["complete", "running", "recovered", "failed"]
Verdict = Literal["better", "same", "worse", "inconclusive"]
GateOutcome = Literal["pass", "fail", "undetermined"]
Decision = Literal["adopt", "reject", "undetermined"]
StepStatus = Literal["accepted", "rejected", "undetermined", "failed"]
