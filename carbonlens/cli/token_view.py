"""How the tokens of a language model are printed: a few lines of a run."""

from __future__ import annotations

from carbonlens.accounting.tokens import TokenFigures, token_figures
from carbonlens.cli import output
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.latency import Latency
from carbonlens.domain.run import Run
from carbonlens.domain.tokens import Tokens
from carbonlens.reporting import format as fmt


def token_lines(run: Run) -> list[str]:
    """Return what a run's tokens were and cost; nothing for a run that counted none.

    Args:
        run: The run as recorded.
    """
    tokens, figures = run.tokens, token_figures(run)
    if tokens is None or figures is None:
        return []
    return [
        _counts(tokens),
        _pace(tokens, figures),
        *(f"{name}: {_energy(energy)}" for name, energy in _energies(figures)),
        *(f"{finding.code} {finding.message}" for finding in figures.findings),
    ]


def _counts(tokens: Tokens) -> str:
    cached = "" if tokens.cached == 0 else f" ({_number(tokens.cached)} cached)"
    return (
        f"{_number(tokens.prompt)} prompt{cached} and {_number(tokens.output)} output, "
        f"requests: {_number(tokens.requests)}"
    )


def _pace(tokens: Tokens, figures: TokenFigures) -> str:
    return (
        f"first token {_time(tokens.first_token)}, next {_time(tokens.inter_token)} (medians); "
        f"{_rate(figures.output_per_s)}/s, decode {_rate(figures.decoded_per_s)}/s"
    )


def _energies(figures: TokenFigures) -> tuple[tuple[str, Estimate], ...]:
    return (
        ("all energy per output token", figures.per_output),
        ("per request", figures.per_request),
        ("prefill per prompt token", figures.per_prompt),
        ("decode per output token after the first", figures.per_decoded),
    )


def _energy(energy: Estimate) -> str:
    grade = f", grade {energy.grade}" if energy.grade else ""
    return f"{output.figure(fmt.energy(energy), energy)}{grade}"


def _number(count: int | None) -> str:
    return fmt.UNKNOWN if count is None else fmt.fixed(count, 0)


def _time(latency: Latency | None) -> str:
    """Return the median; the mean where no percentile was kept."""
    if latency is None:
        return fmt.UNKNOWN
    if latency.p50_ms is not None:
        return _seconds(latency.p50_ms)
    return fmt.UNKNOWN if latency.mean_ms is None else f"{_seconds(latency.mean_ms)} (mean)"


def _seconds(milliseconds: float) -> str:
    return fmt.duration(Estimate(value=milliseconds / 1000, unit="s")).text


def _rate(per_s: float | None) -> str:
    return fmt.UNKNOWN if per_s is None else fmt.plain(Estimate(value=per_s, unit="1/s")).number
