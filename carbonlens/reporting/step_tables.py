"""Step tables: what each arm measured, used and changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from carbonlens.domain.comparison import Amounts, ArmMetrics, StepResult
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.reporting import format as fmt
from carbonlens.reporting.content import Column, Mark, Phrase, Row, Table, label, phrase, plain_text, quoted
from carbonlens.reporting.facts import Facts
from carbonlens.reporting.figures import Entry, exact
from carbonlens.reporting.metrics import QUALITIES, metric_words
from carbonlens.reporting.names import as_head, clip
from carbonlens.reporting.number_words import in_words, join_words
from carbonlens.reporting.reasons import why
from carbonlens.reporting.tiles import gate_phrase

MOST_ROWS = 60
"""Steps per table; a longer one is no reading matter."""

MOST_ON_FRONT = 6
"""Names of a front that fit in a note."""

MARKS: dict[str, Mark] = {"accepted": "good", "rejected": "bad", "undetermined": "open", "failed": "muted"}
_VERDICTS = {"better": "▼ better", "worse": "▲ worse", "same": "= same", "inconclusive": "? inconclusive"}
_DECISIONS = {"adopt": "✓ adopt", "reject": "✗ reject", "undetermined": "? undetermined"}
_NOTHING: tuple[Phrase, ...] = (phrase("–"),)
LATENCIES = {
    "p50": "median latency",
    "p95": "95th percentile of latency",
    "p99": "99th percentile of latency",
}
"""Percentiles of the latency, with their words."""
_BESIDE = {"dynamic_per_unit_j": "Above idle", "power_w": "Power"}
"""Columns beside the energy per unit, where an arm tells them."""


class ArmRow(msgspec.Struct, frozen=True, kw_only=True):
    """One arm as the tables list it: the baseline, then the steps."""

    step: str
    status: str
    metrics: ArmMetrics | None
    amounts: Amounts | None


def arm_rows(facts: Facts) -> tuple[ArmRow, ...]:
    """Return the baseline and the steps, in order, at most ``MOST_ROWS``."""
    return every_arm(facts)[:MOST_ROWS]


def every_arm(facts: Facts) -> tuple[ArmRow, ...]:
    """Return the baseline and all steps, in order."""
    c = facts.comparison
    base = ArmRow(
        step=c.study.baseline, status="baseline", metrics=c.baseline_metrics, amounts=c.baseline_amounts
    )
    steps = (ArmRow(step=s.step, status=s.status, metrics=s.metrics, amounts=s.amounts) for s in c.steps)
    return (base, *steps)


def head(facts: Facts, step: str, status: str = "") -> Phrase:
    """Return a row's head: the step's name, and its status unless it is plain."""
    said = f" ({status})" if status in ("rejected", "undetermined", "failed") else ""
    return phrase(quoted(facts.name(step)), said)


def hidden_note(facts: Facts) -> Phrase:
    """Say how many steps a table leaves out."""
    hidden = len(facts.comparison.steps) + 1 - MOST_ROWS
    left_out = "step is" if hidden == 1 else "steps are"
    return phrase(f"{in_words(hidden).capitalize()} more {left_out} left out.") if hidden > 0 else ()


# Measured ------------------------------------------------------------------


def measured_table(facts: Facts) -> Table:
    """Return speed, quality, size and conditions per arm."""
    qualities = _quality_names(facts)
    has_memory = is_told(facts, "peak_memory_bytes")
    columns = (
        Column(name=phrase("CPU time"), unit=f"{facts.cpu_scale.unit} per {facts.unit}"),
        Column(name=phrase("Latency ", label("P50")), unit="ms"),
        Column(name=phrase("Latency ", label("P95")), unit="ms"),
        Column(name=phrase("Latency ", label("P99")), unit="ms"),
        Column(name=phrase("Throughput"), unit=f"{facts.units}/s"),
        *(Column(name=phrase(quoted(as_head(clip(q, 16), QUALITIES)))) for q in qualities),
        Column(name=phrase("Model size")),
        *([Column(name=phrase("Peak memory"))] if has_memory else []),
        Column(name=phrase("MACs"), unit=f"per {facts.unit}"),
        Column(name=phrase("Rounds")),
        Column(name=phrase("Highest load")),
        Column(name=phrase("CPU steal"), unit="s"),
    )
    rows = tuple(
        _measured_row(facts, arm, qualities, len(columns), has_memory=has_memory) for arm in arm_rows(facts)
    )
    return Table(
        caption=phrase("Measured on each step, with ", label("95 %"), " intervals"),
        head="Step",
        columns=columns,
        rows=rows,
        note=phrase(
            hidden_note(facts), "Latencies are of one call. A ", label("P99"), " needs at least ",
            label("299"), " calls to have an upper bound.", _front(facts),
        ),
    )  # fmt: skip


def _front(facts: Facts) -> Phrase:
    """Name the arms that no other beats in all measures at once; nothing without a front."""
    points = facts.comparison.pareto
    best = [p.step for p in points if p.on_front]
    if not points or len(best) > MOST_ON_FRONT:
        return ()
    measures = join_words(metric_words(m) for m in points[0].values)
    names: list[str | Phrase] = []
    for number, step in enumerate(best):
        names += [", " if number else "", phrase(quoted(facts.name(step)))]
    return phrase(
        " Not beaten in ", quoted(measures), " at once (Pareto front, by best values): ", *names, "."
    )


def _quality_names(facts: Facts) -> tuple[str, ...]:
    names = (q for arm in arm_rows(facts) if arm.metrics for q in arm.metrics.quality)
    return tuple(dict.fromkeys(names))[:2]


def is_told(facts: Facts, metric: str) -> bool:
    """Return whether an arm has a figure for a metric: a column of none is no reading matter."""
    found = (getattr(arm.metrics, metric) for arm in arm_rows(facts) if arm.metrics is not None)
    return any(e is not None and e.value is not None for e in found)


def _measured_row(
    facts: Facts, arm: ArmRow, qualities: Sequence[str], width: int, *, has_memory: bool
) -> Row:
    name = head(facts, arm.step, arm.status)
    m = arm.metrics
    if m is None:
        return Row(head=name, cells=(_NOTHING,) * width, mark="muted")
    enter = _Enter(facts, arm.step)
    cells = (
        enter(
            "cpu_per_unit", "CPU time per unit", m.cpu_s_per_unit, lambda e: fmt.duration(e, facts.cpu_scale)
        ).cell,
        *(latency(facts, arm.step, m, which).cell for which in LATENCIES),
        enter(
            "throughput", "throughput", m.throughput_per_s, lambda e: fmt.plain(e, f"{facts.units}/s")
        ).cell,
        *(_quality_cell(facts, arm.step, m, q) for q in qualities),
        _texts(enter("model_size", "size of the model", exact(m.model_bytes, "B"), fmt.size)),
        *([_memory_cell(enter, m)] if has_memory else []),
        _texts(enter("macs", "multiply-accumulates per unit", exact(m.macs_per_unit), fmt.count)),
        _texts(enter("rounds", "rounds measured", exact(m.rounds), fmt.count)),
        _texts(enter("load", "highest load average", exact(m.load_1m_max), fmt.plain)),
        enter(
            "steal", "CPU time taken by the hypervisor", exact(m.steal_s, "s"), lambda e: fmt.plain(e, "s")
        ).cell,
    )
    return Row(head=name, cells=cells, mark=MARKS.get(arm.status, ""))


def _quality_cell(facts: Facts, step: str, metrics: ArmMetrics, name: str) -> tuple[Phrase, ...]:
    if name not in metrics.quality:
        return _NOTHING
    entry = facts.quality(step, name, metrics.quality[name])
    return _lines(phrase(entry.text), phrase(entry.interval))


def _memory_cell(enter: _Enter, metrics: ArmMetrics) -> tuple[Phrase, ...]:
    found = metrics.peak_memory_bytes or unknown("B")
    return _texts(enter("peak_memory", "peak memory", found, fmt.size))


def latency(facts: Facts, step: str, metrics: ArmMetrics, which: str) -> Entry:
    """Enter a percentile of an arm's latency; ``which`` is one of ``LATENCIES``."""
    estimate: Estimate = getattr(metrics, f"latency_{which}_ms")
    show = _Enter(facts, step)
    return show(f"latency_{which}", LATENCIES[which], estimate, lambda e: fmt.plain(e, "ms"))


