"""Arms that cost little, for tests of the runner."""

from __future__ import annotations

import time

from carbonlens.studies.ladder import Arm, Check, Pace, Prepared, Setting

QUICK = Pace(rounds=6, round_s=0.004, warm_up_s=0.001)


SPIN_S = 0.0005
"""CPU time that one call of an arm uses."""


def spin(cpu_s: float = SPIN_S) -> None:
    """Use the CPU for a while."""
    end = time.process_time() + cpu_s
    while time.process_time() < end:
        pass


def arm(name: str, call=None, *, needs=(), outcomes=(1, 1, 0, 1), evaluate=None) -> Arm:
    """Return an arm of two units a call."""

    def work() -> int:
        spin()
        return 2

    def prepare(made) -> Prepared:
        spin()
        return Prepared(
            call=call or work,
            evaluate=evaluate or (lambda: (Check("accuracy", tuple(outcomes)),)),
            artefact=[*made.values(), name],
            model_bytes=100,
            macs_per_unit=7,
        )

    return Arm(name, name.title(), prepare, needs=tuple(needs))


def setting(ledger) -> Setting:
    """Return the setting of a study in that ledger."""
    return Setting(study="quick", unit="item", workload="spinning", ledger=ledger)


class Watcher:
    """Progress that keeps what it is told."""

    def __init__(self) -> None:
        self.phases: list[list] = []
        self.notes: list[str] = []

    def start(self, total: int, label: str) -> None:
        self.phases.append([label, total, 0])

    def advance(self) -> None:
        self.phases[-1][2] += 1

    def note(self, text: str) -> None:
        self.notes.append(text)
