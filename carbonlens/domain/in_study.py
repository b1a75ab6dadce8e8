"""What a run is in a study: study, step, role and the work it did, as told beside a source."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import msgspec

from carbonlens.domain.run import Run
from carbonlens.domain.units import Role


class InStudy(msgspec.Struct, frozen=True, kw_only=True):
    """What is told of runs beside their source; each field that is ``None`` says nothing.

    Attributes:
        study, step: Names.
        role: What the runs are there for; ``other`` of a source counts as unstated.
        unit: Functional unit, such as ``image``.
        units: How many of them each run did.
    """

    study: str | None = None
    step: str | None = None
    role: Role | None = None
    unit: str | None = None
    units: Decimal | None = None

    @property
    def told(self) -> dict[str, Any]:
        """The fields that say something."""
        return {name: value for name in FIELDS if (value := getattr(self, name)) is not None}


FIELDS: Final = InStudy.__struct_fields__


def stated(run: Run, field: str) -> object:
    """Return what a run states of its place in a study; ``None`` where it states nothing."""
    value: object = getattr(run, field)
    return None if field == "role" and value == "other" else value


def placed(run: Run, told: InStudy) -> Run:
    """Return a run with what is told of it."""
    return msgspec.structs.replace(run, **told.told) if told.told else run


def of_unstated(run: Run, told: InStudy) -> dict[str, Any]:
    """Return what is told of a run that it does not state itself, or states alike.

    A unit and how many of it were done are told together: neither is put to the other one of a source,
    unless that is told too, and alike.
    """
    found = {name: value for name, value in told.told.items() if stated(run, name) in (None, value)}
    is_of_other_unit = run.unit not in (None, told.unit)
    if is_of_other_unit and (told.unit is not None or run.units != told.units):
        found.pop("units", None)
    if run.unit is None and run.units not in (None, told.units):
        found.pop("unit", None)
    return found
