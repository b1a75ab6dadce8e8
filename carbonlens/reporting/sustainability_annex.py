"""Sustainability annex: method, factors with their hashes, assurance, standards, Findings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from carbonlens.domain.estimate import Estimate
from carbonlens.domain.factor_row import FactorRow
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import sha256_hex, without_host_name
from carbonlens.reporting import format as fmt
from carbonlens.reporting.content import Phrase, Row, label, phrase, quoted
from carbonlens.reporting.document import Block, Bullets, Heading, Paragraph, TableBlock
from carbonlens.reporting.sustainability_desk import MOST_ROWS, Desk, foreign, heading, table, text_column
from carbonlens.reporting.sustainability_input import findings_of
from carbonlens.reporting.sustainability_prints import flat

_SHORT: Final = 12
"""Digits of a hash on a page: the whole one is in the attachments."""

_METHOD: Final = (
    ("Energy is that of the facility: what runs or meters counted, with host overhead and PUE once. Where "
     "a meter covers a site it stands, and runs allocate it; what no run explains has a line of its own."),
    ("Location-based emissions take the grid factor of each hour or month of use; direct (combustion) "
     "factors come first, and life-cycle ones are named where they stand in."),
    ("Market-based emissions take one blend per entity, market and period: instruments that meet the "
     "quality criteria, then the residual mix. No instrument is given to a run or a team."),
    ("Hardware is booked whole in the year it is bought; its share over its life is shown beside it, and "
     "is part of SCI. Fuel supply and grid losses of one’s own electricity stand in a category of "
     "their own; those of a service stand in the service’s."),
    ("What is unknown is neither zero nor a favourable default: it is called unknown, or a lower bound, "
     "and a Finding says why. Lower bounds are added to no true figure."),
    ("Intervals pass errors on to first order; an error that sites, months or quarters share stays whole "
     "in a sum and cancels in a difference."),
)  # fmt: skip

_STANDARDS: Final = (
    ("GHG Protocol Scope 2 Guidance, 2015", "chapters 4, 6 and 7", "both methods, instruments"),
    ("GHG Protocol Scope 3 Standard, 2011", "table 5.4, categories 1, 2, 3, 8 and 11", "scope 3 parts"),
    ("GHG Protocol Corporate Standard, revised", "chapter 5", "base year and restatements"),
    ("ESRS E1, Regulation (EU) 2023/2772", "E1-5; E1-6, paragraphs 44 and 52",
     "energy consumption; gross emissions by scope, totals by both methods"),
    ("IFRS S2, June 2023", "paragraph 29(a)", "gross emissions by scope"),
    ("GRI 302: Energy 2016", "302-1, 302-3", "energy, intensity"),
    ("GRI 305: Emissions 2016", "305-2, 305-3, 305-4", "scopes 2 and 3, intensity"),
    ("ISO/IEC 21031:2024 (SCI)", "whole", "score per functional unit"),
    ("IPMVP Core Concepts", "option B, by class of work", "savings of initiatives"),
    ("JCGM 100:2008", "5.1.2, 5.2", "intervals"),
)  # fmt: skip
"""Standard with its edition, where it asks, and what of it stands here: ``docs/sustainability.md`` has
what each number was checked against."""


def method_blocks(desk: Desk) -> Iterator[Block]:
    """Yield the method and the factors."""
    yield heading("Method")
    yield Bullets(items=tuple(phrase(text) for text in _METHOD))
    yield heading("Factors")
    yield _factors(desk)


def _factors(desk: Desk) -> Block:
    if not desk.given.factors:
        return Paragraph(
            text=phrase(
                "No factor stands behind any figure of the quarter. Whole set in force: ",
                label(desk.given.factors_sha256[:_SHORT] or "none"),
                ".",
            )
        )
    groups: dict[tuple[str, ...], list[FactorRow]] = {}
    for row in desk.given.factors:
        own = "own" if row.factor_id in desk.given.own_factors else "bundled"
        basis = " ".join(b for b in (row.method, row.averaging, row.span) if b)
        key = (row.kind, row.subject, basis, row.source, row.vintage, row.licence, own)
        groups.setdefault(key, []).append(row)
    keys = list(groups)[:MOST_ROWS]
    rows = [_factor(desk, number, key, groups[key]) for number, key in enumerate(keys, 1)]
    left = len(groups) - len(keys)
    note = phrase(
        "Hash: the first digits of the ",
        label("SHA-256"),
        " of the rows. Whole set in force: ",
        label(desk.given.factors_sha256[:_SHORT]),
        ".",
    )
    if left:
        entry = desk.prints.count("left_out.factors", "lines left out of the table: factors", float(left))
        note = phrase("And ", entry.text, " more lines, in the attachments. ", note)
    return table(
        "Factors",
        "Factors that the quarter’s figures rest on",
        "Kind and subject",
        ["From", "To", text_column("Periods"), text_column("Source, vintage, licence"), text_column("Hash")],
        rows,
        note,
    )


def _factor(desk: Desk, number: int, key: Sequence[str], rows: Sequence[FactorRow]) -> Row:
    kind, subject, basis, source, vintage, licence, own = key
    ordered = sorted(rows, key=lambda r: r.value)
    ends = (ordered[0], ordered[-1])
    cells = [_value(desk, number, name, row) for name, row in zip(("low", "high"), ends, strict=True)]
    periods = sorted(r.period for r in rows)
    span = periods[0] if periods[0] == periods[-1] else f"{periods[0]} to {periods[-1]}"
    many = () if len(rows) == 1 else phrase(", ", _number(desk, number, len(rows)), " rows")
    digest = sha256_hex("\n".join(sorted(r.sha256 for r in rows)).encode())
    words = phrase(foreign(source, 70), ", ", foreign(vintage, 20), ", ", foreign(licence, 40), f" ({own})")
    head = phrase(quoted(kind.replace("_", " ")), " ", foreign(subject, 30))
    if basis:
        head = phrase(head, ", ", quoted(basis.replace("_", "-")))
    unit = phrase(quoted(rows[0].unit)) if rows[0].unit != "1" else ()
    return Row(
        head=head,
        cells=(
            tuple(line for line in (*cells[0], unit) if line),
            cells[1] if len(rows) > 1 else flat(None),
            (phrase(foreign(span, 30), many),),
            (words,),
            (phrase(label(digest[:_SHORT])),),
        ),
    )


def _value(desk: Desk, number: int, name: str, row: FactorRow) -> tuple[Phrase, ...]:
    value = float(row.value)
    estimate = Estimate(value=value, unit=row.unit, signed=True)
    if row.low is not None and row.high is not None:
        estimate = Estimate(value=value, unit=row.unit, bounds=(float(row.low), float(row.high)))
    elif row.u_relative is not None:
        estimate = Estimate(value=value, unit=row.unit, u_random=abs(value) * row.u_relative)
    figure = Figure(
        figure_id=f"factor.{number}.{name}",
        estimate=estimate,
        label=f"{row.kind} factor {row.factor_id}",
        inputs=(row.factor_id,),
    )
    entry = desk.prints.entered(figure, fmt.given(estimate, ""))
    return tuple(line for line in (phrase(entry.number), phrase(entry.interval)) if line)


def _number(desk: Desk, number: int, rows: int) -> Phrase:
    entry = desk.prints.count(f"factor.{number}.rows", "rows of factors", float(rows))
    return phrase(entry.text)


def assurance_blocks(desk: Desk) -> Iterator[Block]:
    """Yield what an auditor starts from: closes, files with hashes, how to compute it again."""
    given = desk.given
    yield heading("Assurance annex")
    if given.closes:
        rows = [
            Row(
                head=foreign(one.period, 30),
                cells=(
                    (phrase(label(one.closed_on)),),
                    (foreign(one.by, 40),),
                    flat(
                        desk.prints.count(
                            f"close.{one.period}.runs", f"records of {one.period}", float(one.runs)
                        )
                    ),
                    (phrase(label(one.manifest_sha256[:_SHORT])),),
                    (phrase(label((one.factor_set_sha256 or "–")[:_SHORT])),),
                ),
            )
            for one in given.closes
        ]
        yield table(
            "Closes",
            "Closes of the ledger that touch the quarter",
            "Period",
            [text_column("Closed on"), text_column("By"), "Records", text_column("Manifest"),
             text_column("Factor set")],
            rows,
        )  # fmt: skip
    else:
        yield Paragraph(text=phrase("The quarter is not closed: no manifest holds its records yet."))
    yield _files(desk)
    yield Bullets(items=tuple(_checks(desk)))
    yield Paragraph(
        text=phrase(
            "Prepared by: ____________________   Reviewed by: ____________________   Date: ____________"
        )
    )


def _files(desk: Desk) -> TableBlock:
    given = desk.given
    rows = [
        Row(head=foreign(name, 60), cells=((phrase(label(held[:_SHORT])),),))
        for name, held in sorted(given.snapshots.items())
    ]
    rows.append(
        Row(head=phrase("factor set in force"), cells=((phrase(label(given.factors_sha256[:_SHORT])),),))
    )
    whole = given.inventory_sha256[:_SHORT] if given.inventory_sha256 else "no inventory"
    rows.append(Row(head=phrase("inventory, all files"), cells=((phrase(label(whole)),),)))
    return table(
        "Evidence index", "Evidence index", "File", [text_column("Id or hash, its first digits")], rows
    )


def _checks(desk: Desk) -> Iterator[Phrase]:
    yield phrase(
        "Every printed number has a figure id; the page is refused where one differs from its figure."
    )
    yield phrase("Compute it again: carbonlens verify REPORT. ", quoted(desk.given.attached))
    yield phrase(
        "Open any figure: carbonlens explain FIGURE, by the ledger; "
        "with --report REPORT, by the report alone."
    )
    yield phrase("Check the chain of closes and every record: carbonlens ledger verify.")


def standards_blocks() -> Iterator[Block]:
    """Yield where standards ask for what the report states, by number alone."""
    yield heading("Standards index")
    rows = [
        Row(head=phrase(label(name)), cells=((phrase(label(where)),), (phrase(label(what)),)))
        for name, where, what in _STANDARDS
    ]
    yield table(
        "Standards",
        "Where standards ask for what this report states",
        "Standard",
        [text_column("Paragraphs"), text_column("Here")],
        rows,
        phrase("Numbers of paragraphs only; whether the report meets them is the assurer’s word."),
    )


def finding_blocks(desk: Desk) -> Iterator[Block]:
    """Yield every Finding of the quarter, the gravest first."""
    yield Heading(text=phrase("Findings"))
    order = {"error": 0, "warning": 1, "info": 2}
    held = sorted(findings_of(desk.given), key=lambda f: (order[f.severity], f.code, f.message))
    if not held:
        yield Paragraph(text=phrase("There is none."))
        return
    shown = held[:MOST_ROWS]
    note: Phrase = ()
    if len(held) > len(shown):
        entry = desk.prints.count("left_out.findings", "Findings left out", float(len(held) - len(shown)))
        note = phrase("And ", entry.text, " more, in the attachments.")
    yield table(
        "Findings",
        "Findings: what a reader must know about the figures",
        "Code",
        [text_column("Severity"), text_column("What was found"), text_column("What would settle it")],
        [_finding(f) for f in shown],
        note,
    )


_OF_HOST: Final = "of host "


def _message(one: Finding) -> str:
    """Return what was found, with a pseudonym in the place of a host's plain name."""
    name = (one.subject or "").rpartition(_OF_HOST)[2]
    if not name:
        return one.message
    # Ids of runs end with it too, where a file tells of several hosts.
    said = re.compile(rf"({_OF_HOST}|-){re.escape(name)}(?![\w.-])")
    return said.sub(lambda m: f"{m[1]}{without_host_name(name)}", one.message)


def _finding(one: Finding) -> Row:
    return Row(
        head=phrase(label(one.code)),
        cells=((phrase(one.severity),), (foreign(_message(one), 260),), (foreign(one.mend or "–", 160),)),
        mark={"error": "bad", "warning": "open", "info": "muted"}[one.severity],  # type: ignore[arg-type]  # mypy widens the values of a dict
    )
