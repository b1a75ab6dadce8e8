"""Pages that the browser tests open, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from carbonlens.compare.business import business_case
from carbonlens.render.html import render_html
from carbonlens.reporting.view import build_view
from tests.compare.business_cases import measured
from tests.compare.study_runs import demo_comparison
from tests.render.pages import html
from tests.reporting.comparisons import Arm
from tests.reporting.comparisons import comparison as made_of


def units() -> str:
    """A page whose model sizes stand in several units."""
    sizes = {"large": 2_500_000, "small": 78_300}
    arms = tuple(Arm(name=n, cpu_us=400 - 50 * i, model_bytes=b) for i, (n, b) in enumerate(sizes.items()))
    return render_html(build_view(made_of(arms)))


def money() -> str:
    """A page with the investment."""
    comparison = demo_comparison()
    return render_html(build_view(comparison, business_case(comparison, measured())))


PAGES: Mapping[str, Callable[[], str]] = {
    **{name: partial(html, name) for name in ("demo", "hostile", "no_baseline", "traced")},
    "units": units,
    "money": money,
}
