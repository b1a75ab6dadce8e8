"""Use case: write the sustainability report of a quarter in the formats asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.app.report import (
    FORMATS,
    KNOWN_FORMATS,
    Making,
    ensure_writable,
    save,
    start_rendering,
)
from carbonlens.app.report_look import find_look
from carbonlens.app.sustainability import Gathered
from carbonlens.app.sustainability_carried import LeftOut, Packed
from carbonlens.app.sustainability_enclosed import (
    Basis,
    Taken,
    Wanted,
    basis_of,
    carried_in_data,
    enclosed,
    take,
    words_of,
)
from carbonlens.app.sustainability_taken import gathered_with_files
from carbonlens.domain.counting import counted
from carbonlens.domain.number_style import NumberStyle
from carbonlens.errors import UsageError
from carbonlens.render.look import Look
from carbonlens.reporting.document_view import DocumentView
from carbonlens.reporting.report_json import document_json
from carbonlens.reporting.sustainability import build_sustainability

if TYPE_CHECKING:
    from carbonlens.render.attachments import Enclosed
    from carbonlens.render.worker import Later

SCHEMA: Final = "carbonlens/sustainability-report/1"


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """All that the renderers of one report take.

    Attributes:
        look: The user's own templates, colours, fonts and logo.
        numbers: How pages write figures; data stay as they are.
        records: The ledger's records that its files carry, where they are those of another file.
        taken: What its files carry of the ledger; taken of this for each when ``None``.
        wanted: What is taken then.
    """

    view: DocumentView
    gathered: Gathered
    basis: Basis
    look: Look | None = None
    numbers: NumberStyle = NumberStyle()
    records: bytes | None = None
    taken: Taken | None = None
    wanted: Wanted = Wanted()

    @property
    def carried(self) -> Taken:
        """What a PDF of it carries of the ledger."""
        if self.records is None:
            return self.taken or take(self.gathered, self.wanted)
        wanted = msgspec.structs.replace(self.wanted, records=False)
        return msgspec.structs.replace(self.taken or take(self.gathered, wanted), records=self.packed)

    @property
    def packed(self) -> Packed:
        """The ledger's records that its files carry."""
        return self.carried.records if self.records is None else Packed(content=self.records)

    @property
    def printed(self) -> DocumentView:
        """The view as pages write it."""
        from carbonlens.reporting.restyled import restyled

        return restyled(self.view, self.numbers)


def report_sustainability(  # noqa: PLR0913 - each is an option of the command line
    period: str | None = None,
    *,
    formats: Sequence[str] = FORMATS,
    out_dir: Path,
    inventory: str | Path | None = None,
    factors: str | Path | None = None,
    ledger: str | Path | None = None,
    now_us: int | None = None,
    templates: str | Path | None = None,
    with_records: bool = True,
    with_host_names: bool = False,
    tell: Callable[[str], None] | None = None,
    making: Making = Making(),  # noqa: B008  # frozen
) -> dict[str, Path]:
    """Write the report of a quarter and return its files by format.

    Nothing is written unless all formats could be made and checked.

    Args:
        period: A fiscal quarter, ``2026Q3``; the last one with runs when ``None``.
        formats: Any of ``html``, ``pdf``, ``xlsx``, ``md`` and ``json``.
        out_dir: Folder to write to; made if need be.
        inventory: The inventory folder; found as the command line finds it when ``None``.
        factors: The user's own factors, found likewise.
        ledger: The ledger's folder; found likewise.
        now_us: The present, UTC microseconds; by the clock when ``None``.
        templates: The user's own templates, as of ``report``.
        with_records: Whether its files carry the whole ledger's records, where these are few enough.
        with_host_names: Whether they do so though records name hosts in plain letters.
        tell: Is told in words what stays behind and what to do about it.
        making: Limits of making the pages, and who is told how it goes.

    Raises:
        UsageError: If the period is no quarter, a format is not known, or records are to travel with
            the names of hosts and not to travel.
        ConfigError: If templates or theme cannot be used.
        SelectionError: If the ledger is not there, or holds nothing of the quarter.
        RecordError: If the ledger cannot be read.
        UnwritableError: If the folder cannot be written; said before any work.
        MissingExtraError: If the ``analysis`` or ``report`` extra is not installed.
        VerificationError: If a printed number is not that of its figure.
    """
    check_formats(formats)
    check_carried(with_records=with_records, with_host_names=with_host_names)
    ensure_writable(out_dir)
    look, numbers = find_look(templates)
    start_rendering(formats)
    gathered, taken = gathered_with_files(
        period,
        inventory=inventory,
        factors=factors,
        ledger=ledger,
        now_us=now_us,
        wanted=_wanted(formats, with_records=with_records, host_names=with_host_names),
    )
    if taken.records.hosts and tell is not None:
        tell(_hosts_said(taken.records.hosts))
    given = material(gathered, look=look, numbers=numbers, left_out=taken.records.why)
    given = msgspec.structs.replace(given, taken=taken)
    contents = {format_: rendered(given, format_, making) for format_ in dict.fromkeys(formats)}
    return save(contents, out_dir, f"sustainability-{given.basis.period}")


