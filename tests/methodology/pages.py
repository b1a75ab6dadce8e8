"""Read docs/methodology: the tables of formulas, the functions named, and the formulas of the code."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "methodology"
PAGES = sorted(FOLDER.glob("*.md"))
CODE = ROOT / "carbonlens"
ROOMS = ("accounting", "compare", "domain", "factors", "signals")

_NAME = re.compile(rf"`((?:{'|'.join(ROOMS)})(?:\.\w+)+)`")
_ROW = re.compile(r"^\| (?P<formula>.+?) \| (?P<standard>.+?) \| (?P<function>.*`.+`.*) \|$", re.MULTILINE)
_OPERATIONS = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}


class Row(NamedTuple):
    """One row of a table of formulas."""

    page: str
    formula: str
    standard: str
    names: tuple[str, ...]


def names_of(text: str) -> tuple[str, ...]:
    """Return the functions, classes and constants that a text names."""
    return tuple(_NAME.findall(text))


def rows() -> list[Row]:
    """Return the rows of all tables that name a function."""
    return [
        Row(page.name, found["formula"], found["standard"], names_of(found["function"]))
        for page in PAGES
        for found in _ROW.finditer(page.read_text("utf-8"))
        if names_of(found["function"])
    ]


def resolve(name: str) -> object:
    """Return what a dotted name stands for.

    Raises:
        AttributeError, ModuleNotFoundError: If there is no such thing.
    """
    parts = name.split(".")
    module = importlib.import_module("carbonlens." + ".".join(parts[:2]))
    found: object = module
    for part in parts[2:]:
        found = getattr(found, part)
    return found


def formula_functions() -> dict[str, list[str]]:
    """Return the formulas of accounting, each a public function that returns a ``Quantity``.

    With each the kinds of its arguments.
    """
    found = {}
    for file in sorted((CODE / "accounting").glob("*.py")):
        for node in ast.parse(file.read_text("utf-8")).body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            if node.returns is not None and ast.unparse(node.returns) == "Quantity":
                kinds = [ast.unparse(a.annotation) for a in node.args.args if a.annotation]
                found[f"accounting.{file.stem}.{node.name}"] = kinds
    return found


def public_functions(module: str) -> list[str]:
    """Return the names of the public functions that a module itself defines."""
    held = importlib.import_module(f"carbonlens.{module}")
    return [
        f"{module}.{name}"
        for name, made in inspect.getmembers(held, inspect.isfunction)
        if made.__module__ == held.__name__ and not name.startswith("_")
    ]


def right_side(formula: str) -> ast.expr | None:
    """Return what stands right of the ``=`` of a formula in plain arithmetic; ``None`` for any other text."""
    spelled = re.fullmatch(r"`[^=`]+ = ([^=`]+)`", formula)
    if spelled is None:
        return None
    try:
        return ast.parse(spelled[1], mode="eval").body
    except SyntaxError:
        return None


def is_arithmetic(tree: ast.expr) -> bool:
    """Tell whether an expression is of names, numbers and ``+ - * /`` alone."""
    plain = (ast.BinOp, ast.Name, ast.Constant, ast.Load, *_OPERATIONS)
    return all(isinstance(node, plain) for node in ast.walk(tree))


def worth(tree: ast.expr, values: dict[str, Fraction]) -> Fraction:
    """Return the value of an arithmetic expression.

    Raises:
        KeyError: If it names something that has no value.
    """
    if isinstance(tree, ast.BinOp):
        return _OPERATIONS[type(tree.op)](worth(tree.left, values), worth(tree.right, values))
    if isinstance(tree, ast.Name):
        return values[tree.id]
    assert isinstance(tree, ast.Constant)
    return Fraction(str(tree.value))
