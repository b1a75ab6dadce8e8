"""The options of ``carbonlens report`` that list and begin templates, in place of a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from carbonlens.cli import grammar


def list_templates_and_end(wanted: bool) -> None:
    """Print the names of templates and their blocks, and end the command, if that is asked for."""
    if not wanted:
        return
    from carbonlens.app.report_look import list_templates
    from carbonlens.cli import output as out

    for name, blocks in list_templates().items():
        out.say(name)
        for block, words in blocks:
            out.say(f"  {block:<14} {words}")
    raise grammar.Exit(0)


def begin_templates_and_end(folder: Path | None) -> None:
    """Write a folder to begin with, and end the command, if one is named."""
    if folder is None:
        return
    from carbonlens.app.report_look import init_templates
    from carbonlens.cli import output as out

    for path in init_templates(folder):
        out.say(f"saved {path}")
    raise grammar.Exit(0)


ListTemplatesOption = Annotated[
    bool,
    grammar.Option("--list-templates", callback=list_templates_and_end, help="List templates and blocks."),
]
InitTemplateOption = Annotated[
    Path | None,
    grammar.Option(
        "--init-template",
        metavar="DIR",
        callback=begin_templates_and_end,
        help="Begin a folder of templates.",
    ),
]
