"""Use case: verify a quarter's report: make it again from a ledger's records and what it carries.

The inventory and the user's factors are taken from the report. The records are those of the ledger
that is named, else those that the report carries: then it is shown to follow from these, which
proves no more of them than that. A report without either is held against itself, and what could
not be computed is named.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from carbonlens.app.report_look import find_look
from carbonlens.app.sustainability import gather
from carbonlens.app.sustainability_carried import LEDGER_ZIP, in_data, missing_of, unpack, writing
from carbonlens.app.sustainability_enclosed import Basis, Wanted, take
from carbonlens.app.sustainability_recount import misprinted, recounted
from carbonlens.app.sustainability_report import SCHEMA, Material, material, rendered, shape_of
from carbonlens.app.verified import Verified, computing
from carbonlens.app.verify_data import Mismatch
from carbonlens.app.verify_pages import PAGE_NUMBER, Pages, compare_texts, strange_numbers
from carbonlens.app.verify_reading import data_of
from carbonlens.domain.counting import counted
from carbonlens.domain.decoding import convert
from carbonlens.domain.number_style import NumberStyle
from carbonlens.errors import InputFileError, VerificationError
from carbonlens.factors.store import FactorSet, bundled, with_own
from carbonlens.factors.table_file import Table
from carbonlens.ledger.opening import one_opening, open_ledger
from carbonlens.render.attachments import of_pdf
from carbonlens.render.look import Look
from carbonlens.render.versions import DECIDING, OWN_TEMPLATES, SYSTEM_FONTS, shipped_fonts_hold, texts_of

_AS_WRITTEN: Final = "take the report as carbonlens wrote it"
_NOT_OURS = (".xlsx", ".md")
_LONGEST_NAME: Final = 200
"""Bytes; file systems take 255 at most."""

_HELD_APART: Final = ("figures", "basis", "ledger_zip")
_LAID_OUT_BY: Final = ("templates_sha256", OWN_TEMPLATES, "Jinja2", "MarkupSafe")


def verify_sustainability(
    report: Path, ledger: str | Path | None, templates: str | Path | None = None
) -> Verified | None:
    """Return what came of verifying a quarter's report; ``None`` where the file is none.

    Args:
        report: A ``.json``, ``.html`` or ``.pdf``.
        ledger: The ledger that it is of; the records in the report when ``None``.
        templates: Folder of the user's own templates that it was made with.

    Raises:
        InputFileError: If it cannot be read, or nothing can be computed from the records in it.
        SelectionError: If the ledger has nothing of its quarter.
        MissingExtraError: If the ``analysis`` or ``report`` extra is not installed.
    """
    if report.suffix.lower() in _NOT_OURS:
        return None
    kind, content, data = data_of(report)
    shape = _shape(data)
    if shape is None:
        return None
    file = _File(kind=kind, content=content, where=str(report))
    if not isinstance(shape.get("figures"), dict) or not shape["figures"]:
        raise InputFileError("lacks its figures", where=file.where, mend=_AS_WRITTEN)
    basis = basis_in(shape, file.where)
    records = carried_by(kind, content, shape, file.where)
    if ledger is None and not records:
        with computing(file.where):
            return _against_itself(file, shape, basis)
    look = _look(basis, templates, file.where)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if records:
            unpack(records, folder / "ledger", file.where)
        if ledger is not None:
            given = _again(file, basis, ledger, folder, look)
            found = _compared(file, shape, basis, msgspec.structs.replace(given, records=records))
            return _with_carried(found, folder / "ledger", ledger)
        with computing(file.where):
            given = _again(file, basis, folder / "ledger", folder, look)
            found = _compared(file, shape, basis, msgspec.structs.replace(given, records=records))
        return msgspec.structs.replace(found, from_ledger=False)


def carried_by(kind: str, content: bytes, shape: dict[str, Any], where: str) -> bytes:
    """Return the ledger's records that a report carries; empty where it has none.

    Args:
        kind: Its format.
        content: Its bytes.
        shape: Its data.
        where: The report, for errors.

    Raises:
        InputFileError: If they are no archive as text, or the PDF cannot be read.
    """
    if kind == "pdf":
        return of_pdf(content, where).get(LEDGER_ZIP, b"")
    return in_data(shape.get("ledger_zip"), where)


def _with_carried(found: Verified, carried: Path, ledger: str | Path) -> Verified:
    """Return the same, with how many records that the report carries the ledger does not hold."""
    with open_ledger(ledger) as store:
        try:
            number = missing_of(carried, store.path)
        except OSError as error:
            raise store.unreadable(error) from error
    if not number:
        return found
    words = f"the records in it: {counted(number, 'record')} of {LEDGER_ZIP} not in the ledger as it is now"
    return msgspec.structs.replace(found, unchecked=(*found.unchecked, words))


def _against_itself(file: _File, shape: dict[str, Any], basis: Basis) -> Verified:
    """Return what of a report follows from the rest of it, where the records are not at hand."""
    found = recounted(shape, basis, factors_in(basis), file.where)
    mismatches = found.mismatches
    if file.kind == "html":
        mismatches += tuple(misprinted(file.content.decode("utf-8"), shape, file.where))
    unread = (f"printed numbers of {counted(found.unread, 'figure')}",) if found.unread else ()
    return Verified(
        file=file.where,
        figures=found.figures,
        runs=0,
        mismatches=mismatches,
        rebuilt=None,
        versions={},
        unchecked=("bytes of the file", *unread, "intervals", "words, pictures and layout of the pages"),
        left=found.left,
    )


class _File(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    content: bytes
    where: str


def _compared(file: _File, shape: dict[str, Any], basis: Basis, given: Material) -> Verified:
    versions = _versions(basis, given, file.kind)
    same_maker = _said(basis, "carbonlens") == _said(given.basis, "carbonlens")
    mismatches = list(_differences(shape, given, same_words=same_maker))
    rebuilt, unchecked = None, ()
    if not versions:
        # What the file names as its maker decides none of its bytes but its own.
        as_made = msgspec.structs.replace(
            given, basis=msgspec.structs.replace(given.basis, made_with=basis.made_with)
        )
        rebuilt = "same" if rendered(as_made, file.kind) == file.content else "different"
    if rebuilt != "same":
        same_layout = same_maker and all(_said(basis, n) == _said(given.basis, n) for n in _LAID_OUT_BY)
        pages = _pages(file, given, same_layout=same_layout)
        mismatches += pages.mismatches
        words = () if same_maker else ("words of its data",)
        unchecked = ("bytes of the file", *words, *pages.unchecked)
    return Verified(
        file=file.where,
        figures=len(given.view.figures),
        runs=given.gathered.given.runs,
        mismatches=tuple(dict.fromkeys(mismatches)),
        rebuilt=rebuilt,
        versions=versions,
        unchecked=unchecked if rebuilt is None else (),
        from_ledger=True,
    )


def _shape(data: bytes) -> dict[str, Any] | None:
    """Return the data of a quarter's report; ``None`` where they are of another kind."""
    try:
        shape = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    return shape if isinstance(shape, dict) and shape.get("schema") == SCHEMA else None


