"""``carbonlens verify``: compute a report again from what it carries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from carbonlens.cli.options import JsonOption

if TYPE_CHECKING:
    from carbonlens.app.verify import Verified

_SHOWN = 10


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("verify")(verify_command)


def verify_command(
    report: Annotated[Path, typer.Argument(metavar="REPORT", help="A .pdf, .html or .json of `report`.")],
    ledger: Annotated[
        Path | None, typer.Option("--ledger", metavar="DIR", help="Take the runs from this ledger instead.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compute a report again and compare every figure; exit 4 where one differs."""
    from carbonlens.app.verify import SCHEMA, verify
    from carbonlens.cli import output as out

    found = verify(report, ledger=ledger)
    if json:
        out.print_json({"schema": SCHEMA, "holds": found.holds, **_shape(found)})
    else:
        _say(found)
    if not found.holds:
        raise typer.Exit(4)


def _shape(found: Verified) -> dict[str, object]:
    import msgspec

    shape: dict[str, object] = msgspec.to_builtins(found)
    shape["versions"] = {
        name: {"made_with": then, "installed": now} for name, (then, now) in found.versions.items()
    }
    return shape


def _say(found: Verified) -> None:
    from carbonlens.cli import output as out
    from carbonlens.domain.counting import counted

    figures, runs = counted(found.figures, "figure"), counted(found.runs, "run")
    source = "the ledger" if found.from_ledger else "the report itself"
    if not found.mismatches:
        out.say(f"verified: {figures} follow from {runs} of {source}")
    else:
        differ = counted(len(found.mismatches), "figure")
        out.say(f"NOT verified: {differ} of {found.figures} do not follow from {runs} of {source}")
    for one in found.mismatches[:_SHOWN]:
        out.say(f"  {one.figure_id}")
        out.say(f"    in the file: {one.said}")
        out.say(f"    computed:    {one.computed}")
    if len(found.mismatches) > _SHOWN:
        out.say(f"  and {len(found.mismatches) - _SHOWN} more; --json has them all")
    _say_rebuilt(found)


def _say_rebuilt(found: Verified) -> None:
    from carbonlens.cli import output as out

    if found.rebuilt == "same":
        out.say_fact("rebuilt", "byte for byte the same file")
    elif found.rebuilt == "different":
        out.say_fact("rebuilt", "NOT the same bytes: the file was changed after it was written")
    elif found.versions:
        others = ", ".join(
            f"{name} {then} (here {now})" for name, (then, now) in list(found.versions.items())[:3]
        )
        out.say_fact("rebuilt", f"not tried: it was made with other versions: {others}")
