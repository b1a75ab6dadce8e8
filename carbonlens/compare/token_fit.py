"""Energy of a prompt token and of an output token, measured over runs of differing lengths.

The model is E = a x + b y: x prompt tokens that no cache held, y output tokens after the
first of each request (the prefill writes the first). Least squares of the relative
residuals, because the scatter of an energy grows with it. Fixed costs of a request and the
growth of attention with length are not in the model; where they matter they are in the
scatter, and so in the intervals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from carbonlens.compare.student import quantile
from carbonlens.domain.counting import counted, with_article
from carbonlens.domain.estimate import Estimate, worst_grade
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.units import Z_95
from carbonlens.errors import IncomparableError, MeasurementError

LEAST_RUNS: Final = 3
"""Two coefficients and one degree of freedom for their intervals; that takes a t of 12.7."""

WORST_CONDITION: Final = 30.0
"""Condition number of the scaled columns from which coefficients are not to be had: the
customary limit of strong collinearity (Belsley, Kuh and Welsch, Regression Diagnostics, 1980)."""

_LIKE: Final = 1.05
_MEND: Final = "measure prompts alone (max_new_tokens=1) beside long outputs, at least three lengths in all"


class TokenPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement: an energy in joules, and the tokens it was used for.

    Attributes:
        computed: Prompt tokens that no cache held.
        decoded: Output tokens after the first of each request.
        name: For messages.
    """

    energy: Estimate
    computed: int
    decoded: int
    name: str = ""


class TokenFit(msgspec.Struct, frozen=True, kw_only=True):
    """What a fit over runs tells.

    Attributes:
        per_prompt: Joules a prompt token.
        per_decoded: Joules an output token.
        points: How many measurements it rests on.
        scatter: Standard deviation of the energies about the fit, relative.
        condition: Condition number of the scaled columns; 1 is best.
    """

    per_prompt: Estimate
    per_decoded: Estimate
    points: int
    scatter: float
    condition: float
    findings: tuple[Finding, ...] = ()


def fit_tokens(runs: Sequence[Run]) -> TokenFit:
    """Return the energy of a prompt token and of an output token over runs.

    Runs that did not complete, that hold another one of the runs, or that are given twice
    are left out, and a Finding says so.

    Args:
        runs: Of one step (one model) on one machine, of differing proportions of prompt and output.

    Raises:
        IncomparableError: If a run does not tell its energy or tokens, or they differ in
            step, boundary or hardware.
        MeasurementError: If the runs do not tell both apart.
    """
    runs, left_out = _fit_for_it(runs)
    for what, values in (
        ("step", {r.step for r in runs}),
        ("boundary", {r.boundary for r in runs}),
        ("hardware", {r.hardware for r in runs}),
    ):
        if len(values) > 1:
            raise IncomparableError(
                f"the runs differ in {what}: {', '.join(sorted(map(str, values)))}",
                mend="fit runs of one step, one machine and one kind of meter",
            )
    fit = fit_token_points([_point_of(run) for run in runs])
    return msgspec.structs.replace(fit, findings=(*fit.findings, *left_out, *_batches(runs)))


def fit_token_points(points: Sequence[TokenPoint]) -> TokenFit:
    """Return the energy of a prompt token and of an output token over measurements.

    Args:
        points: At least three.

    Raises:
        IncomparableError: If an energy is unknown or not positive.
        MeasurementError: If there are too few points, or they do not tell both apart.
    """
    if len(points) < LEAST_RUNS:
        raise MeasurementError(f"{len(points)} measurements, and {LEAST_RUNS} are wanted", mend=_MEND)
    rows = [_row(point) for point in points]
    xx = math.fsum(x * x for x, _ in rows)
    yy = math.fsum(y * y for _, y in rows)
    xy = math.fsum(x * y for x, y in rows)
    condition = condition_number(xx, yy, xy)
    if condition > WORST_CONDITION:
        raise MeasurementError(
            "the measurements have prompt and output in nearly one proportion, or one of them not at all: "
            f"what each costs cannot be told (condition number {condition:.3g}, at most {WORST_CONDITION:g})",
            mend=_MEND,
        )
    det = xx * yy - xy * xy
    ends = {"per_prompt": (yy / det, -xy / det), "per_decoded": (-xy / det, xx / det)}
    weights = {name: [p * x + q * y for x, y in rows] for name, (p, q) in ends.items()}
    a, b = (math.fsum(weights[name]) for name in ends)
    df = len(points) - 2
    scatter = math.sqrt(math.fsum((1 - a * x - b * y) ** 2 for x, y in rows) / df)
    wide = quantile(0.975, df) / Z_95
    sigmas = (scatter * wide * math.sqrt(yy / det), scatter * wide * math.sqrt(xx / det))
    prompt = _coefficient(a, sigmas[0], points, weights["per_prompt"])
    decoded = _coefficient(b, sigmas[1], points, weights["per_decoded"])
    return TokenFit(
        per_prompt=prompt,
        per_decoded=decoded,
        points=len(points),
        scatter=scatter,
        condition=condition,
        findings=_not_told({"prompt token": prompt, "output token": decoded}),
    )


