"""Energy of tokens: per output token, per request, and prompt and output apart.

One run tells its energy as a whole. How it divides between computing the prompts
(prefill) and writing (decode) follows from time only if the power is the same in both,
which is assumed here, and assumed with the width of a datasheet figure: the prefill keeps
the arithmetic units busy, the decode the memory, and which draws more depends on the
hardware. ``compare.token_fit`` measures it instead, over several runs.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

from carbonlens.accounting.formulas import Quantity
from carbonlens.domain.estimate import Estimate, unknown, worst_grade
from carbonlens.domain.finding import Finding
from carbonlens.domain.grades import DATASHEET_FACTOR_95
from carbonlens.domain.run import Run
from carbonlens.domain.tokens import Tokens
from carbonlens.domain.units import Z_95

POWER_RATIO: Final = "prefill_decode_power_ratio"
"""Source of error of the split by time: the power of prefill over that of decode, taken as 1."""

_RATIO_SIGMA: Final = math.log(DATASHEET_FACTOR_95) / Z_95
_OUTSIDE: Final = 0.05
"""Share of the window outside of calls from which it is said."""

_PER_THOUSAND: Final = 1000


class TokenFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a run's tokens cost; energies in joules at the boundary of the run.

    Attributes:
        per_output: The run's whole energy over its output tokens: prompts and all else in it.
        per_thousand_output: The same for 1000 output tokens.
        per_request: The run's whole energy over its requests.
        prefill, decode: The run's energy split by time.
        per_prompt: Prefill energy over the prompt tokens that no cache held.
        per_decoded: Decode energy over the output tokens after the first of each request,
            which the prefill writes.
        output_per_s: Output tokens over the length of the run.
        decoded_per_s: Output tokens after the first over the seconds of decoding.
        findings: What must be said of them.
    """

    per_output: Estimate
    per_thousand_output: Estimate
    per_request: Estimate
    prefill: Estimate
    decode: Estimate
    per_prompt: Estimate
    per_decoded: Estimate
    output_per_s: float | None
    decoded_per_s: float | None
    findings: tuple[Finding, ...]


def per_piece(energy_j: Quantity, pieces: Quantity) -> Quantity:
    """Return joules a piece: a token or a request."""
    return energy_j / pieces


def part_by_time(energy_j: Quantity, part_s: Quantity, rest_s: Quantity) -> Quantity:
    """Return the part of an energy that seconds out of all of them take at the same power."""
    return energy_j * part_s / (part_s + rest_s)


def token_figures(run: Run) -> TokenFigures | None:
    """Return what a run's tokens cost; ``None`` for a run that counted none.

    Args:
        run: With its readings and tokens.
    """
    tokens = run.tokens
    if tokens is None:
        return None
    energy = run.total_energy
    # Prompts that were computed in no time at all: the time was not told.
    is_told = tokens.prefill_s != 0 or tokens.computed == 0
    prefill, decode = split_by_time(energy, tokens.prefill_s if is_told else None, tokens.decode_s)
    per_output = _per(energy, tokens.output)
    return TokenFigures(
        per_output=per_output,
        per_thousand_output=per_output.scale(_PER_THOUSAND, "J"),
        per_request=_per(energy, tokens.requests),
        prefill=prefill,
        decode=decode,
        per_prompt=_per(prefill, tokens.computed),
        per_decoded=_per(decode, tokens.decoded),
        output_per_s=_rate(tokens.output, run.duration_s),
        decoded_per_s=_rate(tokens.decoded, tokens.decode_s),
        findings=_findings(prefill, tokens, run.duration_s),
    )


