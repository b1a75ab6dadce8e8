"""Snippets: grams and megawatt hours that are right, texts that no name breaks out of."""

from __future__ import annotations

import re
from decimal import Decimal

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from carbonlens.accounting.allocation import allocate
from carbonlens.accounting.footprint import footprint
from carbonlens.domain.factor import Vector
from carbonlens.domain.run import Reading, Run
from carbonlens.render.markdown import render_comment
from carbonlens.reporting.snippet_card import MOST_WORDS, CardTerms, gpai_form, method_text, model_card
from carbonlens.reporting.snippet_table import badge, latex_table
from tests.compare.study_runs import vector
from tests.render.pages import view
from tests.reporting.golden import cases

HOSTILE = [
    'a"\n  emissions: 0\nb: "',
    "<script>alert(1)</script>",
    "=cmd|' /C calc'!A0",
    "مرحبا",
    "\x00",
    "a" * 9999,
]


def run(run_id="r", joules="3600000", grade="B", **fields):
    reading = Reading(
        component="gpu",
        energy_j=None if joules is None else Decimal(joules),
        grade=grade,
        method="counter",
        boundary="it",
    )
    return Run(
        run_id=run_id, role="training", start_us=0, end_us=3_600_000_000, duration_s=3600.0,
        energy=(reading,), **fields,
    )  # fmt: skip


def taken(*runs, of=None):
    held = runs or (run(),)
    return footprint(held, allocate(held, {}), vector() if of is None else of, {r.run_id for r in held})


def front_matter(card):
    return yaml.safe_load(card.split("---\n")[1])


def test_a_card_states_grams_of_what_the_building_drew():
    # 1 kWh of IT, PUE 1.2, 0.35 kg/kWh: 420 g.
    entry = front_matter(model_card(taken(), CardTerms(training_type="fine-tuning")))["co2_eq_emissions"]
    assert entry["emissions"] == pytest.approx(420)
    assert entry["training_type"] == "fine-tuning"
    assert entry["geographical_location"] == "Example place"
    assert "grade B" in entry["source"]
    assert "example assumptions" in entry["source"]


@pytest.mark.parametrize(
    ("runs", "of"),
    [((run(),), Vector()), ((run(joules=None),), None), ((run(), run("s", joules=None)), None)],
    ids=["no factor", "no energy", "energy of one run unknown"],
)
def test_what_is_unknown_or_a_lower_bound_is_no_number_on_a_card(runs, of):
    card = model_card(taken(*runs, of=of), CardTerms())
    assert front_matter(card) is None
    assert re.search(r"^# co2_eq_emissions is left out: \w", card, re.MULTILINE)


def test_the_reader_of_model_cards_reads_our_card(tmp_path):
    from carbonlens.importers.front_matter import emissions_of

    card = model_card(taken(), CardTerms())
    assert float(emissions_of(card.splitlines()).texts["emissions"].split()[0]) == pytest.approx(420)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_breaks_out_of_the_front_matter(name):
    found = taken(run(hardware=name), of=msgspec.structs.replace(vector(), place=name))
    entry = front_matter(model_card(found, CardTerms(training_type=name)))
    assert set(entry) == {"co2_eq_emissions"}
    assert entry["co2_eq_emissions"]["emissions"] == pytest.approx(420)
    assert gpai_form(found, CardTerms(unit=name, macs_per_unit=5)).count("**") == 16


def test_ranks_and_nested_runs_count_once():
    ranks = [run(f"r{k}", job_id="j", rank=k, device_uuids=(f"GPU-{k}",)) for k in range(2)]
    found = taken(*ranks, run("inner", parent_run_id="r0", device_uuids=("GPU-0",)))
    assert (found.runs, found.devices, found.wall_h, found.device_h) == (2, 2, 1.0, 2.0)
    assert found.facility_kwh.value == pytest.approx(2.4)


def test_ranks_that_name_the_same_devices_hold_each_once():
    both = ("GPU-0", "GPU-1")
    found = taken(*(run(f"r{k}", job_id="j", rank=k, device_uuids=both) for k in range(2)))
    assert (found.devices, found.wall_h, found.device_h) == (2, 1.0, 2.0)


@pytest.mark.parametrize("depth", [1, 2])
def test_a_run_that_names_no_device_holds_those_of_the_runs_inside(depth):
    inner = run("inner", parent_run_id=f"r{depth - 1}", device_uuids=("GPU-0",))
    nested = run("nested", parent_run_id="inner", device_uuids=("GPU-0",))
    outer = [run("r0"), run("r1", parent_run_id="r0")][:depth]
    found = taken(*outer, inner, nested)
    assert (found.wall_h, found.devices, found.device_h) == (1.0, 1, 1.0)


