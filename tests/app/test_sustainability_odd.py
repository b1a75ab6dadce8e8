"""A quarter's report of anybody's making: held against itself, explained and refused in words."""

from __future__ import annotations

import base64
import json
import shlex
from decimal import Decimal

import pytest

from carbonlens.app import sustainability_verify
from carbonlens.app.explain_periods import Periods
from carbonlens.app.explain_quarter import QuarterFigures
from carbonlens.app.explain_report import explain_in_report
from carbonlens.app.said_figures import said_figure
from carbonlens.app.sustainability_carried import records_of
from carbonlens.app.sustainability_printed import print_of
from carbonlens.app.sustainability_recount import misprinted
from carbonlens.app.sustainability_report import SCHEMA
from carbonlens.app.verified import computing
from carbonlens.app.verify import verify
from carbonlens.domain.charge import Charge
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.errors import (
    CarbonlensError,
    ConfigError,
    InputFileError,
    RecordError,
    RenderError,
    SelectionError,
    UnwritableError,
    UsageError,
)
from carbonlens.ledger.activity import CHARGES, READINGS
from carbonlens.ledger.store import Ledger
from carbonlens.reporting import format as fmt
from carbonlens.reporting.explanation import walk
from tests.ledger.test_store import make_run

BASIS = {"period": "2026Q3", "present_us": 1, "factors_sha256": "x"}


def figure(value, unit="kg", **more):
    return {"value": value, "unit": unit, "label": "l", **more}


def written(tmp_path, figures, name="r.json", **more):
    file = tmp_path / name
    shape = {"schema": SCHEMA, "period": "2026Q3", "figures": figures, "basis": BASIS, **more}
    file.write_text(json.dumps(shape), "utf-8")
    return file


def wrong(tmp_path, figures):
    return {m.figure_id for m in verify(written(tmp_path, figures)).mismatches}


SIZES = [10.0**power * digits for power in range(-12, 9) for digits in (1.0, 2.5, 9.996, 0.4)]


def prints():
    """How reports print figures: quantity, unit of the figure, and factor from that to what is printed."""
    for value in SIZES:
        for spread in (0.0, 0.03, 0.4):
            for unit, shown, factor in (
                ("kg", fmt.mass, 1.0), ("g", fmt.mass, 1e-3), ("g per token", fmt.mass, 1e-3),
                ("kWh", fmt.energy, 3.6e6), ("J", fmt.energy, 1.0), ("s", fmt.duration, 1.0),
                ("EUR", fmt.money, 1.0), ("1", fmt.count, 1.0), ("1", fmt.percent, 1.0),
            ):  # fmt: skip
                said = Estimate(value=value * factor, unit=unit, u_random=value * factor * spread)
                yield value, unit, shown(said)


def test_every_print_of_a_value_holds_and_a_thousandth_of_it_does_not():
    for value, unit, shown in prints():
        said = {"printed": shown.text, "printed_number": shown.number, "printed_interval": shown.interval}
        assert print_of(said_figure("x", figure(value, unit, **said), "r")) == "holds", (value, unit, shown)
        for other in (value * 1000, value / 1000 + value * 3, None):
            found = print_of(said_figure("x", figure(other, unit, **said), "r"))
            assert found == "differs", (other, unit, shown)


@pytest.mark.parametrize(
    ("value", "unit", "printed", "number", "held"),
    [
        (5000.0, "kg", "5 kg CO₂e", "5", "differs"),
        (5000.0, "kg", "5 t CO₂e", "5", "holds"),
        (5000.0, "kg", "5 t CO₂e", "7", "differs"),
        (5000.0, "kg", "5", "5", "unread"),
        (5000.0, "kg", "0", "0", "unread"),
        (1e-13, "kg", "0", "0", "holds"),
        (None, "kg", "5 kg", "5", "differs"),
        (None, "kg", "unknown", "unknown", "holds"),
        (-13.0, "kg", "−13 kg CO₂e in part", "−13 in part", "holds"),
        (13.0, "kg", "−13 kg CO₂e", "−13", "differs"),
        (46.2, "EUR", "EUR +50", "EUR +50", "holds"),
        (1424.6, "L", "at least 1.42 m³", "at least 1.42", "holds"),
        (0.3623, "kg/kWh", "0.3623", "0.3623", "holds"),
        (0.3623, "kg/kWh", "0.4623", "0.4623", "differs"),
    ],
)
def test_a_printed_number_is_its_value_to_its_own_digits(value, unit, printed, number, held):
    text = printed.replace(" ", "\u00a0")
    said = said_figure("x", figure(value, unit, printed=text, printed_number=number), "r")
    assert print_of(said) == held


