"""Quality: intervals of proportions, and of the loss between two arms.

Paired outcomes give the narrowest honest interval; value and count give a
wider one; a value alone gives none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from carbonlens.compare.arms import Arm
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.run import Quality
from carbonlens.domain.units import Z_95

Outcomes = Mapping[str, Sequence[int]]
"""Per-example outcomes, 1 right and 0 wrong, by the hash of their sidecar."""


NO_DIRECTION: Final = (
    "whether more or less of it is better is not stated: state higher_is_better with it (bench and "
    "record_quality), or the column quality_direction (run tables)"
)
"""Why nothing can be said about a loss."""

CONTRADICTING: Final = (
    "the arms contradict each other: one says that more of it is better, the other that less is; "
    "correct the direction of one"
)
"""Why nothing can be said where both directions are stated."""

BARE: Final = "a bare value has no interval: record per-example outcomes, or a share with its count"
"""Why nothing can be decided by a figure of whose spread nothing is known."""

OF_PERCENT: Final = (
    "is no share of 0 to 1, so its count says nothing and a bare value has no interval: record a share "
    "as 0.912, not 91.2, or per-example outcomes"
)
"""Why a figure with its count has no interval, after the figure."""

_ROUNDED: Final = 0.005
"""Half a percentage point: figures that differ by less may be one figure, rounded."""


def paired_difference(
    first: Sequence[int], second: Sequence[int], z: float = Z_95
) -> tuple[float, float, float]:
    """Return the difference of two paired proportions with its 95 % interval.

    The adjusted Wald interval of Bonett and Price (2012, J. Educ. Behav. Stat.
    37(4)): one is added to each discordant count, which keeps the coverage when
    few pairs differ.

    Args:
        first: 0/1 outcomes of one arm.
        second: Outcomes of the other arm on the same examples in the same order.
        z: Normal quantile of the interval.

    Returns:
        ``mean(first) - mean(second)``, lower and upper end.

    Raises:
        ValueError: If the arms have no or different numbers of examples.
    """
    n = len(first)
    if n == 0 or n != len(second):
        raise ValueError(f"paired outcomes need the same examples, not {n} and {len(second)}")
    only_first = sum(1 for a, b in zip(first, second, strict=True) if a and not b)
    only_second = sum(1 for a, b in zip(first, second, strict=True) if b and not a)
    p, q = (only_first + 1) / (n + 2), (only_second + 1) / (n + 2)
    half = z * math.sqrt((p + q - (p - q) ** 2) / (n + 2))
    return (only_first - only_second) / n, max(-1.0, p - q - half), min(1.0, p - q + half)


def wilson(share: float, n: int, z: float = Z_95) -> tuple[float, float]:
    """Return Wilson's 95 % score interval of a proportion (Wilson 1927).

    Args:
        share: Observed proportion, 0 to 1.
        n: Number of examples, at least 1.
        z: Normal quantile of the interval.

    Raises:
        ValueError: If the share is no proportion or there are no examples.
    """
    if not 0 <= share <= 1 or n < 1:
        raise ValueError(f"a proportion lies between 0 and 1 and has examples, not {share} of {n}")
    z2 = z * z
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, centre - half), min(1.0, centre + half)


def independent_difference(
    a: float, of_a: tuple[float, float], b: float, of_b: tuple[float, float]
) -> tuple[float, float]:
    """Return the 95 % interval of ``a - b`` from the intervals of both.

    Newcombe's (1998, method 10) square-and-add, which for proportions uses
    Wilson's limits; it holds for any two independent figures.

    Args:
        a: First figure.
        of_a: Its interval.
        b: Second figure.
        of_b: Its interval.
    """
    low = a - b - math.hypot(a - of_a[0], of_b[1] - b)
    high = a - b + math.hypot(of_a[1] - a, b - of_b[0])
    return low, high


def quality_of(arm: Arm, recorded: Sequence[Quality], outcomes: Outcomes) -> dict[str, Estimate]:
    """Return every quality figure of an arm, with Wilson's interval where it is a proportion.

    Args:
        arm: The arm; its own runs come first.
        recorded: Figures recorded in other runs of the step.
        outcomes: Per-example outcomes by hash.
    """
    names = dict.fromkeys(q.name for q in _figures(arm, recorded))
    return {name: _estimate(find_quality(arm, recorded, name), outcomes) for name in names}


def find_quality(arm: Arm, recorded: Sequence[Quality], name: str) -> Quality | None:
    """Return the step's figure of that name.

    Where its rounds agree that is the best supported one: outcomes come before
    a count, a count before a bare value; of equals the one over most examples.
    Bare values within half a point are one figure, rounded: their mean. Where they do not
    agree it is their pooled share, because one round is not the step. Repeated
    rounds may see the same examples again, so the pooled share keeps the count
    of the largest round: rounds add no examples.

    Args:
        arm: The arm.
        recorded: Figures recorded in other runs of the step.
        name: For example ``accuracy``.
    """
    best, rivals = _candidates(arm, recorded, name)
    if best is None or (_support(best) > 1 and all(_is_alike(best, q) for q in rivals)):
        return best
    return _pooled(best, rivals) if rivals else best


def disagreement(arm: Arm, recorded: Sequence[Quality], name: str) -> tuple[float, float] | None:
    """Return the least and largest figure of rounds that disagree; ``None`` where they agree.

    Args:
        arm: The arm.
        recorded: Figures recorded in other runs of the step.
        name: For example ``accuracy``.
    """
    best, rivals = _candidates(arm, recorded, name)
    if best is None or all(_is_alike(best, q) for q in rivals):
        return None
    values = [q.value for q in rivals if q.value is not None]
    return min(values), max(values)


def is_binary(scores: Sequence[float]) -> bool:
    """Return whether per-example outcomes are 0 or 1 throughout, as the intervals here need."""
    return all(s in (0, 1) for s in scores)


def loss(
    baseline: Quality | None, step: Quality | None, outcomes: Outcomes, z: float = Z_95
) -> tuple[Estimate, str | None]:
    """Return how much quality a step loses, positive when it is worse.

    Args:
        baseline: The baseline's figure.
        step: The step's figure.
        outcomes: Per-example outcomes by hash.
        z: Normal quantile of the interval.

    Returns:
        The loss in the figure's own unit; and why it has no interval, if so.
    """
    if baseline is None or step is None or not is_known(baseline) or not is_known(step):
        return Estimate(value=None, unit="1", state="unknown", signed=True), "not recorded in both arms"
    is_more_better = direction_of(baseline, step)
    if is_more_better is None:
        return Estimate(value=None, unit="1", state="unknown", signed=True), why_no_direction(baseline, step)
    sign = 1.0 if is_more_better else -1.0
    if not (has_usable(baseline, outcomes) and has_usable(step, outcomes)):
        difference = sign * ((baseline.value or 0.0) - (step.value or 0.0))
        graded = Estimate(value=difference, unit="1", signed=True, bounds=(None, None))
        return graded, "its per-example outcomes are not 0 or 1, so they give no interval"
    pair = paired_outcomes(baseline, step, outcomes)
    if pair is not None:
        value, low, high = paired_difference(*pair, z)
        ends = (low, high) if sign > 0 else (-high, -low)
        return Estimate(value=sign * value, unit="1", signed=True, bounds=ends), None
    first, second = baseline.value or 0.0, step.value or 0.0
    value = sign * (first - second)
    a, b = wilson_of(baseline, z), wilson_of(step, z)
    if a is None or b is None:
        plain = Estimate(value=value, unit="1", signed=True, bounds=(None, None))
        return plain, why_bare(baseline, step)
    low, high = independent_difference(first, a, second, b)
    ends = (low, high) if sign > 0 else (-high, -low)
    return Estimate(value=value, unit="1", signed=True, bounds=ends), None


def direction_of(baseline: Quality, step: Quality) -> bool | None:
    """Return whether more is better; ``None`` where nobody says, or the arms contradict each other.

    Args:
        baseline: The baseline's figure.
        step: The step's figure.
    """
    stated = {q.higher_is_better for q in (baseline, step)} - {None}
    return stated.pop() if len(stated) == 1 else None


def why_no_direction(baseline: Quality, step: Quality) -> str:
    """Return why ``direction_of`` is not known."""
    stated = {q.higher_is_better for q in (baseline, step)}
    return CONTRADICTING if stated >= {True, False} else NO_DIRECTION


def why_bare(*figures: Quality) -> str:
    """Return why figures without outcomes have no interval, with the scale that shuts one out."""
    counted_in = (q.value for q in figures if q.value is not None and _examples(q))
    beyond = next((v for v in counted_in if not 0 <= v <= 1), None)
    return BARE if beyond is None else f"{beyond:g} {OF_PERCENT}"


def _candidates(arm: Arm, recorded: Sequence[Quality], name: str) -> tuple[Quality | None, list[Quality]]:
    """Return the best supported figure, and those it must agree with to stand for the step.

    Those are the measured rounds' own. Where they have none they are the figures
    recorded elsewhere with the same support; training also records poorer ones.
    """
    own = [q for r in arm.runs for q in r.quality if q.name == name and is_known(q)]
    found = [q for q in _figures(arm, recorded) if q.name == name]
    best = max(found, key=_rank, default=None)
    if best is None or not is_known(best):
        return best, []
    return best, own or [q for q in found if _support(q) == _support(best)]


def _is_alike(best: Quality, other: Quality) -> bool:
    """Whether two figures are the same; a bare one is often printed with few digits."""
    if best.value is None or other.value is None or best.higher_is_better != other.higher_is_better:
        return False
    return abs(best.value - other.value) < (1e-9 if _support(other) > 1 else _ROUNDED)


def _pooled(best: Quality, rivals: Sequence[Quality]) -> Quality:
    known = [(q.value, _examples(q)) for q in rivals if q.value is not None]
    counts = [n for _, n in known if n]
    if len(counts) < len(known):
        # Figures without a count weigh alike, and their mean is as bare as they are.
        return replace(best, value=math.fsum(v for v, _ in known) / len(known), n=None, outcomes_sha256=None)
    value = math.fsum(v * n for v, n in known) / sum(counts)
    return replace(best, value=value, n=max(counts), outcomes_sha256=None)


def has_usable(quality: Quality, outcomes: Outcomes) -> bool:
    """Return whether a figure's outcomes, if it has any, are 0 or 1 throughout."""
    return is_binary(outcomes.get(quality.outcomes_sha256 or "", ()))


