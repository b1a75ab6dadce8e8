"""Use case: verify a quarter's report: make it again from a ledger and what the report carries.

The inventory and the user's factors are taken from the report, the records from the ledger. A
report alone is not verified: what it says of its own figures proves nothing.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from carbonlens.app.sustainability import gather
from carbonlens.app.sustainability_enclosed import Basis
from carbonlens.app.sustainability_report import SCHEMA, Material, material, rendered, shape_of
from carbonlens.app.verify import Verified
from carbonlens.app.verify_data import Mismatch
from carbonlens.app.verify_reading import data_of
from carbonlens.domain.decoding import convert
from carbonlens.errors import InputFileError, VerificationError
from carbonlens.factors.store import FactorSet, bundled, with_own
from carbonlens.factors.table_file import Table

_NOT_OURS = (".xlsx", ".md")


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
        mismatches = [*_differences(shape, given), *_pages(kind, content, given, str(report))]
        versions = _versions(basis, given.basis)
        rebuilt = None
        if not versions:
            rebuilt = "same" if rendered(given, kind) == content else "different"
    return Verified(
        file=str(report),
        figures=len(given.view.figures),
        runs=given.gathered.given.runs,
        mismatches=tuple(mismatches),
        rebuilt=rebuilt,
        versions=versions,
        unchecked=() if rebuilt else ("bytes of the file",),
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


def _differences(shape: dict[str, Any], given: Material) -> Iterator[Mismatch]:
    """Yield what the data of the report say otherwise than what follows."""
    now = json.loads(msgspec.json.encode(shape_of(given)))
    said, found = shape.get("figures"), now["figures"]
    said = said if isinstance(said, dict) else {}
    for name in dict.fromkeys((*found, *said)):
        if said.get(name) != found.get(name):
            yield Mismatch(figure_id=name, said=_text(said.get(name)), computed=_text(found.get(name)))
    for part in ("title", "subject", "label", "example", "sections"):
        if shape.get(part) != now[part]:
            yield Mismatch(
                figure_id=part, said="other words or numbers", computed="see the report made again"
            )
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


def _pages(kind: str, content: bytes, given: Material, where: str) -> Iterator[Mismatch]:
    """Yield numbers on the pages that are not those of the figures."""
    if kind == "html":
        from carbonlens.render.check import check_document

        try:
            check_document(content.decode("utf-8"), given.view)
        except VerificationError as error:
            yield Mismatch(figure_id=error.where or "page", said=error.what, computed="see the figure")
    elif kind == "pdf":
        from carbonlens.render.attachments import text_of_pdf

        text = "".join(text_of_pdf(content, where).split())
        for name, figure in given.view.figures.items():
            if "".join(figure.form("index").split()) not in text:
                yield Mismatch(figure_id=name, said="not printed in the PDF", computed=figure.form("index"))


def _versions(then: Basis, now: Basis) -> dict[str, tuple[str | None, str | None]]:
    names = dict.fromkeys((*then.made_with, *now.made_with))
    return {
        n: (str(then.made_with.get(n)), str(now.made_with.get(n)))
        for n in names
        if then.made_with.get(n) != now.made_with.get(n)
    }
