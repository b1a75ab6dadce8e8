"""A quarter's report is verified from the file alone: by the records in it, else by its own figures."""

from __future__ import annotations

import io
import json
import shutil
import zipfile

import msgspec
import pytest

from carbonlens.app.importing import import_files
from carbonlens.app.report_look import find_look
from carbonlens.app.sustainability import gather
from carbonlens.app.sustainability_carried import LEDGER_ZIP, in_data, missing_of, records_of, unpack
from carbonlens.app.sustainability_enclosed import Wanted
from carbonlens.app.sustainability_report import material, rendered
from carbonlens.app.verify import verify
from carbonlens.errors import InputFileError
from carbonlens.render.attachments import of_pdf, text_of_pdf
from tests.app import company_case
from tests.cli.commands import Shell

FORMATS = ("json", "html", "pdf")


@pytest.fixture(scope="module")
def company(tmp_path_factory):
    """The last days of the company's quarter."""
    return company_case.make(tmp_path_factory.mktemp("company"), begin="2026-09-25")


@pytest.fixture(scope="module")
def made(company):
    """With the names of the company's hosts, which its records hold."""
    given = material(gather("2026Q3", now_us=company_case.NOW_US, **company))
    return msgspec.structs.replace(given, wanted=Wanted(host_names=True))


@pytest.fixture(scope="module")
def files(made, tmp_path_factory):
    """The report with its ledger's records, and without (``n``)."""
    folder = tmp_path_factory.mktemp("files")
    for name in FORMATS:
        (folder / f"r.{name}").write_bytes(rendered(made, name))
    without = msgspec.structs.replace(made, records=b"")
    for name in ("json", "html"):
        (folder / f"n.{name}").write_bytes(rendered(without, name))
    return folder


@pytest.fixture
def gathered(made, monkeypatch):
    """Gathering from the carried records gives the same (the first test shows it), and takes long."""
    monkeypatch.setattr("carbonlens.app.sustainability_verify.gather", lambda *_, **__: made.gathered)


def altered(files, name, tmp_path, change):
    file = tmp_path / f"altered.{name.rpartition('.')[2]}"
    file.write_text(change((files / name).read_text("utf-8")), "utf-8")
    return file


@pytest.mark.slow
def test_a_pdf_is_made_again_of_the_records_in_it(files, company, made):
    moved = company["ledger"].with_name("moved")
    company["ledger"].rename(moved)
    try:
        found = verify(files / "r.pdf")
    finally:
        moved.rename(company["ledger"])
    assert (found.mismatches, found.rebuilt, found.from_ledger, found.left) == ((), "same", False, ())
    assert found.figures == len(made.view.figures)
    assert found.runs == made.gathered.given.runs


@pytest.mark.slow
@pytest.mark.parametrize("name", ["r.html", "r.json"])
def test_pages_and_data_carry_the_records_too(files, name, gathered):
    found = verify(files / name)
    assert (found.mismatches, found.rebuilt, found.from_ledger) == ((), "same", False)


@pytest.mark.slow
def test_a_figure_that_the_records_do_not_give_is_found(files, tmp_path, gathered):
    def change(text):
        shape = json.loads(text)
        shape["figures"]["statement.2026Q3.total.facility_kwh"]["value"] *= 0.9
        return json.dumps(shape)

    file = altered(files, "r.json", tmp_path, change)
    found = verify(file)
    assert not found.holds
    assert "statement.2026Q3.total.facility_kwh" in {m.figure_id for m in found.mismatches}


@pytest.mark.slow
def test_records_of_another_ledger_give_other_figures(files, tmp_path):
    """The archive is believed as little as the rest: what it holds decides."""
    shape = json.loads((files / "r.json").read_text("utf-8"))
    head = "run_id,study,step,energy_j,units,start_utc,duration_s,boundary,energy_grade,site\n"
    (tmp_path / "runs.csv").write_text(f"{head}1,a,s,3600,1,2026-08-04T08:00:00Z,60,it,B,berlin\n")
    import_files([tmp_path / "runs.csv"], ledger=tmp_path / "ledger")
    shape["ledger_zip"] = in_text(records_of(tmp_path / "ledger", 1 << 20).content)
    (tmp_path / "r.json").write_text(json.dumps(shape), "utf-8")
    found = verify(tmp_path / "r.json")
    assert not found.holds
    assert len(found.mismatches) > 20


