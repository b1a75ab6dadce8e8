"""Verify: a report that names a version nobody has here cannot hide what was changed in it.

The version stands outside the hash of the evidence, so that anyone may write another. Then no byte
is compared, and every number, figure and result counts; what is left unchecked is said.
"""

from __future__ import annotations

import base64
import copy
import gzip
import io
import re

import msgspec
import pikepdf
import pytest

from carbonlens.app.compare import compared, computed
from carbonlens.app.report import report
from carbonlens.app.verify import verify
from carbonlens.errors import InputFileError
from tests.app.test_verify import evidence, filled_ledger
from tests.compare.business_cases import measured
from tests.compare.study_runs import demo_study, vector

FIGURE = "total.reduction_energy"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    given = evidence()
    folder = tmp_path_factory.mktemp("report")
    return report(computed(given), formats=("html", "pdf", "json"), out_dir=folder, evidence=given)


@pytest.fixture(scope="module")
def shape(written):
    return msgspec.json.decode(written["json"].read_bytes())


def aged(shape):
    """The data of a report that says another version wrote it."""
    made = copy.deepcopy(shape)
    made["evidence"]["made_with"]["carbonlens"] = "0.0.1"
    return made


def of_json(folder, data):
    file = folder / "report.json"
    file.write_bytes(msgspec.json.encode(data))
    return verify(file)


@pytest.fixture(scope="module")
def page(written, shape):
    """The page of a report that says another version wrote it."""
    text = written["html"].read_text(encoding="utf-8")
    packed = re.search(r'id="carbonlens-report">([^<]*)<', text)[1]
    data = base64.b64encode(gzip.compress(msgspec.json.encode(aged(shape)))).decode()
    return text.replace(packed, data)


def of_page(folder, text):
    file = folder / "report.html"
    file.write_text(text, encoding="utf-8")
    return verify(file)


def test_what_was_not_checked_is_said(tmp_path, shape, page):
    found = of_json(tmp_path, aged(shape))
    assert (found.holds, found.rebuilt) == (True, None)
    assert found.unchecked == ("bytes of the file", "words of its data")
    found = of_page(tmp_path, page)
    assert (found.mismatches, found.rebuilt) == ((), None)
    assert "words and layout of the page" in found.unchecked


def a_table(shape, section=1):
    return next(b for b in shape["sections"][section]["blocks"] if b["kind"] == "table")


def a_cell(shape):
    a_table(shape)["rows"][0]["cells"][0]["text"] = "99.9"


def a_cell_that_names_no_figure(shape):
    a_table(shape)["rows"][0]["cells"][0] = {"text": "99.9 %", "figures": []}


def a_cell_with_a_number_more(shape):
    a_table(shape)["rows"][0]["cells"][0]["text"] += " of 99 %"


def figures_of_another_cell(shape):
    row = a_table(shape)["rows"][0]["cells"]
    row[0]["figures"], row[1]["figures"] = row[1]["figures"], row[0]["figures"]


def a_row_fewer(shape):
    a_table(shape)["rows"].pop()


def a_tile(shape):
    next(b for b in shape["sections"][0]["blocks"] if b["kind"] == "tiles")["tiles"][0]["value"] = "▼ 99 %"


def a_number_in_words(shape):
    next(b for b in shape["sections"][0]["blocks"] if b["kind"] == "paragraph")["text"] = "We saved 99 %."


def a_title(shape):
    shape["title"] = "Three steps saved 99 %"


def no_comparison(shape):
    shape["comparison"] = {}


def a_result(shape):
    shape["comparison"]["steps"][0]["savings"]["energy_j"]["value"] *= 2


def a_decision(shape):
    step = next(s for s in shape["comparison"]["steps"] if s["decision"] == "reject")
    step["decision"] = "adopt"


def a_step_fewer(shape):
    shape["comparison"]["steps"].pop()


def no_example(shape):
    shape["example"] = False


CHANGES = [
    a_cell, a_cell_that_names_no_figure, a_cell_with_a_number_more, figures_of_another_cell, a_row_fewer,
    a_tile, a_number_in_words, a_title, no_comparison, a_result, a_decision, a_step_fewer, no_example,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda c: c.__name__)
@pytest.mark.parametrize("version", ["another", "this"])
def test_a_number_or_a_result_that_was_changed_is_found(tmp_path, shape, change, version):
    data = aged(shape) if version == "another" else copy.deepcopy(shape)
    change(data)
    found = of_json(tmp_path, data)
    assert found.mismatches
    assert not found.holds


