"""Use case: write the report of a comparison in the formats asked for."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from carbonlens.domain.comparison import Comparison
from carbonlens.domain.evidence import Evidence
from carbonlens.errors import UnwritableError, UsageError
from carbonlens.reporting.content import ReportView

SECTIONS = ("business-case", "engineering")
FORMATS = ("html", "pdf")
"""What is made where nobody says."""

KNOWN_FORMATS = ("html", "pdf", "xlsx", "md", "json")


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """All that the renderers of one report take.

    Attributes:
        view: The report.
        sections: Which sections, in the report's own order.
        comparison: What it is about.
        evidence: What that was computed from, with what the report is made with; ``None`` where
            a caller gave a comparison alone: such a report cannot be verified.
    """

    view: ReportView
    sections: tuple[str, ...]
    comparison: Comparison
    evidence: Evidence | None = None

    @property
    def made_us(self) -> int | None:
        """What the report is dated with: the end of its last run, since a clock would change the bytes."""
        ends = [r.end_us for r in self.evidence.runs if r.end_us is not None] if self.evidence else []
        return max(ends, default=None)


def report(
    comparison: Comparison,
    *,
    sections: Sequence[str] = SECTIONS,
    formats: Sequence[str] = FORMATS,
    out_dir: Path,
    name: str | None = None,
    evidence: Evidence | None = None,
) -> dict[str, Path]:
    """Write a report and return its files by format.

    Nothing is written unless all formats could be made and checked.

    Args:
        comparison: What the report is about.
        sections: Any of ``business-case`` and ``engineering``.
        formats: Any of ``html``, ``pdf``, ``xlsx``, ``md`` and ``json``.
        out_dir: Folder to write to; made if need be.
        name: File name without suffix; that of the only section, else ``report``.
        evidence: What the comparison was computed from; the report carries it, to be verified by.

    Raises:
        UsageError: If a section, a format or the name is not usable.
        UnwritableError: If the folder cannot be written; said before any work.
        MissingExtraError: If the ``report`` extra is not installed.
        VerificationError: If a printed number is not that of its figure.
    """
    check_choice(sections, formats)
    stem = name if name is not None else sections[0] if len(sections) == 1 else "report"
    if not stem or Path(stem).name != stem:
        raise UsageError(f"{stem!r} is not a file name", mend="give a name without folders and suffix")
    ensure_writable(out_dir)
    ensure_renderable(formats)
    from carbonlens.ledger.store import write_atomically

    given = material(comparison, sections, evidence)
    contents = {format_: rendered(given, format_) for format_ in dict.fromkeys(formats)}
    files = {format_: out_dir / f"{stem}.{format_}" for format_ in contents}
    for format_, file in files.items():
        try:
            write_atomically(file, contents[format_])
        except OSError as error:
            raise _unwritable(file, error) from error
    return files


def material(comparison: Comparison, sections: Sequence[str], evidence: Evidence | None = None) -> Material:
    """Return what the renderers take.

    Args:
        comparison: What the report is about.
        sections: Of ``business-case`` and ``engineering``.
        evidence: What the comparison was computed from.
    """
    from carbonlens.app.business import business_result
    from carbonlens.render.environment import made_with
    from carbonlens.reporting.view import build_view

    if evidence is not None:
        evidence = msgspec.structs.replace(evidence, made_with=made_with())
    business = None
    if evidence is not None and evidence.business is not None:
        business = business_result(comparison, evidence.business)
    return Material(
        view=build_view(comparison, business),
        sections=tuple(s for s in SECTIONS if s in sections),
        comparison=comparison,
        evidence=evidence,
    )


def rendered(given: Material, format_: str) -> bytes:
    """Return a report in one format, the same bytes every time.

    Args:
        given: What it is made of.
        format_: One of ``KNOWN_FORMATS``.

    Raises:
        MissingExtraError: If the ``report`` extra is not installed.
        VerificationError: If a printed number is not that of its figure.
    """
    return _RENDERERS[format_](given)


def _html(given: Material) -> bytes:
    from carbonlens.render.html import render_html

    data = None if given.evidence is None else _shape(given)
    return render_html(given.view, given.sections, data=data).encode("utf-8")


def _pdf(given: Material) -> bytes:
    from carbonlens.app.report_enclosed import enclosed
    from carbonlens.render.pdf import render_pdf

    files = enclosed(_shape(given), given.evidence)
    return render_pdf(given.view, given.sections, enclosed=files, made_us=given.made_us)


def _xlsx(given: Material) -> bytes:
    from carbonlens.render.xlsx import render_xlsx
    from carbonlens.reporting.document import document

    doc = document(given.view, given.sections)
    return render_xlsx(doc, given.view.figures, made_us=given.made_us)


def _markdown(given: Material) -> bytes:
    from carbonlens.render.markdown import render_markdown
    from carbonlens.reporting.document import document

    return render_markdown(document(given.view, given.sections)).encode("utf-8")


def _json(given: Material) -> bytes:
    return msgspec.json.format(_shape(given), indent=1) + b"\n"


def _shape(given: Material) -> bytes:
    from carbonlens.app.report_enclosed import MOST_RUNS
    from carbonlens.reporting.report_json import report_json

    held = given.evidence
    if held is not None and len(held.runs) > MOST_RUNS:
        held = msgspec.structs.replace(held, runs=(), outcomes={}, runs_left_out=len(held.runs))
    shape = report_json(given.view, given.sections, comparison=given.comparison, evidence=held)
    return msgspec.json.encode(shape)


_RENDERERS: dict[str, Callable[[Material], bytes]] = {
    "html": _html,
    "pdf": _pdf,
    "xlsx": _xlsx,
    "md": _markdown,
    "json": _json,
}


def check_choice(sections: Sequence[str], formats: Sequence[str]) -> None:
    """Check that the sections and formats exist.

    Raises:
        UsageError: If one does not, or none is given.
    """
    _check("report", sections, SECTIONS)
    _check("format", formats, KNOWN_FORMATS)


def ensure_writable(out_dir: Path) -> None:
    """Make the output folder if need be and check that it can be written.

    Raises:
        UnwritableError: If it cannot.
    """
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=out_dir):
            pass
    except OSError as error:
        raise _unwritable(out_dir, error) from error


def ensure_renderable(formats: Sequence[str] = FORMATS) -> None:
    """Check that reports can be made here; costs next to nothing.

    Args:
        formats: What is to be made.

    Raises:
        MissingExtraError: If a package of the ``report`` extra is not installed.
        MissingLibraryError: If a system library for PDF is not installed.
    """
    from carbonlens.render import environment

    environment.ensure_renderable(formats)


def _check(what: str, given: Sequence[str], known: Sequence[str]) -> None:
    unknown = [g for g in given if g not in known]
    if unknown or not given:
        wrong = repr(unknown[0]) if unknown else "none given"
        raise UsageError(f"no such {what}: {wrong}", mend=f"known: {', '.join(known)}")


def _unwritable(place: Path, error: OSError) -> UnwritableError:
    return UnwritableError(
        f"cannot be written ({error.strerror or error})",
        where=str(place),
        mend="give a folder you may write to",
    )