class _Enter:
    """Enters figures of one step."""

    def __init__(self, facts: Facts, step: str) -> None:
        self._facts, self._step = facts, step

    def __call__(
        self, name: str, words: str, estimate: Estimate, show: Callable[[Estimate], fmt.Printed]
    ) -> Entry:
        facts = self._facts
        return facts.book.enter(
            f"step.{facts.slug(self._step)}.{name}",
            f"{words} of {facts.name(self._step)}",
            estimate,
            show(estimate),
        )


def _texts(entry: Entry) -> tuple[Phrase, ...]:
    return _lines(phrase(entry.text), phrase(entry.interval))


def _lines(*lines: Phrase) -> tuple[Phrase, ...]:
    return tuple(line for line in lines if line)


# Used ----------------------------------------------------------------------


def used_table(facts: Facts) -> Table:
    """Return energy, emissions and cost per arm."""
    words = plain_text(facts.basis.words)
    beside = [name for name in _BESIDE if is_told(facts, name)]
    rows = []
    for arm in arm_rows(facts):
        name = head(facts, arm.step, arm.status)
        if arm.metrics is None:
            rows.append(Row(head=name, cells=(_NOTHING,) * (7 + len(beside)), mark="muted"))
            continue
        prefix = "baseline" if arm.status == "baseline" else f"step.{facts.slug(arm.step)}"
        amounts = facts.amounts(prefix, arm.amounts, f"of {facts.name(arm.step)}")
        energy = facts.energy_per_unit(arm.step, arm.metrics.energy_per_unit_j)
        cells = (
            energy.cell,
            *(_beside_cell(facts, arm.step, arm.metrics, name) for name in beside),
            _lines(phrase(_boundary(arm.metrics.boundary), ", ", _grade(arm.metrics.energy_per_unit_j))),
            _texts(amounts.energy), _texts(amounts.location), _texts(amounts.market), _texts(amounts.cost),
            _texts(amounts.embodied),
        )  # fmt: skip
        rows.append(Row(head=name, cells=cells, mark=MARKS.get(arm.status, "")))
    return Table(
        caption=phrase("Energy, emissions and cost (amounts ", facts.basis.words, ")"),
        head="Step",
        columns=(
            Column(name=phrase("Energy per ", quoted(facts.unit)), unit=facts.energy_scale.unit),
            *(Column(name=phrase(_BESIDE[name]), unit=_beside_unit(facts, name)) for name in beside),
            Column(name=phrase("Boundary, grade"), numeric=False),
            Column(name=phrase("Energy"), unit=words),
            Column(name=phrase("CO₂e location-based")),
            Column(name=phrase("CO₂e market-based")),
            Column(name=phrase("Cost")),
            Column(name=phrase("Embodied CO₂e")),
        ),
        rows=tuple(rows),
        note=phrase(
            "Absolute intervals hold the common error of the energy model, factors and prices; it cancels "
            "in the changes below. Embodied CO₂e is not part of the other two.",
            " Above idle: without the share of idle power, beside what is compared."
            if "dynamic_per_unit_j" in beside
            else "",
        ),
    )


