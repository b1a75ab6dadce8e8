"""Units that lie: figures in another unit than their header says, in every format that tells energy.

The figures of a sample are multiplied, column by column, as a tool does that writes joules
under kWh, milliwatts under W or hours under seconds. What comes out must be what the header
makes of it, and where that cannot be, it must be said.
"""

import re

import pytest

from carbonlens.domain.finding import Finding
from carbonlens.errors import InputFileError
from carbonlens.importers.harvest import Harvest
from carbonlens.importers.unit_checks import MOST_HOST_W, MOST_W
from tests.conformance.importers import energy_of
from tests.importers.contract_samples import contracts, read, write

KINDS = [k for k in contracts() if k.importer.kind in {"runs", "trace"} and k.energy_j]
NAMES = [f"{k.importer.name}:{k.__name__}" for k in KINDS]
FACTORS = {
    "J called kWh": 3.6e6,
    "mW called W": 1e3,
    "kWh called J": 1 / 3.6e6,
    "mJ called uJ": 1e-3,
    "hours called seconds": 1 / 3600,
    "seconds called hours": 3600,
}
NUMBER = re.compile(r"(?<![\w.:/+-])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.:/-]*[:/])(?=\D|$)")


def columns_of(kind) -> list[tuple[int, ...] | tuple[str, ...]]:
    """Return what tells one figure of a sample from another: its column, or the words before it."""
    text = kind.files[next(iter(kind.files))]
    if kind.delimiter is not None:
        return list(
            enumerate(c.strip() for c in text.splitlines()[kind.header_lines - 1].split(kind.delimiter))
        )
    return sorted({(before(m, text),) for m in NUMBER.finditer(text)})


def before(found: re.Match, text: str) -> str:
    """Return the words before a number on its line, without numbers."""
    line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
    return re.sub(r"[\d.]+", "#", line)[-24:]


def times(number: str, factor: float) -> str:
    value = float(number) * factor
    return (
        str(int(value))
        if value == int(value) and "." not in number and abs(value) < 2**53
        else f"{value:.10f}"
    )


def lying(kind, column, factor: float) -> dict[str, bytes]:
    """Return the sample with one column's figures multiplied."""
    main = next(iter(kind.files))
    text = kind.files[main]
    if kind.delimiter is None:
        text = NUMBER.sub(lambda m: times(m[0], factor) if before(m, text) == column[0] else m[0], text)
    else:
        lines = text.split("\n")
        for i in range(kind.header_lines, len(lines)):
            cells = lines[i].split(kind.delimiter)
            if len(cells) > column[0]:
                cells[column[0]] = re.sub(
                    r"^(\s*)(-?\d+(?:\.\d+)?)(?=\s|$)", lambda m: m[1] + times(m[2], factor), cells[column[0]]
                )
            lines[i] = kind.delimiter.join(cells)
        text = "\n".join(lines)
    return {name: t.encode() for name, t in kind.files.items()} | {main: text.encode()}


def result(kind, folder, files) -> Harvest | None:
    """Return what the files give together; ``None`` where they are refused or not claimed."""
    try:
        got = read(kind.importer, write(folder, files), kind.options)
    except InputFileError:
        return None
    if len(got) != 1:
        return None
    return got[0][1]


def whole(kind, folder) -> Harvest:
    """Return what the honest sample gives."""
    return result(kind, folder / "whole", {n: t.encode() for n, t in kind.files.items()})


def news(got: Harvest, honest: Harvest) -> list[Finding]:
    """Return what is said of figures that lie, and not of the honest ones."""
    known = {f.code for f in honest.findings}
    return [f for f in got.findings if f.severity != "info" and f.code not in known]


MANY_HOSTS = 10
"""A whole may be that of a cluster: the importer of a calculator for them allows as many hosts."""


def impossible(got: Harvest) -> list[str]:
    """Return the powers that energy and time of the records come to and that nothing draws."""
    found = []
    for record in got.records:
        seconds = record.run.duration_s
        for part in record.run.energy:
            if not seconds or part.energy_j is None:
                continue
            watts = float(part.energy_j) / seconds
            most_w = MOST_W.get(part.component, MANY_HOSTS * MOST_HOST_W)
            if watts > most_w * max(len(part.devices), 1):
                found.append(f"{part.component} at {watts:.4g} W")
    return found


@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
def test_a_power_that_nothing_draws_is_said_whatever_column_lies(tmp_path, kind):
    honest = whole(kind, tmp_path)
    for i, column in enumerate(columns_of(kind)):
        for j, (lie, factor) in enumerate(FACTORS.items()):
            got = result(kind, tmp_path / f"{i}-{j}", lying(kind, column, factor))
            if got is not None and impossible(got):
                assert news(got, honest), f"{lie} in {column[-1]!r}: {impossible(got)}, and not a word"


