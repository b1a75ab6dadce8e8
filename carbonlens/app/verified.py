"""What came of verifying a report, and computing what may rest on anything."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from carbonlens.app.verify_data import Mismatch
from carbonlens.errors import (
    CarbonlensError,
    ConfigError,
    InputFileError,
    MissingExtraError,
    MissingLibraryError,
    RenderError,
    UnwritableError,
)

_OF_THE_MACHINE: Final = (ConfigError, MissingExtraError, MissingLibraryError, RenderError, UnwritableError)
"""What no other file would mend: the user's own settings, what is installed, room, time and memory."""


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """Figures that could not be computed again, with the reason that they share."""

    reason: str
    figure_ids: tuple[str, ...]


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """What came of verifying a report.

    Attributes:
        file: The report.
        figures: How many figures were compared.
        runs: How many runs they rest on.
        mismatches: Figures and other parts that differ.
        rebuilt: ``same`` or ``different`` bytes; ``None`` where they could not be compared.
        versions: What the report was made with and what is installed, by name, where they differ
            and the bytes of its format depend on them.
        unchecked: Parts that could be held against nothing, in words; empty where all was checked.
        from_ledger: Whether the runs were taken from a ledger rather than from the report.
        left: Figures that could not be computed again, by reason; none where the runs are at hand.
    """

    file: str
    figures: int
    runs: int
    mismatches: tuple[Mismatch, ...]
    rebuilt: str | None
    versions: dict[str, tuple[str | None, str | None]]
    unchecked: tuple[str, ...] = ()
    from_ledger: bool = False
    left: tuple[Left, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the report is what follows from its evidence, as far as that could be checked."""
        return not self.mismatches and self.rebuilt != "different"


@contextmanager
def computing(where: str, kept: type[CarbonlensError] = InputFileError) -> Iterator[None]:
    """Refuse evidence that nothing can be computed from; numpy's warnings about it help no reader.

    Args:
        where: The report, for errors.
        kept: Errors that are said as they are, beside those of the machine.

    Raises:
        InputFileError: If computing trips over what the report holds.
        UnwritableError, RenderError: If there is no room, time or memory for it here.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (kept, *_OF_THE_MACHINE):
        raise
    except CarbonlensError as error:
        raise _not_computable(where, error.what) from error
    except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RecursionError) as error:
        # Runs and terms that no reader of ours would have let in.
        raise _not_computable(where, f"{type(error).__name__}: {error}") from error


def _not_computable(where: str, why: str) -> InputFileError:
    return InputFileError(
        f"cannot be computed again from the evidence in it ({why[:200]})",
        where=where,
        mend="take the file as carbonlens wrote it",
    )
