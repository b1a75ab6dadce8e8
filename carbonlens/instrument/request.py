"""What the user said about a run when asking to track it, as a record takes it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, get_args

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.units import Role
from carbonlens.ledger.location import locate
from carbonlens.metering import findings
from carbonlens.metering.deposit import fallback_ledger
from carbonlens.metering.job import this_job
from carbonlens.metering.recorder import whole_of
from carbonlens.metering.records import new_run
from carbonlens.metering.wording import UnfitValueError, arguments_sha256, error_text, plain, unfit

if TYPE_CHECKING:
    from carbonlens.ledger.store import Ledger

T = TypeVar("T")

_CORRECTED: Final = "track(%s=...), or carbonlens runs supersede RUN --by %s=..."

FIELDS: Final[Mapping[str, str]] = {
    "study": "--study, or track(study=...)",
    "step": "--step, or track(step=...)",
    "units": "--units, or add_units() of a tracked run",
    **{name: _CORRECTED % (name, name) for name in ("role", "site", "zone")},
}
"""Names of tags that look like a field of a run, and how the field is given.

Not ``unit``: in companies that is a part of the business, too.
"""

_WANTED: Final[Mapping[str, str]] = {
    "repeat": "a whole number",
    "on": "a list of names, or one text with + between them,",
    "tags": "a dictionary of texts",
    "trace": "a path",
    "attempt": "a whole number",
    "rank": "a whole number",
}
"""What a field of a request takes, where that is not a text."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What the user said about the run when asking to track it."""

    step: str | None = None
    study: str | None = None
    role: str | None = None
    unit: str | None = None
    job_id: str | None = None
    repeat: int | None = None
    tags: Mapping[str, str] | None = None
    ledger: str | Path | Ledger | None = None
    on: Sequence[str] | str | None = None
    workload: str | None = None
    zone: str | None = None
    site: str | None = None
    hardware: str | None = None
    trace: str | Path | bool | None = None
    attempt: int | None = None
    rank: int | None = None


def described(request: Request, parent: str | None, notes: list[Finding]) -> Run:
    """Return the running record with everything that is known beforehand."""
    job = this_job()
    argv = [str(a) for a in getattr(sys, "argv", ())]
    run = new_run(
        "track",
        program=plain(Path(argv[0]).name) if argv and argv[0] else None,
        args_sha256=arguments_sha256(argv[1:]),
    )

    def said(field: str, convert: Callable[[Any], T] = text_of) -> T | None:  # type: ignore[assignment]  # narrowed above in a way mypy does not follow
        return said_of(request, field, convert, notes)

    named = said("job_id")
    # A callback gives the id that it read from the launcher too.
    if job.is_of_node and named in (None, job.job_id):
        notes.append(findings.job_of_one_node(is_alone=job.job_id is None))
    notes += findings.launcher_impossible(job.impossible)
    tags = said("tags", labels_of) or {}
    notes += of_field_names(tags)
    return msgspec.structs.replace(
        run,
        job_id=named or job.job_id,
        parent_run_id=parent,
        # A launcher counts its own restarts; who resumes a checkpoint knows of all before.
        attempt=max(job.attempt, said("attempt", _from_one) or 1),
        rank=job.rank if request.rank is None else said("rank", _from_zero),
        role=_role(request, notes),
        study=said("study"),
        step=said("step"),
        on=said("on", _optimizations),
        repeat=said("repeat", _from_zero),
        unit=said("unit"),
        workload=said("workload"),
        zone=said("zone"),
        site=said("site"),
        hardware=said("hardware") or run.hardware,
        tags=tags,
    )


def labels_of(tags: Mapping[str, str]) -> dict[str, str]:
    """Return tags as a record takes them."""
    return {plain(name): plain(value) for name, value in tags.items()}


def of_field_names(tags: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what is to be said of tags that are named as a field of the run; they are kept."""
    for name in tags:
        if name in FIELDS:
            yield Finding(
                code="CL110",
                severity="warning",
                message=f"the tag {name} does not set the run's {name}: only what asks for tags reads it",
                mend=f"to set it: {FIELDS[name]}",
                subject="tags",
            )


def storable(note: Finding) -> Finding:
    """Return a Finding as a record can hold it: it may tell a path or a variable that is no UTF-8."""
    return msgspec.structs.replace(
        note,
        message=plain(note.message),
        **{name: plain(text) for name in ("file", "mend", "subject") if (text := getattr(note, name))},
    )


def said_of(request: Request, field: str, convert: Callable[[Any], T], notes: list[Finding]) -> T | None:
    """Return what the user said of a field, as the record takes it; else ``None`` and a Finding."""
    value = getattr(request, field)
    if value is None:
        return None
    try:
        return convert(value)
    except Exception as error:  # noqa: BLE001  # law 8: whatever the user's own object raises
        notes.append(findings.record_ignored(field, unfit(value, error, _WANTED.get(field, "a text"))))
        return None


def text_of(value: object) -> str:
    """Return a text as a record takes it.

    Raises:
        UnfitValueError: If nothing stands in it.
    """
    text = plain(value)
    if not text.strip():
        raise UnfitValueError("an empty text was given")
    return text


def _from_one(value: Any) -> int:  # noqa: ANN401  # whatever the user gives
    return _at_least(1, whole_of(value))


def _from_zero(value: Any) -> int:  # noqa: ANN401  # whatever the user gives
    return _at_least(0, whole_of(value))


def _at_least(least: int, number: int) -> int:
    if number < least:
        raise UnfitValueError(f"a number below {least} was given")
    return number


def _optimizations(on: Sequence[str] | str) -> tuple[str, ...]:
    return tuple(plain(o) for o in (on.split("+") if isinstance(on, str) else on) if o)


def _role(request: Request, notes: list[Finding]) -> Role:
    if request.role is None:
        return "variant" if request.step is not None else "other"
    role = said_of(request, "role", plain, notes)
    if role in get_args(Role):
        return cast("Role", role)
    if role is not None:
        # What was given is not repeated: it may stand in the wrong place (law 11).
        known = ", ".join(get_args(Role))
        notes.append(findings.record_ignored("role", f"it is none of the known ones: {known}"))
    return "other"


def ledger_path(explicit: str | Path | Ledger | None, notes: list[Finding]) -> tuple[Path, str | None]:
    """Return the ledger to write to, and why it is not the one that was meant."""
    try:
        if explicit is None or isinstance(explicit, str | Path):
            return locate(explicit), None
        return explicit.path.absolute(), None
    except Exception as error:  # noqa: BLE001  # law 8: no home of a user, no such folder, no path at all
        reason = error_text(error)
        notes.append(findings.written_elsewhere(reason))
        return fallback_ledger(), reason
