"""carbontracker's logs: the output log with consumptions, the standard log with epochs.

Consumptions hold a PUE; epochs do not. Both logs of one tracker are read together and make one
run: its energy is that of the epochs' devices, and the stated one stands beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import sha256_hex
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import J_PER_KWH, US_PER_S, Grade
from carbonlens.importers import unit_checks
from carbonlens.importers.carbontracker_log import (
    FOUND,
    PREFIX,
    Consumption,
    Epoch,
    Key,
    Session,
    key_of,
    moment_of,
    sessions,
)
from carbonlens.importers.contract import (
    SPECIFIC,
    Facts,
    Group,
    Item,
    Kind,
    Options,
    RunRecord,
    Tally,
    Written,
)
from carbonlens.importers.records import finding, origin_of, reading
from carbonlens.importers.sources import Source
from carbonlens.importers.times import Clock

_STANDARD: Final = ("carbontracker version ", "Only predicted and actual consumptions", FOUND)
_STAMP_LENGTH: Final = len("2026-01-01 00:00:00 - ")
_SAME: Final = Decimal("0.01")
"""Share by which the epochs may miss the stated consumption: their power is printed rounded."""

_G_PER_KG: Final = 1000
_LEAST_W: Final = 1e-4


class CarbontrackerImporter:
    """Importer of carbontracker's logs."""

    name = "carbontracker"
    version = 1
    kind: Kind = "runs"
    rank = SPECIFIC
    facts = Facts(
        title="carbontracker output and standard logs",
        reads="versions 1.1 to 2.4, each log alone or both of one tracker",
        units="kWh, grams, h:mm:ss; the output log's energy holds a PUE, the watts of epochs do not",
        grade="GPU C (polled), CPU D (counter or rated power, it does not say); output log alone D",
        traps=(
            "consumptions are sums so far: the last one counts, and predictions never",
            "both logs of one tracker are one run: they begin at the same second with the same components",
            "the output log's energy is the facility's: its PUE (1.55 to 1.67) is in the standard log alone",
            "0 kWh, or a power of None, was not measured: unknown, not zero",
            "a log that ends before any consumption makes no run",
            "CO2eq is nan where no intensity was found; the energy stays",
            "local times without a zone: --tz, else UTC, and said",
        ),
        tested_on=(
            "four logs from public repositories, of versions 1.1 and 2.4",
            "logs typed here for each trap",
        ),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim the logs, those of one tracker together."""
        standards: dict[tuple[Path, Key | None], list[Source]] = defaultdict(list)
        outputs = []
        for source in sources:
            if _is_output(source):
                outputs.append(source)
            elif _is_standard(source):
                standards[source.path.parent, key_of(source)].append(source)
        groups = []
        for source in outputs:
            key = key_of(source)
            twins = standards.get((source.path.parent, key)) if key else None
            groups.append(Group((source, twins.pop(0)) if twins else (source,)))
        return groups + [Group((s,)) for left in standards.values() for s in left]

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the runs of one log, or of both.

        Raises:
            InputFileError: If one cannot be read.
        """
        yield from _Reading(group, options).items()


IMPORTER: Final = CarbontrackerImporter()


def _is_output(source: Source) -> bool:
    return any(
        line[_STAMP_LENGTH:].startswith(PREFIX) and _is_stamped(line) for line in source.first_lines[:3]
    )


def _is_standard(source: Source) -> bool:
    lines = source.first_lines[:3]
    return any(line[_STAMP_LENGTH:].startswith(_STANDARD) and _is_stamped(line) for line in lines)


def _is_stamped(line: str) -> bool:
    return line[4:5] == "-" and line[_STAMP_LENGTH - 3 : _STAMP_LENGTH] == " - "


class _Told(msgspec.Struct, frozen=True, kw_only=True):
    """One tracker, by one log or both."""

    source: Source
    output: Session | None = None
    standard: Session | None = None

    @property
    def any(self) -> Session:
        found = self.output or self.standard
        assert found is not None  # noqa: S101  # it is made of one of them
        return found


class _Reading:
    def __init__(self, group: Group, options: Options) -> None:
        self._group = group
        self._clock = Clock(options.tz, group.main)
        self._repeated = 0

    def items(self) -> Iterator[Item]:
        """Yield runs, Findings and a tally."""
        rows = rejected = 0
        seen: set[str] = set()
        for told in self._trackers():
            for session in (told.output, told.standard):
                for line, error in session.bad if session else ():
                    # A message is a row of its own here: a tracker may have many that are damaged.
                    rows += 1
                    rejected += 1
                    text = f"line {line} {error}; it is left out"
                    yield finding("CL202", "error", text, told.source, line=line, mend="mend the line")
            rows += 1
            record = self._record(told)
            if record is None:
                text = "the log ends before any consumption is stated: no run is made"
                yield finding("CL261", "warning", text, told.source, line=told.any.line)
                continue
            if record.run.run_id in seen:
                self._repeated += 1
                text = "repeats an earlier tracker of the file exactly; counted once"
                yield finding("CL201", "info", text, told.source, line=told.any.line)
                continue
            seen.add(record.run.run_id)
            yield from self._said(told, record)
            yield record
        yield from self._clock.findings
        yield Tally(rows=rows, rejected=rejected, repeated=self._repeated)

    def _trackers(self) -> Iterator[_Told]:
        """Yield each tracker, with both of its logs where both are there."""
        waiting: dict[Key | None, list[Session]] = defaultdict(list)
        standard: Source | None = None
        for source in self._group.sources:
            if not _is_output(source):
                standard = source
                for session in sessions(source):
                    waiting[session.key].append(session)
        for source in self._group.sources:
            if _is_output(source):
                for session in sessions(source):
                    twins = waiting.get(session.key) if session.key else None
                    yield _Told(source=source, output=session, standard=twins.pop(0) if twins else None)
        for left in waiting.values():
            for session in left:
                yield _Told(source=standard or self._group.main, standard=session)

    def _record(self, told: _Told) -> RunRecord | None:
        stated = told.output.actual if told.output else None
        epochs = [e for e in told.standard.epochs if e.duration_s is not None] if told.standard else []
        if stated is None and not epochs:
            return None
        uses_epochs = bool(epochs) and (stated is None or not _misses(stated, epochs, told))
        is_whole = stated is not None and (not epochs or stated.epochs in {None, len(epochs)})
        meter = _hardware(told) or told.source.name
        energy = _parts(epochs, told, meter) if uses_epochs else ()
        whole = _whole(stated, meter) if stated is not None else None
        energy = energy or ((whole,) if whole is not None else ())
        beside = (whole,) if whole is not None and uses_epochs and whole.energy_j is not None else ()
        durations = [e.duration_s for e in epochs if e.duration_s is not None]
        duration_s = sum(durations, Decimal(0)) if uses_epochs else stated.time_s if stated else Decimal(0)
        start_us, end_us = self._times(stated, epochs, duration_s)
        kg = stated.co2_g / _G_PER_KG if stated and is_whole and stated.co2_g and whole else None
        run = Run(
            run_id=_identity(told),
            start_us=start_us,
            end_us=end_us,
            duration_s=float(duration_s),
            energy=energy,
            beside=beside,
            emissions_reported_kg=kg,
            hardware=_hardware(told),
            origin=origin_of(IMPORTER, told.source, told.any.line),
        )
        stated_j = whole.energy_j if whole is not None and is_whole else None
        return RunRecord(run=run, line=told.any.line, stated_j=stated_j, place=_place(told))

    def _times(
        self, stated: Consumption | None, epochs: Sequence[Epoch], duration_s: Decimal
    ) -> tuple[int | None, int | None]:
        last = epochs[-1] if epochs else stated
        if last is None:
            return None, None
        try:
            end_us = self._clock.us(moment_of(last.stamp), last.line)
            first = epochs[0] if epochs else None
            if first is None:
                return end_us - round(duration_s * US_PER_S), end_us
            start_us = self._clock.us(moment_of(first.stamp), first.line)
            return start_us - round((first.duration_s or 0) * US_PER_S), end_us
        except ValueError:
            return None, None

    def _said(self, told: _Told, record: RunRecord) -> Iterator[Finding]:
        source, run = told.source, record.run
        unknown = [r.component for r in run.energy if r.energy_j is None]
        if unknown:
            text = f"the energy of {', '.join(unknown)} is 0 or None: it was not measured, and is unknown"
            mend = "let epochs last longer than the tracker's interval"
            yield finding("CL260", "warning", text, source, line=record.line, mend=mend)
        part = [r for r in run.energy if r.state == "unbounded"]
        for r in part:
            text = f"{r.component} was not measured in each epoch: its energy is a lower bound"
            yield finding("CL260", "warning", text, source, line=record.line)
        yield from self._said_of_logs(told)
        if told.standard and told.output and told.output.actual and not run.beside and not unknown:
            text = "the epochs' power, duration and PUE do not come to the stated consumption, which is kept"
            yield finding("CL256", "warning", text, source, line=record.line)
        if run.end_us is None:
            text = "its messages have no times that can be: the energy is in no hour"
            yield finding("CL245", "warning", text, source, line=record.line)
        kg, stated_j = run.emissions_reported_kg, record.stated_j
        known_j = sum((r.energy_j for r in run.energy if r.energy_j is not None), Decimal(0))
        checked = unit_checks.Stated(
            energy_j=float(known_j if stated_j is None else stated_j),
            energy_unit="J" if stated_j is None else "kWh",
            duration_s=run.duration_s,
            emissions_kg=None if kg is None else float(kg),
            least_w=_LEAST_W,
        )
        yield from unit_checks.of_run(checked, source, record.line)
        for r in run.energy:
            if r.energy_j is not None and r.covered_s:
                # Of each of its devices; their powers stand under a header of watts.
                mean_w = float(r.energy_j) / r.covered_s / max(len(r.devices), 1)
                yield from unit_checks.of_trace(r.component, mean_w, "W", source)

    def _said_of_logs(self, told: _Told) -> Iterator[Finding]:
        output, standard = told.output, told.standard
        if not any(session.ended for session in (output, standard) if session):
            text = "the log does not say that monitoring finished: what it states until then is counted"
            yield finding("CL261", "warning", text, told.source, line=told.any.line)
        if output is None:
            return
        if output.predicted is not None:
            text = f"the consumption predicted for {counted(output.predicted, 'epoch')} is not counted"
            yield finding("CL262", "info", text, told.source, line=output.line)
        count = len(standard.epochs) if standard else 0
        if output.actual and output.actual.epochs and count > output.actual.epochs:
            text = (
                f"the consumption is of {output.actual.epochs} of {counted(count, 'epoch')}; all are counted"
            )
            yield finding("CL262", "info", text, told.source, line=output.actual.line)


def _whole(stated: Consumption, meter: str) -> Reading:
    """Return the stated consumption; one of 0 is unknown."""
    joules = stated.energy_kwh * J_PER_KWH if stated.energy_kwh else None
    method = "carbontracker, devices x its PUE"
    return reading("total", joules, method=method, grade="D", meter=meter, boundary="facility")


def _parts(epochs: Sequence[Epoch], told: _Told, meter: str) -> tuple[Reading, ...]:
    """Return the energy of each component over the epochs in which its power is known."""
    names = dict.fromkeys([*(told.any.devices), *(name for e in epochs for name in e.watts)])
    made = []
    for name in names:
        known = [(e.duration_s or Decimal(0), w) for e in epochs if (w := e.watts.get(name)) is not None]
        covered_s = sum((d for d, _ in known), Decimal(0))
        joules = sum((d * w for d, w in known), Decimal(0)) or None
        grade: Grade = "C" if name == "gpu" else "D"
        found = reading(
            name,
            joules,
            method="carbontracker, mean power x duration of epochs",
            grade=grade,
            meter=meter,
            devices=tuple(d.strip() for d in told.any.devices.get(name, "").split(",") if d.strip()),
            covered_s=float(covered_s) if joules is not None else None,
        )
        if joules is not None and len(known) < len(epochs):
            found = msgspec.structs.replace(found, state="unbounded")
        made.append(found)
    return tuple(made)


def _misses(stated: Consumption, epochs: Sequence[Epoch], told: _Told) -> bool:
    """Whether the epochs do not come to what the output log states of as many."""
    pue = told.standard.pue if told.standard else None
    if stated.epochs is not None and stated.epochs > len(epochs):
        return True
    if not stated.energy_kwh or pue is None or stated.epochs not in {None, len(epochs)}:
        return False
    if any(w is None for e in epochs for w in e.watts.values()):
        return False
    joules = sum(((e.duration_s or 0) * (w or 0) for e in epochs for w in e.watts.values()), Decimal(0)) * pue
    stated_j = stated.energy_kwh * J_PER_KWH
    return abs(joules - stated_j) > _SAME * stated_j + Decimal("1e-6") * J_PER_KWH


def _identity(told: _Told) -> str:
    parts: list[str] = [str(told.any.key)]
    if told.output and told.output.actual:
        actual = told.output.actual
        parts.append(f"{actual.time_s} {actual.energy_kwh} {actual.stamp}")
    if told.standard:
        parts += [f"{e.stamp} {e.duration_s} {sorted(e.watts.items())}" for e in told.standard.epochs]
    return f"carbontracker-{sha256_hex(chr(31).join(parts).encode())[:24]}"


def _hardware(told: _Told) -> str | None:
    return "; ".join(f"{name.upper()}: {names}" for name, names in told.any.devices.items()) or None


def _place(told: _Told) -> Written | None:
    location = (told.standard.location if told.standard else None) or told.any.location
    parts = [part.strip() for part in (location or "").split(",")]
    if len(parts) < 2 or len(parts[-1]) != 2 or not parts[-1].isupper():
        return None
    return Written(country=parts[-1], region=parts[-2])
