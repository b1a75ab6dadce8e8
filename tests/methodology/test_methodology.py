"""docs/methodology: its examples run, its formulas are their functions', none of the code's is missing."""

import doctest
import inspect
import re
from fractions import Fraction

import pytest

from tests.methodology import pages

FORMULAS = pages.formula_functions()
ROWS = pages.rows()
NAMED = {name for page in pages.PAGES for name in pages.names_of(page.read_text("utf-8"))}
FORMULA_ROOMS = (
    *("accounting.formulas", "accounting.conversions", "accounting.power", "accounting.pedigree"),
    *("compare.statistics", "compare.bootstrap", "compare.finance", "signals.integrate", "signals.cpu_curve"),
)
PRIMES = (2, 3, 5, 7, 11, 13)


def spelled_by():
    """Return each formula function that takes numbers alone, with its formulas in plain arithmetic."""
    found = {name: [] for name, kinds in FORMULAS.items() if set(kinds) == {"Quantity"}}
    for row in ROWS:
        tree = pages.right_side(row.formula)
        if tree is not None and pages.is_arithmetic(tree):
            for name in set(row.names) & set(found):
                found[name].append(tree)
    return found


SPELLED = spelled_by()


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_give_what_stands_there(page):
    found = doctest.testfile(str(page), module_relative=False)
    assert found.failed == 0
    assert found.attempted >= (0 if page.name == "README.md" else 5)


@pytest.mark.parametrize("name", sorted(NAMED))
def test_what_a_page_names_is_there(name):
    assert pages.resolve(name) is not None


def test_every_formula_function_stands_on_a_page():
    assert len(FORMULAS) > 60
    assert sorted(set(FORMULAS) - NAMED) == []


@pytest.mark.parametrize("room", FORMULA_ROOMS)
def test_every_function_of_a_formula_room_stands_on_a_page(room):
    held = pages.public_functions(room)
    assert held
    assert sorted(set(held) - NAMED) == []


@pytest.mark.parametrize("name", sorted(SPELLED))
def test_a_formula_is_what_its_function_computes(name):
    """On exact fractions, so that a missing factor or a swapped sign cannot hide in rounding."""
    assert SPELLED[name], f"{name} has no formula in plain arithmetic on any page"
    function = pages.resolve(name)
    arguments = list(inspect.signature(function).parameters)
    values = {a: Fraction(p, 17) for a, p in zip(arguments, PRIMES, strict=False)}
    for tree in SPELLED[name]:
        assert pages.worth(tree, values) == function(**values)


def test_every_formula_function_is_called_in_an_example():
    called = set()
    for page in pages.PAGES:
        examples = doctest.DocTestParser().get_examples(page.read_text("utf-8"))
        called |= set(re.findall(r"(\w+)[(,]", " ".join(e.source for e in examples)))
    assert sorted(name for name in FORMULAS if name.rpartition(".")[2] not in called) == []


def test_every_formula_names_its_standard_or_says_that_there_is_none():
    assert len(ROWS) > 80
    known = re.compile(
        r"none|definition|ours|fitted|revision|the same|GHG Protocol|Scope \d|ISO/IEC|JCGM|FOCUS|OpenCost"
        r"|[A-Z]\w+.* \d{4}|Student"
    )
    assert [row for row in ROWS if not known.search(row.standard)] == []


def test_the_index_lists_every_page_and_links_lead_somewhere():
    index = (pages.FOLDER / "README.md").read_text("utf-8")
    for page in pages.PAGES:
        if page.name != "README.md":
            assert f"({page.name})" in index
        for link in re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", page.read_text("utf-8")):
            assert (pages.FOLDER / link).exists(), f"{page.name}: {link}"
    assert "methodology/README.md" in (pages.ROOT / "docs" / "accounting.md").read_text("utf-8")


def test_the_reader_of_formulas_refuses_what_is_no_plain_arithmetic():
    assert pages.right_side("sum of all") is None
    assert pages.is_arithmetic(pages.right_side("`kg = a * b / 1000`"))
    assert not pages.is_arithmetic(pages.right_side("`kg = sum(kwh * rates)`"))
    with pytest.raises(KeyError):
        pages.worth(pages.right_side("`kg = a * b`"), {"a": Fraction(1)})
    with pytest.raises(AttributeError):
        pages.resolve("accounting.formulas.no_such_formula")