@pytest.mark.slow
@pytest.mark.parametrize("name", ["n.json", "n.html"])
def test_without_records_it_is_held_against_itself_and_the_rest_named(files, made, name):
    found = verify(files / name)
    assert found.holds
    assert (found.mismatches, found.rebuilt, found.runs) == ((), None, 0)
    left = [i for one in found.left for i in one.figure_ids]
    assert len(left) == len(set(left))
    assert found.figures > 10
    assert found.figures + len(left) == len(made.view.figures)
    reasons = {i: one.reason for one in found.left for i in one.figure_ids}
    assert "ledger's records" in reasons["statement.2026Q3.berlin.facility_kwh"]
    assert "intervals" in found.unchecked
    said = " ".join(Shell(files)("verify", name).stdout.split())
    assert f"verified in part: {found.figures} of {len(made.view.figures)} figures follow" in said
    assert "not computed" in said
    assert "--ledger DIR" in said


@pytest.mark.slow
@pytest.mark.parametrize("begin", ["statement.2026Q3.total.", "to_date.", "factor.1.low", "rate."])
def test_what_does_not_follow_from_the_figures_beside_it_is_found(files, tmp_path, begin):
    shape = json.loads((files / "n.json").read_text("utf-8"))
    left = {i for one in verify(files / "n.json").left for i in one.figure_ids}
    name = next(n for n in shape["figures"] if n.startswith(begin) and n not in left)
    shape["figures"][name]["value"] *= 1.01
    (tmp_path / "n.json").write_text(json.dumps(shape), "utf-8")
    found = verify(tmp_path / "n.json")
    assert name in {m.figure_id for m in found.mismatches}
    assert "NOT verified" in Shell(tmp_path)("verify", "n.json", code=4).stdout


@pytest.mark.slow
def test_a_number_changed_on_a_page_without_records_is_found(files, tmp_path, made):
    text = made.view.figures["statement.2026Q3.total.facility_kwh"].text
    file = altered(files, "n.html", tmp_path, lambda page: page.replace(f">{text}<", f">9{text}<", 1))
    found = verify(file)
    assert not found.holds


@pytest.mark.slow
def test_a_ledger_that_went_on_verifies_an_older_report(files, company, tmp_path, gathered):
    ledger = tmp_path / "ledger"
    shutil.copytree(company["ledger"], ledger)
    held = of_pdf((files / "r.pdf").read_bytes(), "r.pdf")[LEDGER_ZIP]
    unpack(held, tmp_path / "held", "r.pdf")
    assert missing_of(tmp_path / "held", ledger) == 0
    found = verify(files / "r.json", ledger=ledger)
    assert (found.rebuilt, found.unchecked, found.from_ledger) == ("same", (), True)
    next((ledger / "imports").rglob("*.parquet")).unlink()
    lacking = missing_of(tmp_path / "held", ledger)
    assert lacking > 0
    found = verify(files / "r.json", ledger=ledger)
    assert found.rebuilt == "same"
    assert any(f"{lacking} record" in words and LEDGER_ZIP in words for words in found.unchecked)