def condition_number(xx: float, yy: float, xy: float) -> float:
    """Return the condition number of two columns scaled to unit length.

    The scaled cross product has ones and the cosine c, so eigenvalues 1 + c and 1 - c.

    Args:
        xx: Sum of squares of the first column.
        yy: Of the second.
        xy: Sum of the products.
    """
    if xx <= 0 or yy <= 0:
        return math.inf
    cosine = min(abs(xy) / math.sqrt(xx * yy), 1.0)
    return math.inf if cosine == 1 else math.sqrt((1 + cosine) / (1 - cosine))


def _row(point: TokenPoint) -> tuple[float, float]:
    joules = point.energy.value
    if joules is None or not joules > 0:
        raise IncomparableError(
            "its energy is unknown or none", where=point.name or None, mend="leave it out, or measure again"
        )
    return point.computed / joules, point.decoded / joules


def _coefficient(
    value: float, sigma: float, points: Sequence[TokenPoint], weights: Sequence[float]
) -> Estimate:
    """Return one coefficient with the errors of the energies that it is made of.

    It is the sum of weight x (energy / energy): an error of one energy moves it by the
    weight times its relative size, with the weights held. The scatter holds the random
    errors; where they are known to be larger than what a few runs happened to show, they count.
    """
    random = 0.0
    common: dict[str, float] = {}
    for point, weight in zip(points, weights, strict=True):
        scale = weight / (point.energy.value or 1.0)
        random = math.hypot(random, scale * point.energy.u_random)
        for name, u in point.energy.u_by_source.items():
            common[name] = common.get(name, 0.0) + scale * u
    known = all(p.energy.state == "known" for p in points)
    return Estimate(
        value=value,
        unit="J",
        state="known" if known else "unbounded",
        grade=worst_grade(p.energy.grade for p in points),
        u_random=max(sigma, random),
        u_by_source=common,
        signed=True,
        bounds=(None, None) if any(p.energy.has_unknown_width for p in points) else None,
    )


def _point_of(run: Run) -> TokenPoint:
    tokens = run.tokens
    if tokens is None or tokens.computed is None or tokens.decoded is None:
        raise IncomparableError(
            "it does not tell its prompt, cached and output tokens",
            where=run.run_id,
            mend="leave it out, or count them: track_generate, or run.record_tokens(cached=0, ...)",
        )
    return TokenPoint(
        energy=run.total_energy, computed=tokens.computed, decoded=tokens.decoded, name=run.run_id
    )


def _fit_for_it(runs: Sequence[Run]) -> tuple[list[Run], tuple[Finding, ...]]:
    """Return the runs that may be in a fit, each joule once, and what must be said of the others."""
    kept: list[Run] = []
    why = dict.fromkeys(("not complete", "given twice", "around another of them"), 0)
    parents = {r.parent_run_id for r in runs}
    for run in runs:
        if run.status != "complete":
            why["not complete"] += 1
        elif run in kept:
            why["given twice"] += 1
        elif run.run_id in parents:
            why["around another of them"] += 1
        else:
            kept.append(run)
    if len(kept) == len(runs):
        return kept, ()
    said = ", ".join(f"{count} {reason}" for reason, count in why.items() if count)
    return kept, (
        Finding(
            code="CL462",
            severity="warning",
            message=f"{len(runs) - len(kept)} of {counted(len(runs), 'run')} not in the fit: {said}",
            mend="give complete runs, each once, none inside another",
            subject="tokens",
        ),
    )


def _batches(runs: Sequence[Run]) -> tuple[Finding, ...]:
    """Say where runs differ in how many sequences they write at a time."""
    sizes = [
        r.tokens.requests / r.tokens.first_token.n
        for r in runs
        if r.tokens is not None and r.tokens.requests and r.tokens.first_token and r.tokens.first_token.n
    ]
    if not sizes or max(sizes) < _LIKE * min(sizes):
        return ()
    return (
        Finding(
            code="CL461",
            severity="warning",
            message=f"runs of {min(sizes):.3g} to {max(sizes):.3g} sequences a call are in one fit: "
            "what a token costs depends on that",
            mend="fit runs of one batch size",
            subject="tokens",
        ),
    )


def _not_told(coefficients: Mapping[str, Estimate]) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            code="CL460",
            severity="warning",
            message=f"the energy of {with_article(name)} is not told apart from none",
            mend="measure more runs, and more differing ones",
            subject="tokens",
        )
        for name, found in coefficients.items()
        if found.value is not None and (found.value <= 0 or found.value <= Z_95 * found.u_random)
    )
