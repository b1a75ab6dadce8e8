"""Codes of errors that stop a command."""

from __future__ import annotations

from typing import Final

from carbonlens.domain.finding_codes.entry import FindingCode

GENERAL: Final = (
    FindingCode(
        code="CL000",
        severity="error",
        title="Error of carbonlens",
        meaning="The base of all errors raised on purpose; every error printed has a code of its own.",
        mend="read the text in brackets: it says what to do",
        example="(never printed by itself)",
    ),
    FindingCode(
        code="CL001",
        severity="error",
        title="Wrong request",
        meaning="An option, name or value is not one that the command takes.",
        mend="give what the text in brackets names",
        example="--ledger: the path is empty (give a folder, or leave it out)",
    ),
    FindingCode(
        code="CL002",
        severity="error",
        title="Nothing, or too much, is selected",
        meaning="A name fits nothing, or several things where one is needed.",
        mend="give the name whole; the message lists near ones",
        example="ID: there is no factor 'grid-FX' (meant: grid-FR)",
    ),
    FindingCode(
        code="CL003",
        severity="error",
        title="Output cannot be written",
        meaning="Said before the work starts, or when the place turns out to be full or closed.",
        mend="name a place that can be written",
        example="out/report.pdf: cannot be written (Permission denied) (name another folder)",
    ),
    FindingCode(
        code="CL004",
        severity="error",
        title="Not comparable",
        meaning="The arms differ in unit, boundary, currency or workload, so that no comparison is made.",
        mend="compare runs that agree in what the message names",
        example="arms have different units: token, image (compare one unit at a time)",
    ),
    FindingCode(
        code="CL005",
        severity="error",
        title="User file malformed",
        meaning="A study, assumptions or inventory file cannot be understood; all its faults are listed.",
        mend="mend the lines that are named",
        example="sites.toml:12: pue is no number (give a number such as 1.2)",
    ),
    FindingCode(
        code="CL006",
        severity="error",
        title="Record damaged or newer",
        meaning="A record of the ledger cannot be read by this version.",
        mend="restore it from a copy, or upgrade carbonlens",
        example="runs/202601/x.json: schema version 3 is newer than 1 (upgrade carbonlens)",
    ),
    FindingCode(
        code="CL007",
        severity="error",
        title="Packages are missing",
        meaning="A feature needs an extra that is not installed.",
        mend="pip install 'carbonlens[EXTRA]'",
        example="needs the extra 'analysis' (duckdb is not installed)",
    ),
    FindingCode(
        code="CL008",
        severity="error",
        title="Input cannot be read",
        meaning="A file that was named is missing, unreadable or of no known format.",
        mend="check the path, its rights and its content",
        example="card.md: cannot be read (No such file or directory) (check the path and its rights)",
    ),
    FindingCode(
        code="CL009",
        severity="error",
        title="Measurement invalid",
        meaning="No figure may be made of what was measured.",
        mend="mend what the message names, and measure again",
        example="no round of step int8 ended (mend the error and measure again)",
    ),
    FindingCode(
        code="CL010",
        severity="error",
        title="Verification failed",
        meaning="Figures computed again disagree with the printed ones.",
        mend="do not use the report; render it again",
        example="figure energy.total reads 12.1, computed 12.3",
    ),
    FindingCode(
        code="CL011",
        severity="error",
        title="System library missing",
        meaning="A library of the operating system cannot be loaded.",
        mend="install it as the message says",
        example="pango cannot be loaded (apt install libpango-1.0-0)",
    ),
    FindingCode(
        code="CL012",
        severity="error",
        title="Report not made",
        meaning="Making the pages took more time or memory than it may, or the renderer died.",
        mend="allow more with --memory-mb or --timeout, or report less",
        example="the report needs more than the 1024 MB of memory it may take (allow it more)",
    ),
)