@pytest.mark.parametrize("digits", ["9" * 22, "9" * 309, "1" + "0" * 400, "9" * 400])
def test_a_number_of_more_digits_than_any_value_is_a_misprint(tmp_path, digits):
    printed = {"printed": f"{digits} kg", "printed_number": digits}
    assert wrong(tmp_path, {"a": figure(5.0, **printed)}) == {"a"}


@pytest.mark.parametrize("digits", ["1" + "0" * 309, "1" + "0" * 400])
def test_an_interval_of_such_a_number_tells_no_last_digit(tmp_path, digits):
    printed = {"printed": "0 kg", "printed_number": "0", "printed_interval": f"0 to {digits}"}
    found = verify(written(tmp_path, {"a": figure(5.0, **printed)}))
    assert "printed numbers of 1 figure" in found.unchecked


def test_what_holding_a_report_against_itself_trips_over_is_told_by_its_file(tmp_path, monkeypatch):
    def trips(*_):
        raise OverflowError("too large")

    monkeypatch.setattr(sustainability_verify, "recounted", trips)
    file = written(tmp_path, {"a": figure(5.0)})
    with pytest.raises(InputFileError, match="too large") as refused:
        verify(file)
    assert refused.value.where == str(file)


@pytest.mark.parametrize("kind", [UnwritableError, RenderError, ConfigError])
def test_trouble_of_the_machine_is_not_the_reports(kind):
    with pytest.raises(kind, match="no room"), computing("r.json"):
        raise kind("no room", where="/tmp", mend="make free space")


@pytest.mark.parametrize("kind", [SelectionError, RecordError, UsageError])
def test_trouble_with_what_a_report_holds_is_the_reports(kind):
    with pytest.raises(InputFileError, match="no such run") as refused, computing("r.json"):
        raise kind("no such run", where="here", mend="look there")
    assert refused.value.where == "r.json"


def test_a_misprint_is_found_and_what_could_not_be_held_is_said(tmp_path):
    figures = {"a": figure(5000.0, printed="5 kg", printed_number="5")}
    assert wrong(tmp_path, figures) == {"a"}
    figures = {"a": figure(5000.0, printed="5", printed_number="5")}
    assert "printed numbers of 1 figure" in verify(written(tmp_path, figures)).unchecked


LESS = "this period less the other; what both rest on cancels"


@pytest.mark.parametrize(
    ("formula", "inputs", "right"),
    [
        (LESS, (5000.0, 0.0), 5000.0),
        (LESS, (0.0, 5000.0), -5000.0),
        ("metered less recorded", (50.0,), 50.0),
        ("metered less recorded", (50.0, 0.0), 50.0),
        ("metered less recorded", (50.0, 20.0, 25.0), 5.0),
        ("metered_kwh - recorded_kwh", (50.0, 0.0), 50.0),
        ("change / other", (5.0, 50.0), 0.1),
        ("sum of the lines", (50.0, 0.0), 50.0),
    ],
)
def test_what_does_not_follow_is_found_whatever_the_inputs_are(tmp_path, formula, inputs, right):
    names = [f"i{n}" for n, _ in enumerate(inputs)]
    figures = {name: figure(value) for name, value in zip(names, inputs, strict=True)}
    assert wrong(tmp_path, figures | {"x": figure(right, formula=formula, inputs=names)}) == set()
    assert wrong(tmp_path, figures | {"x": figure(-999.0, formula=formula, inputs=names)}) == {"x"}


def test_a_quotient_by_nothing_is_named(tmp_path):
    figures = {"a": figure(1.0), "b": figure(0.0)}
    figures["x"] = figure(-999.0, formula="change / other", inputs=["a", "b"])
    reasons = {i: one.reason for one in verify(written(tmp_path, figures)).left for i in one.figure_ids}
    assert "divide by" in reasons["x"]


@pytest.mark.parametrize("figures", [{}, [], None, "x"])
@pytest.mark.parametrize("with_ledger", [True, False])
def test_a_report_without_figures_is_refused(tmp_path, figures, with_ledger):
    with pytest.raises(InputFileError, match="lacks its figures"):
        verify(written(tmp_path, figures), ledger=tmp_path / "l" if with_ledger else None)


def test_a_page_without_figures_is_read_in_words():
    assert list(misprinted("<html><title>t</title></html>", {"title": "t"}, "r.html")) == []


