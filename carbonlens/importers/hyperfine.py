"""hyperfine's JSON export: how long commands took. No energy is claimed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.domain.identity import sha256_hex
from carbonlens.domain.latency import Latency
from carbonlens.domain.run import Run
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Facts, Group, Item, Kind, Options, RunRecord, Tally
from carbonlens.importers.json_files import Notes, decoded, id_of, quantity
from carbonlens.importers.records import finding, origin_of
from carbonlens.importers.sources import Source

_START: Final = re.compile(r'^\s*\{\s*"results":\s*\[\s*\{\s*"command":\s*"')
_SAME: Final = 1e-3


class _Result(msgspec.Struct, frozen=True):
    command: str
    mean: float | None
    median: float | None
    user: float | None
    system: float | None
    times: list[float] | None = None
    exit_codes: list[int | None] | None = None
    parameters: dict[str, str | float] = {}


class _Export(msgspec.Struct, frozen=True):
    results: list[_Result]


class HyperfineImporter:
    """Importer of hyperfine's JSON export."""

    name = "hyperfine"
    version = 1
    kind: Kind = "runs"
    rank = USUAL
    facts = Facts(
        title="hyperfine --export-json",
        reads="times, exit codes and parameters of each command: one run a command",
        units="seconds",
        grade="none: time only, no energy is claimed",
        traps=(
            "time is no energy: the energy of each command is unknown, and that is said",
            "warm-up runs are not in the file: the duration is that of the timed runs",
            "arguments may hold secrets: the program's name and a hash of them are kept",
            "a command that failed is kept as failed",
        ),
        tested_on=("samples written after its documentation",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim JSON that begins with the results of commands."""
        return each(
            sources,
            lambda s: bool(_START.match("\n".join(s.first_lines))) and '"user":' in "\n".join(s.first_lines),
        )

    def read(self, group: Group, options: Options) -> Iterator[Item]:  # noqa: ARG002  # no option tells more
        """Yield a run a command.

        Raises:
            InputFileError: If it is no whole export.
        """
        source = group.main
        notes, rejected = Notes(source), 0
        results = decoded(source, _Export, "export of hyperfine").results
        for place, result in enumerate(results):
            try:
                record = _record(source, result, notes)
            except ValueError as error:
                rejected += 1
                text = f"result {place} {error}; it is left out"
                yield finding("CL202", "error", text, source, mend="export it again")
                continue
            yield record
        if results:
            text = "times only: the energy of the runs is unknown"
            notes.say("CL204", "warning", text, "run it by carbonlens bench, or import a meter's log")
        yield from notes.findings()
        yield Tally(rows=len(results), rejected=rejected)


IMPORTER: Final = HyperfineImporter()


def _record(source: Source, result: _Result, notes: Notes) -> RunRecord:
    times = result.times or []
    if any(not math.isfinite(t) or t < 0 for t in times):
        raise ValueError("has a time below zero or no number")
    mean, median = quantity(result.mean, "mean"), quantity(result.median, "median")
    if times and mean is not None and abs(math.fsum(times) / len(times) - float(mean)) > _SAME * float(mean):
        text = "a mean printed is not that of the times beside it; the times are kept"
        notes.say("CL282", "warning", text, "check who edited the file")
        mean = Decimal(repr(math.fsum(times) / len(times)))
    program, _, arguments = result.command.strip().partition(" ")
    codes = [c for c in result.exit_codes or [] if c is not None]
    failed = next((c for c in codes if c), None)
    name = program.rpartition("/")[2]
    run = Run(
        run_id=id_of("hyperfine", msgspec.to_builtins(result)),
        status="complete" if failed is None else "failed",
        exit_code=failed if failed is not None else (0 if codes else None),
        duration_s=math.fsum(times) if times else None,
        units=Decimal(len(times)) if times else None,
        unit="run" if times else None,
        latency=Latency(n=len(times) or None, mean_ms=_ms(mean), p50_ms=_ms(median)),
        workload=name or None,
        tags={f"parameter_{key}": str(value) for key, value in result.parameters.items()},
        origin=msgspec.structs.replace(
            origin_of(IMPORTER, source),
            program=name or None,
            args_sha256=sha256_hex(arguments.encode()) if arguments else None,
        ),
    )
    return RunRecord(run=run)


def _ms(seconds: Decimal | None) -> float | None:
    return None if seconds is None else float(seconds * 1000)
