"""Older records come forward, newer ones are refused by name, and released ledgers stay readable."""

import shutil
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from carbonlens.domain.run import SCHEMA_VERSION
from carbonlens.errors import RecordError
from carbonlens.ledger import compaction, migration
from carbonlens.ledger.migration import NewerSchemaError, forward
from carbonlens.ledger.records import current, decode
from carbonlens.ledger.store import Ledger
from carbonlens.ledger.verify import verify
from tests.ledger.test_store import make_run

RELEASED = Path(__file__).parents[2] / "fixtures" / "ledgers"
LATER_US = 1_795_000_000_000_000

STEPS = {
    1: lambda plain: {**{k: v for k, v in plain.items() if k != "joules"}, "energy_j": plain["joules"]},
    2: lambda plain: {**plain, "kwh": plain["energy_j"] / 3.6e6},
}


def test_each_version_is_brought_forward_step_by_step():
    old = {"schema_version": 1, "joules": 7.2e6}
    assert forward(old, steps=STEPS, to=3) == {"schema_version": 3, "energy_j": 7.2e6, "kwh": 2.0}
    assert forward(old, steps=STEPS, to=2) == {"schema_version": 2, "energy_j": 7.2e6}
    assert old == {"schema_version": 1, "joules": 7.2e6}
    same = {"schema_version": 3, "energy_j": 1.0}
    assert forward(same, steps=STEPS, to=3) == same


def test_a_version_without_a_way_forward_is_said():
    with pytest.raises(RecordError, match="version 2"):
        forward({"schema_version": 2}, steps={}, to=3)


def test_the_registry_has_a_step_for_every_released_version():
    assert set(migration.STEPS) == set(range(1, SCHEMA_VERSION))
    assert {d.name for d in RELEASED.iterdir()} == {f"v{v}" for v in range(1, SCHEMA_VERSION + 1)}


@pytest.mark.parametrize("version", [0, -1, "1", None, 1.5, True])
def test_a_version_that_is_no_number_is_refused(version):
    with pytest.raises(RecordError, match="schema_version"):
        forward({"schema_version": version})


def test_a_newer_record_is_refused_by_name_also_when_it_no_longer_fits():
    fits = msgspec.json.encode(make_run(schema_version=99))
    with pytest.raises(NewerSchemaError, match=r"99, newer than 1.*upgrade carbonlens"):
        decode(fits)
    plain = {**msgspec.json.decode(fits), "energy": {"shape": "unknown to this version"}}
    with pytest.raises(NewerSchemaError):
        decode(msgspec.json.encode(plain))


@pytest.fixture
def released(tmp_path):
    folder = tmp_path / "ledger"
    shutil.copytree(RELEASED / "v1", folder)
    return folder


def check_v1(folder):
    """Check the figures that the release wrote; independent of how they lie there now."""
    view = Ledger(folder).view()
    assert view.findings == ()
    counting, findings = current(view.runs)
    assert findings == ()
    assert (len(view.runs), len(counting)) == (8, 7)
    sums = {r.run_id: [e.energy_j for e in r.energy] for r in counting}
    assert sum(e for parts in sums.values() for e in parts if e is not None) == Decimal("2042.317900")
    assert sums["019ca6b1-dc05-7030-8303-030303030303"] == [None]
    fixed = next(r for r in counting if r.run_id.startswith("019ca6b1-ff28"))
    assert (fixed.units, fixed.supersedes[:13], fixed.tags) == (1001, "019ca6b1-dc00", {"team": "vision"})
    assert fixed.total_energy.grade == "E"
    assert (fixed.total_energy.low, fixed.total_energy.high) == pytest.approx((769.169, 1981.564), rel=1e-6)
    sha = fixed.quality[0].outcomes_sha256
    assert Ledger(folder).outcomes(sha) == (1, 0, 1, 1)
    by_hand = next(r for r in counting if r.run_id == "by-hand")
    assert (by_hand.cost.amount, by_hand.cost.currency) == (Decimal("0.10"), "EUR")
    assert Ledger(folder).study_file("digits").is_file()


def test_the_first_released_ledger_reads_with_its_figures(released):
    check_v1(released)
    assert verify(released, now_us=LATER_US).findings == ()


def test_the_first_released_ledger_compacts_without_a_change_of_content(released):
    before = {r.sha256 for r in Ledger(released).holdings().records}
    assert len(compaction.compact(released, before="202612").months) == 3
    assert {r.sha256 for r in Ledger(released).holdings().records} == before
    check_v1(released)
    assert verify(released, now_us=LATER_US).findings == ()
