"""Use case: verify a report: compute it again from what it carries, and compare every figure.

Two things are held against each other: what the file says of its figures (its data, and the
numbers printed on its pages), and what follows from its runs, factors and study by this
carbonlens. Where the same versions are installed the file is made again, byte for byte.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.evidence import Evidence, MadeWith, sha256
from carbonlens.errors import InputFileError, UsageError

SCHEMA: Final = "carbonlens/verify/1"
_RELATIVE: Final = 1e-9
"""Sums of floats may differ in their last digits between machines."""


class Mismatch(msgspec.Struct, frozen=True, kw_only=True):
    """A figure that is not what follows from the evidence.

    Attributes:
        figure_id: Its id, or the part of the file it is about.
        said: What the file says.
        computed: What follows.
    """

    figure_id: str
    said: str
    computed: str


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """What came of verifying a report.

    Attributes:
        file: The report.
        figures: How many figures were compared.
        runs: How many runs they rest on.
        mismatches: Figures that differ.
        rebuilt: ``same`` or ``different`` bytes; ``None`` where other versions are installed here.
        versions: What the report was made with and what is installed, by name, where they differ.
        from_ledger: Whether the runs were taken from a ledger rather than from the report.
    """

    file: str
    figures: int
    runs: int
    mismatches: tuple[Mismatch, ...]
    rebuilt: str | None
    versions: dict[str, tuple[str | None, str | None]]
    from_ledger: bool

    @property
    def holds(self) -> bool:
        """Whether the report is what follows from its evidence."""
        return not self.mismatches and self.rebuilt != "different"


def verify(report: Path, *, ledger: str | Path | None = None) -> Verified:
    """Compute a report again and compare.

    Args:
        report: A ``.json``, ``.html`` or ``.pdf`` that carbonlens wrote.
        ledger: Take the runs from this ledger instead of from the report.

    Raises:
        InputFileError: If it cannot be read, or carries nothing to verify it by.
        UsageError: If it is of a format that carries nothing.
        SelectionError: If the ledger has none of its runs.
        MissingExtraError: If the ``analysis`` or ``report`` extra is not installed.
    """
    from carbonlens.app.compare import computed, require_analysis
    from carbonlens.app.report import material, rendered

    require_analysis()
    kind, content, data = _read(report)
    shape, evidence = _decoded(data, str(report))
    if evidence.runs_left_out and ledger is None:
        raise InputFileError(
            f"rests on {counted(evidence.runs_left_out, 'run')}, too many to travel with it",
            where=str(report),
            mend="verify it against the ledger: --ledger",
        )
    used = evidence if ledger is None else _of_ledger(evidence, ledger)
    sections = tuple(str(s["name"]) for s in shape["sections"])
    given = material(computed(used), sections, used)
    versions = _differing(evidence.made_with, given.evidence.made_with if given.evidence else None)
    rebuilt = None
    if not versions and ledger is None:
        rebuilt = "same" if rendered(given, kind) == content else "different"
    mismatches = [*_hash(shape, evidence), *_figures(shape, given.view.figures)]
    if rebuilt != "same":
        mismatches += _printed(kind, content, given)
    return Verified(
        file=str(report),
        figures=len(given.view.figures),
        runs=len(used.runs),
        mismatches=tuple(mismatches),
        rebuilt=rebuilt,
        versions=versions,
        from_ledger=ledger is not None,
    )


def _read(report: Path) -> tuple[str, bytes, bytes]:
    """Return a report's format, its bytes and the JSON inside."""
    from carbonlens.render.attachments import REPORT_JSON, of_page, of_pdf

    kind = report.suffix.lower().removeprefix(".")
    if kind in ("xlsx", "md"):
        raise UsageError(
            f"a .{kind} carries nothing to verify it by",
            where=str(report),
            mend="verify the PDF, HTML or JSON of the same report",
        )
    try:
        content = report.read_bytes()
    except OSError as error:
        raise InputFileError(
            f"cannot be read ({error.strerror or error})", where=str(report), mend="give a report file"
        ) from error
    if content.startswith(b"%PDF-"):
        return "pdf", content, of_pdf(content, str(report))[REPORT_JSON]
    if content.lstrip()[:1] == b"{":
        return "json", content, content
    try:
        page = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputFileError(
            "is neither PDF, HTML nor JSON", where=str(report), mend="give a report that carbonlens wrote"
        ) from error
    return "html", content, of_page(page, str(report))