@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
def test_a_figure_is_kept_as_its_header_states_it(tmp_path, kind):
    """Energy follows a column as a straight line, however far it goes, or something is said."""
    honest = whole(kind, tmp_path)
    one = energy_of(honest)
    for i, column in enumerate(columns_of(kind)):
        if is_a_moment(kind, column):
            continue
        twice = result(kind, tmp_path / f"{i}-twice", lying(kind, column, 2.0))
        two = None if twice is None or news(twice, honest) else energy_of(twice)
        if two is None or two == pytest.approx(one):
            continue
        for j, (lie, factor) in enumerate(FACTORS.items()):
            got = result(kind, tmp_path / f"{i}-{j}", lying(kind, column, factor))
            found = None if got is None or news(got, honest) else energy_of(got)
            if found is not None:
                line = one + (two - one) * (factor - 1)
                assert found == pytest.approx(line, rel=1e-3, abs=1e-3 * one), f"{lie} in {column[-1]!r}"


def is_a_moment(kind, column) -> bool:
    """Whether a column holds times since 1970 or since the log began: no figure grows with those."""
    if kind.delimiter is None:
        return False
    lines = kind.files[next(iter(kind.files))].splitlines()[kind.header_lines :]
    cells = [c[column[0]] for line in lines if len(c := line.split(kind.delimiter)) > column[0]]
    numbers = [float(c) for c in cells if re.fullmatch(r"\d+(\.\d+)?", c)]
    return "time" in column[1].lower() and len(set(numbers)) > 1 and numbers == sorted(numbers)


OFFER = "would fit, under a header of"


@pytest.mark.parametrize(
    ("name", "column", "lie", "code", "told"),
    [
        ("codecarbon:TestConformance", "energy_consumed", "J called kWh", "CL248", f"18000 J {OFFER} kWh"),
        ("codecarbon:TestConformance", "duration", "hours called seconds", "CL248", "3.6e+03x|more than one"),
        (
            "codecarbon:TestConformance",
            "duration",
            "seconds called hours",
            "CL247",
            "1/3.6e.03 of the stated",
        ),
        ("eco2ai:TestConformance", "power_consumption(kWh)", "J called kWh", "CL248", f"18000 J {OFFER} kWh"),
        ("eco2ai:TestConformance", "duration(s)", "hours called seconds", "CL248", "more than one machine"),
        ("carbontracker:TestOutputLog", "\tEnergy:\t", "J called kWh", "CL248", f"21600 J {OFFER} kWh"),
        ("green-algorithms:TestConformance", "energy_needed", "J called kWh", "CL248", f" J {OFFER} kWh"),
        ("zeus:TestWindows", "gpu0_energy", "mW called W", "CL248", f" mJ {OFFER} J"),
        ("zeus:TestWindows", "elapsed_time", "hours called seconds", "CL248", "more than one machine draws"),
        ("nvidia-smi:TestConformance", "power.draw [W]", "mW called W", "CL248", f"mW {OFFER} W"),
        ("amd-smi:TestConformance", "socket_power", "mW called W", "CL248", f"mW {OFFER} W"),
        ("rocm-smi:TestText", "hics Package Power (W): ", "mW called W", "CL248", f"mW {OFFER} W"),
        ("mlperf-tiny:TestConformance", "p-ml:   Energy       :  ", "mJ called uJ", "CL247", "of the stated"),
        ("slurm-sacct:TestConformance", "ConsumedEnergyRaw", "mW called W", "CL248", f" mJ {OFFER} J"),
    ],
)
def test_a_lie_is_told_with_the_reading_that_makes_sense(tmp_path, name, column, lie, code, told):
    """The unit is offered; the figure stays what the header makes of it."""
    if name not in NAMES:
        pytest.skip(f"{name} is not installed")
    kind = KINDS[NAMES.index(name)]
    honest, factor = whole(kind, tmp_path), FACTORS[lie]
    (place,) = (c for c in columns_of(kind) if c[-1] == column)
    got = result(kind, tmp_path / "lie", lying(kind, place, factor))
    said = [f.message for f in news(got, honest) if f.code == code]
    assert said
    assert any(re.search(told, message, re.IGNORECASE) for message in said), said
    twice = energy_of(result(kind, tmp_path / "twice", lying(kind, place, 2.0)))
    one = energy_of(honest)
    assert energy_of(got) == pytest.approx(one + (twice - one) * (factor - 1), rel=1e-4)
