"""perun's HDF5 files, written here with h5py as perun's own writer does."""

import subprocess

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers import perun_hdf5
from carbonlens.importers.contract import Options
from carbonlens.importers.perun_hdf5 import IMPORTER
from carbonlens.importers.perun_hdf5_tree import NO_LIBRARY
from tests.conformance.binary_importers import BinaryContract
from tests.importers.reading import claimed, codes, read_text

UTC = Options(tz="UTC")
APP, MULTI_RUN, RUN, NODE, SENSOR = 1, 2, 3, 4, 6


def node(group, name, kind, metrics=(), **metadata):
    """Add a node as perun does, and return the group of its children."""
    made = group.create_group(name)
    made.attrs["type"] = kind
    for key, value in metadata.items():
        made.attrs[key] = value
    figures = made.create_group("metrics")
    for metric, unit, value in metrics:
        told = figures.create_group(metric.upper())
        told.attrs["type"] = metric
        told.attrs["unit"] = unit
        told.attrs["mag"] = 1.0
        told.attrs["agg_type"] = "sum"
        told.attrs.create("value", value, dtype="float32")
    return made.create_group("nodes")


def tree(folder, runs=2, *, with_energy=True):
    """Return the bytes of an application of some runs, of 1000 J and more."""
    h5py = pytest.importorskip("h5py", reason="h5py is of an extra that is not installed")
    file = folder / "made.hdf5"
    with h5py.File(file, "w") as out:
        multi = node(
            node(out, "train", APP, creation_dt="2026-03-02T09:00:00"),
            "round-1",
            MULTI_RUN,
            execution_dt="2026-03-02T10:00:00",
        )
        for i in range(runs):
            told = [("runtime", "s", 10 + i)]
            if with_energy:
                told += [("energy", "J", 1000 + 100 * i), ("cpu_energy", "J", 700 + 100 * i)]
                told += [("gpu_energy", "J", 300)]
            host = node(node(multi, str(i), RUN, told), "node1", NODE)
            raw = node(host, "cpu_0", SENSOR)
            raw.parent.create_group("raw_data").create_dataset("values", data=list(range(500)))
    content = file.read_bytes()
    file.unlink()
    return content


class TestConformance(BinaryContract):
    """The contract of importers, on two runs of 1000 and 1100 J."""

    importer = IMPORTER
    options = UTC
    runs = 2
    energy_j = 2100.0
    damages = 10
    cuts = 5

    def sample(self):
        return {"train.hdf5": tree(self._root)}

    @pytest.mark.slow  # each of the damaged files is read by a process of its own
    def test_any_damage_is_refused_or_said_and_never_a_crash(self):
        super().test_any_damage_is_refused_or_said_and_never_a_crash()

    @pytest.mark.slow  # as above
    def test_cut_off_at_every_line_no_figure_is_made_up(self):
        super().test_cut_off_at_every_line_no_figure_is_made_up()

    @pytest.mark.slow  # as above
    def test_copies_in_a_folder_count_once(self):
        super().test_copies_in_a_folder_count_once()


def test_a_run_is_read_as_from_the_json(tmp_path):
    got = read_text(IMPORTER, tmp_path, tree(tmp_path), UTC)
    first, second = got.runs
    assert (first.start_us, first.duration_s) == (1_772_445_600_000_000, 10.0)
    assert second.start_us == first.end_us
    assert {r.component: (r.grade, float(r.energy_j)) for r in second.energy} == {
        "cpu": ("B", 800.0),
        "gpu": ("C", 300.0),
    }
    assert (first.workload, first.hardware, first.job_id) == ("train", "node1", "round-1")
    assert first.origin.instrument == "perun-hdf5/1"
    assert codes(got) == []


def test_without_a_sensor_of_power_the_energy_is_unknown(tmp_path):
    got = read_text(IMPORTER, tmp_path, tree(tmp_path, with_energy=False), UTC)
    assert got.runs[0].energy[0].energy_j is None
    assert "CL260" in codes(got)


@pytest.mark.parametrize(
    ("status", "why", "mend"),
    [
        (NO_LIBRARY, "h5py is not installed", "carbonlens[perun]"),
        (-11, "the HDF5 library gave up on it", "copy it again"),
    ],
)
def test_a_reader_that_ends_badly_is_a_refusal(tmp_path, monkeypatch, status, why, mend):
    """On a damaged file the library has ended its process by a signal: nothing of the import does."""
    content = tree(tmp_path)

    def ended(command, **_):
        return subprocess.CompletedProcess(command, status, stdout=b"", stderr=b"")

    monkeypatch.setattr(perun_hdf5.subprocess, "run", ended)
    with pytest.raises(InputFileError, match=why) as error:
        read_text(IMPORTER, tmp_path, content)
    assert mend in error.value.mend


def test_other_hdf5_is_not_claimed_or_refused(tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is of an extra that is not installed")
    file = tmp_path / "a.h5"
    with h5py.File(file, "w") as out:
        out.create_dataset("weights", data=[1.0, 2.0])
    assert not claimed(IMPORTER, file)
    with h5py.File(file, "w") as out:
        group = out.create_group("model")
        group.attrs["type"] = 1
        group.create_group("metrics")
        group.create_group("nodes")
        out.create_group("other")
    with pytest.raises(InputFileError, match="has not one root node"):
        read_text(IMPORTER, tmp_path, file.read_bytes())
