"""Patterns that are compiled when they are first used."""

import re
import subprocess
import sys

import pytest

from carbonlens.domain.patterns import later


def test_it_does_what_the_compiled_one_does():
    made, wanted = later(r"(a+)(B)", re.IGNORECASE), re.compile(r"(a+)(B)", re.IGNORECASE)
    assert made.sub(r"\2\1", "xAab") == wanted.sub(r"\2\1", "xAab")
    assert made.fullmatch("AAb")[1] == "AA"
    assert made.search("") is None
    assert made.pattern == wanted.pattern


def test_a_fault_shows_when_it_is_used():
    made = later("(")
    with pytest.raises(re.error):
        made.match("x")


def test_nothing_is_compiled_before():
    code = (
        "import re\n"
        "from carbonlens.domain.patterns import later\n"
        "made, compiled = [], re.compile\n"
        "re.compile = lambda *given: (made.append(given), compiled(*given))[1]\n"
        "one = later('x+')\n"
        "before = len(made)\n"
        "assert one.match('xx') and one.match('x')\n"
        "print(before, len(made))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0 1\n"
