"""Use case: verify a quarter's report: make it again from a ledger and what the report carries.

The inventory and the user's factors are taken from the report, the records from the ledger. A
report alone is not verified: what it says of its own figures proves nothing.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from carbonlens.app.sustainability import gather
from carbonlens.app.sustainability_enclosed import Basis
from carbonlens.app.sustainability_report import SCHEMA, Material, material, rendered, shape_of
from carbonlens.app.verify import Verified
from carbonlens.app.verify_data import Mismatch
from carbonlens.app.verify_pages import PAGE_NUMBER, Pages, compare_texts, strange_numbers
from carbonlens.app.verify_reading import data_of
from carbonlens.domain.decoding import convert
from carbonlens.errors import InputFileError, VerificationError
from carbonlens.factors.store import FactorSet, bundled, with_own
from carbonlens.factors.table_file import Table
from carbonlens.render.versions import DECIDING, SYSTEM_FONTS, shipped_fonts_hold, texts_of

_NOT_OURS = (".xlsx", ".md")
_LAID_OUT_BY: Final = ("templates_sha256", "Jinja2", "MarkupSafe")


def verify_sustainability(report: Path, ledger: str | Path | None) -> Verified | None:
    """Return what came of verifying a quarter's report; ``None`` where the file is none.

    Args:
        report: A ``.json``, ``.html`` or ``.pdf``.
        ledger: The ledger that it is of.

    Raises:
        InputFileError: If it cannot be read, or no ledger is given.
        SelectionError: If the ledger has nothing of its quarter.
        MissingExtraError: If the ``analysis`` or ``report`` extra is not installed.
    """
    if report.suffix.lower() in _NOT_OURS:
        return None
    kind, content, data = data_of(report)
    shape = _shape(data)
    if shape is None:
        return None
    if ledger is None:
        raise InputFileError(
            "is the report of a quarter, and cannot be verified by itself: it follows from the ledger",
            where=str(report),
            mend="verify it against the ledger: --ledger DIR",
        )
    basis = _basis(shape, str(report))
    with tempfile.TemporaryDirectory() as name:
        given = _again(basis, ledger, Path(name))
        return _compared(_File(kind=kind, content=content, where=str(report)), shape, basis, given)


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


def _basis(shape: dict[str, Any], where: str) -> Basis:
    try:
        basis = convert(shape.get("basis"), Basis, strict=False)
    except msgspec.ValidationError as error:
        raise InputFileError(
            f"lacks what it was computed from ({error})",
            where=where,
            mend="take the report as carbonlens wrote it",
        ) from error
    odd = [n for n in basis.inventory if Path(n).name != n or n in ("", ".", "..")]
    if odd:
        raise InputFileError(
            f"names a file of its inventory {odd[0]!r}",
            where=where,
            mend="take the report as carbonlens wrote it",
        )
    return basis


def _again(basis: Basis, ledger: str | Path, folder: Path) -> Material:
    """Return the report made again of the ledger, with the inventory and factors that it carries."""
    for name, text in basis.inventory.items():
        (folder / name).write_bytes(text.encode("utf-8"))
    gathered = gather(
        basis.period,
        inventory=folder,
        factors=_factors(basis),
        ledger=ledger,
        now_us=basis.present_us,
    )
    return material(gathered)


def _factors(basis: Basis) -> FactorSet:
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
    parts = [part for part in dict.fromkeys((*now, *shape)) if part not in ("figures", "basis")]
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
        check_document(page, given.view)
    except VerificationError as error:
        found.append(Mismatch(figure_id=error.where or "page", said=error.what, computed="see the figure"))
    for name in sorted(here.figure_ids - there.figure_ids):
        computed = given.view.figures[name].text
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
        for name, figure in given.view.figures.items()
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
