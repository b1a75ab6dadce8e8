"""Zeus' traces of training: seconds and mean watts of one epoch at each power limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

from carbonlens.domain.counting import counted
from carbonlens.domain.run import Run
from carbonlens.errors import InputFileError
from carbonlens.importers import unit_checks
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Facts, Group, Item, Kind, Options, RunRecord, Tally
from carbonlens.importers.once import Once
from carbonlens.importers.records import finding, origin_of, reading
from carbonlens.importers.run_rows import content_id, left_out, number_in, whole_row
from carbonlens.importers.sources import Source, first_names
from carbonlens.importers.tables import Table

_SAME: Final = frozenset({"dataset", "network", "batch_size", "optimizer"})
_POWER: Final = _SAME | {"power_limit", "time_per_epoch", "average_power"}
_TRAIN: Final = _SAME | {"learning_rate", "run", "target_metric", "target_epoch"}
_ONE: Final = Decimal(1)


class ZeusSummaryImporter:
    """Importer of Zeus' power traces."""

    name = "zeus-summary"
    version = 1
    kind: Kind = "runs"
    rank = USUAL
    facts = Facts(
        title="Zeus power trace, a summary of epochs (CSV)",
        reads="dataset, network, batch_size, optimizer, power_limit, time_per_epoch, average_power",
        units="seconds and watts of one epoch; joules are their product",
        grade="C: mean of polled GPU power times the time of an epoch",
        traps=(
            "a row is the mean epoch of one setting, not a training: a run of one unit, an epoch; said",
            "the GPU and the time of measuring are not in the file: the energy is in no hour",
            "the train trace beside it holds epochs to a target and no energy: it is refused",
        ),
        tested_on=("a file of 453 rows from Zeus' repository", "files typed here"),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim tables of either trace; the one without power is refused with the reason."""
        return each(sources, lambda source: set(first_names(source)) in (_POWER, _TRAIN))

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield an epoch a row.

        Raises:
            InputFileError: If it cannot be read, or is the trace without power.
        """
        source = group.main
        if set(first_names(source)) == _TRAIN:
            raise InputFileError(
                "has epochs to a target and neither time nor power: energy cannot be computed",
                where=source.shown,
                mend="import the power trace, whose columns are time_per_epoch and average_power",
            )
        table, once = Table(source), Once(source)
        rows = rejected = repeated = 0
        seen: set[str] = set()
        for line, cells in table.dicts():
            rows += 1
            try:
                run = _run(source, line, whole_row(cells), table.delimiter, options)
            except ValueError as error:
                rejected += 1
                yield left_out(error, source, line)
                continue
            if run.run_id in seen:
                repeated += 1
                once.say("CL201", "info", "repeats an earlier row exactly; counted once", line)
                continue
            seen.add(run.run_id)
            energy_j = float(run.energy[0].energy_j or 0)
            stated = unit_checks.Stated(
                energy_j=energy_j, duration_s=run.duration_s, least_w=1.0, most_w=unit_checks.MOST_W["gpu"]
            )
            yield from unit_checks.of_run(stated, source, line)
            once.say("CL245", "warning", "when an epoch ran is not told: the energy is in no hour", line)
            yield RunRecord(run=run, line=line)
        if seen:
            text = (
                f"{counted(len(seen), 'row tells', 'rows tell')} of the mean epoch of one setting each, "
                "and of no training: the energy is that of one epoch of each"
            )
            yield finding("CL264", "info", text, source, mend="compare by the epoch")
        yield from once.findings()
        yield Tally(rows=rows, rejected=rejected, repeated=repeated)


IMPORTER: Final = ZeusSummaryImporter()


def _run(source: Source, line: int, row: Mapping[str, str], delimiter: str, options: Options) -> Run:
    seconds = number_in(row, "time_per_epoch", delimiter)
    watts = number_in(row, "average_power", delimiter)
    if not seconds or not watts:
        raise ValueError("states no time_per_epoch or no average_power")
    return Run(
        run_id=content_id("zeus-epoch", row),
        duration_s=float(seconds),
        energy=(
            reading(
                "gpu",
                seconds * watts,
                method="zeus, mean GPU power x time of an epoch",
                grade="C",
                meter=source.name,
                boundary=options.boundary or "device",
            ),
        ),
        units=_ONE,
        unit="epoch",
        workload=f"{row['network']} on {row['dataset']}",
        tags={name: row[name] for name in ("batch_size", "optimizer", "power_limit") if row[name]},
        origin=origin_of(IMPORTER, source, line),
    )
