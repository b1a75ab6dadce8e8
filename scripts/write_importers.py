#!/usr/bin/env python3
"""Write docs/importers.md from what each installed importer says of itself.

python -m scripts.write_importers [FILE]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from carbonlens.importers.claiming import importers
from carbonlens.importers.contract import Importer
from carbonlens.importers.mapped_table import FIELDS

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "importers.md"
_TITLES: Final = {
    "runs": "Runs: other tools' results",
    "trace": "Traces: meters' logs",
    "profile": "Profiles: times without energy",
    "bill": "Bills",
    "claims": "Statements",
}
_HEAD: Final = """# Importers

`carbonlens import FILE|DIR...` reads what people have: results of other tools, logs of meters,
profiles, bills. A format is told by content, never by a name. Gzip and ZIP are undone, byte order
marks, UTF-16, line ends and padding taken off; what had to be repaired, dropped or guessed is a
Finding with file and line, and `--strict` makes it exit 3. Each content counts once, whatever
copies tell of it; traces that overlap never count twice without a word (below). Energy is kept as its
source states it; the ledger's emissions are computed from it, and the tool's own stand beside as
evidence.

| option | for |
|---|---|
| `--tz Europe/Paris` | local times without a zone; without it they are taken as UTC, and that is said |
| `--site`, `--tag k=v` | runs that state none |
| `--boundary device` | energies whose file does not say what they include |
| `--interval 0.5`, `--start TIME` | logs without times, and of relative times |
| `--voltage 3.8` | logs of current or charge alone |
| `--columns timestamp,index,power.draw` | nvidia-smi logs without a header; `-` skips a column |
| `--host NAME` | traces that do not name their machine, as most logs of a device |
| `--study`, `--step`, `--role` | what runs are in a study, where they state none |
| `--unit inference`, `--units 1000` | the work that each run did, where it states none |
| `--map map.toml` | teams, sites, zones and clocks by path and project; columns of any CSV |

```toml
# map.toml: of several places that match, the first that states a field counts
[[place]]
path = "vision/*"            # shell pattern of the file's path
project = "bert-*"           # and of the run's project
team = "vision"
site = "lyon"
zone = "FR"
tz = "Europe/Paris"
host = "node-17"             # of traces; by path, not by project
study = "resnet"             # and step, role, unit, units: the work of each run
tags = {{ cost_center = "12" }}

[[table]]                    # a CSV of no known format
path = "lab/*.csv"
columns = {{ run_id = "Name", energy_wh = "Energy (Wh)", duration_s = "Time" }}
boundary = "it"
grade = "B"
```

Runs of other tools are compared once it is told which step of which study they measure. The step
that was imported first is the baseline, or the one that `--baseline` names:

```
carbonlens import fp32/emissions.csv --study resnet --step fp32 --unit inference --units 10000
carbonlens import int8/emissions.csv --study resnet --step int8 --unit inference --units 10000
carbonlens compare --study resnet
```

`--units` counts the work of each run of a file. Without it whole runs are compared, and that is said;
with it for some steps alone `compare` names what lacks. What a source states of study, step, role, unit
or units stays, by options and by a map (whose tags, team, site and zone go before the source's own);
what is left aside is said (CL294). A unit and its count go together: `--unit` is not put to a count that
the source states, unless `--units` says the same one. A tag `study`, `step`, `role`, `units`, `site` or
`zone` is refused: those are fields of a run, and a tag of such a name does not set them. A tag `unit` may
name a business unit.

Two traces that are equal to the last byte are one, unless they are of two hosts: by `--host` or `host`
in a map, or by names such as `gpu_host_a.csv` and `gpu_host_b.csv`, which is said.

Traces of one format that tell of one device over the same time are held against each other, within an
import and with the ledger. Equal samples, whatever the encoding and line ends of their files, count once
(CL210, CL291); of an earlier import only times and energies are known, and a uuid, a serial number or an
index in a host that is told must say that the device is one. Others that overlap by more than one sample:
where such an id says so, as of logs that were rotated with some lines in both, the time that is counted is
left out of the later file, and the rest of it counts (CL297). The ledger keeps no samples, so time decides,
not what they say. Where nothing is left, or time before and after another log, or another time of each
device, or where the file gives several runs, it is refused (CL295). Where it may fill the other one's gaps,
and where only an index or a name says that the device is one, both count, and it is said (CL296).
Samples that stand in one file twice count once (CL201), and a clock that was set back over other samples
adds both parts (CL243).

A log that is written on (`nvidia-smi -l`) may be imported again and again: what begins with all of an
earlier content takes the place of that import (CL292), an older copy of it adds nothing, and tags and
corrections made since stay. Units told of the shorter log do not: how many the longer one did is unknown
until `--units` says it again. Logs without times that begin alike are one only under one name. Of a table
that gets rows, the rows that are there count once (CL212, and their number is printed). What was said
by `--tz`, `--boundary`, `--interval`, `--start`, `--voltage` or `--columns` is kept with the runs and
holds for the next import of the log; said later, or otherwise, of content that is in the ledger, these,
`--tag`, `--site`, what tells of a study and a map make new records that supersede those before, and
stand where those stood. Where they change nothing, that is said. Lines of bills and meter readings are
not told anew (CL293).

Fields of a table (`energy_mwh` is megawatt-hours, `energy_mj` millijoules): {fields}.

Profiles hold times and make no runs: their longest operators are printed, by provider, with
`--json` in `operators`. Three formats need an extra: `.jls` (`joulescope`), perun's HDF5 (`perun`)
and binary Perfetto traces (`perfetto`), as `pip install 'carbonlens[joulescope]'`; without it such
a file is refused, and the rest is read.

This page is generated: `python -m scripts.write_importers`. Grades: A external meter, B device
counter, C integrated power, D model, E datasheet; what a file does not say is D.
"""


def page() -> str:
    """Return the whole page."""
    found = importers()
    kinds = [kind for kind in _TITLES if any(i.kind == kind for i in found)]
    fields = ", ".join(f"`{name}`" for name in FIELDS)
    lines = [_HEAD.format(fields=fields)]
    for kind in kinds:
        lines += [f"## {_TITLES[kind]}", ""]
        for importer in sorted((i for i in found if i.kind == kind), key=lambda i: i.name):
            lines += _section(importer)
    return "\n".join(lines)


def _section(importer: Importer) -> Iterator[str]:
    facts = importer.facts
    yield f"### {facts.title}"
    yield ""
    yield f"- Format: `{importer.name}`, version {importer.version}"
    yield f"- Reads: {facts.reads}"
    yield f"- Units: {facts.units}"
    yield f"- Grade: {facts.grade}"
    yield from (f"- Trap: {trap}" for trap in facts.traps)
    yield f"- Tested on: {'; '.join(facts.tested_on)}"
    yield ""


def main() -> None:
    """Write the page to the file named, or to its place."""
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    place.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
