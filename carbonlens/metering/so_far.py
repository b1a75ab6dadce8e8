"""What an open session has measured so far, told without disturbing it."""

from __future__ import annotations

from carbonlens.metering.sealing import Sealed, seal_tally
from carbonlens.metering.session import Session


def so_far(session: Session) -> Sealed | None:
    """Return what there would be if the run ended at its last look; ``None`` before the second one.

    Nothing is read, and the session goes on as if nobody had asked: its tally is copied
    and the copy sealed, by the same rules as at the end.

    Args:
        session: Open, of this process.
    """
    window_us = session._last_us
    if not window_us or not session._open:
        return None
    return seal_tally(
        session._tally,
        start_us=session.run.start_us or 0,
        window_us=window_us,
        unmeasured=session._unmeasured,
        goes_on=True,
    )
