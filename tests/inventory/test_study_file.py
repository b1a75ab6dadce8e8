"""The study file: what it may say, and what it is refused for."""

from __future__ import annotations

from decimal import Decimal

import pytest

from carbonlens.app.terms import parse_terms
from carbonlens.domain.factor import Vector
from carbonlens.domain.study import Adjustment, EffortPlace, Engineering, Gate, Selector, Step, Study
from carbonlens.errors import ConfigError
from carbonlens.inventory import study_file
from tests.compare.study_runs import demo_study, vector

HEAD = '[study]\nname = "s"\nbaseline = "a"\nunit = "image"\n'
FULL = demo_study(
    steps=(
        Step(name="onnx", select=Selector(step="x", on=("P",), tag={"k": "v"}), engineering_hours=2.5),
        Step(name="int8", measured_on="onnx", title="Int8", on=("P", "Q")),
    ),
    select=Selector(workload="w"),
    baseline_select=Selector(run=("r1", "r2")),
    gates=(
        Gate(name="kept", metric="accuracy", kind="min_retention", limit=0.98),
        Gate(name="power", metric="power_w", kind="max_ratio", limit=1.1),
    ),
    adjustments=(Adjustment(tag="batch", exponent=0.9, u_exponent=0.1, at=8.0, source="fit"),),
    interval="bca",
    is_sequential=True,
    units_per_day=1e6,
    engineering=Engineering(amount_per_hour=Decimal("90.50"), currency="EUR", source="payroll"),
    effort_places=(EffortPlace(zone="SE", period="2025-03", vector=vector()),),
)
LATTICE = Study(
    name="l",
    baseline="baseline",
    steps=(),
    unit="image",
    optimizations=("a b", "c", "d"),
    orders=(("a b", "c", "d"), ("d", "c", "a b")),
    optimization_hours={"a b": 12.0, "d": 0.5},
)


def read(tmp_path, text):
    file = tmp_path / "study.toml"
    file.write_text(text)
    return study_file.load(file)


@pytest.mark.parametrize("study", [FULL, LATTICE, demo_study()], ids=["full", "lattice", "demo"])
def test_what_is_written_is_read_back(tmp_path, study):
    for stated in (vector(), Vector()):
        assert read(tmp_path, study_file.dumps(study, stated)) == (study, stated)


def test_a_study_file_as_a_person_writes_it(tmp_path):
    study, found = read(
        tmp_path,
        HEAD
        + """
[study.baseline_select]
tag = {precision = "fp32"}
[[step]]
name = "int8"
select = {tag = {precision = "int8"}}
engineering_hours = 3
[[gate]]
name = "accuracy"
metric = "accuracy"
kind = "min_retention"
limit = 0.98
[engineering]
amount_per_hour = "80"
currency = "EUR"
source = "payroll"
""",
    )
    assert study.baseline_select == Selector(tag={"precision": "fp32"})
    assert study.steps == (
        Step(name="int8", select=Selector(tag={"precision": "int8"}), engineering_hours=3.0),
    )
    assert (study.engineering.currency, found) == ("EUR", Vector())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[step]]\nname = "a"\n', "twice"),
        ('[[step]]\nname = "b"\nmeasured_on = "c"\n', "does not stand before it"),
        ('[[step]]\nname = "b"\nselect = {}\n', "would take every run"),
        ('[[step]]\nname = "b"\nselect = {colour = "red"}\n', "colour"),
        ('[[step]]\nname = "b"\n[lattice]\noptimizations = ["P"]\n', "both"),
        ('[lattice]\noptimizations = ["P", "P"]\n', "twice"),
        ('[lattice]\noptimizations = ["P"]\nengineering_hours = {Q = 1}\n', "no optimization"),
        ('[lattice]\noptimizations = ["P"]\nengineering_hours = {P = -1}\n', "-1.0 engineering hours"),
        ('[lattice]\noptimizations = ["P", "Q"]\norders = ["P > P", "Q > P"]\n', "every optimization once"),
        ('[lattice]\noptimizations = ["P", "Q"]\norders = ["P > Q", "P > Q"]\n', "its reverse"),
        ('[[gate]]\nname = "g"\nmetric = "m"\nkind = "min_retention"\nlimit = 0.0\n', "ratio"),
        ('[[gate]]\nname = "g"\nmetric = "m"\nkind = "max_loss"\nlimit = nan\n', "number"),
        ('[[gate]]\nname = "g"\nmetric = "m"\nkind = "about"\nlimit = 1.0\n', "about"),
        ('[[gate]]\nname = "g"\nmetric = "latency_p90_ms"\nkind = "max_value"\nlimit = 1.0\n', "latency_p90"),
        ('[[step]]\nname = "b"\nengineering_hours = -1.0\n', "hours"),
        ('[engineering]\namount_per_hour = "-1"\ncurrency = "EUR"\nsource = "s"\n', "amount"),
        ('[engineering]\namount_per_hour = "1"\ncurrency = "EURO"\nsource = "s"\n', "currency"),
        ('[engineering]\namount_per_hour = "1"\ncurrency = "EUR"\nsource = " "\n', "source"),
        ("[[effort_place]]\nassumptions = {}\n", "no zone"),
        ('[[effort_place]]\nzone = "SE"\nperiod = "March"\nassumptions = {}\n', "2025-03"),
    ],
)
def test_a_contradiction_is_refused_with_its_mend(tmp_path, text, said):
    with pytest.raises(ConfigError, match=said) as error:
        read(tmp_path, HEAD + text)
    assert error.value.mend


