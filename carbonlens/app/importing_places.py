"""Where imported runs belong: tags, team, site and zone, by the command line, a map and the source."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from carbonlens.app.importing_versions import Marks
from carbonlens.app.places import find_place
from carbonlens.domain.file_names import printable
from carbonlens.domain.finding import Finding
from carbonlens.domain.import_map import ImportMap, PlaceRule
from carbonlens.domain.in_study import InStudy, of_unstated
from carbonlens.domain.run import Run
from carbonlens.errors import SelectionError
from carbonlens.importers.contract import RunRecord, Written


class Places:
    """Puts on runs what the user and their source say of where they belong.

    Args:
        rules: By path and project. Their tags, team, site and zone go before the source's own; what they
            tell of a study goes before ``in_study``, and behind what the source states.
        tags: For every run; they go before all.
        site: Of runs that state none.
        in_study: Study, step and work of runs that state none.
    """

    def __init__(
        self, rules: ImportMap, tags: dict[str, str], site: str | None, in_study: InStudy | None = None
    ) -> None:
        """Look at nothing yet."""
        self._rules = rules
        self._tags = tags
        self._site = site
        self._in_study = in_study or InStudy()
        self._zones: dict[Written, tuple[str | None, Finding | None]] = {}

    def of(self, path: str) -> Callable[[RunRecord], tuple[Run, list[Finding]]]:
        """Return what marks the runs of one file; each kind of place is said once a file."""
        said: set[Written] = set()

        def mark(record: RunRecord) -> tuple[Run, list[Finding]]:
            return self._mark(record, path, said)

        return mark

    def marks_of(self, path: str) -> Callable[[RunRecord], Marks]:
        """Return what tells what the user says now of the runs of one file, beside their source."""

        def marks(record: RunRecord) -> Marks:
            rule = self._rules.place_of(path, record.project)
            team = {"team": rule.team} if rule.team else {}
            site = rule.site or (None if record.run.site else self._site)
            told = InStudy(**{**self._in_study.told, **rule.told})
            taken = of_unstated(record.run, told)
            return Marks(
                tags={**rule.tags, **team, **self._tags},
                site=site,
                zone=rule.zone,
                aside=(*_aside(told, taken, rule), *self._site_aside(record.run, rule)),
                **taken,
            )

        return marks

    def _mark(self, record: RunRecord, path: str, said: set[Written]) -> tuple[Run, list[Finding]]:
        run = record.run
        rule = self._rules.place_of(path, record.project)
        team = {"team": rule.team} if rule.team else {}
        tags = {**run.tags, **rule.tags, **team, **self._tags}
        zone, findings = rule.zone or run.zone, []
        if zone is None and record.place is not None:
            zone, found = self._zone_of(record.place)
            if found is not None and record.place not in said:
                said.add(record.place)
                findings.append(replace(found, file=printable(path), line=record.line or None))
        site = rule.site or run.site or self._site
        return replace(run, tags=tags, site=site, zone=zone), findings

    def _site_aside(self, run: Run, rule: PlaceRule) -> tuple[str, ...]:
        is_aside = self._site and run.site and not rule.site and run.site != self._site
        return ("--site",) if is_aside else ()

    def _zone_of(self, place: Written) -> tuple[str | None, Finding | None]:
        if place not in self._zones:
            self._zones[place] = _looked_up(place)
        return self._zones[place]


def _aside(told: InStudy, taken: Mapping[str, object], rule: PlaceRule) -> list[str]:
    """Return what is told and not taken, as the user wrote it."""
    names = [name for name in told.told if name not in taken]
    return [f"--{name}" if getattr(rule, name) is None else f"{name} of --map" for name in names]


def _looked_up(place: Written) -> tuple[str | None, Finding | None]:
    if place.doubt is not None:
        return None, _finding("CL255", place.doubt)
    written = place.cloud or place.country
    if written is None:
        return None, None
    try:
        region = None if place.cloud else place.region
        found = find_place(written, region=region, country=place.country if place.cloud else None)
    except SelectionError as error:
        text = f"the place {written!r} is not found: {error.what}; the run has no zone"
        return None, _finding("CL255", text)
    return found.zone, next(iter(found.findings), None)


def _finding(code: str, text: str) -> Finding:
    mend = "name the zone in a map (--map), or the site (--site)"
    return Finding(code=code, severity="warning", message=text, mend=mend)