def basis_in(shape: dict[str, Any], where: str) -> Basis:
    """Return what the data of a report say that it was computed from, beside a ledger.

    Args:
        shape: The data.
        where: The report, for errors.

    Raises:
        InputFileError: If they do not say so, or name a file where none may be.
    """
    try:
        basis = convert(shape.get("basis"), Basis, strict=False)
    except msgspec.ValidationError as error:
        raise InputFileError(
            f"lacks what it was computed from ({error})",
            where=where,
            mend=_AS_WRITTEN,
        ) from error
    odd = [n for n in basis.inventory if not _is_file_name(n)]
    if odd:
        raise InputFileError(
            f"names a file of its inventory {odd[0][:60]!r}",
            where=where,
            mend=_AS_WRITTEN,
        )
    return basis


def _is_file_name(name: str) -> bool:
    """Tell whether a name is that of a file in a folder, on any system."""
    plain = name.isprintable() and Path(name).name == name and not set(name) & {"\\", ":"}
    return plain and name not in ("", ".", "..") and len(name.encode("utf-8")) <= _LONGEST_NAME


def _look(basis: Basis, templates: str | Path | None, where: str) -> tuple[Look | None, NumberStyle | None]:
    """Return the templates to make it again with, and how its pages write numbers."""
    if templates is not None:
        return find_look(templates)
    said = basis.made_with.get("numbers")
    try:
        return None, None if said is None else convert(said, NumberStyle)
    except msgspec.ValidationError as error:
        raise InputFileError(
            f"says of its numbers what is no style ({error})",
            where=where,
            mend=_AS_WRITTEN,
        ) from error


def _again(
    file: _File,
    basis: Basis,
    ledger: str | Path,
    folder: Path,
    look: tuple[Look | None, NumberStyle | None],
) -> Material:
    """Return the report made again of the ledger, with the inventory and factors that it carries."""
    held = folder / "inventory"
    held.mkdir()
    write_inventory(basis, held, file.where)
    with one_opening(ledger):
        gathered = gather(
            basis.period,
            inventory=held,
            factors=factors_in(basis),
            ledger=ledger,
            now_us=basis.present_us,
        )
        given = material(gathered, look=look[0], numbers=look[1], left_out=basis.records_left_out)
        if file.kind != "pdf":
            return given
        # Of the same state of the ledger as the figures.
        return msgspec.structs.replace(given, taken=take(gathered, Wanted(records=False)))


