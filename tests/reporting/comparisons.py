"""Comparisons for report tests, made by hand so that each case is easy to read.

CPU times per image are those of the demo ladder as measured once (torch 860 µs,
ONNX Runtime 425, pruned 200, dynamic int8 405, static int8 104); everything else
follows from them by the rules of the domain records.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import msgspec

from carbonlens.domain.comparison import (
    Amounts,
    ArmMetrics,
    BreakEven,
    Comparison,
    Effect,
    GateResult,
    ParetoPoint,
    StepResult,
)
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.factor import Embodied, Factor, Price, Vector
from carbonlens.domain.finding import Finding
from carbonlens.domain.study import Gate, Step, Study
from carbonlens.signals.latency import sketch_of

WATTS = 4.0
PUE = 1.2
CURRENCY = "EUR"
REASONS = {"accepted": "better", "rejected": "worse", "undetermined": "inconclusive", "failed": "failed"}

EXAMPLE_VECTOR = Vector(
    place="Frankfurt, Germany",
    location=Factor(
        factor_id="grid_de_2024", zone="DE", period="2024", method="location", basis=("life-cycle",),
        value_kg_per_kwh=0.344, u_relative=0.05, source="Example grid table, 2025 edition", example=True,
    ),
    market=Factor(
        factor_id="residual_de_2024", zone="DE", period="2024", method="market", basis=("residual mix",),
        value_kg_per_kwh=0.71, u_relative=0.05, source="Example residual mix", example=True,
    ),
    pue=PUE,
    pue_source="Example assumption",
    electricity=Price(
        price_id="power_de", amount=Decimal("0.20"), currency=CURRENCY, per="kWh", period="2024",
        u_relative=0.05, source="Example tariff", example=True,
    ),
    machine=Price(
        price_id="core_hour", amount=Decimal("0.04"), currency=CURRENCY, per="core_hour", period="2024",
        u_relative=0.02, source="Example list price", example=True,
    ),
    embodied=Embodied(
        factor_id="server", value_kg_per_core_hour=0.001, u_relative=0.3, source="Example server sheet",
        example=True,
    ),
)  # fmt: skip


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """One arm as the tests state it."""

    name: str
    cpu_us: float | None
    title: str | None = None
    status: str = "accepted"
    loss: tuple[float, float, float] = (0.0, -0.004, 0.004)
    accuracy: float = 0.981
    error: str | None = None
    measured_on: str | None = None
    model_bytes: int = 589_000
    macs: int = 37_600_000


DEMO = (
    Arm(name="onnxruntime", title="ONNX Runtime fp32", cpu_us=425, loss=(0.0, -0.001, 0.001)),
    Arm(name="pruned", title="Structured pruning, fine-tuned", cpu_us=200, loss=(0.0011, -0.0033, 0.0067),
        model_bytes=264_000, macs=17_100_000, accuracy=0.980),
    Arm(name="dynamic-int8", title="Dynamic int8 quantization", cpu_us=405, status="rejected",
        model_bytes=74_000, macs=17_100_000, accuracy=0.980),
    Arm(name="static-int8", title="Static int8 quantization (QDQ)", cpu_us=104, measured_on="pruned",
        loss=(0.0022, -0.0033, 0.0078), model_bytes=78_300, macs=17_100_000, accuracy=0.979),
)  # fmt: skip


def energy(cpu_us: float | None) -> Estimate:
    """Energy per image as the CPU model gives it: 1 % random, 30 % common."""
    if cpu_us is None:
        return unknown("J")
    joules = cpu_us * 1e-6 * WATTS
    return Estimate(
        value=joules, unit="J", grade="D", u_random=0.005 * joules, u_by_source={"cpu-model": 0.3 * joules}
    )


def amounts(cpu_us: float | None, vector: Vector) -> Amounts:
    """What one image uses under the vector."""
    joules = energy(cpu_us)
    kwh = joules.scale((vector.pue or 1.0) / 3.6e6, "kWh")
    core_h = (
        unknown("core_hour")
        if cpu_us is None
        else Estimate(value=cpu_us / 3.6e9, unit="core_hour", grade="A", u_random=0.005 * cpu_us / 3.6e9)
    )
    return Amounts(
        energy_j=joules,
        emissions_location_kg=_emissions(kwh, vector.location),
        emissions_market_kg=_emissions(kwh, vector.market),
        embodied_kg=_times(core_h, vector.embodied and vector.embodied.value_kg_per_core_hour, 0.3, "server"),
        cost=_cost(kwh, core_h, vector),
    )


def minus(a: Amounts, b: Amounts) -> Amounts:
    """Field by field difference."""
    return Amounts(**{f: getattr(a, f).minus(getattr(b, f)) for f in a.__struct_fields__})


def scaled(a: Amounts, factor: float) -> Amounts:
    """Field by field multiple."""
    return Amounts(**{f: getattr(a, f).scale(factor, getattr(a, f).unit) for f in a.__struct_fields__})


def _times(quantity: Estimate, value: float | None, u: float, source: str, unit: str = "kg") -> Estimate:
    if value is None:
        return unknown(unit)
    rate = Estimate(value=value, unit="1", u_by_source={source: u * value})
    return quantity.times(rate, unit)


def _emissions(kwh: Estimate, factor: Factor | None) -> Estimate:
    if factor is None:
        return unknown("kg")
    return _times(kwh, factor.value_kg_per_kwh, factor.u_relative, factor.factor_id)


def _cost(kwh: Estimate, core_h: Estimate, vector: Vector) -> Estimate:
    if vector.electricity is None or vector.machine is None:
        return unknown("XXX")
    from carbonlens.domain.estimate import add

    return add(
        [
            _times(kwh, float(vector.electricity.amount), 0.05, "power_de", CURRENCY),
            _times(core_h, float(vector.machine.amount), 0.02, "core_hour", CURRENCY),
        ],
        CURRENCY,
    )


def effect(arm_us: float | None, reference_us: float | None, reference: str, spread: float = 0.01) -> Effect:
    """Change against a reference, with a narrow interval of its own."""
    if arm_us is None or reference_us is None:
        return Effect(
            reference=reference, ratio=unknown("1"), p_value=None, p_holm=None, verdict="inconclusive",
            n_rounds=0,
        )  # fmt: skip
    value = arm_us / reference_us
    low, high = value * (1 - spread), value * (1 + spread)
    verdict = "better" if high < 0.99 else "worse" if low > 1.01 else "inconclusive"
    return Effect(
        reference=reference,
        ratio=Estimate(value=value, unit="1", grade="D", bounds=(low, high)),
        p_value=1e-6, p_holm=4e-6 if verdict != "inconclusive" else 0.34, verdict=verdict, n_rounds=5,
        minimum_detectable=0.021,
    )  # fmt: skip


def metrics(arm: Arm, spread: float = 0.01) -> ArmMetrics | None:
    """What was measured on an arm."""
    if arm.cpu_us is None:
        return None
    ms = arm.cpu_us * 16 / 1000
    per_round = tuple(arm.cpu_us * 1e-6 * WATTS * (1 + d * spread) for d in (0.0, 0.8, -0.6, 0.3, -0.4))
    return ArmMetrics(
        energy_per_unit_j=energy(arm.cpu_us),
        boundary="it",
        cpu_s_per_unit=Estimate(value=arm.cpu_us * 1e-6, unit="s", grade="A", u_random=arm.cpu_us * 0.005e-6),
        throughput_per_s=Estimate(value=0.97e6 / arm.cpu_us, unit="1/s", u_random=0.02e6 / arm.cpu_us),
        latency_p50_ms=Estimate(value=ms, unit="ms", bounds=(ms * 0.99, ms * 1.01)),
        latency_p95_ms=Estimate(value=ms * 1.1, unit="ms", bounds=(ms * 1.05, ms * 1.2)),
        latency_p99_ms=Estimate(value=ms * 1.3, unit="ms", bounds=(ms * 1.15, ms * 1.9)),
        model_bytes=arm.model_bytes,
        macs_per_unit=arm.macs,
        quality={
            "accuracy": Estimate(
                value=arm.accuracy, unit="1", bounds=(arm.accuracy - 0.011, arm.accuracy + 0.007)
            )
        },
        load_1m_max=1.4,
        steal_s=0.02,
        rounds=5,
        energy_by_round_j=per_round,
        latency=sketch_of(calls(ms)),
    )


_SHAPE = ((0.0, 0.94), (0.5, 1.0), (0.95, 1.1), (0.99, 1.3), (1.0, 1.9))
"""Latency by rank, as a multiple of the median, as the percentiles of an arm state it."""


def calls(median_ms: float, n: int = 400) -> list[float]:
    """Latencies of calls whose P50, P95 and P99 are those of an arm."""
    found = []
    for i in range(n):
        rank = (i + 0.5) / n
        (a, low), (b, high) = next(pair for pair in pairwise(_SHAPE) if pair[0][0] <= rank <= pair[1][0])
        found.append(median_ms * (low + (high - low) * (rank - a) / (b - a)))
    return found


def front(arms: tuple[Arm, ...]) -> tuple[ParetoPoint, ...]:
    """The arms by accuracy, energy and latency; one that has another better in all is beaten by it."""
    known = [a for a in arms if a.cpu_us is not None and a.status != "failed"]
    if len(known) < 2:
        return ()
    points = []
    for arm in known:
        better = [
            a for a in known
            if a.cpu_us <= arm.cpu_us and a.accuracy >= arm.accuracy
            and (a.cpu_us < arm.cpu_us or a.accuracy > arm.accuracy)
        ]  # fmt: skip
        by = min(better, key=lambda a: a.cpu_us).name if better else None
        values = {
            "accuracy": arm.accuracy, "energy_j": energy(arm.cpu_us).value,
            "latency_p95_ms": arm.cpu_us * 16 * 1.1 / 1000,
        }  # fmt: skip
        points.append(ParetoPoint(step=arm.name, values=values, on_front=by is None, dominated_by=by))
    return tuple(points)


def gate_result(arm: Arm) -> GateResult:
    """The quality gate of an arm: under one point of accuracy lost."""
    value, low, high = arm.loss
    outcome = "pass" if high < 0.01 else "fail" if low > 0.01 else "undetermined"
    return GateResult(
        name="accuracy loss under 1 point", metric="accuracy", outcome=outcome, limit=0.01, kind="max_loss",
        observed=Estimate(value=value, unit="1", signed=True, bounds=(low, high)),
    )  # fmt: skip


def comparison(
    arms: tuple[Arm, ...] = DEMO,
    *,
    vector: Vector = EXAMPLE_VECTOR,
    baseline: Arm | None = None,
    spread: float = 0.01,
    findings: tuple[Finding, ...] = (),
    gated: bool = True,
    volume: float | None = None,
    study: str = "digits",
    title: str | None = "Handwritten digits on a CPU",
    unit: str = "image",
) -> Comparison:
    """Return a ladder comparison over the arms."""
    base = baseline or Arm(name="torch", cpu_us=860, title="PyTorch eager fp32")
    times = {base.name: base.cpu_us, **{a.name: a.cpu_us for a in arms}}
    n = volume or 1.0
    used = {name: scaled(amounts(us, vector), n) for name, us in times.items()}
    path, previous, steps = [base.name], base.name, []
    for arm in arms:
        on = arm.measured_on or previous
        accepted = arm.status == "accepted"
        steps.append(
            _step(
                arm, on, base.name, times, used, accepted=accepted, spread=spread, gated=gated, vector=vector
            )
        )
        if accepted:
            previous = arm.name
            path.append(arm.name)
    total = minus(used[base.name], used[path[-1]])
    effort = scaled(amounts(20e6, vector), 1.0)
    saved = minus(amounts(base.cpu_us, vector), amounts(times[path[-1]], vector))
    return Comparison(
        study=Study(
            name=study, baseline=base.name, unit=unit, title=title, baseline_title=base.title,
            steps=tuple(Step(name=a.name, title=a.title, measured_on=a.measured_on) for a in arms),
            gates=(Gate(name="accuracy loss under 1 point", metric="accuracy", kind="max_loss", limit=0.01),)
            if gated else (),
            volume_units=volume, volume_period="a year" if volume else None,
        ),
        basis="volume" if volume else "per_unit",
        mode="ladder",
        baseline_metrics=metrics(base, spread),
        baseline_amounts=used[base.name],
        final_amounts=used[path[-1]],
        steps=tuple(steps),
        path=tuple(path),
        total=total if len(path) > 1 else None,
        interaction_j=None,
        baseline_effort=scaled(effort, 1.1),
        accepted_effort=effort if len(path) > 1 else None,
        rejected_effort=scaled(effort, 0.05),
        break_even=break_even(effort, saved) if len(path) > 1 else (),
        vector=vector,
        findings=findings,
        pareto=front((base, *arms)),
        environment=(
            ("hardware", "2-core x86-64 virtual machine"), ("platform", "Linux 6.1, glibc 2.36"),
            ("Python", "3.11.7"), ("instrument", "carbonlens 0.1.0"),
            ("energy method", "CPU time x modelled power per core"),
        ),
    )  # fmt: skip


def _step(arm, on, base, times, used, *, accepted, spread, gated, vector):
    known = arm.cpu_us is not None
    part = minus(used[on], used[arm.name]) if known else None
    gates = (gate_result(arm),) if gated and known else ()
    decision = {"accepted": "adopt", "rejected": "reject"}.get(arm.status, "undetermined")
    previous = effect(arm.cpu_us, times[on], on, spread) if known else None
    reasons = {
        "accepted": (),
        "rejected": ("uses more energy than the step it was measured on",),
        "undetermined": ("the interval holds both a saving and a loss",),
        "failed": (),
    }[arm.status]
    return StepResult(
        step=arm.name, title=arm.title or arm.name, on=(arm.name,), measured_on=on, status=arm.status,
        vs_previous=previous, vs_baseline=effect(arm.cpu_us, times[base], base, spread) if known else None,
        savings=minus(used[base], used[arm.name]) if known else None,
        attribution=part if accepted else None, would_have=part,
        verdict=previous.verdict if previous else "inconclusive", gates=gates, decision=decision,
        reasons=reasons, metrics=metrics(arm, spread), effort=amounts(5e6, vector) if known else None,
        error=arm.error,
        amounts=used[arm.name] if known else None,
        reason=REASONS[arm.status],
    )  # fmt: skip


def break_even(effort: Amounts, saved: Amounts) -> tuple[BreakEven, ...]:
    """Effort over saving, for the four measures."""
    fields = {
        "energy": "energy_j", "carbon_location": "emissions_location_kg",
        "carbon_market": "emissions_market_kg", "cost": "cost",
    }  # fmt: skip
    rows = []
    for measure, field in fields.items():
        e, s = getattr(effort, field), getattr(saved, field)
        if e.value is None or not s.value:
            units, outcome = unknown("1"), "unknown"
        else:
            n = e.value / s.value
            if n > 0:
                units, outcome = Estimate(value=n, unit="1", bounds=(n * 0.93, n * 1.08)), "reached"
            else:
                units, outcome = unknown("1"), "never"
        rows.append(BreakEven(measure=measure, effort=e, saving_per_unit=s, units=units, outcome=outcome))
    return tuple(rows)


HOSTILE_NAMES = (
    "<script>alert(1)</script>" * 3,
    "A" * 10_000,
    "\u202eمرحبا بالعالم שלום",
    "🔥🚀👩\u200d💻 emoji step 🎉",
    "nul\x00byte\x1b[31m and \ud800 lone",
    "{{7*7}} {% raw %} ${7*7}",
    "日本語の量子化ステップの名前はとても長いですこれは長い名前です",
    "Z" + "\u0338\u0321" * 300 + "algo",
)


def hostile_comparison() -> Comparison:
    """A comparison whose every name, source and message tries to break the page."""
    arms = tuple(
        Arm(name=name, cpu_us=800 - 60 * i, title=name, status="accepted" if i % 2 == 0 else "rejected")
        for i, name in enumerate(HOSTILE_NAMES)
    )
    replace = msgspec.structs.replace
    vector = replace(
        EXAMPLE_VECTOR,
        place="<i>" * 200,
        notes=("</style><script>alert(1)</script> " * 100,),
        location=replace(EXAMPLE_VECTOR.location, source="../../etc/passwd " * 100, zone="Z" * 300),
    )
    made = comparison(
        arms,
        vector=vector,
        study="<b>" * 50,
        title='=cmd|"/C calc"!A0 <img src=x onerror=alert(1)> \u202e' + "W" * 500,
        unit="</td><script>tokens" * 10,
        findings=tuple(
            Finding(
                code="CL4<b>", severity="error", message="<script>" * 500, mend="x" * 2000, subject="y" * 3000
            )
            for _ in range(5)
        ),
    )
    return replace(made, environment=(("<b>name</b>" * 20, "v" * 5000), ("{{x}}", "\x00")))
