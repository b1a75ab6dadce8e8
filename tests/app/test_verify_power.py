"""Verify: the power over time that a report draws is that of the runs it carries, point by point."""

import msgspec
import pytest

from carbonlens.app.compare import computed
from carbonlens.app.report import report
from carbonlens.app.verify import verify
from carbonlens.compare.power import billed_w
from carbonlens.domain.evidence import Evidence
from carbonlens.domain.run import Run
from tests.app.test_verify import evidence
from tests.reporting.power_case import trace

replace = msgspec.structs.replace
GAP = ((6, 7),)


def traced() -> Evidence:
    """Runs of the demo, of which the baseline's rounds keep their power."""
    given = evidence()
    runs = tuple(with_power(r) if (r.step, r.role) == ("torch", "variant") else r for r in given.runs)
    return replace(given, runs=runs)


def with_power(run: Run) -> Run:
    """Return a run with a curve of the power that it is billed: another's is not drawn as its own."""
    run = replace(run, duration_s=20.0)
    shape = trace(1.0, gap=GAP)
    told = [w for w in shape.power_w if w is not None]
    scale = billed_w(run) * len(told) / sum(told)
    lines = {n: tuple(w and w * scale for w in getattr(shape, n)) for n in ("power_w", "low_w", "high_w")}
    return replace(run, power=replace(shape, **lines))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    given = traced()
    made = report(
        computed(given),
        sections=("engineering",),
        formats=("html", "json"),
        out_dir=tmp_path_factory.mktemp("report"),
        evidence=given,
    )
    return {name: file.read_bytes() for name, file in made.items()}


def verified(tmp_path, content, change=None, name="r.json"):
    if change is not None:
        shape = msgspec.json.decode(content)
        change(shape)
        content = msgspec.json.encode(shape)
    (tmp_path / name).write_bytes(content)
    return verify(tmp_path / name)


@pytest.mark.parametrize("name", ["html", "json"])
def test_a_report_with_curves_holds_and_is_made_again_byte_for_byte(tmp_path, written, name):
    found = verified(tmp_path, written[name], name=f"r.{name}")
    assert (found.mismatches, found.rebuilt) == ((), "same")


def curve(shape):
    blocks = [b for s in shape["sections"] for b in s["blocks"]]
    return next(b for b in blocks if b["kind"] == "power")["arms"][0]


def a_point(shape):
    curve(shape)["power_w"][3] += 1


def a_gap_that_is_closed(shape):
    curve(shape)["power_w"][62] = 200.0


def a_phase_that_is_moved(shape):
    curve(shape)["phases"][0]["end_s"] = 9.0


def another_run(shape):
    curve(shape)["run_id"] = "r"


def a_curve_of_the_evidence(shape):
    run = next(r for r in shape["evidence"]["runs"] if r["power"])
    run["power"]["power_w"][3] = 1.0


@pytest.mark.parametrize(
    "change", [a_point, a_gap_that_is_closed, a_phase_that_is_moved, another_run, a_curve_of_the_evidence]
)
def test_any_change_of_a_curve_is_found(tmp_path, written, change):
    assert not verified(tmp_path, written["json"], change).holds
