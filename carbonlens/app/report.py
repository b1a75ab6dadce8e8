"""Use case: write the report of a comparison in the formats asked for."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from carbonlens.domain.comparison import Comparison
from carbonlens.domain.evidence import Evidence
from carbonlens.domain.number_style import NumberStyle
from carbonlens.errors import UnwritableError, UsageError
from carbonlens.render.look import Look
from carbonlens.reporting.content import ReportView

if TYPE_CHECKING:
    from carbonlens.render.worker import Later, Limits, Progress

SECTIONS = ("business-case", "engineering")
QUARTERLY = "sustainability"
"""The report that is made of a ledger and no comparison: ``app.sustainability_report`` makes it."""
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
        look: The user's own templates, colours, fonts and logo; ours for ``None``.
        numbers: How pages write figures, money and days; data keep our way.
    """

    view: ReportView
    sections: tuple[str, ...]
    comparison: Comparison
    evidence: Evidence | None = None
    look: Look | None = None
    numbers: NumberStyle = NumberStyle()

    @property
    def printed(self) -> ReportView:
        """The view as pages print it."""
        from carbonlens.reporting.restyled import restyled

        return restyled(self.view, self.numbers)

    @property
    def made_us(self) -> int | None:
        """What the report is dated with: the end of its last run, since a clock would change the bytes."""
        ends = [r.end_us for r in self.evidence.runs if r.end_us is not None] if self.evidence else []
        return max(ends, default=None)


class Making(msgspec.Struct, frozen=True, kw_only=True):
    """How pages are made: in a process of their own, within limits.

    Attributes:
        limits: Time and memory a file may take; ``None`` for 300 s and 1024 MB.
        progress: Is told what is being done, and for how many seconds.
    """

    limits: Limits | None = None
    progress: Progress | None = None


