"""Findings about the tokens of a run, one function a code."""

from __future__ import annotations

from typing import Final

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding

_NAMES: Final = {
    "requests": "requests",
    "prompt": "prompt tokens",
    "cached": "cached prompt tokens",
    "output": "output tokens",
    "prefill_s": "time to the first token",
    "decode_s": "time from the first token to the last",
}


def told_in_part(field: str, told: int, calls: int) -> Finding:
    """Only some calls told a figure, so that its total is not known."""
    return Finding(
        code="CL171",
        severity="warning",
        message=f"{_NAMES[field]}: told in {told} of {counted(calls, 'call')}, so the total is unknown",
        mend="tell it in every call, 0 where there is none",
        subject=f"tokens.{field}",
    )


def call_raised(calls: int) -> Finding:
    """Calls ended with an exception: what they read and wrote is not counted."""
    return Finding(
        code="CL172",
        severity="warning",
        message=f"{counted(calls, 'call')} of generate() ended with an exception: the energy is in the "
        "figures and the tokens are not, so that the energy of a token is too high",
        mend="run the work again without the failing calls",
        subject="tokens.output",
    )


def went_on(calls: int) -> Finding:
    """Calls had not ended at the end of the block that follows them."""
    return Finding(
        code="CL149",
        severity="warning",
        message=f"{counted(calls, 'call')} of generate() still went on at the block's end: tokens written "
        "by then are counted (unknown where they are not handed out one by one), later ones are not",
        mend="join the threads that generate, or read their streamers to the end, inside the block",
        subject="tokens.output",
    )


def not_stepwise(mode: str, what: str) -> Finding:
    """A mode of generate() does not write one token of a sequence a step.

    Args:
        mode: What it is called.
        what: What is unknown for that.
    """
    return Finding(
        code="CL173",
        severity="info",
        message=f"{mode} does not hand out one token a step: {what} unknown",
        mend="greedy search or sampling without these tells it",
        subject="tokens.inter_token",
    )


def not_counted(what: str, reason: str) -> Finding:
    """Something of a call could not be counted."""
    return Finding(
        code="CL174",
        severity="warning",
        message=f"{what} not counted: {reason}",
        mend="count them yourself: run.record_tokens(prompt=, output=, ...)",
        subject="tokens",
    )


def intervals_unfit(told: int | None, count: int | None) -> Finding:
    """Times between tokens do not go with the tokens told.

    Args:
        told: How many times were told; ``None`` for their mean.
        count: Output tokens after the first of each request; ``None`` if not told.
    """
    what = "a mean was told" if told is None else f"{counted(told, 'time')} told"
    against = "output or requests are not" if count is None else f"output - requests is {count}"
    return Finding(
        code="CL189",
        severity="warning",
        message=f"time between tokens unknown: {what}, and {against}",
        mend="tell output and requests, and a time for each output token after the first, or their mean",
        subject="tokens.inter_token",
    )


def stop_may_count() -> Finding:
    """Padding after a stop that is no end-of-sequence token looks like one."""
    return Finding(
        code="CL179",
        severity="info",
        message="sequences of a batch that stop by a rule of your own are padded with the end-of-sequence "
        "token: up to one token a sequence is counted too many",
        mend="give a pad_token_id that is no end-of-sequence token",
        subject="tokens.output",
    )


def computed_for_each(copies: int) -> Finding:
    """generate() copies each prompt, and computes every copy."""
    return Finding(
        code="CL187",
        severity="info",
        message=f"each prompt was computed {copies} times (num_beams, num_return_sequences) and its tokens "
        "are counted once; of beams only the tokens returned are counted",
        mend="compare runs of the same number",
        subject="tokens.prompt",
    )
