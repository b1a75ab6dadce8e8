"""The figures of one artefact while they are gathered, with the reason of each that cannot be told.

Whatever a user's model, file or device raises meanwhile is such a reason, and nothing
more (DESIGN, law 8). A reason holds no text of the user's: of an error its kind alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final, Literal

from carbonlens.domain.artefact import Artefact, Direction
from carbonlens.domain.finding import Finding
from carbonlens.metering.wording import error_kind

Figure = Literal["sha256", "bytes", "parameters", "nonzeros", "macs"]

LIMIT_S: Final = 60.0
"""After this long the artefacts of one side of a stage are looked at no more: the job waits for it."""


class UntoldError(Exception):
    """A figure cannot be told; the text says why and holds nothing of the user's."""


class Allowance:
    """The time that may be spent on looking; it keeps a job from waiting for long.

    Args:
        limit_s: Seconds from now on.
    """

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        """Begin to count."""
        self._limit_s = limit_s
        self._end = time.monotonic() + limit_s

    def check(self) -> None:
        """Raise once the time is up; called between pieces of the work.

        Raises:
            UntoldError: If it is.
        """
        if time.monotonic() > self._end:
            raise UntoldError(f"it was left after {self._limit_s:g} s, for which the job had waited")


class Figures:
    """What is known of one artefact so far."""

    def __init__(self, name: str, direction: Direction, allowance: Allowance) -> None:
        """Start with nothing known."""
        self.name = name
        self.direction = direction
        self.allowance = allowance
        self.kind: str | None = None
        self._numbers: dict[Figure, int] = {}
        self._sha256: str | None = None
        self._untold: dict[Figure, str] = {}
        self._notes: list[Finding] = []
        self._nothing: str | None = None

    def tell(self, figure: Figure, number: Callable[[], int]) -> None:
        """Keep a number, or why it cannot be told."""
        try:
            self.allowance.check()
            self._numbers[figure] = int(number())
        except UntoldError as error:
            self._untold[figure] = str(error)
        except Exception as error:  # noqa: BLE001  # law 8: a dead device, a broken model or disk
            self._untold[figure] = f"looking at it raised {error_kind(error)}"

    def tell_hash(self, digest: Callable[[], str]) -> None:
        """Keep the hash of the content, or why it cannot be told."""
        try:
            self.allowance.check()
            self._sha256 = digest()
        except UntoldError as error:
            self._untold["sha256"] = str(error)
        except Exception as error:  # noqa: BLE001  # law 8, as above
            self._untold["sha256"] = f"looking at it raised {error_kind(error)}"

    def withdraw(self, reason: str, *figures: Figure) -> None:
        """Take figures back, all unless some are named, since they cannot be trusted."""
        if not figures:
            self._numbers, self._sha256, self._notes = {}, None, []
            self._nothing = reason
        for figure in figures:
            self._numbers.pop(figure, None)
            self._untold[figure] = reason

    def note(self, finding: Finding) -> None:
        """Keep what else must be said of the artefact."""
        self._notes.append(finding)

    @property
    def artefact(self) -> Artefact:
        """The record."""
        told = self._numbers.get
        return Artefact(
            name=self.name,
            direction=self.direction,
            kind=self.kind,
            sha256=self._sha256,
            bytes=told("bytes"),
            parameters=told("parameters"),
            nonzeros=told("nonzeros"),
            macs=told("macs"),
        )

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What must be said of it: one finding for all figures that could not be told."""
        if self._nothing is not None:
            return (untold(self.name, self.direction, f"nothing is known of it ({self._nothing})"),)
        if not self._untold:
            return tuple(self._notes)
        reasons: dict[str, list[Figure]] = {}
        for figure, reason in self._untold.items():
            reasons.setdefault(reason, []).append(figure)
        text = "; ".join(f"{', '.join(names)} unknown ({reason})" for reason, names in reasons.items())
        return (*self._notes, untold(self.name, self.direction, text))


def untold(name: str, direction: Direction, text: str) -> Finding:
    """Figures of an artefact could not be had.

    Args:
        name: The artefact.
        direction: Taken in or given out.
        text: Which, and why.
    """
    return Finding(
        code="CL140",
        severity="warning",
        message=f"{_WHAT[direction]} {name}: {text}",
        mend="docs/compressing.md says what is told of which kind",
        subject=f"artefact.{direction}.{name}",
    )


def values_as_parameters(name: str, direction: Direction) -> Finding:
    """A state dict holds parameters and buffers alike."""
    return Finding(
        code="CL143",
        severity="info",
        message=f"{_WHAT[direction]} {name}: its names do not tell parameters from buffers, "
        "so every value counts as a parameter",
        mend="give the module itself",
        subject=f"artefact.{direction}.{name}",
    )


def no_output() -> Finding:
    """A stage ended well and nobody said what it made."""
    return Finding(
        code="CL141",
        severity="warning",
        message="no output was given: what the stage made is not recorded",
        mend="s.output('model', ...) in the block; return it from the function, or name what it "
        "changes in place: outputs='model'",
        subject="artefact.out",
    )


_WHAT: Final[Mapping[Direction, str]] = {"in": "input", "out": "output"}
