"""What is mended in a PDF before it is written: running text, and objects made once."""

import hashlib

import pikepdf
import pydyf
import pytest

from carbonlens.render.pdf import paper, written
from tests.render.pages import opened, pdf
from tests.render.test_pdf import structure

PAGE = (
    "<!DOCTYPE html><html lang='en'><head><title>t</title><style>"
    "@page {{ @bottom-left {{ content: 'left of ' counter(pages); }} @bottom-right {{ content: 'right'; }} }}"
    "p + p {{ break-before: page; }}</style></head><body>{body}</body></html>"
)


def marked(page):
    """Yield the tag, the properties and whether text is shown in it, of every mark of a page."""
    open_marks = []
    for operands, operator in pikepdf.parse_content_stream(page):
        if str(operator) in ("BDC", "BMC"):
            open_marks.append([str(operands[0]), operands[1] if len(operands) > 1 else {}, False])
        elif str(operator) == "EMC":
            yield tuple(open_marks.pop())
        elif str(operator) in ("TJ", "Tj") and open_marks:
            open_marks[-1][2] = True


def owners(document, page):
    """The elements that own the marks of a page, by the number of the mark."""
    mapping = document.Root.StructTreeRoot.ParentTree.Nums
    return dict(zip(map(int, mapping[::2]), mapping[1::2], strict=True))[int(page.StructParents)]


def two_pages():
    page = PAGE.format(body="<p>one</p><p>two</p>")
    return written(paper(page), page, (), None)


@pytest.mark.parametrize("made", [lambda: pdf("demo", "business-case"), two_pages])
def test_what_runs_through_all_pages_is_no_content(made):
    document = opened(made())
    in_tree = {element.objgen for element in structure(document.Root.StructTreeRoot)}
    for page in document.pages:
        marks = list(marked(page))
        numbers = [int(properties["/MCID"]) for _, properties, _ in marks if "/MCID" in properties]
        assert numbers
        assert all(owners(document, page)[n].objgen in in_tree for n in numbers), "content in no tree"
        running = [p for tag, p, shows in marks if tag == "/Artifact" and shows]
        assert len(running) == 2, "the margins have a text on either side"
        assert all(p["/Type"] == "/Pagination" for p in running)


def test_every_element_left_in_the_file_is_in_the_tree():
    document = opened(two_pages())
    in_tree = {element.objgen for element in structure(document.Root.StructTreeRoot)}
    elements = {
        o.objgen
        for o in document.objects
        if isinstance(o, pikepdf.Dictionary) and o.get("/Type") == "/StructElem"
    }
    assert elements == in_tree


def test_a_page_without_running_text_stays_as_it_is():
    page = "<!DOCTYPE html><html lang='en'><head><title>t</title></head><body><p>one</p></body></html>"
    document = opened(written(paper(page), page, (), None))
    assert [(tag, shows) for tag, _, shows in marked(document.pages[0])] == [("/Span", True)]


def test_each_stream_is_packed_once(monkeypatch):
    packed = []
    of_pydyf = pydyf.Stream.data.fget
    monkeypatch.setattr(pydyf.Stream, "data", property(lambda s: packed.append(s) or of_pydyf(s)))
    content = two_pages()
    # The stream of all small objects is made by pydyf while it writes.
    ours = [id(stream) for stream in packed if stream.extra.get("Type") != "/ObjStm"]
    assert len(ours) > 4
    assert len(ours) == len(set(ours))
    monkeypatch.undo()
    assert hashlib.sha256(two_pages()).digest() == hashlib.sha256(content).digest()


def test_the_files_own_identifier_is_that_of_what_is_written(monkeypatch):
    finished = two_pages()
    monkeypatch.setattr("carbonlens.render.pdf_finish._made_once", lambda _: None)
    assert two_pages() == finished