def _wanted(formats: Sequence[str], *, with_records: bool, host_names: bool) -> Wanted:
    """Return what the formats that are asked for carry of a ledger."""
    carry_records = not {"pdf", "html", "json"}.isdisjoint(formats)
    return Wanted(files="pdf" in formats, records=with_records and carry_records, host_names=host_names)


def _hosts_said(hosts: int) -> str:
    return (
        f"the ledger's records name {counted(hosts, 'host')} in plain letters, so they stay behind: verify "
        "the report with --ledger, or write it with --with-host-names"
    )


def check_carried(*, with_records: bool, with_host_names: bool) -> None:
    """Check that what is to travel with a report does not contradict itself.

    Raises:
        UsageError: If names of hosts may travel in records that do not.
    """
    if with_host_names and not with_records:
        raise UsageError(
            "records that are left out name no hosts: --with-host-names has no effect with --without-records",
            where="--with-host-names",
            mend="leave one of them out",
        )


def check_formats(formats: Sequence[str]) -> None:
    """Check that the formats exist.

    Raises:
        UsageError: If one does not, or none is given.
    """
    wrong = [f for f in formats if f not in KNOWN_FORMATS]
    if wrong or not formats:
        said = repr(wrong[0]) if wrong else "none given"
        raise UsageError(f"no such format: {said}", mend=f"known: {', '.join(KNOWN_FORMATS)}")


def material(
    gathered: Gathered,
    *,
    look: Look | None = None,
    numbers: NumberStyle | None = None,
    left_out: LeftOut = "",
) -> Material:
    """Return what the renderers take.

    Args:
        gathered: What the report is made of.
        look: The user's own templates, colours, fonts and logo.
        numbers: How pages write figures; our way for ``None``.
        left_out: Why no records travel with it, where they are few enough.
    """
    attached = words_of(gathered.given.runs, left_out)
    view = build_sustainability(msgspec.structs.replace(gathered.given, attached=attached))
    return Material(
        view=view,
        gathered=gathered,
        basis=basis_of(gathered, look, numbers, left_out),
        look=look,
        numbers=numbers or NumberStyle(),
    )


def rendered(given: Material, format_: str, making: Making = Making()) -> bytes:  # noqa: B008  # frozen
    """Return the report in one format, the same bytes every time.

    Args:
        given: What it is made of.
        format_: One of ``KNOWN_FORMATS``.
        making: Limits of making the pages, and who is told how it goes.

    Raises:
        ConfigError: If a template of the user's cannot be rendered.
        RenderError: If making the pages took more time or memory than it may.
        MissingExtraError: If the ``report`` extra is not installed.
        VerificationError: If a printed number is not that of its figure.
    """
    from carbonlens.render.markdown import render_markdown
    from carbonlens.render.xlsx import render_xlsx

    if format_ == "xlsx":
        made_us = given.gathered.source.now_us
        return render_xlsx(given.view.document, given.view.figures, made_us=made_us)
    if format_ == "md":
        return render_markdown(given.printed.document).encode("utf-8")
    if format_ == "pdf":
        return _pdf(given, making)
    shape = msgspec.json.encode(carrying_shape_of(given))
    if format_ == "json":
        return msgspec.json.format(shape, indent=1) + b"\n"
    return _by_worker("render_document_html", given, making, data=shape)


def _pdf(given: Material, making: Making) -> bytes:
    """Render the pages while the files inside them are made here; the records are one of them."""
    from carbonlens.render.worker import Later

    def files() -> tuple[Enclosed, ...]:
        return enclosed(msgspec.json.encode(shape_of(given)), given.gathered, given.carried)

    later = Later(name="enclosed", compute=files)
    return _by_worker("render_document_pdf", given, making, later=later, made_us=given.gathered.source.now_us)


def shape_of(given: Material) -> dict[str, Any]:
    """Return the report as plain values.

    Args:
        given: What it is made of.
    """
    return {
        "schema": SCHEMA,
        "period": given.basis.period,
        "label": given.gathered.given.label,
        **document_json(given.view.document, given.view.figures),
        "basis": msgspec.to_builtins(given.basis, str_keys=True),
    }


def carrying_shape_of(given: Material) -> dict[str, Any]:
    """Return the same with the ledger's records in it, as pages and JSON have it.

    Args:
        given: What it is made of.
    """
    return {**shape_of(given), "ledger_zip": carried_in_data(given.packed)}


def _by_worker(
    function: str, given: Material, making: Making, later: Later | None = None, **further: object
) -> bytes:
    from carbonlens.render import worker

    return worker.render(
        f"carbonlens.render.blocks:{function}",
        given.printed,
        look=given.look,
        limits=making.limits or worker.Limits(),
        progress=making.progress,
        later=later,
        **further,
    )
