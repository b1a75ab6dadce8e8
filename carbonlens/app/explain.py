"""Use case: explain a figure, run, factor, price or certificate down to readings and file lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Final

from carbonlens.app.explain_known import Known, Options
from carbonlens.errors import SelectionError
from carbonlens.reporting.explanation import Node, tree

SHOWN: Final = 3
"""Runs of a list that are opened in a text; the others are counted."""


def explain(figure_id: str, options: Options = Options(), *, most: int = SHOWN) -> Node:  # noqa: B008 - frozen
    """Return what a figure rests on, as a tree.

    Args:
        figure_id: Of a statement, of a comparison, of an allocation, of bills over runs; or the
            id of a run, factor, price, certificate or of what the inventory declares.
        options: Where to look.
        most: Runs of a list that are opened.

    Raises:
        SelectionError: If nothing has that id; near ones are named.
    """
    (node,) = explain_each((figure_id,), options, most=most)
    return node


def explain_each(
    figure_ids: Iterable[str],
    options: Options = Options(),  # noqa: B008 - frozen
    *,
    most: int = SHOWN,
) -> Iterator[Node]:
    """Yield what each of several figures rests on; what they share is read once.

    Args:
        figure_ids: As of ``explain``.
        options: Where to look.
        most: Runs of a list that are opened.

    Raises:
        SelectionError: If nothing has one of the ids.
    """
    known = Known(options)
    for figure_id in figure_ids:
        item = known.find(figure_id)
        if item is None:
            raise none_such(figure_id, known.ids(figure_id))
        yield tree(item, known.resolve, most=most)


def ids(options: Options = Options()) -> tuple[str, ...]:  # noqa: B008 - frozen
    """Return the ids that can be explained: of the statement, and of the study where one is named or alone.

    Args:
        options: Where to look.

    Raises:
        SelectionError: If there is neither.
    """
    known = Known(options)
    found = list(known.of_study) if options.study is not None else list(known.of_statement(options.period))
    if not found and options.study is None:
        found = list(known.of_study)
    if options.business is not None:
        found += known.of_business()
    if not found:
        known.statement(options.period)
    return tuple(dict.fromkeys(found))


def none_such(
    figure_id: str, known: Iterable[str], listing: str = "list ids: carbonlens explain --list"
) -> SelectionError:
    """Return the refusal of an id that nothing has; near ones are named.

    Args:
        figure_id: The id.
        known: Ids that there are.
        listing: How to see them.
    """
    near = get_close_matches(figure_id, list(known), n=3, cutoff=0.5)
    meant = f"near ones: {', '.join(near)}; " if near else ""
    return SelectionError(
        f"nothing has the id {figure_id!r}",
        where="FIGURE",
        mend=f"{meant}{listing}",
    )
