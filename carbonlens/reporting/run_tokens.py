"""The tokens of a run in the JSON shape that outside scripts rely on."""

from __future__ import annotations

from carbonlens.accounting.tokens import token_figures
from carbonlens.domain.latency import Latency
from carbonlens.domain.run import Run


def tokens_json(run: Run) -> dict[str, object] | None:
    """Return what a run's tokens were and cost; ``None`` for a run that counted none.

    Energies are estimates in joules at the run's boundary. ``energy_per_output_token``
    holds the whole run. ``prefill`` and ``decode`` are split by time at equal power, which
    is an assumption; prompt tokens that a cache held cost no prefill.

    Args:
        run: The run as recorded.
    """
    tokens, figures = run.tokens, token_figures(run)
    if tokens is None or figures is None:
        return None
    return {
        "requests": tokens.requests,
        "prompt": tokens.prompt,
        "cached": tokens.cached,
        "output": tokens.output,
        "prefill_s": tokens.prefill_s,
        "decode_s": tokens.decode_s,
        "first_token": _latency(tokens.first_token),
        "inter_token": _latency(tokens.inter_token),
        "output_per_s": figures.output_per_s,
        "decoded_per_s": figures.decoded_per_s,
        "energy_per_output_token": figures.per_output.as_json(),
        "energy_per_1000_output_tokens": figures.per_thousand_output.as_json(),
        "energy_per_request": figures.per_request.as_json(),
        "split_by": "time",
        "energy_prefill": figures.prefill.as_json(),
        "energy_decode": figures.decode.as_json(),
        "energy_prefill_per_prompt_token": figures.per_prompt.as_json(),
        "energy_decode_per_output_token": figures.per_decoded.as_json(),
        "findings": list(figures.findings),
    }


def _latency(latency: Latency | None) -> dict[str, object] | None:
    if latency is None:
        return None
    return {
        "n": latency.n,
        "mean_ms": latency.mean_ms,
        "p50_ms": latency.p50_ms,
        "p95_ms": latency.p95_ms,
        "p99_ms": latency.p99_ms,
    }
