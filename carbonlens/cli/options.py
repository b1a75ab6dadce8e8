"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from carbonlens.cli import grammar
from carbonlens.errors import UsageError


def _ledger_place(text: str) -> Path:
    if not text:
        # As a path it would be the working folder; a shell variable that is not set gives it.
        raise UsageError("the path is empty", where="--ledger", mend="give a folder, or leave it out")
    return Path(text)


LedgerOption = Annotated[
    Path | None,
    grammar.Option(
        "--ledger",
        parser=_ledger_place,
        metavar="PATH",
        help="The ledger's folder [CARBONLENS_LEDGER, pyproject.toml, ./.carbonlens].",
    ),
]
JsonOption = Annotated[bool, grammar.Option("--json", help="Print JSON on stdout, notes on stderr.")]
TagOption = Annotated[
    list[str] | None, grammar.Option("--tag", metavar="K=V", help="Tag, may be given several times.")
]
StudyOption = Annotated[
    str | None,
    grammar.Option(
        "--study", help="A study file (ends in .toml) or a study's name in the ledger.", is_path=True
    ),
]
AssumptionsOption = Annotated[
    Path | None,
    grammar.Option("--assumptions", help="TOML file with place, grid factors and prices for all arms."),
]
