"""Habits of the code base, counted: sizes, docstrings, broad excepts, frozen records."""

import ast
import re
import statistics
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "carbonlens"
FILES = sorted(PACKAGE.rglob("*.py"))
TREES = {f: ast.parse(f.read_text("utf-8")) for f in FILES}


def functions(tree):
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_files_are_of_readable_size():
    lines = [len(f.read_text("utf-8").splitlines()) for f in FILES]
    assert statistics.median(lines) <= 150
    assert max(lines) <= 420, FILES[lines.index(max(lines))]


def test_functions_are_of_readable_size():
    sizes = {
        f"{file.name}:{n.name}": n.end_lineno - n.lineno + 1
        for file, tree in TREES.items()
        for n in functions(tree)
    }
    assert statistics.quantiles(sizes.values(), n=10)[-1] <= 30
    assert max(sizes.values()) <= 80, max(sizes, key=sizes.get)


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_each_module_says_what_it_is_for(file):
    assert ast.get_docstring(TREES[file])


def test_no_vague_module_names():
    vague = {"utils", "util", "helpers", "helper", "manager", "misc", "common", "data_utils"}
    assert not vague & {f.stem for f in FILES}


def test_broad_excepts_each_have_their_reason():
    """A handler of everything needs a line that says why, in or above it."""
    for file, tree in TREES.items():
        text = file.read_text("utf-8").splitlines()
        for node in ast.walk(tree):
            if not isinstance(node, ast.ExceptHandler):
                continue
            broad = node.type is None or (
                isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"}
            )
            reraises = any(isinstance(n, ast.Raise) and n.exc is None for n in ast.walk(node))
            if broad and not reraises:
                near = "\n".join(text[node.lineno - 2 : node.lineno + 2])
                assert "#" in near, f"{file.name}:{node.lineno} catches everything without a reason"


SUPPRESSED = re.compile(r"# ?(?:noqa|type: ?ignore|pragma|nosec)")
WITH_ITS_REASON = re.compile(r"(?:noqa: [A-Z0-9, ]+|ignore\[[a-z, -]+\]|pragma: no \w+)(?:  # | - |: )\S")


def test_each_suppression_has_its_reason_beside_it():
    root = PACKAGE.parent
    for folder in ("carbonlens", "tests", "scripts", "docs"):
        for file in (root / folder).rglob("*.py"):
            for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
                if SUPPRESSED.search(line) and file != Path(__file__):
                    assert WITH_ITS_REASON.search(line), (
                        f"{file.relative_to(root)}:{number} suppresses without a reason"
                    )


def test_each_skip_has_its_reason():
    for file in (PACKAGE.parent / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            name = getattr(getattr(node, "func", None), "attr", None)
            if name in ("importorskip", "skipif", "xfail"):
                told = {k.arg for k in node.keywords}
                assert "reason" in told, f"{file.name}:{node.lineno} skips without a reason"
            elif name == "skip":
                assert node.args or node.keywords, f"{file.name}:{node.lineno} skips without a reason"


def test_records_are_frozen():
    for file, tree in TREES.items():
        for node in ast.walk(tree):
            # Layouts of C's memory are no records of ours.
            bases = {ast.unparse(b) for b in getattr(node, "bases", ())} - {"ctypes.Structure"}
            if isinstance(node, ast.ClassDef) and any("Struct" in base for base in bases):
                frozen = any(k.arg == "frozen" and ast.unparse(k.value) == "True" for k in node.keywords)
                assert frozen, f"{file.name}: {node.name} is a record that can change"


def test_tests_do_not_patch_our_own_code():
    for file in (PACKAGE.parent / "tests").rglob("*.py"):
        if file == Path(__file__):
            continue
        text = file.read_text("utf-8")
        assert 'patch("carbonlens' not in text, file
        assert "Mock(" not in text, file


def test_records_are_decoded_where_a_first_use_by_two_threads_is_safe():
    """``msgspec`` crashes the interpreter there (see ``domain.decoding``)."""
    risky = {"Decoder", "convert", "decode"}
    for file, tree in TREES.items():
        if file.name == "decoding.py":
            continue
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            of_msgspec = ast.unparse(node.func.value) in ("msgspec", "msgspec.json")
            is_typed = node.func.attr != "decode" or any(k.arg == "type" for k in node.keywords)
            assert not (of_msgspec and node.func.attr in risky and is_typed), f"{file}:{node.lineno}"
