"""Synthetic runs of small studies: plain functions that other tests import too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from carbonlens.compare.study import compare_study
from carbonlens.domain.comparison import Comparison
from carbonlens.domain.factor import Embodied, Factor, Price, Vector
from carbonlens.domain.latency import Latency
from carbonlens.domain.run import Conditions, Quality, Reading, Run
from carbonlens.domain.study import Gate, Step, Study
from carbonlens.signals.latency import summarise

MODEL = "cpu_model:example"
EXAMPLES = 899

# What a round does to all its arms, and what is left to one of them.
DRIFT = (1.00, 1.03, 0.98, 1.01, 0.99, 1.02)
NOISE = (
    (0.4, -0.2, 0.1, -0.5, 0.3, -0.1),
    (-0.3, 0.5, -0.1, 0.2, -0.4, 0.1),
    (0.2, 0.1, -0.5, 0.3, -0.1, 0.0),
)

# Step: CPU microseconds per image, wrong examples, model bytes, effort in CPU seconds.
DEMO: Mapping[str, tuple[float, frozenset[int], int, float]] = {
    "torch": (880.0, frozenset(range(16)), 589_000, 12.0),
    "onnx": (405.0, frozenset(range(16)), 589_000, 0.2),
    "pruned": (190.0, frozenset(range(1, 18)), 264_000, 9.0),
    "dynamic-int8": (395.0, frozenset(range(1, 19)), 74_000, 0.3),
    "static-int8": (98.0, frozenset(range(1, 18)), 78_000, 1.5),
}


def vector(**changes: object) -> Vector:
    """Return an example vector with every part known."""
    parts: dict[str, object] = {
        "place": "Example place",
        "location": Factor(
            factor_id="grid:example",
            zone="XX",
            period="2024",
            method="location",
            value_kg_per_kwh=0.35,
            u_relative=0.05,
            source="example",
            example=True,
        ),
        "market": Factor(
            factor_id="residual:example",
            zone="XX",
            period="2024",
            method="market",
            value_kg_per_kwh=0.50,
            u_relative=0.10,
            source="example",
            example=True,
        ),
        "pue": 1.2,
        "pue_source": "example",
        "electricity": Price(
            price_id="power:example",
            amount=Decimal("0.20"),
            currency="EUR",
            per="kWh",
            period="2026",
            u_relative=0.02,
            source="example",
            example=True,
        ),
        "machine": Price(
            price_id="machine:example",
            amount=Decimal("0.04"),
            currency="EUR",
            per="core_hour",
            period="2026",
            source="example",
            example=True,
        ),
        "embodied": Embodied(
            factor_id="embodied:example",
            value_kg_per_core_hour=0.002,
            u_relative=0.3,
            source="example",
            example=True,
        ),
    }
    return Vector(**{**parts, **changes})  # type: ignore[arg-type]  # fields are checked by the record itself


def run(
    step: str,
    energy_j: float | None,
    *,
    repeat: int | None = 1,
    units: float | None = 1.0,
    on: Sequence[str] | None = None,
    u_relative: float = 0.0,
    source: str = MODEL,
    boundary: str | None = "it",
    cpu_s: float | None = None,
    **fields: object,
) -> Run:
    """Return one run; ``u_relative`` is the common error of ``source``."""
    energy = None if energy_j is None else Decimal(repr(energy_j))
    reading = Reading(
        component="cpu",
        energy_j=energy,
        boundary=boundary,  # type: ignore[arg-type]  # fields are checked by the record itself
        grade="D",
        method="CPU time and the CPU's curve",
        state="unknown" if energy is None else "known",
        u_by_source_j={source: energy_j * u_relative} if energy_j is not None and u_relative else {},
    )
    given: dict[str, object] = {
        "run_id": f"{step}-{repeat}-{fields.get('role', 'variant')}",
        "role": "variant",
        "study": "example",
        "step": step,
        "on": None if on is None else tuple(on),
        "repeat": repeat,
        "energy": (reading,),
        "units": None if units is None else Decimal(repr(units)),
        "unit": "image",
        "workload": "digits",
        "hardware": "example CPU",
        "host_id": "host-1",
        "conditions": None if cpu_s is None else Conditions(wall_s=cpu_s * 1.05, cpu_s=cpu_s, load_1m=1.1),
    }
    return Run(**{**given, **fields})  # type: ignore[arg-type]  # fields are checked by the record itself


def rounds(step: str, energies_j: Sequence[float], **fields: object) -> list[Run]:
    """Return one run per round of a step."""
    return [run(step, e, repeat=i, **fields) for i, e in enumerate(energies_j, start=1)]  # type: ignore[arg-type]  # fields are checked by the record itself


def demo_study(**changes: object) -> Study:
    """Return the ladder of the demo: four steps, one of which loses."""
    parts: dict[str, object] = {
        "name": "example",
        "title": "Digits on one CPU core",
        "baseline": "torch",
        "baseline_title": "PyTorch, fp32",
        "unit": "image",
        "steps": (
            Step(name="onnx", title="ONNX Runtime, fp32"),
            Step(name="pruned", title="Channels pruned by a third"),
            Step(name="dynamic-int8", title="Dynamic int8"),
            Step(name="static-int8", title="Static int8", measured_on="pruned"),
        ),
        "gates": (
            Gate(name="accuracy", metric="accuracy", kind="max_loss", limit=0.01),
            Gate(name="P95 latency", metric="latency_p95_ms", kind="max_value", limit=50.0),
        ),
        "volume_units": 1e9,
        "volume_period": "a year",
    }
    return Study(**{**parts, **changes})  # type: ignore[arg-type]  # fields are checked by the record itself


def demo_runs(*, failed: Sequence[str] = (), watts: float = 9.0, n_rounds: int = 6) -> list[Run]:
    """Return variant and effort runs of the demo's ladder.

    Args:
        failed: Steps whose runs all failed.
        watts: Modelled power of one core.
        n_rounds: Rounds, at most 6.
    """
    found: list[Run] = []
    for index, (step, (cpu_us, _, model_bytes, effort_s)) in enumerate(DEMO.items()):
        effort = run(
            step, effort_s * watts, repeat=None, units=None, u_relative=0.3, cpu_s=effort_s, role="effort"
        )
        found.append(effort)
        for i in range(n_rounds):
            one = DRIFT[i] * (1 + NOISE[index % 3][i] / 100)
            cpu_s = cpu_us * 1e-6 * 3000 * one
            found.append(
                run(
                    step,
                    cpu_s * watts,
                    repeat=i + 1,
                    units=3000,
                    u_relative=0.3,
                    cpu_s=cpu_s,
                    latency=latency(cpu_us * 16 / 1000 * one),
                    quality=(accuracy(step),),
                    model_bytes=model_bytes,
                    macs_per_unit=37_600_000,
                    **({"status": "failed", "error": "ValueError: example"} if step in failed else {}),
                )
            )
    return found


def latency(p50_ms: float, n: int = 188) -> Latency | None:
    """Return the latency of ``n`` calls spread evenly around ``p50_ms``."""
    return summarise([p50_ms * (0.9 + 0.2 * i / n) for i in range(n)])


def accuracy(step: str) -> Quality:
    """Return the accuracy of a step of the demo."""
    wrong = len(DEMO[step][1])
    return Quality(
        name="accuracy", value=(EXAMPLES - wrong) / EXAMPLES, n=EXAMPLES, outcomes_sha256=f"outcomes-{step}"
    )


def demo_outcomes() -> dict[str, tuple[int, ...]]:
    """Return the per-example outcomes of the demo by their hash."""
    return {
        f"outcomes-{step}": tuple(0 if i in wrong else 1 for i in range(EXAMPLES))
        for step, (_, wrong, _, _) in DEMO.items()
    }


def demo_comparison(
    *, failed: Sequence[str] = (), with_vector: Vector | None = None, **study: object
) -> Comparison:
    """Return the comparison of the demo's ladder.

    Args:
        failed: Steps whose runs all failed.
        with_vector: Factors and prices instead of the example's.
        **study: Fields of the study to change.
    """
    return compare_study(
        demo_study(**study),
        demo_runs(failed=failed),
        with_vector or vector(),
        demo_outcomes(),
        environment=(("hardware", "example CPU"),),
    )