def report(  # noqa: PLR0913  # optional and by name
    comparison: Comparison,
    *,
    sections: Sequence[str] = SECTIONS,
    formats: Sequence[str] = FORMATS,
    out_dir: Path,
    name: str | None = None,
    evidence: Evidence | None = None,
    templates: str | Path | None = None,
    making: Making = Making(),  # noqa: B008  # frozen
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
        templates: Folder of the user's own templates; that of ``[tool.carbonlens] templates`` in
            the nearest ``pyproject.toml`` when ``None``.
        making: Limits of making the pages, and who is told how it goes.

    Raises:
        UsageError: If a section, a format or the name is not usable.
        ConfigError: If the user's templates or theme are not usable.
        RenderError: If making a page took more time or memory than it may.
        UnwritableError: If the folder cannot be written; said before any work.
        MissingExtraError: If the ``report`` extra is not installed.
        VerificationError: If a printed number is not that of its figure.
    """
    check_choice(sections, formats)
    stem = name if name is not None else sections[0] if len(sections) == 1 else "report"
    if not stem or Path(stem).name != stem:
        raise UsageError(f"{stem!r} is not a file name", mend="give a name without folders and suffix")
    ensure_writable(out_dir)
    start_rendering(formats)
    from carbonlens.app.report_look import find_look

    look, numbers = find_look(templates)
    given = material(comparison, sections, evidence, look=look, numbers=numbers)
    contents = {format_: rendered(given, format_, making) for format_ in dict.fromkeys(formats)}
    return save(contents, out_dir, stem)


def save(contents: Mapping[str, bytes], out_dir: Path, stem: str) -> dict[str, Path]:
    """Write files and return them by format.

    Args:
        contents: By format.
        out_dir: Folder to write to; made if need be.
        stem: File name without suffix.

    Raises:
        UnwritableError: If one cannot be written.
    """
    from carbonlens.ledger.store import write_atomically

    files = {format_: out_dir / f"{stem}.{format_}" for format_ in contents}
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(out_dir, error) from error
    for format_, file in files.items():
        try:
            write_atomically(file, contents[format_])
        except OSError as error:
            raise unwritable(file, error) from error
    return files


def material(
    comparison: Comparison,
    sections: Sequence[str],
    evidence: Evidence | None = None,
    *,
    look: Look | None = None,
    numbers: NumberStyle | None = None,
) -> Material:
    """Return what the renderers take.

    Args:
        comparison: What the report is about.
        sections: Of ``business-case`` and ``engineering``.
        evidence: What the comparison was computed from.
        look: The user's own templates, colours, fonts and logo.
        numbers: How pages write figures; our way for ``None``.
    """
    from carbonlens.app.business import business_result
    from carbonlens.render.environment import made_with
    from carbonlens.reporting.view import build_view

    if evidence is not None:
        made = msgspec.structs.replace(
            made_with(), own_templates_sha256=look.sha256 if look else None, numbers=numbers
        )
        evidence = msgspec.structs.replace(evidence, made_with=made)
    business = None
    if evidence is not None and evidence.business is not None:
        business = business_result(comparison, evidence.business)
    return Material(
        view=build_view(comparison, business),
        sections=tuple(s for s in SECTIONS if s in sections),
        comparison=comparison,
        evidence=evidence,
        look=look,
        numbers=numbers or NumberStyle(),
    )


def rendered(given: Material, format_: str, making: Making = Making()) -> bytes:  # noqa: B008  # frozen
    """Return a report in one format, the same bytes every time.

    Args:
        given: What it is made of.
        format_: One of ``KNOWN_FORMATS``.
        making: Limits of making pages, and who is told how it goes.

    Raises:
        ConfigError: If a template of the user's cannot be rendered.
        RenderError: If making the pages took more time or memory than it may.
        MissingExtraError: If the ``report`` extra is not installed.
        VerificationError: If a printed number is not that of its figure.
    """
    return _RENDERERS[format_](given, making)


def _html(given: Material, making: Making) -> bytes:
    data = None if given.evidence is None else _shape(given)
    return _by_worker("html:render_html", given, making, data=data)


def _pdf(given: Material, making: Making) -> bytes:
    from carbonlens.app.report_enclosed import enclosed
    from carbonlens.render.worker import Later

    # The files inside are made here while the pages are rendered there.
    later = Later(name="enclosed", compute=lambda: enclosed(_shape(given), given.evidence))
    return _by_worker("pdf:render_pdf", given, making, later=later, made_us=given.made_us)


def _by_worker(
    function: str, given: Material, making: Making, later: Later | None = None, **further: object
) -> bytes:
    """Render the pages in the process that is kept for it."""
    from carbonlens.render import worker

    return worker.render(
        f"carbonlens.render.{function}",
        given.printed,
        given.sections,
        look=given.look,
        limits=making.limits or worker.Limits(),
        progress=making.progress,
        later=later,
        **further,
    )


def _xlsx(given: Material, _: Making) -> bytes:
    from carbonlens.render.xlsx import render_xlsx
    from carbonlens.reporting.document import document

    doc = document(given.view, given.sections)
    return render_xlsx(doc, given.view.figures, made_us=given.made_us)


def _markdown(given: Material, _: Making) -> bytes:
    from carbonlens.render.markdown import render_markdown
    from carbonlens.reporting.document import document

    return render_markdown(document(given.printed, given.sections)).encode("utf-8")


def _json(given: Material, _: Making) -> bytes:
    return msgspec.json.format(_shape(given), indent=1) + b"\n"


def _shape(given: Material) -> bytes:
    from carbonlens.app.report_enclosed import travelling
    from carbonlens.reporting.report_json import report_json

    held = None if given.evidence is None else travelling(given.evidence)
    shape = report_json(given.view, given.sections, comparison=given.comparison, evidence=held)
    return msgspec.json.encode(shape)


_RENDERERS: dict[str, Callable[[Material, Making], bytes]] = {
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
    if QUARTERLY in sections:
        # The command has made it before: this is asked of a comparison.
        raise UsageError(
            f"{QUARTERLY!r} is the report of a quarter, and no part of a comparison's",
            mend="make it of the ledger: carbonlens report sustainability, or report_sustainability()",
        )
    _check("report", sections, SECTIONS, (*SECTIONS, QUARTERLY))
    _check("format", formats, KNOWN_FORMATS)


def ensure_writable(out_dir: Path) -> None:
    """Check that the output folder can be made and written, and leave nothing of it behind.

    What is refused afterwards has no report, and so no empty folder: ``save`` makes it.

    Raises:
        UnwritableError: If it cannot.
    """
    lacking = [place for place in (out_dir, *out_dir.parents) if not place.exists()]
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=out_dir):
            pass
    except OSError as error:
        raise unwritable(out_dir, error) from error
    finally:
        for place in lacking:
            # One that another process has filled meanwhile stays.
            with contextlib.suppress(OSError):
                place.rmdir()


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


def start_rendering(formats: Sequence[str] = FORMATS) -> None:
    """Check that reports can be made here, and begin to load what makes pages, beside other work.

    Args:
        formats: What is to be made.

    Raises:
        MissingExtraError: If a package of the ``report`` extra is not installed.
        MissingLibraryError: If a system library for PDF is not installed.
        RenderError: If no process can be started.
    """
    ensure_renderable(formats)
    if {"html", "pdf"}.intersection(formats):
        from carbonlens.render import worker

        worker.shared()


def _check(what: str, given: Sequence[str], known: Sequence[str], named: Sequence[str] = ()) -> None:
    unknown = [g for g in given if g not in known]
    if unknown or not given:
        wrong = repr(unknown[0]) if unknown else "none given"
        raise UsageError(f"no such {what}: {wrong}", mend=f"known: {', '.join(named or known)}")


def unwritable(place: Path, error: OSError) -> UnwritableError:
    """Return the error of a place that cannot be written."""
    return UnwritableError(
        f"cannot be written ({error.strerror or error})",
        where=str(place),
        mend="give a folder you may write to",
    )
