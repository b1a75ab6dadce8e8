"""Tokens: what a language model read and wrote, prompt and output apart."""

from __future__ import annotations

import msgspec

from carbonlens.domain.latency import Latency


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of a run and how long they took.

    Prompt tokens are all that were given; those of them that a cache held are
    ``cached``. Output tokens of every sequence of a batch count.

    Attributes:
        requests: Requests (sequences) served.
        prompt: Prompt tokens, the cached ones included; padding is none.
        cached: Prompt tokens that were not computed because a cache held them.
        output: Tokens written.
        prefill_s: Seconds from a request to its first token, summed over calls.
        decode_s: Seconds from the first token to the last, summed over calls.
        first_token: Time to the first token of a call.
        inter_token: Time from one token to the next.
    """

    requests: int | None = None
    prompt: int | None = None
    cached: int | None = None
    output: int | None = None
    prefill_s: float | None = None
    decode_s: float | None = None
    first_token: Latency | None = None
    inter_token: Latency | None = None
