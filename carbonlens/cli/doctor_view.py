"""How a diagnosis is printed: JSON, or a table of parts with what is missing below each."""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Iterator

from carbonlens.cli import output
from carbonlens.reporting.doctor import Diagnosis, Part, SourceView, Storage
from carbonlens.reporting.doctor_json import doctor_json

_HEADER = ("part", "source", "grade", "95 %", "boundary", "new every", "a read")
_INDENT = " " * 8
_MOST_GPUS = 4
_PLAIN_FACTOR = 1.25
"""Up to this factor a width is printed in percent."""

_PARTS_WITHOUT_DETAIL = ("none found",)


def print_as_json(found: Diagnosis) -> None:
    """Print the shape that outside scripts rely on."""
    output.print_json(doctor_json(found))


def print_as_text(found: Diagnosis) -> None:
    """Print the table of parts, then where records go and what was declared."""
    output.say_words(f"carbonlens {found.version} on {_machine(found)}")
    if found.replay is not None:
        output.say("REPLAY: these sources are played from a recording; nothing is measured here")
    output.say("")
    read = [p for p in found.parts if p.source is not None]
    lines = iter(output.table(_HEADER, [_row(p, p.source) for p in read if p.source is not None], left=7))
    output.say(next(lines))
    gpus = 0
    for part in found.parts:
        if part.source is not None:
            output.say(next(lines))
        else:
            output.say(output.clip(f"{part.name:6}{part.note or 'not measured'}", output.width()))
        gpus += part.part == "gpu"
        if part.part == "gpu" and gpus > _MOST_GPUS:
            continue  # more of the same kind
        for line in _details(part):
            output.say(line)
    output.say("")
    for name, text in _settings(found):
        _say_wrapped(f"{name:8}{text}", _INDENT)
    output.print_findings(found.findings)


def _machine(found: Diagnosis) -> str:
    machine = found.machine
    threads = f" x{machine.threads}" if machine.threads else ""
    return f"{machine.cpu or 'an unknown CPU'}{threads}"


def _row(part: Part, source: SourceView) -> list[str]:
    return [
        part.name,
        output.clip(source.sensor, 20),
        source.grade,
        _width(source.factor_95),
        source.boundary,
        "always" if source.update_period_s <= 0 else _time(source.update_period_s),
        "?" if source.read_cost_s is None else _time(source.read_cost_s),
    ]


def _width(factor: float | None) -> str:
    if factor is None:
        return "unknown"
    if factor > _PLAIN_FACTOR:
        return f"x/: {factor:.2g}"
    percent = 100 * math.log(factor)
    return f"±{percent:.0f} %" if percent >= 2 else f"±{percent:.2g} %"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{_short(seconds / size)} {unit}"
    return f"{_short(seconds / 1e-6)} us"


def _short(number: float) -> str:
    return f"{number:.2g}" if number < 100 else f"{number:.0f}"


def _details(part: Part) -> Iterator[str]:
    """Yield what a reader must know of a part: what it is, why not better, one mend."""
    if part.source is not None:
        about = part.note if part.part == "gpu" and part.note else part.source.found
        tested = "tested on recordings" if part.source.on_recordings else ""
        if tested and tested not in about:
            about = f"{about}; {tested}"
        yield from _wrapped(about)
        if part.note is not None and part.part != "gpu" and part.note != part.device:
            yield from _wrapped(part.note)
        if part.others:
            yield from _wrapped(f"read beside it: {', '.join(s.sensor for s in part.others)}")
    if part.source is not None or part.note not in _PARTS_WITHOUT_DETAIL:
        reasons: dict[str, list[str]] = {}
        for missing in part.missing:
            found = f"{missing.found}, " if missing.found and part.source is not None else ""
            reasons.setdefault(found + missing.reason, []).append(missing.sensor)
        # Where nothing is read and the note says all, a list of absent hardware is noise.
        if part.source is not None or part.part in {"gpu", "ram", "cpu"}:
            for reason, names in reasons.items():
                yield from _wrapped(f"not {', '.join(names)}: {reason}")
    if part.mend is not None:
        yield from _wrapped(f"-> {part.mend}")


def _settings(found: Diagnosis) -> Iterator[tuple[str, str]]:
    if found.total is not None:
        yield "total", found.total
    yield "ledger", _ledger(found.storage)
    yield "journal", _journal(found.storage)
    yield "sources", _short_path(found.sources_file) if found.sources_file else "none declared"
    for one in found.declared:
        mend = f" -> {one.mend}" if one.mend and not one.answers else ""
        state = "" if one.left_out else "answers, " if one.answers else "does not answer, "
        yield "", f"{one.name}: {state}{one.said}{mend}"
    if found.calibrations:
        yield "calibr.", "; ".join(found.calibrations)
    yield "extras", _extras(found)
    visible = _visible(found)
    if visible is not None:
        yield "visible", visible


def _ledger(storage: Storage) -> str:
    if storage.ledger is None or storage.ledger_fault is not None:
        return f"{_short_path(storage.ledger)}: {storage.ledger_fault}; runs go to the state folder"
    place = _short_path(storage.ledger)
    return place if storage.ledger_exists else f"{place} (made by the first run)"


def _journal(storage: Storage) -> str:
    if storage.journal is None or storage.journal_fault is not None:
        fault = storage.journal_fault or "no folder"
        return f"{fault}: a killed run would be lost -> set XDG_STATE_HOME to a folder of yours"
    return f"{_short_path(storage.journal)}, can be written"


def _short_path(path: str | None) -> str:
    """Return a path with the home folder written as a shell does."""
    home = os.environ.get("HOME", "").rstrip("/")
    if path is None or not home or not path.startswith(f"{home}/"):
        return path or "none"
    return f"~{path.removeprefix(home)}"


def _extras(found: Diagnosis) -> str:
    there = [name for name, missing in found.extras.items() if not missing]
    lacking = [name for name, missing in found.extras.items() if missing]
    parts = [", ".join(there) or "none"]
    if lacking:
        parts.append(f"not there: {', '.join(lacking)} -> pip install 'carbonlens[{','.join(lacking)}]'")
    return "; ".join(parts)


def _visible(found: Diagnosis) -> str | None:
    machine = found.machine
    said = [f"{name}={value}" for name, value in machine.visibility.items()]
    if machine.gpus_present:
        said.insert(0, f"{machine.gpus_used} of {machine.gpus_present} NVIDIA GPUs are the work's")
    return "; ".join(said) or None


def _wrapped(text: str) -> list[str]:
    lines = textwrap.wrap(
        output.clean(text),
        output.width(),
        initial_indent="      ",
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines or [""]


def _say_wrapped(text: str, indent: str) -> None:
    for line in textwrap.wrap(
        output.clean(text),
        output.width(),
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    ):
        output.say(line)
