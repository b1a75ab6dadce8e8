"""Pedigree: the spread of a figure from judgements of its data quality.

Five judgements (reliability, completeness, and how near the figure is in time, place and
technology) each stand for a factor of uncertainty of 1 or more; the table from scores to
factors is the user's, because published ones differ (Weidema and Wesnaes 1996).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from carbonlens.domain.units import Z_95
from carbonlens.errors import ConfigError


def sd95(basic: float, factors: Mapping[str, float]) -> float:
    """Return the factor by which 95 % of a log-normal figure lie around its median.

    The factors' logarithms add in quadrature: they are held to be independent.

    Args:
        basic: Factor of the kind of figure itself.
        factors: One factor per judgement, by its name.

    Raises:
        ConfigError: If a factor is below 1: no judgement makes a figure surer than sure.
    """
    for name, factor in {"basic": basic, **factors}.items():
        if not factor >= 1:
            raise ConfigError(f"factor {factor} is below 1", where=name, mend="give a factor of 1 or more")
    return math.exp(math.hypot(math.log(basic), *(math.log(f) for f in factors.values())))


def relative_sigma(spread_95: float) -> float:
    """Return one relative sigma of a figure whose 95 % interval is its value times and over a spread."""
    return math.log(spread_95) / Z_95