@given(st.floats(min_value=1e-3, max_value=1e9))
def test_what_is_known_or_more_never_exceeds_what_is_known(mwh):
    unknown = run("s", joules=None)
    found = taken(run(joules=f"{mwh * 3.6e9:.6f}"), unknown, of=msgspec.structs.replace(vector(), pue=1.0))
    stated = float(re.search(r"comes to (\S+) MWh or more", gpai_form(found, CardTerms()))[1])
    least = found.facility_kwh.low or found.facility_kwh.value
    assert 0.9 * least / 1000 <= stated <= least / 1000 * (1 + 1e-12)


@pytest.mark.parametrize(("grade", "words"), [("B", "(measured)"), ("D", "(estimated)")])
def test_measured_is_said_of_the_figure_that_is_printed(grade, words):
    """The building's energy: a meter's reading times a guessed PUE is an estimate."""
    found = taken()
    facility = msgspec.structs.replace(found.facility_kwh, grade=grade)
    found = msgspec.structs.replace(found, facility_kwh=facility)
    assert words in gpai_form(found, CardTerms())
    assert f"evidence grade {grade}" in model_card(found, CardTerms())


def test_the_form_states_megawatt_hours_with_two_digits_and_whether_they_were_measured():
    form = gpai_form(
        taken(run(joules="4567000000000")), CardTerms(flop=1.23e24, macs_per_unit=10**9, unit="token")
    )
    assert "1500 MWh (measured)" in form
    assert "1.23e+24 FLOP (stated)" in form
    assert "2.00e+09 FLOP per token" in form
    assert "(estimated)" in gpai_form(taken(run(grade="D")), CardTerms())


def test_the_form_says_not_available_where_energy_is_unknown():
    form = gpai_form(taken(run(joules=None)), CardTerms())
    assert "**Energy used for training (2(e))**: N/A" in form
    assert "0 MWh" not in form


@given(st.floats(min_value=1e-9, max_value=1e12))
def test_two_digits_are_two_digits_and_close(mwh):
    from carbonlens.reporting.snippet_card import _two_digits

    text = _two_digits(mwh)
    assert "e" not in text.lower()
    assert float(text) == pytest.approx(mwh, rel=0.0501)
    assert len(text.replace(".", "").strip("0")) <= 2


@pytest.mark.parametrize("name", HOSTILE)
def test_the_method_has_at_most_a_hundred_words(name):
    long = " ".join([name] * 300)
    found = taken(run(hardware=long), of=msgspec.structs.replace(vector(), pue_source=long, place=long))
    assert len(method_text(found).split()) <= MOST_WORDS


def test_a_long_method_loses_what_stands_in_brackets_and_no_half_of_it():
    long = "CPU time at a power curve (Intel Emerald Rapids, 33 published servers of the year 2024)"
    text = method_text(msgspec.structs.replace(taken(run()), methods=(long, "nvml counter (board)")))
    assert "CPU time at a power curve; nvml counter (board)" in text
    assert "…" not in text


@pytest.mark.parametrize("case", [*cases(), "hostile"])
def test_latex_is_balanced_and_every_special_character_is_ours(case):
    text = latex_table(view(case))
    assert text.isascii() or case == "hostile"
    body = text.split(r"\midrule")[1].split(r"\bottomrule")[0]
    depth = 0
    for c in re.sub(r"\\[{}]", "", text):
        depth += {"{": 1, "}": -1}.get(c, 0)
        assert depth >= 0
    assert depth == 0
    assert not re.search(r"(?<!\\)[#%_](?![a-z]* needs)", body)
    # A bracket after a line break would set its height.
    assert not re.search(r"\\\\\s*\[", text)
    rows = view(case).engineering.effects.rows
    assert len(re.findall(r"\\\\$", body, re.MULTILINE)) == len(rows)


@pytest.mark.parametrize("case", [*cases(), "hostile"])
def test_a_badge_is_one_small_picture_that_says_the_change(case):
    made = badge(view(case), "energy & <co>")
    root = etree.fromstring(made)
    texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "energy & <co>"
    assert root.find("{http://www.w3.org/2000/svg}title").text.startswith("energy & <co>: ")
    assert len(made) < 2000
    assert "http" not in made.replace("http://www.w3.org/2000/svg", "")


def test_a_badge_shows_less_energy_as_a_minus_and_its_interval_turned():
    figure = view("demo").figures["total.reduction_energy"]
    made = badge(view("demo"))
    assert f"−{figure.text}" in made.replace("\u00a0", " ") or f"−{figure.text}" in made
    low, high = re.search(r"\[(\S+), (\S+)\]", made).groups()
    assert low.startswith("−")
    assert high.startswith("−")


@pytest.mark.parametrize("case", ["demo", "hostile", "rejected"])
def test_a_comment_leads_with_the_message_and_hides_its_mark(case):
    text = render_comment(view(case), "a --> <b>")
    assert text.startswith("<!-- carbonlens: a __ _b_ -->\n### ") or text.startswith("<!-- carbonlens: ")
    assert text.count("-->") == 1
    assert text.count("<details>") == text.count("</details>") >= 3
