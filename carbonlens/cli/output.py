"""What goes to the terminal: JSON, plain tables, findings."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import TextIO

import msgspec

from carbonlens.domain.estimate import Estimate
from carbonlens.domain.finding import Finding
from carbonlens.errors import UnwritableError
from carbonlens.reporting.format import GROUP, Printed

WIDTH = 80
_NARROWEST = 40


def width() -> int:
    """Return how many characters a line of prose may have: ``WIDTH``, less on a narrow terminal."""
    import shutil  # here, as textwrap below: a run that prints one line does without

    return max(min(shutil.get_terminal_size((WIDTH, 24)).columns, WIDTH), _NARROWEST)


def print_json(payload: object) -> None:
    """Print a payload as JSON on stdout."""
    encoded = msgspec.json.format(_encoded(payload), indent=2)
    _write(encoded.decode() + "\n")


def print_json_line(payload: object) -> None:
    """Print a payload as JSON in a line of its own on stdout, whatever stands there already."""
    # What a command printed before need not end in a line break.
    _write("\n" + _encoded(payload).decode() + "\n")


def _encoded(payload: object) -> bytes:
    """Return a payload as JSON; the names of files and folders in it may be of any bytes."""
    try:
        return msgspec.json.encode(payload)
    except UnicodeEncodeError:
        from carbonlens.cli import other_bytes  # few names are of that kind

        return msgspec.json.encode(other_bytes.told(payload))


def print_text(text: str) -> None:
    """Print a text of ours on stdout as it is, to be copied elsewhere."""
    _write(text)


def say(text: str) -> None:
    """Print one line on stdout."""
    _write(clean(text) + "\n")


def say_words(text: str) -> None:
    """Print a sentence on stdout; a terminal gets it in lines of words that fit, as of ``note``.

    Lines that are copied, such as a command or the name of a file that was saved, are said by ``say``.
    """
    for line in _fitting(text, sys.stdout):
        say(line)


def say_fact(name: str, text: str) -> None:
    """Print a fact after its name on stdout, further lines below the first."""
    import textwrap

    for line in textwrap.wrap(
        clean(text),
        WIDTH,
        initial_indent=f"{name:<10} ",
        subsequent_indent=" " * 11,
        break_long_words=False,  # an address must stay whole to be followed
        break_on_hyphens=False,
    ):
        say(line)


_SHORT_ID = 12


def short_id(run_id: str) -> str:
    """Return the end of a run's id that a line has room for; every command that takes an id takes it."""
    return run_id[-_SHORT_ID:]


def note(text: str) -> None:
    """Print one line on stderr, if it can be written; a terminal gets it in lines of words that fit.

    Elsewhere it stays one line: a log is read by line.
    """
    with suppress(OSError):
        if sys.stderr is not None:
            sys.stderr.write("".join(f"{line}\n" for line in _fitting(text, sys.stderr)))


def _fitting(text: str, stream: TextIO | None) -> list[str]:
    """Return the lines of a sentence for a stream: several for a terminal that it is too wide for."""
    shown = clean(text)
    # Not asked of the terminal where no width is too small for it.
    is_long = len(shown) > _NARROWEST and stream is not None and stream.isatty() and columns(shown) > width()
    return wrap(shown, width(), cut=False) if is_long else [shown]


def _write(text: str) -> None:
    """Write on stdout.

    Raises:
        UnwritableError: If it is closed, or its disk is full.
        BrokenPipeError: If its reader went away.
    """
    try:
        if sys.stdout is None:
            raise unwritable("it is closed")
        sys.stdout.write(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise unwritable(error.strerror or type(error).__name__) from error


def unwritable(reason: str) -> UnwritableError:
    """Return the error of a stdout that takes nothing."""
    return UnwritableError(
        f"the output cannot be written ({reason})", where="stdout", mend="write it where there is room"
    )


def of_period(label: str) -> str:
    """Return what follows a period's name: whether its figures may change, or did after its close.

    Args:
        label: ``DRAFT``, ``ADJUSTED`` or nothing, as of ``ledger.closing.PeriodStatus``.
    """
    why = {"DRAFT": "the period is not closed", "ADJUSTED": "records came or changed after it was closed"}
    return f", {label}: {why[label]}" if label else ""


def figure(printed: Printed, estimate: Estimate) -> str:
    """Return a figure with its interval; one that is known without one says so.

    Args:
        printed: The figure as ``reporting.format`` prints it.
        estimate: What was printed.
    """
    if printed.interval:
        return f"{printed.text} {printed.interval}"
    exact = estimate.low is not None and estimate.low == estimate.high
    said = estimate.value is None or estimate.state in {"unknown", "not_applicable"} or exact
    if estimate.state == "unbounded":
        said = estimate.low is not None or estimate.signed  # "at least", "in part" say all there is
    return printed.text if said else f"{printed.text} [interval unknown]"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, gap: int = 2) -> list[str]:
    """Return aligned lines.

    Args:
        header: Column titles.
        rows: Cells as text, one sequence a row.
        left: Number of leading columns to align left; the others align right.
        gap: Blanks between two columns.
    """
    cells = [[clean(c) for c in row] for row in (header, *rows)]
    widths = [max(columns(row[i]) for row in cells) for i in range(len(header))]
    lines = []
    for row in cells:
        blanks = [" " * (w - columns(c)) for c, w in zip(row, widths, strict=True)]
        parts = [c + b if i < left else b + c for i, (c, b) in enumerate(zip(row, blanks, strict=True))]
        lines.append((" " * gap).join(parts).rstrip())
    return lines


