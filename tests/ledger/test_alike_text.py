"""Records of alike runs as text: letter by letter those of one run alone, whatever its figures."""

import hashlib
from decimal import Decimal

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from carbonlens.domain.alike import Alike
from carbonlens.domain.run import Origin, Reading, Run
from carbonlens.ledger.alike_text import texts_of


def alike(count, **columns):
    """Return alike runs of two readings and a further one beside."""
    parts = [
        Reading(
            component=name,
            energy_j=Decimal(1),
            boundary="device",
            grade=grade,
            method="m",
            u_by_source_j={f"grade_{grade}:a": 0.1},
        )
        for name, grade in (("cpu", "D"), ("gpu", "B"), ("total", "D"))
    ]
    pattern = Run(
        run_id="pattern",
        start_us=0,
        end_us=1,
        duration_s=1.0,
        energy=tuple(parts[:2]),
        beside=(parts[2],),
        emissions_reported_kg=Decimal(1),
        origin=Origin(instrument="x/1", source_line=1),
    )
    usual = {
        "run_ids": [f"run-{i}" for i in range(count)],
        "start_us": np.arange(count) * 10**9,
        "end_us": np.arange(count) * 10**9 + 10**6,
        "duration_s": np.ones(count),
        "energy_uj": (np.arange(count) + 1, np.arange(count) + 5),
        "beside_uj": (np.arange(count) + 10**12,),
        "sigmas": (0.3, 0.02, 0.3),
        "emissions_kg": [Decimal(i) / 1000 for i in range(count)],
        "lines": np.arange(count) + 2,
    }
    return Alike(pattern=pattern, **(usual | columns))


UJ = st.integers(1, 2**53 - 1) | st.integers(1, 10**7)
RUNS = st.lists(
    st.tuples(
        st.text(max_size=12), UJ, UJ, UJ, st.floats(0, 1e9), st.decimals(0, 10**9), st.integers(0, 2**52)
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(RUNS)
def test_texts_are_those_of_each_run_alone(drawn):
    ids, cpu, gpu, total, seconds, kg, starts = map(list, zip(*drawn, strict=True))
    runs = alike(
        len(drawn),
        run_ids=ids,
        start_us=np.array(starts),
        end_us=np.array(starts) + 7,
        duration_s=np.array(seconds),
        energy_uj=(np.array(cpu), np.array(gpu)),
        beside_uj=(np.array(total),),
        emissions_kg=kg,
    )
    told = texts_of(runs)
    plain = [msgspec.json.encode(runs.run(i)) for i in range(len(drawn))]
    assert told.records == plain
    assert told.hashes == [hashlib.sha256(text).hexdigest().encode() for text in plain]
    assert told.run_ids == [run_id.encode() for run_id in ids]
    assert told.kg == [str(amount).encode() for amount in kg]