def write_inventory(basis: Basis, folder: Path, where: str) -> None:
    """Write the files of the inventory that a report carries.

    Args:
        basis: Of the report.
        folder: Where to.
        where: The report, for errors.

    Raises:
        InputFileError: If one cannot be written.
        UnwritableError: If there is no room for it.
    """
    for name, text in basis.inventory.items():
        with writing(folder / name, where):
            (folder / name).write_bytes(text.encode("utf-8"))


def factors_in(basis: Basis) -> FactorSet:
    """Return the rows in force here with the user's own ones that a report carries.

    Args:
        basis: Of the report.
    """
    if not basis.factors:
        return bundled()
    places = tuple(f"row {n}" for n, _ in enumerate(basis.factors, 1))
    return with_own(bundled(), [Table(where="report", rows=basis.factors, places=places)])


def _differences(shape: dict[str, Any], given: Material, *, same_words: bool) -> Iterator[Mismatch]:
    """Yield what the data of the report say otherwise than what follows."""
    now = json.loads(msgspec.json.encode(shape_of(given)))
    said, found = shape.get("figures"), now["figures"]
    said = said if isinstance(said, dict) else {}
    for name in dict.fromkeys((*found, *said)):
        if said.get(name) != found.get(name):
            yield Mismatch(figure_id=name, said=_text(said.get(name)), computed=_text(found.get(name)))
    parts = [part for part in dict.fromkeys((*now, *shape)) if part not in _HELD_APART]
    for part in parts if same_words else ("example", "period"):
        if shape.get(part) != now.get(part):
            yield Mismatch(
                figure_id=part, said="other words or numbers", computed="see the report made again"
            )
    if not same_words:
        texts = [tuple(texts_of([one.get(part) for part in parts])) for one in (shape, now)]
        # Figures are compared above, and their numbers are no strangers.
        yield from strange_numbers(texts[0], (*texts[1], *texts_of(found)))
    if now["basis"]["factors_sha256"] != shape["basis"].get("factors_sha256"):
        yield Mismatch(
            figure_id="factors_sha256",
            said=str(shape["basis"].get("factors_sha256")),
            computed=str(now["basis"]["factors_sha256"]),
        )


def _text(figure: object) -> str:
    if not isinstance(figure, dict):
        return "nothing"
    return f"{figure.get('printed', '')} {figure.get('printed_interval', '')}".strip()


def _pages(file: _File, given: Material, *, same_layout: bool) -> Pages:
    """Return what the pages say that does not follow, and what could not be held against anything."""
    if file.kind == "html":
        return _html(file, given, same_layout=same_layout)
    return _pdf(file, given) if file.kind == "pdf" else Pages()


def _html(file: _File, given: Material, *, same_layout: bool) -> Pages:
    from carbonlens.render.check import check_document
    from carbonlens.render.page_text import page_text

    page = file.content.decode("utf-8")
    there, here = page_text(page), page_text(rendered(given, "html").decode("utf-8"))
    found: list[Mismatch] = []
    try:
        check_document(page, given.printed)
    except VerificationError as error:
        found.append(Mismatch(figure_id=error.where or "page", said=error.what, computed="see the figure"))
    for name in sorted(here.figure_ids - there.figure_ids):
        computed = given.printed.figures[name].text
        found.append(Mismatch(figure_id=name, said="not printed on the page", computed=computed))
    texts = compare_texts(there, here, same_layout=same_layout)
    return Pages(mismatches=(*found, *texts.mismatches), unchecked=texts.unchecked)


def _pdf(file: _File, given: Material) -> Pages:
    from carbonlens.render.attachments import text_of_pdf

    there = text_of_pdf(file.content, file.where)
    here = text_of_pdf(rendered(given, "pdf"), file.where)
    text = "".join(there.split())
    found = [
        Mismatch(figure_id=name, said="not printed in the PDF", computed=figure.form("index"))
        for name, figure in given.printed.figures.items()
        if "".join(figure.form("index").split()) not in text
    ]
    # Another layout may have another number of pages.
    texts = [PAGE_NUMBER.sub("", one) for one in (there, here)]
    found += strange_numbers(texts[:1], texts[1:], broken=True)
    return Pages(mismatches=tuple(found), unchecked=("words, pictures and layout of the pages",))


def _versions(then: Basis, given: Material, kind: str) -> dict[str, tuple[str | None, str | None]]:
    """Return what the bytes of this format depend on and is not the same here."""
    found = {}
    for name in DECIDING[kind]:
        one, other = _said(then, name), _said(given.basis, name)
        if one != other:
            found[name] = (one, other)
    if SYSTEM_FONTS in found and shipped_fonts_hold(texts_of(given.view)):
        del found[SYSTEM_FONTS]
    return found


def _said(basis: Basis, name: str) -> str | None:
    """Return a version that a report names, of carbonlens or of what it rests on."""
    libraries = basis.made_with.get("libraries")
    held = basis.made_with.get(name)
    if held is None and isinstance(libraries, dict):
        held = libraries.get(name)
    return None if held is None else str(held)