@pytest.mark.parametrize("change", ["words", "heading", "finding"])
def test_of_the_same_version_every_word_counts_though_libraries_differ(tmp_path, shape, change):
    data = copy.deepcopy(shape)
    data["evidence"]["made_with"]["libraries"]["numpy"] = "1.0"
    assert of_json(tmp_path, data).holds
    if change == "words":
        next(b for b in data["sections"][0]["blocks"] if b["kind"] == "paragraph")["text"] = "All is well."
    elif change == "heading":
        data["title"] = "Ninety-nine percent saved"
    else:
        data["comparison"]["findings"] = [{"code": "CL999"}]
    found = of_json(tmp_path, data)
    assert (len(found.mismatches), found.rebuilt) == (1, None)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda names: [*names, {"name": "sustainability", "blocks": []}], "sustainability"),
        (lambda names: [{"name": "x\x1b[2J", "blocks": []}], "known are business-case, engineering"),
        (lambda names: [*names, *names], "more than once"),
        (lambda _: [], "lacks its sections"),
    ],
)
def test_sections_that_no_report_has_are_refused(tmp_path, shape, change, words):
    data = aged(shape)
    data["sections"] = change(data["sections"])
    with pytest.raises(InputFileError, match=words):
        of_json(tmp_path, data)


def test_a_section_dropped_from_the_data_of_a_page_is_missed_on_it(tmp_path, written, shape):
    """Its numbers still stand there, and follow from no section that the data have."""
    text = written["html"].read_text(encoding="utf-8")
    packed = re.search(r'id="carbonlens-report">([^<]*)<', text)[1]
    data = aged(shape)
    data["sections"] = data["sections"][:1]
    forged = base64.b64encode(gzip.compress(msgspec.json.encode(data))).decode()
    assert not of_page(tmp_path, text.replace(packed, forged)).holds


PRINTED = re.compile(rf'<([a-z]+)[^>]*data-figure="{re.escape(FIGURE)}"[^>]*>[^<]*</\1>')
SECTION = re.compile(r'(?s)<section [^>]*id="engineering".*?</section>')


def said(text):
    return lambda page: page.replace("Decision asked", text, 1)


PAGES = {
    "a figure gone": lambda page: PRINTED.sub("", page),
    "a section gone": lambda page: SECTION.sub("", page),
    "quoted": said("<span data-quoted>We saved 99 %</span>"),
    "a label": said("<span data-label>We saved 99 %</span>"),
    "in two elements": said("<b data-quoted>9</b><b data-quoted>9 %</b>"),
    "a style sheet": lambda page: page.replace("</style>", 'body::before{content:"Saved 99 %"}</style>', 1),
    "a style": said("<b style='content: \"99 %\"'></b>"),
    "an escape": lambda page: page.replace("</style>", 'p::before{content:"\\39\\39"}</style>', 1),
    "read out": said('<b title="Saved 99 %">x</b>'),
    "a chart": said('<svg><text data-quoted>99 %</text></svg>'),
    "a picture's words": said('<img src="data:," alt="99 %">'),
    "another page": said('<iframe srcdoc="99"></iframe>'),
    "an event": said('<b onclick="x()">x</b>'),
    "a comment": said("<!--> 99 <!-->"),
    "the title": lambda page: page.replace("<title>", "<title>99 % saved. ", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
def test_what_was_changed_on_a_page_of_another_version_is_found(tmp_path, page, name):
    forged = PAGES[name](page)
    assert forged != page
    assert not of_page(tmp_path, forged).holds


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (said('<img src="data:,">'), "pictures on the page"),
        (lambda page: page.replace("</body>", "<script>document.title = 'x'</script></body>"), "scripts"),
    ],
)
def test_what_cannot_be_read_on_a_page_is_said(tmp_path, page, change, words):
    found = of_page(tmp_path, change(page))
    assert any(words in one for one in found.unchecked)


def test_of_the_same_version_and_templates_every_word_of_a_page_counts(tmp_path, written, shape):
    text = written["html"].read_text(encoding="utf-8")
    packed = re.search(r'id="carbonlens-report">([^<]*)<', text)[1]
    data = copy.deepcopy(shape)
    data["evidence"]["made_with"]["libraries"]["vl-convert-python"] = "1.0"
    older = text.replace(packed, base64.b64encode(gzip.compress(msgspec.json.encode(data))).decode())
    assert of_page(tmp_path, older).mismatches == ()
    found = of_page(tmp_path, older.replace("Decision asked", "Ninety percent saved"))
    assert "Ninety percent saved" in found.mismatches[0].said