def _beside_unit(facts: Facts, name: str) -> str:
    return "W" if name == "power_w" else facts.energy_scale.unit


def _beside_cell(facts: Facts, step: str, metrics: ArmMetrics, name: str) -> tuple[Phrase, ...]:
    enter = _Enter(facts, step)
    found: Estimate | None = getattr(metrics, name)
    if name == "power_w":
        return enter("power", "mean power", found or unknown("W"), lambda e: fmt.plain(e, "W")).cell
    return enter(
        "dynamic_per_unit",
        "energy per unit above idle power",
        found or unknown("J"),
        lambda e: fmt.energy(e, facts.energy_scale),
    ).cell


def _boundary(boundary: str | None) -> str:
    return "not stated" if boundary is None else "IT" if boundary == "it" else boundary


def _grade(estimate: Estimate) -> str:
    return f"grade {estimate.grade}" if estimate.grade else "grade not stated"


# Changed -------------------------------------------------------------------


def effect_table(facts: Facts) -> Table:
    """Return the change of each step, how sure it is and what follows."""
    columns = (
        Column(name=phrase("Compared with"), numeric=False),
        Column(name=phrase("Against that step")),
        Column(name=phrase("Against the baseline")),
        Column(name=phrase("p (Holm)")),
        Column(name=phrase("Detectable")),
        Column(name=phrase("Verdict"), numeric=False),
        Column(name=phrase("Quality and other gates"), numeric=False),
        Column(name=phrase("Decision"), numeric=False),
        Column(name=phrase("Reason"), numeric=False),
    )
    steps = facts.comparison.steps[: MOST_ROWS - 1]
    margin = exact(facts.comparison.study.margin)
    entry = facts.book.enter("study.margin", "change regarded as none", margin, fmt.percent(margin))
    return Table(
        caption=phrase("Change of energy per ", quoted(facts.unit), " and decision"),
        head="Step",
        columns=columns,
        rows=tuple(_effect_row(facts, s) for s in steps),
        note=phrase(
            "Ratios are taken within rounds, with simultaneous ",
            label("95 %"),
            " intervals. Changes within ±",
            entry.text,
            " count as the same. Detectable: the smallest change found with ",
            label("80 %"),
            " power.",
        ),
    )  # fmt: skip


def _effect_row(facts: Facts, step: StepResult) -> Row:
    failed = step.status == "failed"
    cells = (
        (phrase(quoted(facts.reference(step))),),
        _NOTHING if failed else _effect_cell(facts.effect(step, "previous", step.vs_previous)),
        _NOTHING if failed else _effect_cell(facts.effect(step, "baseline", step.vs_baseline)),
        _NOTHING if failed else (phrase(_p_value(facts, step).number),),
        _NOTHING if failed else (phrase(facts.minimum_detectable(step).text),),
        _NOTHING if failed else (phrase(_VERDICTS[step.verdict]),),
        tuple(
            phrase(quoted(metric_words(g.metric)), ": ", gate_phrase(facts, step.step, n, g, named=True))
            for n, g in list(enumerate(step.gates, start=1))[:4]
        )
        or _NOTHING,
        (phrase("failed" if failed else _DECISIONS[step.decision]),),
        (why(facts, step),),
    )
    return Row(head=head(facts, step.step), cells=cells, mark=MARKS.get(step.status, ""))


def _effect_cell(entry: Entry) -> tuple[Phrase, ...]:
    return _lines(phrase(entry.text), phrase(entry.interval))


def _p_value(facts: Facts, step: StepResult) -> Entry:
    p = step.vs_previous.p_holm if step.vs_previous else None
    return facts.book.enter(
        f"step.{facts.slug(step.step)}.p_holm",
        f"p-value of {facts.name(step.step)}, adjusted by Holm's method",
        unknown("1") if p is None else exact(p),
        fmt.probability(p),
    )
