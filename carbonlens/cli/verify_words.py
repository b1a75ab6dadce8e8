"""Verify words: the verdict on a report that was computed again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from carbonlens.app.verified import Verified


def verdict(found: Verified) -> str:
    """Return what came of computing a report again, in a sentence."""
    from carbonlens.domain.counting import counted

    if found.left:
        return _verdict_in_part(found)
    figures, runs = counted(found.figures, "figure"), counted(found.runs, "run")
    source = "the ledger" if found.from_ledger else "the report itself"
    if found.mismatches:
        ids = _differing(found)
        if all("." in name for name in ids) and len(ids) <= found.figures:
            said = f"{counted(len(ids), 'figure')} of {found.figures} {_do(len(ids))}"
        else:
            said = f"{counted(len(found.mismatches), 'part')} of it {_do(len(found.mismatches))}"
        return f"NOT verified: {said} not follow from {runs} of {source}"
    if found.rebuilt == "different":
        return f"NOT verified: {figures} follow from {runs} of {source}, but the file was changed"
    part = " in part" if found.unchecked else ""
    return f"verified{part}: {figures} follow from {runs} of {source}"


def _do(count: int) -> str:
    return "does" if count == 1 else "do"


def _differing(found: Verified) -> set[str]:
    """Return the ids of what differs: one may do so in its value, its print and on its page."""
    return {one.figure_id for one in found.mismatches}


def _verdict_in_part(found: Verified) -> str:
    """Return the verdict of a report that was held against itself alone."""
    total = found.figures + sum(len(one.figure_ids) for one in found.left)
    if found.mismatches:
        differ = len(_differing(found))
        said = f"{differ} of {total} figures {_do(differ)} not follow from others that the report states"
        return f"NOT verified: {said}"
    return f"verified in part: {found.figures} of {total} figures follow from others that the report states"
