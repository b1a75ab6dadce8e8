"""Claims for tests, and published tables as small typed texts with their source."""

from __future__ import annotations

from carbonlens.domain.claim import Claim, Stated, stated

LLAMA_2 = """
|Model|Time (GPU hours)|Power Consumption (W)|Carbon Emitted(tCO<sub>2</sub>eq)|
|---|---|---|---|
|Llama 2 7B|184320|400|31.22|
|Llama 2 13B|368640|400|62.44|
|Llama 2 70B|1720320|400|291.42|
|Total|3311616||539.00|
"""
"""Figures of meta-llama/llama-models, models/llama2/MODEL_CARD.md."""

LLAMA_3_1 = """
Training used a cumulative of **39.3M** GPU hours.

| | Training Time (GPU hours) | Training Power Consumption (W) | Training Location-Based GHG Emissions (tons CO2eq) | Training Market-Based GHG Emissions (tons CO2eq) |
| :---- | :---: | :---: | :---: | :---: |
| Llama 3.1 8B | 1.46M | 700 | 420 | 0 |
| Llama 3.1 70B | 7.0M | 700 | 2,040 | 0 |
| Llama 3.1 405B | 30.84M | 700 | 8,930 | 0 |
| Total | 39.3M | | 11,390 | 0 |
"""  # noqa: E501  # the text as its source has it
"""Figures of meta-llama/llama-models, models/llama3_1/MODEL_CARD.md."""

LLAMA_3_2 = """
Training used a cumulative of **916k** GPU hours.

| | Training Time (GPU hours) | Logit Generation Time (GPU Hours) | Training Power Consumption (W) | Training Location-Based GHG Emissions (tons CO2eq) |
| :---- | :---: | ----- | :---: | :---: |
| Llama 3.2 1B | 370k | \\- | 700 | 107 |
| Llama 3.2 3B | 460k | \\- | 700 | 133 |
| Llama 3.2 1B SpinQuant | 1.7 | 0 | 700 | Negligible\\*\\* |
| Llama 3.2 3B SpinQuant | 2.4 | 0 | 700 | Negligible\\*\\* |
| Llama 3.2 1B QLora | 1.3k | 0 | 700 | 0.381 |
| Llama 3.2 3B QLora | 1.6k | 0 | 700 | 0.461 |
| Total | 833k | 86k | | 240 |
"""  # noqa: E501  # the text as its source has it
"""Figures of meta-llama/llama-models, models/llama3_2/MODEL_CARD.md."""

LLAMA_3_3 = """
| | Training Time (GPU hours) | Training Power Consumption (W) | Training Location-Based GHG Emissions (tons CO2eq) |
| :---- | :---: | :---: | :---: |
| Llama 3.3 70B | 7.0M | 700 | 12.9 |
"""  # noqa: E501  # the text as its source has it
"""Row as the research on the card of Llama 3.3 has it: the hours of 3.1-70B with 12.9 t."""

LLAMA_1 = """
|GPU Type|GPU Power consumption|GPU-hours|Total power consumption|Carbon emitted (tCO2eq)|
|---|---|---|---|---|
|A100-80GB|400W|82,432|36 MWh|14|
|A100-80GB|400W|135,168|59 MWh|23|
"""
"""Rows of Touvron et al. 2023, arXiv:2302.13971, table 15 (LLaMA-7B and 13B)."""


def number(value: str | int | None, unit: str | None = None) -> Stated | None:
    """Return a stated number, or ``None``."""
    return None if value is None else stated(value, unit)


def consistent(**changes: object) -> Claim:
    """Return a claim whose figures agree: 1,000 h x 400 W x 1.2 = 480 kWh x 0.4 = 192 kg, 2 L/kWh of IT."""
    fields: dict[str, object] = {
        "what": "model",
        "energy": stated("480", "kWh"),
        "boundary": "facility",
        "emissions": stated("192", "kg"),
        "market_emissions": stated("0", "kg"),
        "hours": stated("1000"),
        "watts": stated("400"),
        "hardware": "NVIDIA A100",
        "pue": stated("1.20"),
        "wue": stated("2.00"),
        "water": stated("800", "L"),
        "factor": stated("0.4", "kg/kWh"),
        "factor_year": 2024,
        "year": 2025,
        "region": "DE",
        "units": stated("100"),
        "per_unit": stated("1.92", "kg"),
        "baseline": stated("960", "kWh"),
        "saving": stated("50"),
    }
    return Claim(**{**fields, **changes})


def codes(findings) -> list[str]:
    """Return the codes of Findings."""
    return [f.code for f in findings]
