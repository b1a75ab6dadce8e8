"""Import map: which team, site, zone and clock imported files belong to, and what columns mean."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from carbonlens.domain.in_study import FIELDS, InStudy
from carbonlens.domain.units import Boundary, Grade


class PlaceRule(InStudy, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What holds for the files and projects that match; each field that is ``None`` says nothing.

    It may tell what runs are in a study, too.

    Attributes:
        path: Shell pattern of the file's path, as it was given or walked to.
        project: Shell pattern of the run's project.
        team, site, zone: Of the runs.
        tz: IANA zone of local times.
        host: Machine of traces whose content names none; by paths alone.
        boundary: What energies include, where the file does not say.
        tags: Further labels.
    """

    path: str = "*"
    project: str | None = None
    team: str | None = None
    site: str | None = None
    zone: str | None = None
    tz: str | None = None
    host: str | None = None
    boundary: Boundary | None = None
    tags: Mapping[str, str] = msgspec.field(default_factory=dict)

    def matches(self, path: str, project: str | None) -> bool:
        """Whether the rule speaks of a run of this file and project."""
        if not (fnmatchcase(path, self.path) or fnmatchcase(path, f"*/{self.path}")):
            return False
        return self.project is None or (project is not None and fnmatchcase(project, self.project))


class TableRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the columns of any table are read.

    Attributes:
        path: Shell pattern of the file's path.
        columns: Field with its unit, such as ``energy_wh``, to the column that holds it.
        study: Study of its runs.
        boundary, grade: Of the energy.
        unit: Functional unit that ``units`` counts.
    """

    path: str = "*"
    columns: Mapping[str, str]
    study: str | None = None
    boundary: Boundary | None = None
    grade: Grade | None = None
    unit: str | None = None

    def matches(self, path: str) -> bool:
        """Whether the rule speaks of this file."""
        return fnmatchcase(path, self.path) or fnmatchcase(path, f"*/{self.path}")


class ImportMap(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All rules of one map file; of several that match, the first that states a field counts.

    Attributes:
        place: Where runs belong, by path and project.
        table: How tables of no known format are read.
    """

    place: tuple[PlaceRule, ...] = ()
    table: tuple[TableRule, ...] = ()

    def place_of(self, path: str, project: str | None) -> PlaceRule:
        """Return what the rules that match say together.

        Args:
            path: The file's path.
            project: The run's project; ``None`` leaves rules of projects out.
        """
        found = [rule for rule in self.place if rule.matches(path, project)]
        tags: dict[str, str] = {}
        for rule in reversed(found):
            tags.update(rule.tags)

        def first(name: str) -> Any:  # noqa: ANN401  # each field has a type of its own
            return next((value for rule in found if (value := getattr(rule, name)) is not None), None)

        return PlaceRule(
            team=first("team"),
            site=first("site"),
            zone=first("zone"),
            tz=first("tz"),
            host=first("host"),
            boundary=first("boundary"),
            tags=tags,
            **{name: first(name) for name in FIELDS},
        )

    def zones_by_project(self, path: str) -> dict[str, str]:
        """Return the clocks of a file's projects: pattern to IANA zone."""
        rules = [r for r in self.place if r.project is not None and r.tz is not None]
        return {r.project: r.tz for r in reversed(rules) if r.project and r.tz and r.matches(path, r.project)}
