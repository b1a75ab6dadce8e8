"""Use case: write the report of a comparison as HTML and PDF."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from carbonlens.domain.comparison import Comparison
from carbonlens.errors import UnwritableError, UsageError

SECTIONS = ("business-case", "engineering")
FORMATS = ("html", "pdf")


def report(
    comparison: Comparison,
    *,
    sections: Sequence[str] = SECTIONS,
    formats: Sequence[str] = FORMATS,
    out_dir: Path,
    name: str | None = None,
) -> dict[str, Path]:
    """Write a report and return its files by format.

    Nothing is written unless all formats could be made and checked.

    Args:
        comparison: What the report is about.
        sections: Any of ``business-case`` and ``engineering``.
        formats: Any of ``html`` and ``pdf``.
        out_dir: Folder to write to; made if need be.
        name: File name without suffix; that of the only section, else ``report``.

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
    from carbonlens.reporting.view import build_view

    view = build_view(comparison)
    contents: dict[str, bytes] = {}
    for format_ in dict.fromkeys(formats):
        contents[format_] = _renderers()[format_](view, sections)
    files = {format_: out_dir / f"{stem}.{format_}" for format_ in contents}
    for format_, file in files.items():
        try:
            write_atomically(file, contents[format_])
        except OSError as error:
            raise _unwritable(file, error) from error
    return files


def check_choice(sections: Sequence[str], formats: Sequence[str]) -> None:
    """Check that the sections and formats exist.

    Raises:
        UsageError: If one does not, or none is given.
    """
    _check("report", sections, SECTIONS)
    _check("format", formats, FORMATS)


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


def _renderers() -> dict[str, Callable[..., bytes]]:
    from carbonlens.render.html import render_html
    from carbonlens.render.pdf import render_pdf

    return {
        "html": lambda view, sections: render_html(view, sections).encode("utf-8"),
        "pdf": render_pdf,
    }


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
