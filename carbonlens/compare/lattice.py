"""Lattice: combinations of optimizations, each on or off, and Shapley values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import factorial

from msgspec.structs import replace

from carbonlens.compare.arms import Arm
from carbonlens.compare.batch import contrasts, log_changes
from carbonlens.compare.contrast import log_change, saving
from carbonlens.compare.decision import about_total, decide, failed, judge, not_beside, of_gate
from carbonlens.compare.effects import Change, study_effects
from carbonlens.compare.from_runs import is_chain
from carbonlens.compare.gates import check_gates
from carbonlens.compare.material import Material, Outline
from carbonlens.compare.metrics import metrics_of
from carbonlens.compare.orders import MeasuredOrders, missing_cells, order_mean, shapley_estimate
from carbonlens.domain.comparison import (
    Amounts,
    AttributionMethod,
    Effect,
    GateResult,
    OrderRange,
    StepResult,
)
from carbonlens.domain.finding import Finding
from carbonlens.domain.study import Step, Study

Cell = frozenset[str]
Weights = list[tuple[float, Cell]]


def is_lattice(study: Study, baseline_on: Cell | None) -> bool:
    """Return whether the steps are combinations that do not form a chain.

    A study that says what its steps are measured on is a ladder.

    Args:
        study: With the sets of its steps.
        baseline_on: Optimizations that are on in the baseline, when stated.
    """
    steps = [Step(name=study.baseline, on=tuple(baseline_on or ())), *study.steps]
    if len(steps) < 2 or any(s.on is None or s.measured_on is not None for s in steps):
        return False
    sets = [frozenset(s.on or ()) for s in steps]
    distinct = len(set(sets)) == len(sets)
    return distinct and all(sets[0] < s for s in sets[1:]) and not is_chain(steps)


def shapley_weights(player: str, players: Sequence[str]) -> Weights:
    """Return the weights of the cells in a player's Shapley value (Shapley 1953).

    ``sum over S without i of |S|! (n - |S| - 1)! / n! * (c(S) - c(S + i))``.

    Args:
        player: An optimization.
        players: All optimizations.
    """
    others = [p for p in players if p != player]
    n = len(players)
    weights: Weights = []
    for size in range(n):
        weight = factorial(size) * factorial(n - size - 1) / factorial(n)
        for chosen in combinations(others, size):
            without = frozenset(chosen)
            weights += [(weight, without), (-weight, without | {player})]
    return weights


def interaction_weights(players: Sequence[str]) -> Weights:
    """Return the weights of "sum of leave-one-in savings minus the total".

    Args:
        players: All optimizations.
    """
    alone: Weights = [(-1.0, frozenset({p})) for p in players]
    return [(len(players) - 1.0, frozenset()), *alone, (1.0, frozenset(players))]


def main_effect_weights(player: str, cells: Mapping[Cell, Arm]) -> Weights:
    """Return the weights of the mean change by a player over all measured pairs.

    Args:
        player: An optimization.
        cells: Measured cells.
    """
    pairs = [(s, s | {player}) for s in cells if player not in s and s | {player} in cells]
    share = 1.0 / len(pairs) if pairs else 0.0
    return [term for off, on in pairs for term in ((share, on), (-share, off))]


def shapley(cells: Mapping[Cell, Arm], players: Sequence[str]) -> dict[str, Amounts]:
    """Return every player's Shapley value; empty when a cell is missing.

    Args:
        cells: Measured cells.
        players: All optimizations.
    """
    if len(cells) < 2 ** len(players):
        return {}
    return contrasts({p: shapley_weights(p, players) for p in players}, cells)


def outline(material: Material) -> Outline:
    """Return effects, Shapley values and decisions of a lattice.

    Args:
        material: The study's arms, one per cell.
    """
    study = material.study
    shared = _shared(material)
    cells = {_set(material, name) - shared: arm for name, arm in material.arms.items()}
    players = _players(study, shared)
    orders = MeasuredOrders(cells, players)
    main = _main_effects(material, cells, players)
    alone = _alone_effects(material, cells, players)
    full = frozenset(players)
    end = None if _error_of(material, full) else cells.get(full)
    whole = None if end is None else saving(material.baseline, end)
    method, parts, of_parts = _parts(study, cells, players, orders) if end else (None, {}, ())
    together = () if end is None else _gates_together(material, end)
    steps: Iterable[StepResult] = (
        replace(
            _result(material, p, cells, main, alone, parts),
            leave_one_out=_leave_one_out(material, p, full, cells),
        )
        for p in players
    )
    if method is not None:
        joules = {cell: arm.series["energy_j"].mean.value for cell, arm in cells.items()}
        steps = (replace(s, order_range=_range(material, orders, s.step, joules)) for s in steps)
    effect = None if end is None else _effect_of(material, end)
    judged = tuple(_beside_the_total(s, together) for s in steps)
    return Outline(
        mode="lattice",
        steps=judged,
        path=(study.baseline, *players),
        saving=whole,
        end=end,
        effect=effect,
        gates=together,
        decision=None
        if end is None
        else decide("inconclusive" if effect is None else effect.verdict, together),
        made=_made(material, full),
        interaction_j=_interaction(cells, players),
        findings=_gaps(cells, players, orders)
        + of_parts
        + (() if end is None else about_total(judged, together)),
        method=method,
        orders=orders.coverage,
    )


def _gates_together(material: Material, end: Arm) -> tuple[GateResult, ...]:
    """Return the gates of the full set, whose saving is the total."""
    first = material.measured(material.study.baseline)
    if first is None:
        return ()
    return check_gates(material.study.gates, first, material.measured(end.name), material.outcomes)


def _beside_the_total(step: StepResult, together: Sequence[GateResult]) -> StepResult:
    """Return a step that is not adopted where all together fail a gate: the total cannot be claimed."""
    broken = next((g for g in together if g.outcome == "fail"), None)
    if broken is None or step.decision != "adopt":
        return step
    return replace(
        step,
        decision="undetermined",
        status="undetermined",
        reason="gate_undetermined",
        reasons=(f"{of_gate(broken)}, with all steps on together", *step.reasons),
    )


def _players(study: Study, shared: Cell) -> list[str]:
    """Return the optimizations: in the study's own order where it names them, else as steps do."""
    found = dict.fromkeys(o for s in study.steps for o in s.on or () if o not in shared)
    return [
        *(o for o in study.optimizations if o in found),
        *(o for o in found if o not in study.optimizations),
    ]