@pytest.mark.parametrize(
    "name", ["a\0.toml", "x" * 256 + ".toml", "é" * 150, "a\n.toml", "a\\b", "c:d", "..", ""]
)
@pytest.mark.parametrize("with_ledger", [True, False])
def test_a_file_of_the_inventory_of_no_name_is_refused(tmp_path, name, with_ledger):
    basis = BASIS | {"inventory": {name: "x"}}
    file = written(tmp_path, {"a": figure(1.0)}, basis=basis)
    with pytest.raises(InputFileError, match="names a file of its inventory"):
        verify(file, ledger=tmp_path / "l" if with_ledger else None)
    with pytest.raises(InputFileError, match="names a file of its inventory"):
        list(explain_in_report(["a"], written(tmp_path, {"a": figure(1.0, inputs=["y"])}, basis=basis)))


@pytest.mark.parametrize("levels", [300, 3000])
def test_figures_that_rest_on_each_other_without_an_end_are_refused(tmp_path, levels):
    figures = {f"f{n}": figure(1.0, inputs=[f"f{n + 1}"]) for n in range(levels)}
    with pytest.raises(InputFileError, match="levels"):
        list(explain_in_report(["f0"], written(tmp_path, figures)))
    # All at once is no chain; in a circle it ends where it began.
    figures = {"a": figure(1.0, inputs=["b"] * 9), "b": figure(1.0, inputs=["a"])}
    (node,) = explain_in_report(["a"], written(tmp_path, figures))
    assert len(node.children) == 9


ODD = [
    "x'; touch hacked; '",
    "$(touch hacked)",
    "`a`",
    "a b",
    'a"b',
    "run:a/1",
    "-rf",
    "a\nb",
    "\u202eb",
    "y" * 999,
]


@pytest.mark.parametrize("name", ODD)
def test_the_command_that_is_told_takes_an_id_as_one_word(tmp_path, name):
    file = written(tmp_path, {"a": figure(1.0, inputs=[name])})
    (node,) = explain_in_report(["a"], file)
    (said,) = node.children[0].item.details
    command = said.removeprefix("needs the ledger: ")
    words = shlex.split(command)
    assert words[:2] == ["carbonlens", "explain"]
    assert words[3:] == ["--ledger", "DIR"]
    assert words[2] in (name, "FIGURE")
    assert command.isprintable()
    assert len(command) < 300


@pytest.fixture(scope="module")
def carried(tmp_path_factory):
    """A ledger's records with one of each kind that figures rest on."""
    folder = tmp_path_factory.mktemp("l")
    ledger = Ledger(folder)
    ledger.append(make_run("r1"))
    reading = MeterReading(reading_id="m1", meter_id="m", start_us=0, end_us=1, energy_j=Decimal(5))
    ledger.add_rows(READINGS, [reading], source_sha256="ab" * 32, importer="t-1")
    ledger.add_rows(
        CHARGES, [Charge(charge_id="c1", start_us=0, end_us=1)], source_sha256="cd" * 32, importer="t-1"
    )
    return base64.b64encode(records_of(folder, 1 << 20).content).decode("ascii")


@pytest.mark.parametrize(("name", "kind"), [("run:r1", "run"), ("reading:m1", "reading"), ("c1", "charge")])
def test_what_lies_in_the_records_of_a_report_is_explained_from_it(tmp_path, carried, name, kind):
    figures = {"a": figure(1.0, inputs=[name, "run:nobody"])}
    (node,) = explain_in_report(["a"], written(tmp_path, figures, ledger_zip=carried))
    first, second = (child.item for child in node.children)
    assert (first.kind, first.details[-1]) == (kind, "as the report carries it")
    assert "needs the ledger" in second.details[0]
    (node,) = explain_in_report(["a"], written(tmp_path, figures))
    assert {n.item.kind for n in walk(node)} == {"figure", "unknown"}


@pytest.mark.parametrize("said", ["no base64!", base64.b64encode(b"PK\x03\x04").decode()])
def test_damaged_records_are_refused_by_explain_too(tmp_path, said):
    with pytest.raises(CarbonlensError, match="damaged"):
        list(explain_in_report(["a"], written(tmp_path, {"a": figure(1.0, inputs=["x"])}, ledger_zip=said)))


@pytest.mark.parametrize(
    ("name", "asked", "wanted"),
    [
        ("statement.2026Q2.total.facility_kwh", "2026Q3", "2026Q2"),
        ("rate.2026Q1.x.1", "2026Q3", "2026Q1"),
        ("factor.1.low", "2026Q3", "2026Q3"),
        ("factor.1.low", None, None),
        ("statement.2026Q2.total.facility_kwh", None, "2026Q2"),
    ],
)
def test_the_quarter_of_an_id_goes_before_the_one_asked_for(monkeypatch, name, asked, wanted):
    made = []
    monkeypatch.setattr(
        "carbonlens.app.explain_quarter.page_figures",
        lambda quarter, _: made.append(quarter) or QuarterFigures(),
    )
    Periods(lambda _: None, lambda: None).of_pages(name, asked)
    assert made == [wanted]
