"""Columns say what records say: sums over rows are the run's own figures."""

import math
from decimal import Decimal
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbonlens.domain.identity import uuid7
from carbonlens.domain.latency import Latency
from carbonlens.domain.run import Conditions, HourEnergy, Origin, Reading, Run
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import RecordError
from carbonlens.ledger import batches, parquet, schema, spreading
from carbonlens.ledger.records import Stored

START = 482_000 * US_PER_HOUR
MICRO = Decimal("0.000001")


def stored(run):
    return Stored(run=run, text=msgspec.json.encode(run), file="here")


def reading(energy="10", component="cpu", **more):
    given = {"boundary": "it", "grade": "B", "method": "m", "u_by_source_j": {"sensor:x": 0.5}}
    return Reading(component=component, energy_j=None if energy is None else Decimal(energy), **given | more)


def rows(**run):
    return schema.rows(stored(Run(run_id="r", start_us=START, **run)))


joules = st.decimals(min_value=0, max_value=10**12, places=6)


@settings(deadline=None)
@given(
    energies=st.lists(joules, min_size=1, max_size=3),
    hours=st.lists(joules, max_size=5),
    units=st.none() | joules,
    length_us=st.integers(0, 5 * US_PER_HOUR),
)
def test_rows_sum_to_the_run_exactly(energies, hours, units, length_us):
    by_hour = tuple(
        HourEnergy(hour_utc=482_000 + i, component="cpu", energy_j=e) for i, e in enumerate(hours)
    )
    found = rows(
        energy=tuple(reading(str(e)) for e in energies),
        energy_by_hour=by_hour,
        units=units,
        end_us=START + length_us,
    )
    assert sum(r.energy_j for r in found) == sum(energies)
    assert sum(r.units or 0 for r in found) == (units or 0)
    assert [r.is_first for r in found] == [True, *[False] * (len(found) - 1)]
    assert [r.part for r in found] == list(range(len(found)))
    u = sum(r.u_sensor_j for r in found)
    assert float(u) == pytest.approx(0.5 * len(energies), abs=1e-5)


def test_recorded_hours_come_back_as_they_are():
    by_hour = tuple(
        HourEnergy(hour_utc=h, component="cpu", energy_j=Decimal(e)) for h, e in ((5, "1"), (6, "2.5"))
    )
    found = rows(energy=(reading("3.5"),), energy_by_hour=by_hour)
    assert [(r.hour_utc, r.energy_j) for r in found] == [(5, Decimal(1)), (6, Decimal("2.5"))]


def test_without_recorded_hours_energy_follows_the_time_in_each():
    found = rows(energy=(reading("3"),), end_us=START + US_PER_HOUR * 3 // 2)
    assert [(r.hour_utc - 482_000, r.energy_j) for r in found] == [(0, Decimal(2)), (1, Decimal(1))]


def test_random_parts_add_in_quadrature_over_hours():
    found = rows(energy=(reading("100", u_random_j=3.0),), end_us=START + 4 * US_PER_HOUR)
    assert len(found) == 4
    assert math.hypot(*(float(r.u_random_j) for r in found)) == pytest.approx(3.0)


def test_every_source_is_kept_when_two_are_of_one_kind():
    found = rows(
        energy=(reading("10", u_by_source_j={"sensor:a": 1.0, "sensor:b": 2.0, "cpu_model:c": 3.0}),)
    )
    pairs = {(r.sensor_source_id, r.u_sensor_j) for r in found}
    assert pairs == {("sensor:a", Decimal(1)), ("sensor:b", Decimal(2))}
    assert [r.u_model_j for r in found if r.model_source_id] == [Decimal(3)]
    assert sum(r.energy_j for r in found) == 10


def test_unknown_is_null_and_said():
    (row,) = rows(energy=(reading(None, state="unknown"),))
    assert (row.energy_j, row.state, row.run_state) == (None, "unknown", "unknown")
    (row,) = rows()
    assert (row.energy_j, row.component, row.run_state) == (None, None, "unknown")
    found = rows(energy=(reading("1"), reading(None, "gpu", state="unknown")))
    assert [r.run_state for r in found] == ["unbounded", None]


def test_a_width_nobody_knows_is_null_not_zero():
    (row,) = rows(energy=(reading("1", u_by_source_j={}),))
    assert row.u_random_j is None
    (row,) = rows(energy=(reading("1"),))
    assert row.u_random_j == 0


def test_a_run_without_a_start_has_no_hour():
    (row,) = schema.rows(stored(Run(run_id="r", energy=(reading(),))))
    assert (row.hour_utc, row.month_utc) == (None, None)


def test_only_the_first_of_two_records_in_a_file_counts():
    run = Run(run_id="r", study="s", energy=(reading(),))
    other = Run(run_id="r", study="t", energy=(reading(),))
    assert [r.counts for r in schema.rows_of([stored(run), stored(run), stored(other)])] == [
        True,
        False,
        True,
    ]


def test_a_figure_too_large_for_its_column_is_refused_by_name():
    with pytest.raises(RecordError, match="run r "):
        rows(energy=(reading("1e18"),))


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=4))
def test_tags_survive_being_one_text(tags):
    text = schema.tag_text(tags)
    pairs = [p.split("=") for p in text.strip("\x1f").split("\x1f")] if text else []
    assert {schema.unescaped(k): schema.unescaped(v) for k, v in pairs} == tags


