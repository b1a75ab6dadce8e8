"""Verify: the power over time that a report draws is that of the runs it carries, point by point."""

import msgspec
import pytest

from carbonlens.app.compare import computed
from carbonlens.app.report import report
from carbonlens.app.verify import verify
from carbonlens.domain.evidence import Evidence
from tests.app.test_verify import evidence
from tests.reporting.power_case import trace

replace = msgspec.structs.replace


def traced() -> Evidence:
    """Runs of the demo, of which the baseline's rounds keep their power."""
    given = evidence()
    runs = tuple(
        replace(r, duration_s=20.0, power=trace(1 + 0.01 * (r.repeat or 0), gap=((6, 7),)))
        if (r.step, r.role) == ("torch", "variant")
        else r
        for r in given.runs
    )
    return replace(given, runs=runs)


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