def split_by_time(
    energy: Estimate, prefill_s: float | None, decode_s: float | None
) -> tuple[Estimate, Estimate]:
    """Return the energies of prefill and decode at equal power; they sum to the energy.

    With r the ratio of both powers, prefill takes r p / (r p + d) of the energy, p and d
    being the seconds. The ends of the intervals are those of r at its ends, joined with the
    energy's own as multiplicative errors are; a small error of r moves as many joules to
    one as from the other, so that it cancels in their sum.

    Args:
        energy: Of both together, in joules.
        prefill_s: Seconds of prefill.
        decode_s: Seconds of decode.
    """
    if energy.value is None or prefill_s is None or decode_s is None or prefill_s + decode_s <= 0:
        return unknown("J"), unknown("J")
    if decode_s == 0 or prefill_s == 0:
        # Nothing is divided, and nothing assumed.
        none = Estimate(value=0.0, unit="J", bounds=(0.0, 0.0))
        return (energy, none) if decode_s == 0 else (none, energy)
    ratio = DATASHEET_FACTOR_95
    share, low, high = (float(part_by_time(1.0, r * prefill_s, decode_s)) for r in (1.0, 1 / ratio, ratio))
    moved = energy.value * share * (1 - share) * _RATIO_SIGMA
    return (
        _part(energy, share, (low, high), moved),
        _part(energy, 1 - share, (1 - high, 1 - low), -moved),
    )


def _part(energy: Estimate, share: float, ends: tuple[float, float], moved: float) -> Estimate:
    """Return a share of an energy, which lies between ``ends``.

    Args:
        energy: That is divided.
        share: Of it, at equal power.
        ends: The share at the ends of the ratio of powers.
        moved: Joules for one sigma of the ratio.
    """
    part = energy.scale(share, "J")
    return msgspec.structs.replace(
        part,
        grade=worst_grade([energy.grade, "E"]),
        u_by_source={**part.u_by_source, POWER_RATIO: moved},
        bounds=(_end(part.value, part.low, ends[0] / share), _end(part.value, part.high, ends[1] / share)),
    )


def _end(value: float | None, end: float | None, factor: float) -> float | None:
    """Return the end of an interval that has one multiplicative error more, in quadrature."""
    if not value or end is None or end <= 0:
        return end
    spread = math.hypot(math.log(end / value), math.log(factor))
    return value * math.exp(spread if factor > 1 else -spread)


def _per(energy: Estimate, pieces: int | None) -> Estimate:
    """Return an energy a piece; unknown where there are none, or nobody knows how many."""
    return energy.scale(float(per_piece(1.0, pieces)), "J") if pieces else unknown("J")


def _rate(pieces: int | None, seconds: float | None) -> float | None:
    return pieces / seconds if pieces and seconds else None


def _findings(prefill: Estimate, tokens: Tokens, duration_s: float | None) -> tuple[Finding, ...]:
    found = []
    if POWER_RATIO in prefill.u_by_source:
        found.append(
            Finding(
                code="CL330",
                severity="info",
                message="prompt and output energy are split by time, as if power were the same in both: "
                f"the ratio may be off by x/: {DATASHEET_FACTOR_95:g}",
                mend="measure runs of differing lengths, and fit_tokens tells it (docs/llm.md)",
                subject="tokens.energy",
            )
        )
    if tokens.prefill_s is None or tokens.decode_s is None or not duration_s:
        return tuple(found)
    busy_s = tokens.prefill_s + tokens.decode_s
    outside = 1 - busy_s / duration_s
    if outside > _OUTSIDE:
        found.append(
            Finding(
                code="CL331",
                severity="info",
                message=f"{outside:.0%} of the run's time was in no call's prefill or decode: its energy "
                "is in every figure of tokens",
                mend="load the model, and warm it up, before the run begins",
                subject="tokens.energy",
            )
        )
    elif outside < -_OUTSIDE:
        found.append(
            Finding(
                code="CL332",
                severity="info",
                message=f"calls overlapped (together they took {busy_s:.3g} s, in {duration_s:.3g} s): "
                "what is split by time is split by the calls' own times",
                mend="run one call after the other to tell prompt and output apart",
                subject="tokens.energy",
            )
        )
    return tuple(found)
