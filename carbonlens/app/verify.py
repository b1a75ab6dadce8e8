"""Use case: verify a report: compute it again from what it carries, and compare every figure.

Two things are held against each other: what the file says (its data, and what is printed on its
pages), and what follows from its runs, factors and study by this carbonlens. Where all that its
bytes depend on is the same here, the file is made again, byte for byte. Where it is not, what
cannot be held against anything is said: a file can name any version as its maker.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from carbonlens.app.report import Material
from carbonlens.app.verified import Verified, computing
from carbonlens.app.verify_data import Mismatch
from carbonlens.app.verify_reading import Held, read
from carbonlens.domain.counting import counted
from carbonlens.domain.evidence import Evidence, MadeWith, runs_sha256
from carbonlens.domain.number_style import NumberStyle
from carbonlens.errors import (
    CarbonlensError,
    InputFileError,
)
from carbonlens.render.look import Look

SCHEMA: Final = "carbonlens/verify/1"


def verify(
    report: Path, *, ledger: str | Path | None = None, templates: str | Path | None = None
) -> Verified:
    """Compute a report again and compare.

    Args:
        report: A ``.json``, ``.html`` or ``.pdf`` that carbonlens wrote.
        ledger: Take the runs from this ledger instead of from the report.
        templates: Folder of the user's own templates that it was made with.

    Raises:
        InputFileError: If it cannot be read, or carries nothing to verify it by.
        UsageError: If it is of a format that carries nothing.
        SelectionError: If the ledger has none of its runs.
        MissingExtraError: If the ``analysis`` or ``report`` extra is not installed.
    """
    from carbonlens.app.compare import require_analysis

    require_analysis()
    from carbonlens.app.sustainability_verify import verify_sustainability

    quarter = verify_sustainability(report, ledger, templates)
    if quarter is not None:
        return quarter
    held = read(report)
    evidence = held.evidence
    if evidence.runs_left_out and ledger is None:
        raise InputFileError(
            f"rests on {counted(evidence.runs_left_out, 'run')}, too many to travel with it",
            where=str(report),
            mend="verify it against the ledger: --ledger",
        )
    used: Evidence = evidence
    unchecked: tuple[str, ...] = ()
    if ledger is not None:
        # What is wrong with the ledger is said as it is.
        with computing(held.file, kept=CarbonlensError):
            used, unchecked = _of_ledger(evidence, ledger)
    look, numbers = _look(held, templates)
    with computing(held.file):
        given = _follows(held, used, look, numbers)
        return _compared(held, used, given, unchecked, from_ledger=ledger is not None)


def _look(held: Held, templates: str | Path | None) -> tuple[Look | None, NumberStyle | None]:
    """Return the templates to make it again with, and how its pages write numbers."""
    from carbonlens.app.report_look import find_look

    made = held.evidence.made_with
    return (None, made.numbers if made else None) if templates is None else find_look(templates)


def _follows(held: Held, used: Evidence, look: Look | None, numbers: NumberStyle | None) -> Material:
    from carbonlens.app.compare import computed
    from carbonlens.app.report import material

    return material(computed(used), held.sections, used, look=look, numbers=numbers)


def _compared(
    held: Held, used: Evidence, given: Material, unchecked: tuple[str, ...], *, from_ledger: bool
) -> Verified:
    from carbonlens.app.report import rendered
    from carbonlens.app.verify_pages import compare_pages, misprinted

    made, here = held.evidence.made_with, given.evidence.made_with if given.evidence else None
    versions = _differing(made, here, held.kind, given)
    mismatches = [*_of_hash(held)]
    same_maker = made is not None and here is not None and made.carbonlens == here.carbonlens
    mismatches += _of_data(held, given, same_words=same_maker)
    rebuilt = None
    if not versions and used == held.evidence:
        rebuilt = "same" if rendered(_as_made(given, made), held.kind) == held.content else "different"
        mismatches += () if rebuilt == "same" else misprinted(held, given)
    else:
        same_templates = made is not None and here is not None and _templates(made) == _templates(here)
        pages = compare_pages(held, given, same_layout=same_maker and same_templates)
        mismatches += pages.mismatches
        words = () if same_maker else ("words of its data",)
        unchecked = ("bytes of the file", *unchecked, *words, *pages.unchecked)
    return Verified(
        file=held.file,
        figures=len(given.view.figures),
        runs=len(used.runs),
        mismatches=tuple(dict.fromkeys(mismatches)),
        rebuilt=rebuilt,
        versions=versions,
        unchecked=unchecked if rebuilt is None else (),
        from_ledger=from_ledger,
    )


def _as_made(given: Material, made: MadeWith | None) -> Material:
    """Return the same with what the file names as its maker: it decides none of the bytes but its own."""
    evidence = given.evidence and msgspec.structs.replace(given.evidence, made_with=made)
    return msgspec.structs.replace(given, evidence=evidence)


def _of_ledger(evidence: Evidence, ledger: str | Path) -> tuple[Evidence, tuple[str, ...]]:
    """Return the evidence with the runs that the ledger has now, and what those leave unchecked."""
    from carbonlens.app.compare import prepare

    now = prepare(evidence.study, ledger=ledger, vector=evidence.vector)
    used = msgspec.structs.replace(
        now,
        study=evidence.study,
        vector=evidence.vector,
        notes=evidence.notes,
        business=evidence.business,
        made_with=evidence.made_with,
    )
    then = evidence.left_out_sha256 if evidence.runs_left_out else runs_sha256(evidence)
    if then != runs_sha256(used):
        return used, ("whether it was made of the very runs that the ledger has now: some differ",)
    return (used, ()) if evidence.runs_left_out else (evidence, ())


def _of_hash(held: Held) -> Iterator[Mismatch]:
    said = held.shape.get("evidence_sha256")
    if said != held.evidence_sha256:
        yield Mismatch(figure_id="evidence_sha256", said=str(said)[:80], computed=held.evidence_sha256)


def _of_data(held: Held, given: Material, *, same_words: bool) -> Iterator[Mismatch]:
    """Hold the data of the file against those computed."""
    from carbonlens.app.verify_data import differing_figures, differing_numbers, differing_parts
    from carbonlens.reporting.report_json import report_json

    shape: dict[str, Any] = report_json(given.view, given.sections, comparison=given.comparison)
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(shape))
    yield from differing_figures(held.shape["figures"], found["figures"])
    differing = differing_parts if same_words else differing_numbers
    yield from differing(held.shape, found)


def _templates(made: MadeWith) -> tuple[object, ...]:
    own = (made.templates_sha256, made.own_templates_sha256)
    return *own, made.libraries.get("Jinja2"), made.libraries.get("MarkupSafe")


def _differing(
    then: MadeWith | None, now: MadeWith | None, kind: str, given: Material
) -> dict[str, tuple[str | None, str | None]]:
    """Return what the bytes of this format depend on and is not the same here."""
    from carbonlens.render.versions import DECIDING, OWN_TEMPLATES, SYSTEM_FONTS, shipped_fonts_hold, texts_of

    if then is None or now is None:
        return {"made_with": (None, None)}
    own = ("carbonlens", "templates_sha256", "fonts_sha256", OWN_TEMPLATES)
    found: dict[str, tuple[str | None, str | None]] = {}
    for name in DECIDING[kind]:
        one, other = (getattr(m, name) if name in own else m.libraries.get(name) for m in (then, now))
        if one != other:
            found[name] = (one, other)
    if SYSTEM_FONTS in found and shipped_fonts_hold(texts_of((given.view.business_case, given.view))):
        del found[SYSTEM_FONTS]
    return found
