"""Arms whose energy is known: the engine of a bench is tested on them, not the meters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from msgspec.structs import replace

from carbonlens.domain.bench import Bench, Pace, Variant
from carbonlens.domain.factor import Vector
from carbonlens.domain.run import Quality, Run
from carbonlens.domain.sources import Sources
from carbonlens.domain.study import Step, Study
from carbonlens.errors import MeasurementError
from carbonlens.instrument.bench import TAG
from carbonlens.instrument.window import Label, Place
from tests.compare.study_runs import run

PLACE = Place(ledger="unused", sources=Sources())


class Machine:
    """A machine that warms up, drifts and is noisy; every arm of it draws from the same chance."""

    def __init__(self, seed: int, cv: float = 0.01) -> None:
        self.chance = np.random.Generator(np.random.PCG64(seed))
        self.cv = cv
        self.windows = 0
        self.evaluates = False  # whether each arm has a command that measures a quality
        self.told: tuple[Quality, ...] = ()  # by each check and each evaluation
        self.runs: list[Run] = []
        self.calls: list[tuple[str, str]] = []

    def factor(self) -> float:
        self.windows += 1
        drift = 0.03 * math.exp(-self.windows / 20) + 0.0005 * self.windows
        return math.exp(drift + self.cv * self.chance.standard_t(5) / math.sqrt(5 / 3))


class SyntheticArm:
    """One variant that takes ``level`` joules a unit on that machine."""

    shared_from = None

    def __init__(self, machine: Machine, name: str, level: float, fails: Mapping[str, object]) -> None:
        self.machine, self.name, self.level, self.fails = machine, name, level, fails
        self.closed = False

    def _do(self, what: str, round_: int | None = None) -> None:
        self.machine.calls.append((self.name, what))
        if self.fails.get(self.name) == (what if round_ is None else round_):
            raise MeasurementError(f"{what} went wrong", where=self.name, mend="none")

    def _run(self, role: str, repeat: int | None = None) -> Run:
        energy = self.level * self.machine.factor()
        made = run(self.name, energy, repeat=repeat, role=role, run_id=f"{self.name}-{role}-{repeat}")
        made = replace(made, tags={TAG: "0" * 16}, quality=self.machine.told if role == "evaluation" else ())
        self.machine.runs.append(made)
        return made

    def prepare(self, *, record: bool) -> Run | None:
        self._do("prepare")
        return self._run("effort") if record else None

    def check(self, *, record: bool) -> Run | None:
        self._do("check")
        return self._run("evaluation") if record else None

    def evaluate(self) -> Run | None:
        if not self.machine.evaluates:
            return None
        self._do("evaluate")
        return self._run("evaluation", 0)

    def measure(self, repeat: int) -> Run:
        self._do("measure", repeat)
        return self._run("variant", repeat)

    def close(self) -> None:
        self.closed = True


def bench_of(names: tuple[str, ...], **pace: object) -> Bench:
    """Return a bench of commands that are never run."""
    return Bench(
        study=Study(
            name="example",
            baseline=names[0],
            steps=tuple(Step(name=n, measured_on=names[0]) for n in names[1:]),
            unit="image",
            is_sequential=True,
        ),
        variants=tuple(Variant(name=n, kind="command", command=("true",)) for n in names),
        pace=Pace(**pace),  # type: ignore[arg-type]  # fields are checked by the record itself
        vector=Vector(),
        spec_sha256="0" * 64,
    )


def opener(
    machine: Machine, levels: Mapping[str, float], fails: Mapping[str, object] | None = None
) -> tuple[Callable[[Variant, Bench, Place, Label, Path], SyntheticArm], SimpleNamespace]:
    """Return what opens the arms, and where they are kept."""
    kept = SimpleNamespace(arms=[])

    def open_arm(
        variant: Variant, _bench: Bench, _place: Place, _label: Label, _scratch: Path
    ) -> SyntheticArm:
        arm = SyntheticArm(machine, variant.name, levels[variant.name], fails or {})
        kept.arms.append(arm)
        return arm

    return open_arm, kept
