"""Tokens: what a language model read and wrote, prompt and output apart."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.domain.latency import Latency

OUTPUT_UNITS: Final = frozenset({"output token", "output tokens"})
PROMPT_UNITS: Final = frozenset({"prompt token", "prompt tokens"})


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

    @property
    def computed(self) -> int | None:
        """Prompt tokens that had to be computed; ``None`` where that is not known."""
        return None if self.prompt is None or self.cached is None else self.prompt - self.cached

    @property
    def decoded(self) -> int | None:
        """Output tokens after the first of each sequence, which the prefill writes."""
        if self.output is None or self.requests is None:
            return None
        return max(self.output - self.requests, 0)


def units_of(tokens: Tokens | None, unit: str | None) -> Decimal | None:
    """Return the functional units that the tokens are, where the unit's name says which.

    Only ``output token`` and ``prompt token`` (or their plural) do: a bare ``token`` may
    be either, or both.

    Args:
        tokens: What was counted.
        unit: Name of the run's functional unit.
    """
    if tokens is None or unit is None:
        return None
    if unit in OUTPUT_UNITS:
        count = tokens.output
    elif unit in PROMPT_UNITS:
        count = tokens.prompt
    else:
        count = None
    return None if count is None else Decimal(count)
