"""Error families: every error says what is wrong, where, and how to mend it.

The command line maps ``exit_code`` to the process status: 2 for a wrong
request, 3 for work that could not be done, 4 for a failed verification.
"""

from __future__ import annotations

from typing import ClassVar


class CarbonlensError(Exception):
    """Base of all errors raised on purpose by carbonlens.

    Args:
        what: What is wrong, in one sentence.
        mend: What the reader can do about it.
        where: File, line, field or name the error is about.
    """

    code: ClassVar[str] = "CL000"
    exit_code: ClassVar[int] = 2

    def __init__(self, what: str, *, mend: str, where: str | None = None) -> None:
        """Keep the parts apart, so that a caller can render them itself."""
        self.what = what
        self.where = where
        self.mend = mend
        super().__init__(str(self))

    def __str__(self) -> str:
        """Return one line: place, fault, mend."""
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.what} ({self.mend}) [{self.code}]"


class UsageError(CarbonlensError):
    """The request itself is wrong: unknown name, option or value."""

    code = "CL001"


class SelectionError(CarbonlensError):
    """A selector names nothing, or more than one thing where one is needed."""

    code = "CL002"


class UnwritableError(CarbonlensError):
    """An output place cannot be written; said before the work starts."""

    code = "CL003"


class IncomparableError(CarbonlensError):
    """Arms differ in unit, boundary, currency or workload: no comparison."""

    code = "CL004"


class ConfigError(CarbonlensError):
    """A user file (study, assumptions, inventory) is malformed."""

    code = "CL005"


class RecordError(CarbonlensError):
    """A record in the ledger is damaged or from a newer schema."""

    code = "CL006"
    exit_code = 3


class MissingExtraError(CarbonlensError):
    """A feature needs packages that are not installed.

    Args:
        extra: Name of the carbonlens extra that brings them.
        package: The import that failed.
    """

    code = "CL007"
    exit_code = 3

    def __init__(self, extra: str, package: str) -> None:
        """Name the extra, so that one command mends it."""
        self.extra = extra
        self.package = package
        super().__init__(
            f"needs the extra '{extra}' ({package} is not installed)",
            mend=f"pip install 'carbonlens[{extra}]', or '.[{extra}]' in a clone",
        )


class MissingLibraryError(CarbonlensError):
    """A feature needs system libraries that cannot be loaded."""

    code = "CL011"
    exit_code = 3


class InputFileError(CarbonlensError):
    """An explicitly named input cannot be read."""

    code = "CL008"
    exit_code = 3


class MeasurementError(CarbonlensError):
    """A measurement is invalid and no figure may be made from it."""

    code = "CL009"
    exit_code = 3


class RenderError(CarbonlensError):
    """A report could not be made within its time and memory."""

    code = "CL012"
    exit_code = 3


class VerificationError(CarbonlensError):
    """Recomputed figures disagree with the printed ones."""

    code = "CL010"
    exit_code = 4