def columns(text: str) -> int:
    """Return how many columns of a terminal a text takes: East Asian wide letters and emoji take two."""
    if text.isascii():
        return len(text)
    return sum(map(_column, text))


def clip(text: str, width: int) -> str:
    """Return the text in at most ``width`` columns, cut with an ellipsis."""
    plain = clean(text)
    return plain if columns(plain) <= width else f"{_start(plain, width - 1)}…"


def clip_apart(texts: Sequence[str], width: int) -> list[str]:
    """Return names in at most ``width`` columns; those that would read alike are cut in their middle.

    Where they read alike even so, what they begin with alike is left out, if each has more.

    Args:
        texts: Names.
        width: Columns there are.
    """
    cut = [clip(t, width) for t in texts]
    alike = {c: {t for t, one in zip(texts, cut, strict=True) if one == c} for c in cut}
    told = {t: one for some in alike.values() if len(some) > 1 for t, one in _apart(some, width).items()}
    return [told.get(t, c) for t, c in zip(texts, cut, strict=True)]


def wrap(text: str, width: int, *, cut: bool = True) -> list[str]:
    """Return the text in lines of at most ``width`` columns, those after the first indented.

    Args:
        text: Words with blanks between them; a number is not parted from its unit.
        width: Columns there are.
        cut: Whether a word that is wider than a line is cut; else it stands in a line of its
            own, to be copied.
    """
    lines: list[str] = []
    line = ""
    for word in _words(text):
        rest = word
        while rest:
            room = width - columns(line) - (1 if line.strip() else 0)
            if columns(rest) > room and line.strip():
                lines.append(line)
                line = "  "
                continue
            taken = rest if columns(rest) <= room or not cut else _start(rest, room) or rest[0]
            line += (" " if line.strip() else "") + taken
            rest = rest[len(taken) :]
    return [*lines, line] if line.strip() else lines


def _words(text: str) -> list[str]:
    """Return the words of a text; what a no-break space joins, or a number and its %, is one."""
    import re  # here, as above

    joined = re.sub(r"(?<=\d) (?=%)", "\N{NO-BREAK SPACE}", text)
    return [clean(word) for word in re.split(r"[ \t\r\n\f\v]+", joined) if word]


def _apart(names: Collection[str], width: int) -> dict[str, str]:
    """Return names that begin alike with what tells them apart."""
    plain = {name: clean(name) for name in names}
    middles = {name: _middle(text, width) for name, text in plain.items()}
    shared = _shared(list(plain.values()))
    if len(set(middles.values())) == len(names) or any(len(text) == shared for text in plain.values()):
        return middles
    return {name: clip(f"…{text[shared:]}", width) for name, text in plain.items()}


def _middle(text: str, width: int) -> str:
    """Return the text in at most ``width`` columns, cut in its middle with an ellipsis."""
    if columns(text) <= width:
        return text
    start = _start(text, (width - 1) // 2)
    return f"{start}…{_start(text[::-1], width - 1 - columns(start))[::-1]}"


def _shared(texts: Sequence[str]) -> int:
    """Return how many letters all texts begin with alike."""
    first, last = min(texts), max(texts)
    return next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))


def _start(text: str, width: int) -> str:
    """Return as much of a text as fits."""
    used = 0
    for index, letter in enumerate(text):
        used += _column(letter)
        if used > width:
            return text[:index]
    return text


def _column(letter: str) -> int:
    import unicodedata  # here: most of what is printed is ASCII

    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def clean(text: str) -> str:
    """Return the text for a terminal: plain spaces, no control characters that could rewrite it.

    A line break, as in the errors of other programs, is a space. The narrow space that groups
    digits goes: as a plain one it would part a number, so that ``[450, 1 450]`` has three.
    """
    if GROUP in text:
        import re  # here, as above

        text = re.sub(rf"(?<=\d){GROUP}(?=\d)", "", text)
    return "".join(
        c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def print_findings(
    findings: Sequence[Finding],
    *,
    most: int = 3,
    most_lines: int | None = None,
    cut: bool = False,
    listed_by: str = "--json lists all",
) -> None:
    """Print errors and warnings on stderr, the worst first, at most ``most`` of them.

    Args:
        findings: What was found; notes of severity ``info`` are left out.
        most: How many are printed.
        most_lines: Lines there are for them; the first is printed in any case.
        cut: Whether the first too is cut to them, with an ellipsis.
        listed_by: What lists the others, where that is not this command with ``--json``.
    """
    shown = [f for f in findings if f.severity != "info"]
    shown.sort(key=lambda f: f.severity != "error")
    count = used = 0
    for finding in shown[:most]:
        line_number = f":{finding.line}" if finding.line else ""
        place = f"{finding.file}{line_number}: " if finding.file else ""
        mend = f" ({finding.mend})" if finding.mend else ""
        text = f"{finding.code} {finding.severity}: {place}{finding.message}{mend}"
        lines = wrap(text, width(), cut=False)
        if count and most_lines is not None and used + len(lines) > most_lines:
            break
        if cut and most_lines is not None and len(lines) > most_lines:
            lines = [*lines[: most_lines - 1], clip(f"{lines[most_lines - 1]} …", width())]
        count, used = count + 1, used + len(lines)
        for line in lines:
            note(line)
    if len(shown) > count:
        rest = len(shown) - count
        errors = sum(f.severity == "error" for f in shown[count:])
        parts = ((errors, "error"), (rest - errors, "warning"))
        told = " and ".join(f"{n} more {word}{'' if n == 1 else 's'}" for n, word in parts if n)
        note(f"... and {told} ({listed_by})")