@pytest.mark.parametrize("line", ["margin = 0.0", "volume_units = 0.0", "units_per_day = -1.0"])
def test_an_impossible_value_is_refused(tmp_path, line):
    with pytest.raises(ConfigError, match=line.split()[0]):
        read(tmp_path, HEAD + line + "\n")


GATE = '[[gate]]\nname = "g"\nmetric = "accuracy"\nkind = "max_loss"\nlimit = 0.01\n'
RATE = '[engineering]\namount_per_hour = "1"\ncurrency = "EUR"\nsource = "x"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GATE + GATE, "twice"),
        (GATE.replace("accuracy", "energy_j"), "decides on"),
        (GATE.replace("accuracy", "latency_p90_ms"), "nothing measures"),
        (GATE.replace("accuracy", ""), "no metric"),
        (RATE + "u_relative = nan\n", "u_relative"),
        (RATE + "u_relative = -0.1\n", "u_relative"),
        ('[[effort_place]]\nzone = "SE"\nperiod = "2025-13"\nassumptions = {}\n', "2025-03"),
        ('[[effort_place]]\nzone = "SE"\nperiod = "2025-00"\nassumptions = {}\n', "2025-03"),
        ('[[adjustment]]\ntag = "whatever"\n', "sequence_length"),
        ('[[adjustment]]\ntag = "batch"\nexponent = nan\n', "exponent"),
        ('[[adjustment]]\ntag = "batch"\nu_exponent = -1.0\n', "u_exponent"),
        ('[[adjustment]]\ntag = "batch"\nat = 0.0\n', "at above 0"),
    ],
)
def test_what_no_figure_can_be_made_of_is_refused(tmp_path, text, said):
    with pytest.raises(ConfigError) as error:
        read(tmp_path, HEAD + text)
    assert said in str(error.value)


@pytest.mark.parametrize("empty", ["name", "unit", "baseline"])
def test_an_empty_name_or_unit_is_refused(tmp_path, empty):
    text = "".join(f'{k} = "{"" if k == empty else "x"}"\n' for k in ("name", "baseline", "unit"))
    with pytest.raises(ConfigError, match="empty"):
        read(tmp_path, "[study]\n" + text)


@pytest.mark.parametrize(
    ("gates", "volume"),
    [
        (["accuracy:max_loss=inf"], None),
        (["accuracy:max_loss=nan"], None),
        (["accuracy:min_retention=-1"], None),
        (["energy_j:max_ratio=1"], None),
        (["latency_p90:max_ratio=1"], None),
        ([], "1e999"),
        ([], "0 a year"),
    ],
)
def test_the_command_line_is_held_to_the_same(gates, volume):
    with pytest.raises(ConfigError):
        parse_terms(None, gates, volume)