def _figures(arm: Arm, recorded: Sequence[Quality]) -> list[Quality]:
    return [*(q for r in arm.runs for q in r.quality), *recorded]


def is_known(quality: Quality) -> bool:
    """Return whether there is a figure. One over no examples is often NaN; that is none."""
    return quality.value is not None and math.isfinite(quality.value)


def _rank(quality: Quality) -> tuple[int, int, float, str, str]:
    """Return what puts one figure before another, whatever order they are read in."""
    value = quality.value if is_known(quality) and quality.value is not None else -math.inf
    sha, direction = quality.outcomes_sha256 or "", str(quality.higher_is_better)
    return _support(quality), _examples(quality), value, sha, direction


def _support(quality: Quality) -> int:
    if not is_known(quality):
        return 0
    if quality.outcomes_sha256 is not None:
        return 3
    return 2 if _examples(quality) else 1


def _examples(quality: Quality) -> int:
    """Return how many examples a figure rests on; 0 where unknown, as an impossible count is."""
    return max(quality.n or 0, 0)


def paired_outcomes(
    baseline: Quality, step: Quality, outcomes: Outcomes
) -> tuple[Sequence[int], Sequence[int]] | None:
    """Return the outcomes of both arms on the same examples; ``None`` where they are not told.

    Args:
        baseline: The baseline's figure.
        step: The step's figure.
        outcomes: Per-example outcomes by hash.
    """
    a = outcomes.get(baseline.outcomes_sha256 or "")
    b = outcomes.get(step.outcomes_sha256 or "")
    if not a or not b or len(a) != len(b):
        return None
    # Outcomes that do not average to their figure are of something else (a percentage, a subset).
    if not (_agree(baseline, a) and _agree(step, b)):
        return None
    return a, b


def _agree(quality: Quality, scores: Sequence[int]) -> bool:
    return quality.value is not None and abs(sum(scores) / len(scores) - quality.value) < _ROUNDED


def wilson_of(quality: Quality, z: float = Z_95) -> tuple[float, float] | None:
    """Return the binomial interval of a share with its count; ``None`` for any other figure."""
    if quality.value is None or not _examples(quality) or not 0 <= quality.value <= 1:
        return None
    return wilson(quality.value, _examples(quality), z)


def _estimate(quality: Quality | None, outcomes: Outcomes) -> Estimate:
    if quality is None or not is_known(quality):
        return Estimate(value=None, unit="1", state="unknown")
    scores = outcomes.get(quality.outcomes_sha256 or "")
    if scores and not is_binary(scores):
        return Estimate(value=quality.value, unit="1", bounds=(None, None))
    if scores:
        share = sum(scores) / len(scores)
        return Estimate(value=share, unit="1", bounds=wilson(share, len(scores)))
    return Estimate(value=quality.value, unit="1", bounds=wilson_of(quality) or (None, None))
