"""Arms of a bench: a variant that can be made ready, checked and measured again and again."""

from __future__ import annotations

from typing import Protocol

from carbonlens.domain.run import Run


class ArmRunner(Protocol):
    """One variant while its series runs.

    Each step but ``close`` is one recorded run; each raises ``MeasurementError`` when
    the variant's own work fails, after that was recorded.

    Attributes:
        shared_from: First of the rounds that are measured in one process; ``None`` while each has its own.
    """

    shared_from: int | None

    def prepare(self, *, record: bool) -> Run | None:
        """Do the variant's effort; ``None`` when it has none, or none is to be recorded."""

    def check(self, *, record: bool) -> Run | None:
        """Do the first call and warm up; measure the quality, where a function tells it."""

    def evaluate(self) -> Run | None:
        """Run the command that measures the quality; ``None`` where there is none."""

    def measure(self, repeat: int) -> Run:
        """Measure one window of work."""

    def close(self) -> None:
        """Let go of processes and files."""