def _decoded(data: bytes, where: str) -> tuple[dict[str, Any], Evidence]:
    from carbonlens.domain import evidence as evidence_of
    from carbonlens.reporting.report_json import SCHEMA as REPORT_SCHEMA

    try:
        shape = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _not_a_report(where, "is no JSON") from error
    if not isinstance(shape, dict) or shape.get("schema") != REPORT_SCHEMA:
        raise _not_a_report(where, "is no report")
    named = shape.get("sections")
    sections = named if isinstance(named, list) else []
    is_whole = bool(sections) and all(
        isinstance(s, dict) and isinstance(s.get("name"), str) for s in sections
    )
    if not is_whole or not isinstance(shape.get("figures"), dict):
        raise _not_a_report(where, "lacks its sections or figures")
    if shape.get("evidence") is None:
        raise InputFileError(
            "does not carry what it was computed from",
            where=where,
            mend="write it with `carbonlens report`, which encloses its runs and factors",
        )
    return shape, evidence_of.decode(msgspec.json.encode(shape["evidence"]), where)


def _not_a_report(where: str, what: str) -> InputFileError:
    return InputFileError(what, where=where, mend="give a report that carbonlens wrote")


def _of_ledger(evidence: Evidence, ledger: str | Path) -> Evidence:
    """Return the evidence with the runs that the ledger has now under the same study and factors."""
    from carbonlens.app.compare import prepare

    now = prepare(evidence.study, ledger=ledger, vector=evidence.vector)
    return msgspec.structs.replace(
        now,
        study=evidence.study,
        vector=evidence.vector,
        notes=evidence.notes,
        business=evidence.business,
    )


def _hash(shape: dict[str, Any], evidence: Evidence) -> Iterator[Mismatch]:
    said = shape.get("evidence_sha256")
    if said != sha256(evidence):
        yield Mismatch(figure_id="evidence_sha256", said=str(said), computed=sha256(evidence))


def _figures(shape: dict[str, Any], computed: Any) -> Iterator[Mismatch]:  # noqa: ANN401  # a view's figures
    from carbonlens.reporting.report_json import figures_json

    said, found = shape["figures"], figures_json(computed)
    for name in [*found, *(n for n in said if n not in found)]:
        before, now = said.get(name), found.get(name)
        if not isinstance(before, dict) or now is None or not _agree(before, now):
            yield Mismatch(figure_id=name, said=_text(before), computed=_text(now))


def _agree(before: dict[str, Any], now: dict[str, Any]) -> bool:
    if before.keys() != now.keys():
        return False
    return all(_same(before[key], value) for key, value in now.items())


def _same(one: object, other: object) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=_RELATIVE, abs_tol=0.0)
    return one == other


def _text(figure: object) -> str:
    if not isinstance(figure, dict):
        return "nothing"
    printed = f"{figure.get('printed', '')} {figure.get('printed_interval', '')}".strip()
    return f"{printed} (value {figure.get('value')!r})"


def _printed(kind: str, content: bytes, given: Any) -> Iterator[Mismatch]:  # noqa: ANN401  # app.report.Material
    """Hold the numbers on the pages against the figures, for files that have pages."""
    if kind == "html":
        from carbonlens.errors import VerificationError
        from carbonlens.render.check import check_page

        try:
            check_page(content.decode("utf-8"), given.view)
        except VerificationError as error:
            yield Mismatch(figure_id=error.where or "page", said=error.what, computed="see the figure")
    elif kind == "pdf":
        from carbonlens.render.attachments import text_of_pdf
        from carbonlens.reporting.view import figure_ids

        text = "".join(text_of_pdf(content).split())
        has_index = "engineering" in given.sections
        names = given.view.figures if has_index else figure_ids(given.view.business_case)
        for name in dict.fromkeys(names):
            figure = given.view.figures[name]
            forms = (figure.form("index"),) if has_index else (figure.text, figure.number)
            if not any("".join(form.split()) in text for form in forms):
                yield Mismatch(figure_id=name, said="not printed in the PDF", computed=forms[0])


def _differing(then: MadeWith | None, now: MadeWith | None) -> dict[str, tuple[str | None, str | None]]:
    if then is None or now is None:
        return {"made_with": (None, None)}
    found: dict[str, tuple[str | None, str | None]] = {}
    for name in ("carbonlens", "templates_sha256", "fonts_sha256"):
        found[name] = (getattr(then, name), getattr(now, name))
    for name in dict.fromkeys((*then.libraries, *now.libraries)):
        found[name] = (then.libraries.get(name), now.libraries.get(name))
    return {name: pair for name, pair in found.items() if pair[0] != pair[1]}
