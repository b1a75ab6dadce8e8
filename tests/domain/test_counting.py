"""Counts in words, and that no message of the package counts "1 lines"."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.domain.counting import counted, with_article

PACKAGE = Path(__file__).parents[2] / "carbonlens"

THINGS = (
    "arms batches calls cells charges columns devices faults files findings GPUs hours journals lines "
    "meters months others periods processes readings records rounds rows runs samples sensors steps "
    "studies trials units updates values windows optimizations"
).split()
COUNTS = re.compile(rf"^ (?:[a-z-]+ ){{0,2}}?({'|'.join(THINGS)})\b")
EITHER = re.compile(r"[a-z]\((?:e?s)\)")

NEVER_ONE = {
    # Where the branch or a constant keeps the count above one, or a user's own words are quoted.
    "accounting/shared_costs.py: resource.upper()",
    "app/calibrate_run.py: len(found)",
    "app/compare.py: len(names)",
    "app/explain_items.py: len(names)",
    "app/runs.py: len(counting)",
    "app/runs.py: len(partial)",
    "cli/runs_view.py: len(entries)",
    "compare/bootstrap.py: n",
    "compare/grouping.py: len(counts)",
    "compare/latency.py: needed",
    "compare/orders.py: n",
    "compare/planning.py: MOST_STEPS",
    "compare/sharing.py: len(runs)",
    "compare/stopping.py: self.most",
    "compare/stopping.py: ROUNDS_NEEDED",
    "inventory/bench_check.py: variant.units",
    "inventory/bench_check.py: pace.least",
    "inventory/study_check.py: hours",
    "ledger/editing.py: len(latest)",
    "metering/findings.py: kind",
    "reporting/message.py: count",
    "reporting/plots.py: in_words(len(traces))",
    "reporting/step_tables.py: in_words(hidden).capitalize()",
    "reporting/waterfall.py: in_words(len(rest)).capitalize()",
    "signals/kernel.py: v.shape",
    "studies/demo.py: pace.rounds",
    "studies/ladder.py: self.rounds",
    "studies/ladder.py: MIN_ROUNDS",
    "studies/ladder.py: self._pace.rounds",
}
"""File and expression; each was looked at."""


def messages(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Yield each value that an f-string prints before a word, with the words."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            for value, text in zip(node.values, node.values[1:], strict=False):
                if isinstance(value, ast.FormattedValue) and isinstance(text, ast.Constant):
                    yield node.lineno, ast.unparse(value.value), str(text.value)


@pytest.mark.parametrize(
    ("count", "words", "wanted"),
    [
        (0, ("line",), "0 lines"),
        (1, ("line",), "1 line"),
        (2, ("line",), "2 lines"),
        (1, ("batch", "batches"), "1 batch"),
        (3, ("run has", "runs have"), "3 runs have"),
    ],
)
def test_counted(count, words, wanted):
    assert counted(count, *words) == wanted


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_message_counts_one_as_many(path):
    tree = ast.parse(path.read_text("utf-8"))
    wrong = [
        f"line {line}: {{{value}}}{text[:30]!r}: use counted()"
        for line, value, text in messages(tree)
        if COUNTS.match(text)
        and f"{path.relative_to(PACKAGE)}: {value}" not in NEVER_ONE
        and not value.startswith("counted(")
        and not _is_a_name(text)
    ]
    wrong += [
        f"line {node.lineno}: {node.value[:40]!r}: use counted()"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and EITHER.search(node.value)
    ]
    assert not wrong


def _is_a_name(text: str) -> bool:
    """Tell a subject with its verb ("is no round", "counts GPUs from") from a count with its noun."""
    return bool(re.match(r"^ (is|has|names|counts|that|tells|overlapped) ", text))


@pytest.mark.parametrize(
    "words",
    [
        *("a call", "a unit", "a user", "a unit test", "a European", "a one-shot", "a usage", "a house"),
        *("a GPU hour", "a URL", "a 1", "a 100", "a 110", "a 1,000", "a unique", "a utility", "a batch"),
        *("an image", "an inference", "an input", "an hour", "an upload", "an unused", "an unidentified"),
        *("an LLM call", "an FPGA", "an MB", "an 8-bit model", "an 80", "an 11", "an 18000", "an 'image'"),
        *("an I frame", "an epoch", "an AI answer", "an umbrella"),
    ],
)
def test_an_article_is_that_of_the_sound(words):
    assert with_article(words.partition(" ")[2]) == words


@given(st.text())
def test_whatever_somebody_names_a_thing_it_gets_an_article(name):
    assert with_article(name) in (f"a {name}", f"an {name}")