@pytest.mark.slow
def test_own_templates_and_numbers_are_verified_with_their_folder(made, tmp_path, gathered):
    own = tmp_path / "own"
    (own / "sustainability").mkdir(parents=True)
    (own / "theme.toml").write_text('[numbers]\ndecimal = ","\ngroup = "."\n', "utf-8")
    begin = '{% extends "carbonlens/sustainability/page.html.j2" %}'
    figure = "{{ figure('statement.2026Q3.total.facility_kwh') }}"
    words = f"{{% block extra %}}<p>Our words: {figure}.</p>{{% endblock %}}"
    (own / "sustainability" / "page.html.j2").write_text(begin + words, "utf-8")
    look, numbers = find_look(own)
    with_own = material(made.gathered, look=look, numbers=numbers)
    with_own = msgspec.structs.replace(with_own, wanted=made.wanted)
    for name in ("html", "pdf", "md"):
        (tmp_path / f"r.{name}").write_bytes(rendered(with_own, name))
    text = made.view.figures["statement.2026Q3.total.facility_kwh"].text.replace(".", ",")
    assert "," in text
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "Our words: " in page
    assert f">{text}</span>.</p>" in page
    assert text in (tmp_path / "r.md").read_text("utf-8")
    assert "Our words: " in text_of_pdf((tmp_path / "r.pdf").read_bytes(), "r.pdf")
    found = verify(tmp_path / "r.html", templates=own)
    assert (found.mismatches, found.rebuilt) == ((), "same")
    found = verify(tmp_path / "r.html")
    assert (found.mismatches, found.rebuilt, set(found.versions)) == ((), None, {"own_templates_sha256"})


def packed(**files):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def in_text(content):
    import base64

    return base64.b64encode(content).decode("ascii")


@pytest.mark.parametrize(
    "name",
    ["../x.parquet", "/imports/x.parquet", "imports/../../x", "imports\\..\\x", "imports", "other/x.json",
     "imports/.hidden", "C:/x", "imports//x", "runs/a/b/c/d.json", "imports/\n"],
)  # fmt: skip
def test_an_archive_with_a_file_where_none_may_be_is_refused(tmp_path, name):
    with pytest.raises(InputFileError, match="which is no record"):
        unpack(packed(**{name: b"x"}), tmp_path / "ledger", "r.pdf")
    assert not list(tmp_path.rglob("x*"))


def test_an_archive_that_says_it_is_larger_than_any_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("carbonlens.app.sustainability_carried._LARGEST_BYTES", 1000)
    with pytest.raises(InputFileError, match="more than any report carries"):
        unpack(packed(**{"imports/a.parquet": b"0" * 1001}), tmp_path, "r.pdf")


def test_an_archive_that_lies_about_its_size_is_refused(tmp_path):
    content = packed(**{"imports/a.parquet": b"0" * 100_000})
    size = (100_000).to_bytes(4, "little")
    with pytest.raises(InputFileError, match="damaged"):
        unpack(content.replace(size, (10).to_bytes(4, "little")), tmp_path, "r.pdf")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"no archive", packed(**{"imports/a": b"1"})[:-9]])
def test_a_damaged_archive_is_refused(tmp_path, content):
    with pytest.raises(InputFileError, match="damaged"):
        unpack(content, tmp_path, "r.pdf")


@pytest.mark.parametrize("said", ["no base64!", 7, ["x"]])
def test_an_archive_in_data_that_is_no_text_is_refused(said):
    with pytest.raises(InputFileError, match="damaged"):
        in_data(said, "r.json")


def test_the_same_records_give_the_same_archive_and_come_back(tmp_path):
    ledger = tmp_path / "ledger"
    for name in (
        "runs/202608/b.json",
        "imports/a.parquet",
        "runs/202608/.tmp",
        "samples/1.parquet",
        "x.json",
    ):
        (ledger / name).parent.mkdir(parents=True, exist_ok=True)
        (ledger / name).write_bytes(name.encode())
    (tmp_path / "secret.json").write_text("{}")
    (ledger / "runs" / "202608" / "link.json").symlink_to(tmp_path / "secret.json")
    first = records_of(ledger, 1000)
    assert first == records_of(ledger, 1000)
    assert records_of(ledger, 10).content == b""
    unpack(first.content, tmp_path / "again", "r.pdf")
    found = {f.relative_to(tmp_path / "again").as_posix() for f in (tmp_path / "again").rglob("*.*")}
    assert found == {"runs/202608/b.json", "imports/a.parquet"}
    assert missing_of(tmp_path / "again", ledger) == 0
    (ledger / "imports/a.parquet").write_bytes(b"other")
    assert missing_of(tmp_path / "again", ledger) == 1
