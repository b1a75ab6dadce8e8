"""Attachments: whatever a file holds, it is read within limits or refused in one line."""

from __future__ import annotations

import base64
import gzip
import io
import logging
import os
import zlib

import pikepdf
import pytest

from carbonlens.errors import InputFileError
from carbonlens.render import attachments
from carbonlens.render.attachments import DATA_ID, DATA_TYPE, as_data_block, of_page, of_pdf, text_of_pdf


def page(packed: bytes) -> str:
    return f'<script type="{DATA_TYPE}" id="{DATA_ID}">{base64.b64encode(packed).decode()}</script>'


def pdf(content: bytes, change=None) -> bytes:
    made = pikepdf.new()
    made.add_blank_page()
    made.attachments["report.json"] = pikepdf.AttachedFileSpec(made, content, filename="report.json")
    if change is not None:
        change(made)
    held = io.BytesIO()
    made.save(held)
    return held.getvalue()


@pytest.mark.parametrize("content", [b"{}", b"x" * 3_000_000, os.urandom(1_500_000)])
def test_what_was_packed_comes_back(content):
    assert (
        of_page(f'<script type="{DATA_TYPE}" id="{DATA_ID}">{as_data_block(content)}</script>', "x")
        == content
    )
    assert of_pdf(pdf(content), "x")["report.json"] == content


@pytest.mark.parametrize("limit", ["bytes", "density"])
def test_what_unpacks_into_more_than_a_report_is_refused_unread(monkeypatch, limit):
    if limit == "bytes":
        monkeypatch.setattr(attachments, "LARGEST_BYTES", 1 << 20)
    else:
        monkeypatch.setattr(attachments, "_SMALL_BYTES", 1 << 20)
    bomb = bytes(2_000_000)
    with pytest.raises(InputFileError, match="x: the data inside it are damaged"):
        of_page(page(gzip.compress(bomb)), "x")
    with pytest.raises(InputFileError, match="x: is no PDF that can be read"):
        of_pdf(pdf(bomb), "x")


def test_a_bomb_costs_no_memory():
    """One megabyte that unpacks into a gigabyte is given up at the limit, not after it."""
    import tracemalloc

    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    packed = b"".join(packer.compress(bytes(1 << 20)) for _ in range(256)) + packer.flush()
    tracemalloc.start()
    with pytest.raises(InputFileError):
        of_page(page(packed), "x")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * max(attachments._SMALL_BYTES, attachments._DENSEST * len(packed))


@pytest.mark.slow
def test_a_report_of_many_runs_is_read_though_it_is_beyond_what_pypdf_unpacks():
    content = base64.b16encode(os.urandom(45_000_000))
    assert len(content) > 75_000_000
    assert of_pdf(pdf(content), "x")["report.json"] == content


@pytest.mark.parametrize(
    "packed",
    [b"", b"AAAA", gzip.compress(b"{}", mtime=0)[:-12], gzip.compress(b"{}" * 99, mtime=0)[:20]],
    ids=range(4),
)
def test_damaged_data_are_refused(packed):
    with pytest.raises(InputFileError):
        of_page(page(packed), "x")


def test_a_page_with_two_reports_is_refused():
    with pytest.raises(InputFileError, match="more than one"):
        of_page(page(gzip.compress(b"{}")) * 2, "x")


def cyclic_pages(made):
    made.Root.Pages.Kids = pikepdf.Array([made.Root.Pages])


def broken_content(made):
    made.pages[0].Contents = made.make_stream(b"q BT /F1 ( ] >> Tj \xff 1 0 0")


def broken_fonts(made):
    font = pikepdf.Dictionary(Type=pikepdf.Name.Font, Subtype=pikepdf.Name.Type0, DescendantFonts=[])
    font.ToUnicode = made.make_stream(b"beginbfchar <zz> <> endbfchar 1 beginbfrange <00> <ff")
    made.pages[0].Resources = pikepdf.Dictionary(Font=pikepdf.Dictionary(F1=made.make_indirect(font)))
    made.pages[0].Contents = made.make_stream(b"BT /F1 9 Tf <00ff00> Tj ET " * 50)


def one_page_many_times(made):
    first = made.pages[0].obj
    made.Root.Pages.Kids = pikepdf.Array([first] * 3_000)
    made.Root.Pages.Count = 3_000


BROKEN = [cyclic_pages, broken_content, broken_fonts, one_page_many_times]


@pytest.mark.parametrize("change", BROKEN, ids=lambda c: c.__name__)
def test_pages_that_cannot_be_read_are_refused_and_nothing_is_logged(change, caplog, capfd):
    said = ""
    with caplog.at_level(logging.DEBUG):
        try:
            text_of_pdf(pdf(b"{}", change), "x.pdf")
        except InputFileError as refused:
            said = str(refused)
    # Of broken content and fonts pypdf reads what it can.
    assert said.startswith("x.pdf: is no PDF that can be read") or change in (broken_content, broken_fonts)
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")
    assert logging.getLogger("pypdf").level == logging.NOTSET


def a_loop(made):
    tree = made.Root.Names.EmbeddedFiles
    tree = made.make_indirect(tree)
    tree.Kids = pikepdf.Array([tree])
    made.Root.Names.EmbeddedFiles = tree


def a_file_of_nothing(made):
    made.Root.Names.EmbeddedFiles.Names = pikepdf.Array(["report.json", pikepdf.Dictionary()])


def no_tree(made):
    made.Root.Names.EmbeddedFiles = pikepdf.Array([])


@pytest.mark.parametrize("change", [a_loop, a_file_of_nothing, no_tree], ids=lambda c: c.__name__)
def test_broken_trees_of_names_are_refused(change):
    with pytest.raises(InputFileError):
        of_pdf(pdf(b"{}", change), "x")
