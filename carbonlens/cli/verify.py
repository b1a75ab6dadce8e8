"""``carbonlens verify``: compute a report again from what it carries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from carbonlens.cli import grammar
from carbonlens.cli.options import JsonOption
from carbonlens.cli.verify_words import verdict

if TYPE_CHECKING:
    from carbonlens.app.verified import Verified

_SHOWN = 10
_NAMED = 3


def register(app: grammar.Commands) -> None:
    """Add the command."""
    app.add("verify", verify_command)


def verify_command(
    report: Annotated[Path, grammar.Argument(metavar="REPORT", help="A .pdf, .html or .json of `report`.")],
    ledger: Annotated[
        Path | None, grammar.Option("--ledger", metavar="DIR", help="Take the runs from this ledger instead.")
    ] = None,
    templates: Annotated[
        Path | None,
        grammar.Option("--templates", metavar="DIR", help="The folder of templates that it was made with."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compute a report again and compare every figure; exit 4 where one differs."""
    from carbonlens.app.verify import SCHEMA, verify
    from carbonlens.cli import output as out

    found = verify(report, ledger=ledger, templates=templates)
    if json:
        out.print_json({"schema": SCHEMA, "holds": found.holds, **_shape(found)})
    else:
        _say(found)
    if not found.holds:
        raise grammar.Exit(4)


def _shape(found: Verified) -> dict[str, object]:
    import msgspec

    shape: dict[str, object] = msgspec.to_builtins(found)
    shape["versions"] = {
        name: {"made_with": then, "installed": now} for name, (then, now) in found.versions.items()
    }
    return shape


def _say(found: Verified) -> None:
    from carbonlens.cli import output as out
    from carbonlens.render.versions import OWN_TEMPLATES

    for line in out.wrap(verdict(found), out.width()):
        out.say(line)
    for one in found.mismatches[:_SHOWN]:
        told = (f"  {one.figure_id}", f"    in the file: {one.said}", f"    computed:    {one.computed}")
        for line in told:
            out.say(out.clip(line, out.width()))
    if len(found.mismatches) > _SHOWN:
        out.say(f"  and {len(found.mismatches) - _SHOWN} more; --json has them all")
    _say_left(found)
    if not found.left:
        _say_rebuilt(found)
    if found.unchecked:
        out.say_fact("unchecked", "; ".join(found.unchecked))
    maker = found.versions.get("carbonlens", (None, None))[0]
    if maker is not None:
        out.say_fact("mend", out.clip(f"verify it with the carbonlens that wrote it: {maker}", 60))
    made_with, here = found.versions.get(OWN_TEMPLATES, (None, None))
    if made_with is not None and here is None:
        out.say_fact("mend", "verify it with its templates: --templates DIR")


def _say_left(found: Verified) -> None:
    from carbonlens.cli import output as out
    from carbonlens.domain.counting import counted

    for one in found.left:
        first = ", ".join(one.figure_ids[:_NAMED])
        more = f" and {len(one.figure_ids) - _NAMED} more" if len(one.figure_ids) > _NAMED else ""
        out.say_fact(
            "not computed", f"{counted(len(one.figure_ids), 'figure')}: {one.reason} ({first}{more})"
        )
    if found.left:
        out.say_fact("mend", "verify it against the ledger: --ledger DIR; --json names every figure")


def _say_rebuilt(found: Verified) -> None:
    from carbonlens.cli import output as out

    if found.rebuilt == "same":
        out.say_fact("rebuilt", "byte for byte the same file")
    elif found.rebuilt == "different":
        out.say_fact("rebuilt", "NOT the same bytes: the file was changed after it was written")
    elif found.versions:
        named = list(found.versions.items())
        others = [f"{name} {then or 'none'} (here {now or 'none'})" for name, (then, now) in named[:_NAMED]]
        if len(named) > _NAMED:
            others.append(f"{len(named) - _NAMED} more")
        said = "; ".join(out.clip(one, 60) for one in others)
        if "made_with" in found.versions:
            said = "it does not say which"
        out.say_fact("rebuilt", f"no: made with other versions: bytes not compared ({said})")
    else:
        out.say_fact("rebuilt", "no: the runs are the ledger's: bytes not compared")