def _parts(
    study: Study, cells: Mapping[Cell, Arm], players: Sequence[str], orders: MeasuredOrders
) -> tuple[AttributionMethod | None, dict[str, Amounts], tuple[Finding, ...]]:
    """Return the best supported parts of the saving, and how they were made."""
    exact = shapley(cells, players)
    if exact:
        return "shapley", exact, ()
    drawn = study.orders if all(set(o) == set(players) for o in study.orders) else ()
    missing = missing_cells(drawn, cells)
    if drawn and not missing:
        return "shapley_estimate", shapley_estimate(cells, players, drawn), ()
    findings: tuple[Finding, ...] = ()
    if study.orders:
        why = f"{len(missing)} of their combinations are not measured" if missing else "they name other steps"
        findings = (
            Finding(
                code="CL442",
                severity="warning",
                message=f"the study's drawn orders give no estimate of Shapley values: {why}",
                mend=f"measure {_spelled(missing)}" if missing else "let each order name every optimization",
            ),
        )
    parts = order_mean(cells, players, orders)
    return ("order_mean" if parts else None), parts, findings


def _range(
    material: Material, orders: MeasuredOrders, player: str, joules: Mapping[Cell, float | None]
) -> OrderRange | None:
    found = orders.range_of(player, joules)
    if found is None:
        return None
    return OrderRange(low_j=found.low_j * material.volume, high_j=found.high_j * material.volume)


def _spelled(cells: Sequence[Cell], most: int = 4) -> str:
    shown = ", ".join("+".join(sorted(c)) or "the baseline" for c in cells[:most])
    return shown if len(cells) <= most else f"{shown} and {len(cells) - most} more"


def _effect_of(material: Material, end: Arm) -> Effect:
    """Return the change of the full set against the baseline, one test of its own."""
    log = log_change([(1.0, end), (-1.0, material.baseline)])
    change = Change(reference=material.study.baseline, log=log)
    return study_effects({end.name: change}, material.study)[end.name]


def _made(material: Material, full: Cell) -> tuple[str, ...]:
    """Return the steps whose effort the full set needs.

    That is every single optimization's and the full set's own, what it took to put
    them together. Where only the full set's is recorded it is all there was. Other
    combinations were measured and are not adopted.
    """
    names = {g.on - _shared(material): n for n, g in material.groups.items() if g.on is not None}
    whole = names.get(full)
    singles = [n for cell, n in names.items() if len(cell) == 1 and n != whole]
    # What an optimization took that was not measured alone stands under its name; a combination may
    # carry that name too, and its own work is counted once, or not adopted.
    hours = material.study.optimization_hours
    beside = [o for o in material.efforts if o in full and (o not in material.groups or o in hours)]
    singles += [o for o in beside if o != whole and o not in singles]
    has_own = whole is not None and whole in material.efforts
    if whole is not None and (not singles or (has_own and not any(n in material.efforts for n in singles))):
        return (whole,)
    return (*singles, whole) if has_own and whole is not None else tuple(singles)