def of_pdf(folder, written, shape, change):
    pdf = pikepdf.open(io.BytesIO(written["pdf"].read_bytes()))
    content = msgspec.json.encode(aged(shape))
    pdf.attachments["report.json"] = pikepdf.AttachedFileSpec(pdf, content, filename="report.json")
    change(pdf)
    file = folder / "report.pdf"
    pdf.save(file)
    return verify(file)


def drawn(pdf):
    """A number over the first page, in a font that every reader has."""
    page = pdf.pages[0]
    font = pikepdf.Dictionary(
        Type=pikepdf.Name.Font, Subtype=pikepdf.Name.Type1, BaseFont=pikepdf.Name.Helvetica
    )
    name = page.add_resource(font, pikepdf.Name.Font)
    page.contents_add(f"BT {name} 40 Tf 100 500 Td (Saved 99 %) Tj ET".encode())


def a_page_gone(pdf):
    del pdf.pages[0]


def a_page_emptied(pdf):
    pdf.pages[0].Contents = pdf.make_stream(b"")


@pytest.mark.slow
@pytest.mark.parametrize("change", [drawn, a_page_gone, a_page_emptied], ids=lambda c: c.__name__)
def test_what_was_changed_in_a_pdf_of_another_version_is_found(tmp_path, written, shape, change):
    assert not of_pdf(tmp_path, written, shape, change).holds


@pytest.mark.slow
def test_a_pdf_of_another_version_holds_in_part(tmp_path, written, shape):
    found = of_pdf(tmp_path, written, shape, lambda _: None)
    assert (found.mismatches, found.rebuilt) == ((), None)
    assert "words, pictures and layout of the pages" in found.unchecked


def test_versions_that_do_not_decide_a_format_do_not_stop_its_bytes(tmp_path, shape):
    data = copy.deepcopy(shape)
    data["evidence"]["made_with"]["libraries"] |= {"weasyprint": "1.0", "pango": "0.1", "system_fonts": "x"}
    file = tmp_path / "report.json"
    file.write_bytes(msgspec.json.format(msgspec.json.encode(data), indent=1) + b"\n")
    found = verify(file)
    assert (found.holds, found.rebuilt, found.versions, found.unchecked) == (True, "same", {}, ())


def test_a_report_with_a_business_case_holds_against_its_ledger(tmp_path):
    ledger = filled_ledger(tmp_path / "ledger")
    found = compared(demo_study(), ledger=ledger, vector=vector())
    held = msgspec.structs.replace(found.evidence, business=measured())
    files = report(found.comparison, formats=["json"], out_dir=tmp_path, evidence=held)
    shape = msgspec.json.decode(files["json"].read_bytes())
    assert any("npv" in name for name in shape["figures"])
    verified = verify(files["json"], ledger=ledger)
    assert (verified.mismatches, verified.holds, verified.from_ledger) == ((), True, True)


@pytest.mark.parametrize("same", [True, False])
def test_the_runs_that_did_not_travel_are_known_by_their_hash(tmp_path, monkeypatch, same):
    from carbonlens.app import report_enclosed

    ledger = filled_ledger(tmp_path / "ledger")
    found = compared(demo_study(), ledger=ledger, vector=vector())
    runs = found.evidence.runs if same else found.evidence.runs[::-1]
    if not same:
        runs = (msgspec.structs.replace(runs[0], tags={"x": "y"}), *runs[1:])
    held = msgspec.structs.replace(found.evidence, runs=runs)
    monkeypatch.setattr(report_enclosed, "MOST_RUNS", 10)
    files = report(found.comparison, formats=["json"], out_dir=tmp_path, evidence=held)
    verified = verify(files["json"], ledger=ledger)
    assert verified.mismatches == ()
    assert any("the very runs" in one for one in verified.unchecked) is not same


def test_reports_of_different_runs_differ_in_their_evidence_though_none_travels():
    from carbonlens.domain.evidence import sha256

    one, other = evidence().without_runs(), evidence(watts=18.0).without_runs()
    assert (one.runs, one.runs_left_out) == ((), len(evidence().runs))
    assert sha256(one) != sha256(other)
