"""Journals as a session leaves them, with a writer of the test's choice."""

import msgspec

from carbonlens.domain.run import Run
from carbonlens.metering.journal import Facts, Header, JournalWriter, Look, this_writer
from carbonlens.metering.records import new_run
from carbonlens.metering.sealing import Sample
from carbonlens.metering.sensors.cpu_model import CpuModelSensor


def header(ledger="/nowhere", run: Run | None = None, **writer) -> Header:
    """A header of this process, unless fields of the writer say otherwise."""
    return Header(
        writer=msgspec.structs.replace(this_writer(), **writer),
        ledger=str(ledger),
        run=run or new_run("track"),
        sensors=(CpuModelSensor().info,),
    )


def look(second: float, cpu_s: float, facts: Facts | None = None) -> Look:
    return Look(sample=Sample(t_us=int(second * 1e6), values=((cpu_s,),), rss_bytes=1000), facts=facts)


def write(folder, head: Header, *looks: Look):
    """Write a journal and leave it, as a killed process does."""
    writer = JournalWriter(folder, head)
    for each in looks:
        writer.append(each)
    writer.close()
    return writer.path


def orphan(folder, ledger, *looks: Look, **writer):
    """Write the journal of a process that is gone."""
    head = header(ledger, **{"start_ticks": 1, **writer})
    return head.run.run_id, write(folder, head, *(looks or (look(0, 1.0), look(1, 1.5), look(2, 3.0))))