def _main_effects(material: Material, cells: Mapping[Cell, Arm], players: Sequence[str]) -> dict[str, Effect]:
    weights = {p: w for p in players if (w := main_effect_weights(p, cells))}
    changes = {
        player: Change(reference=f"the same without {player}", log=log)
        for player, log in log_changes(weights, cells).items()
    }
    return study_effects(changes, material.study)


def _alone_effects(
    material: Material, cells: Mapping[Cell, Arm], players: Sequence[str]
) -> dict[str, Effect]:
    changes = {
        p: Change(
            reference=material.study.baseline,
            log=log_change([(1.0, cells[frozenset({p})]), (-1.0, cells[frozenset()])]),
        )
        for p in players
        if frozenset({p}) in cells
    }
    return study_effects(changes, material.study)


def _result(
    material: Material,
    player: str,
    cells: Mapping[Cell, Arm],
    main: Mapping[str, Effect],
    alone: Mapping[str, Effect],
    parts: Mapping[str, Amounts],
) -> StepResult:
    study = material.study
    arm = cells.get(frozenset({player}))
    measured = None if arm is None else material.measured(arm.name)
    first = material.measured(study.baseline)
    gates = () if first is None else check_gates(study.gates, first, measured, material.outcomes)
    effect = main.get(player)
    error = _error_of(material, frozenset({player}))
    judgement = failed(error) if error else judge(effect, gates, unit=study.unit, margin=study.margin)
    for name, group in material.groups.items():
        if not error and group.failed and group.raised and player in (group.on or ()):
            judgement = not_beside(judgement, name, group.error)
    alone_saving = None if arm is None else material.for_volume(saving(material.baseline, arm))
    title = next((s.title for s in study.steps if arm is not None and s.name == arm.name and s.title), player)
    return StepResult(
        step=player,
        title=title,
        on=(player,),
        measured_on=study.baseline,
        status=judgement.status,
        vs_previous=effect,
        vs_baseline=alone.get(player),
        savings=alone_saving,
        attribution=material.for_volume(parts[player]) if player in parts else None,
        would_have=alone_saving,
        verdict="inconclusive" if effect is None else effect.verdict,
        gates=gates,
        decision=judgement.decision,
        reasons=judgement.reasons,
        reason=judgement.reason,
        metrics=None if measured is None else metrics_of(measured, material.outcomes),
        effort=material.efforts.get(player if arm is None else arm.name),
        error=error or None,
        amounts=None if arm is None else material.for_volume(arm.amounts),
    )


def _leave_one_out(material: Material, player: str, full: Cell, cells: Mapping[Cell, Arm]) -> Amounts | None:
    """Return what the full set saves more than the same without one optimization."""
    with_it, without = cells.get(full), cells.get(full - {player})
    if with_it is None or without is None:
        return None
    return material.for_volume(saving(without, with_it))


def _interaction(cells: Mapping[Cell, Arm], players: Sequence[str]) -> Amounts | None:
    weights = interaction_weights(players)
    if any(cell not in cells for _, cell in weights):
        return None
    return contrasts({"together": weights}, cells)["together"]


def _gaps(cells: Mapping[Cell, Arm], players: Sequence[str], orders: MeasuredOrders) -> tuple[Finding, ...]:
    needed = 2 ** len(players)
    if len(cells) == needed:
        return ()
    told = f"; {orders.measured} of {orders.coverage.possible} orders of switching on are measured in full"
    if frozenset(players) not in cells:
        told = "; the full set is not measured, so there is no total"
    return (
        Finding(
            code="CL413",
            severity="warning",
            message=f"{len(cells)} of {needed} combinations are measured: no Shapley values{told}",
            mend="measure the missing combinations",
        ),
    )


def _error_of(material: Material, cell: Cell) -> str:
    """Return the error of a cell that failed, else nothing."""
    shared = _shared(material)
    groups = (g for g in material.groups.values() if g.failed and g.on is not None and g.on - shared == cell)
    return next((g.error for g in groups if g.has_failed), "")


def _shared(material: Material) -> Cell:
    """Return the optimizations that are on in the baseline too."""
    return material.baseline.on or frozenset()


def _set(material: Material, name: str) -> Cell:
    return material.arms[name].on or frozenset()
