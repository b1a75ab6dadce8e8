"""One word, one thing: words that print in two places mean the same in both."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path
from typing import get_args

from carbonlens.accounting.initiative_lines import SAID
from carbonlens.domain.drivers_savings import SavingVerdict

PACKAGE = Path(__file__).parents[2] / "carbonlens"


def texts(file: Path) -> list[str]:
    """Return what a module may print: its strings without its docstrings."""
    tree = ast.parse(file.read_text("utf-8"))
    docs = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
    ]


def test_a_verdict_on_a_claim_is_no_word_of_the_register():
    """Verified is what the register states that somebody verified; measuring confirms a claim or not."""
    assert SAID == ("claimed", "verified")
    assert not {word for verdict in get_args(SavingVerdict) for word in verdict.split()} & set(SAID)


def test_what_measures_a_claim_never_says_that_it_is_verified():
    files = sorted(PACKAGE.rglob("drivers_savings*.py"))
    assert {f.parent.name for f in files} >= {"app", "cli", "compare", "reporting"}
    found = {f"{f.parent.name}/{f.name}: {t}" for f in files for t in texts(f) if "verif" in t.lower()}
    assert found == set()


def test_what_states_the_register_never_says_that_a_claim_is_confirmed():
    files = [PACKAGE / "cli" / "initiative_view.py", PACKAGE / "accounting" / "initiative_lines.py"]
    assert not [t for f in files for t in texts(f) if "confirm" in t.lower()]
    assert any("verified" in t for f in files for t in texts(f))


NAMED_BY_US = {
    "accounting/amounts.py: method",
    "accounting/sci.py: component.intensity.method",
    "accounting/sci_ai.py: role",
}
"""After an article: words of ours that begin with a consonant, all of them (location, market, provider)."""


def test_an_article_before_a_name_is_chosen_by_the_name():
    """``a {unit}`` prints "a image": ``with_article(unit)`` prints "an image"."""
    found = set()
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if not isinstance(node, ast.JoinedStr):
                continue
            for before, value in itertools.pairwise(node.values):
                text = before.value if isinstance(before, ast.Constant) else ""
                if isinstance(value, ast.FormattedValue) and re.search(r"(?i)\b(a|an) ['\"]?$", text):
                    found.add(f"{file.parent.name}/{file.name}: {ast.unparse(value.value)}")
    assert found == NAMED_BY_US