@settings(deadline=None)
@given(joules, st.lists(joules, min_size=1, max_size=30))
def test_spread_never_loses_a_microjoule(amount, weights):
    parts = spreading.spread(amount, list(enumerate(weights)))
    assert sum(parts) == amount
    assert all(p >= 0 for p in parts)
    whole = sum(weights)
    if whole:
        ideal = [amount * w / whole for w in weights]
        assert all(abs(p - i) <= 2 * MICRO for p, i in zip(parts, ideal, strict=True))


def live_run(i):
    """Return a record as ``track`` seals one on a server with two GPUs."""
    start = START + i * 97_000_003
    stamp = uuid7(start // 1000, (i * 2_654_435_761 % 2**80).to_bytes(10, "big"))
    devices = [f"GPU-{k}c0ffee-0000-4000-8000-00000000000{i % 4}" for k in range(2)]
    gpu = [
        reading(
            f"{200_000 + i * 7919 % 100_000}.{i * 31 % 10**6:06}",
            "gpu",
            method="NVML energy counter",
            devices=(d,),
            u_by_source_j={f"sensor:nvml_energy:{d}": 5000 + i * 1.25},
            u_random_j=12.5 + i % 7 / 3,
            covered_s=600 + i * 1.37 % 11,
        )
        for d in devices
    ]
    cpu = reading(
        f"{30_000 + i * 13 % 9000}.{i * 17 % 10**6:06}",
        grade="D",
        method="CPU time on the server's SPECpower curve",
        u_by_source_j={"cpu_model:xeon-gold": 9000 + i * 0.1},
    )
    parts = (cpu, *gpu)
    return Run(
        run_id=stamp,
        job_id=f"job-{i // 8}",
        host_id="a" * 32,
        machine_id="b" * 32,
        device_uuids=tuple(devices),
        role="training",
        start_us=start,
        end_us=start + 600_000_000 + i,
        duration_s=600 + i * 1.37 % 11,
        energy=parts,
        energy_by_hour=tuple(
            HourEnergy(hour_utc=start // US_PER_HOUR, component=c, energy_j=e)
            for c, e in (("cpu", cpu.energy_j), ("gpu", gpu[0].energy_j + gpu[1].energy_j))
        ),
        units=Decimal(1000 + i % 50),
        unit="step",
        hardware="2 x NVIDIA H100 80GB, Xeon Gold",
        zone="DE",
        site="fra1",
        latency=Latency(p50_ms=12.5 + i % 9, p99_ms=40.0 + i % 13),
        conditions=Conditions(wall_s=600 + i * 1.37 % 11, cpu_s=580.1 + i % 3, load_1m=3.2),
        coverage=1.0,
        exit_code=0,
        tags={"team": f"team-{i % 20}", "model": f"model-{i % 7}"},
        origin=Origin(instrument="carbonlens 0.1.0", program="train.py", args_sha256=f"{i * 7919:064x}"),
    )


def test_a_compacted_run_takes_at_most_600_bytes(tmp_path):
    runs = [live_run(i) for i in range(3000)]
    file = tmp_path / "b.parquet"
    batches.write(file, runs)
    assert file.stat().st_size / len(runs) <= 600
    connection = parquet.connect()
    texts = parquet.texts(connection, file)
    connection.close()
    assert [msgspec.json.decode(t, type=Run) for t in texts] == runs


def test_hours_of_a_run_are_consecutive():
    run = Run(run_id="r", start_us=START + 5, end_us=START + 3 * US_PER_HOUR)
    hours = [h for h, _ in spreading.hours_of(run, "cpu")]
    assert all(b - a == 1 for a, b in pairwise(hours))
    assert len(hours) == 3
