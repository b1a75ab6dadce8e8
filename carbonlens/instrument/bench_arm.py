"""Arms of a bench: a variant that can be made ready, checked and measured again and again."""

from __future__ import annotations

from typing import Protocol

from carbonlens.domain.run import Run


class ArmRunner(Protocol):
    """One variant while its series runs.

    Each step but ``close`` is one recorded run; each raises ``MeasurementError`` when
    the variant's own work fails, after that was recorded.

    Attributes:
        is_renewed: Whether each round is measured in a fresh process.
    """

    is_renewed: bool

    def prepare(self, *, record: bool) -> Run | None:
        """Do the variant's effort; ``None`` when it has none, or none is to be recorded."""

    def check(self, *, record: bool) -> Run | None:
        """Do the first call, warm up and measure the quality."""

    def measure(self, repeat: int) -> Run:
        """Measure one window of work."""

    def close(self) -> None:
        """Let go of processes and files."""
