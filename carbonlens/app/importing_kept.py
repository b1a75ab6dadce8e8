"""What an import keeps of one group of sources, and what is said of the runs that it holds already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from carbonlens.app.importing_again import Again
from carbonlens.app.importing_totals import Sums
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding, Severity
from carbonlens.domain.run import Run
from carbonlens.importers.contract import AlikeRecords, RunRecord
from carbonlens.importers.harvest import MOST_ALIKE

_CORRECT: Final = "mend the source; or correct a run: carbonlens runs supersede RUN_ID --by FIELD=VALUE"
_WORK: Final = ("unit", "units")
_ROW: Final = "CL202"
_LEFT_OUT: Final = (_ROW, "CL213", "CL217", "CL232")
"""Codes of errors for which a row, a run or a line of a bill is left out."""

_COUNT: Final = "import the log again with --units N, or with units in a [[place]] of --map"


class Kept:
    """What one group of sources adds.

    Args:
        again: What its import is beside earlier ones.

    Attributes:
        fresh: Records to write.
        alike: Further ones, as columns.
        alike_sums: Sums over those.
        rejected: Records that no ledger takes.
        known: Records that the ledger holds already, as they are.
        replaced: Records of the ledger whose place fresh ones take.
    """

    def __init__(self, again: Again) -> None:
        """Start with nothing."""
        self.again = again
        self.known = self.replaced = self._named = 0
        self._uncounted = 0
        self._aside: Counter[tuple[str, ...]] = Counter()
        self.fresh: list[RunRecord] = []
        self.alike: list[AlikeRecords] = []
        self.alike_sums = Sums()
        self.findings: list[Finding] = []
        self.rejected = 0

    def say_known(self, run: Run, file: str, line: int, *, is_new: bool = False) -> None:
        """Note a run that the ledger holds; of many the first are named.

        Args:
            run: The run.
            file: The source.
            line: Its line.
            is_new: Whether something is told of it now that makes a new version.
        """
        self.known += not is_new
        self._named += 1
        if self._named <= MOST_ALIKE:
            now = ", with what is told of it now" if is_new else ""
            text = f"run {run.run_id!r} is in the ledger already; counted once{now}"
            self.findings.append(finding_at("CL212", "info", text, file, line=line))

    def say_more_known(self, file: str) -> None:
        """Say how many runs the ledger holds beyond those that were named."""
        if self._named > MOST_ALIKE:
            more = counted(self._named - MOST_ALIKE, "more run is", "more runs are")
            text = f"{more} in the ledger already; each counts once"
            self.findings.append(finding_at("CL212", "info", text, file))

    def note_aside(self, names: tuple[str, ...], runs: int = 1) -> None:
        """Note what is told of new runs and goes behind what their source states.

        Args:
            names: Options, and fields of the map; none where all that is told stands on them.
            runs: How many there are.
        """
        if names:
            self._aside[names] += runs

    def note_uncounted(self) -> None:
        """Note a run that has grown beyond the units that were told of it."""
        self._uncounted += 1

    def say_at_end(self, file: str) -> None:
        """Say what was noted of new runs.

        Args:
            file: The source.
        """
        for names, runs in self._aside.items():
            whose = counted(runs, "run", "runs")
            text = f"{', '.join(names)}: left aside for {whose}, of which the source states it otherwise"
            if any(name.partition(" ")[0].lstrip("-") in _WORK for name in names):
                text += ", or states one of unit and units alone"
            self.findings.append(finding_at("CL294", "info", text, file, _CORRECT))
        if self._uncounted:
            grown = counted(self._uncounted, "run has grown", "runs have grown")
            text = f"{grown}, since units were told: how many were done by now is unknown"
            self.findings.append(finding_at("CL292", "warning", text, file, _COUNT))


def finding_at(
    code: str, severity: Severity, text: str, file: str, mend: str | None = None, line: int | None = None
) -> Finding:
    """Return a Finding about a line of a source."""
    return Finding(code=code, severity=severity, message=text, file=file, line=line or None, mend=mend)


def reason_first(findings: Sequence[Finding]) -> list[Finding]:
    """Return what is said of a source of which nothing counts: first the error that most is left out for.

    Args:
        findings: What is said of its rows, and of its runs.
    """
    errors = Counter(f.code for f in findings if f.severity == "error")

    def rank(said: Finding) -> tuple[bool, bool, int, bool]:
        # Of as many rows and runs, the runs could be read.
        return (
            said.severity != "error",
            said.code not in _LEFT_OUT,
            -errors[said.code],
            said.code == _ROW,
        )

    return sorted(findings, key=rank)
