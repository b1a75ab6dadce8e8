"""nvidia-smi without a header: one column of watts is the power, else who asked must say."""

from typing import ClassVar

import pytest

from carbonlens.app.importing_placing import Said, placing_of
from carbonlens.errors import InputFileError, UsageError
from carbonlens.importers.contract import Options
from carbonlens.importers.nvidia_smi_bare import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.reading import claimed, codes, read_text

UUID = "GPU-2f4a1c3e-1111-2222-3333-44445555666{}"


def stamp(second):
    return f"2026/03/02 10:00:{second:02d}.000"


def told(count=11, watts=(100, 200)):
    """Stamps and UUIDs without units: nobody can tell which number is watts."""
    return "".join(
        f"{stamp(s)}, {UUID.format(g)}, 45, {w}.00\n" for s in range(count) for g, w in enumerate(watts)
    )


NAMES = Options(tz="UTC", columns=("timestamp", "uuid", "temperature.gpu", "power.draw"))


class TestConformance(ImporterContract):
    """The contract of importers, on two GPUs over 10 s whose columns the user names."""

    importer = IMPORTER
    files: ClassVar = {"bare.csv": told()}
    options: ClassVar = NAMES
    runs = 1
    energy_j = 3000.0
    clocks = True
    header_lines = 0


@pytest.mark.parametrize(
    ("cells", "energy_j"),
    [
        ("{t}, 0, 100.00 W, 45, P0", 1000),
        ("100.00 W", None),
        (UUID.format(1) + ", 100.00 W, 55 %", None),
        ("00000000:01:00.0, {t}, 100.00 W", 1000),
        ("NVIDIA A100-SXM4-80GB, 100.00 W, 1410 MHz, {t}", 1000),
    ],
)
def test_one_column_of_watts_is_the_power(tmp_path, cells, energy_j):
    text = "".join(cells.format(t=stamp(s)) + "\n" for s in range(11))
    got = read_text(IMPORTER, tmp_path, text, Options(tz="UTC"))
    assert got.records[0].measured.mean_power_w == pytest.approx(100)
    assert got.energy_j is None if energy_j is None else float(got.energy_j) == pytest.approx(energy_j)
    got = read_text(IMPORTER, tmp_path, text, Options(tz="UTC", interval_s=1.0))
    assert float(got.energy_j) == pytest.approx(1000, rel=0.11)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("{t}, 0, 100.00 W, 300.00 W", "2 columns bear watts"),
        ("{t}, 0, 100.00, 45", "no column bears a unit of power"),
    ],
)
def test_what_nobody_can_tell_is_refused_with_the_way_out(tmp_path, row, why):
    text = "".join(row.format(t=stamp(s)) + "\n" for s in range(11))
    with pytest.raises(InputFileError, match=why) as error:
        read_text(IMPORTER, tmp_path, text)
    assert "--columns" in error.value.mend
    names = ("timestamp", "index", "power.draw", "-")
    got = read_text(IMPORTER, tmp_path, text, Options(tz="UTC", columns=names))
    assert float(got.energy_j) == pytest.approx(1000)


def test_as_many_names_as_columns_are_needed(tmp_path):
    with pytest.raises(InputFileError, match="has 4 columns, and --columns names 2"):
        read_text(IMPORTER, tmp_path, told(), Options(columns=("timestamp", "power.draw")))


def test_names_without_a_power_are_refused(tmp_path):
    with pytest.raises(InputFileError, match="no power column"):
        read_text(IMPORTER, tmp_path, told(), Options(columns=("timestamp", "uuid", "-", "-")))


def test_gpus_that_nothing_tells_apart_are_said(tmp_path):
    text = "".join(f"{stamp(s)}, {w}.00 W, {g}\n" for s in range(11) for g, w in ((0, 100), (1, 200)))
    got = read_text(IMPORTER, tmp_path, text, Options(tz="UTC"))
    assert "CL265" in codes(got)
    assert float(got.energy_j) == pytest.approx(3000)


@pytest.mark.parametrize(
    "text", ["0, 56.12, 37\n1, 57.00, 38\n", "1.00 W is much\n", "a, b\n1, 2\n", "2026/03/02, 5\n"]
)
def test_what_shows_nothing_of_the_tool_is_not_claimed(tmp_path, text):
    file = tmp_path / "a.csv"
    file.write_text(text)
    assert not claimed(IMPORTER, file)


def test_a_column_without_a_name_is_a_wrong_request():
    assert placing_of(Said(columns="Timestamp, index,-")).columns == ("timestamp", "index", "-")
    with pytest.raises(UsageError, match="without a name"):
        placing_of(Said(columns="a,,b"))
