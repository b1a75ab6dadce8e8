"""What loading the tools of a page starts, and which words a column of a table may break."""

from __future__ import annotations

import ctypes.util
import subprocess
import sys

import pytest

from carbonlens.render import environment
from carbonlens.reporting.content import phrase, quoted

_LOADED = """
import sys
started = []
sys.addaudithook(lambda event, args: started.append(str(args[0])) if event == "subprocess.Popen" else None)
from carbonlens.render.environment import need
need("weasyprint")
print(*sorted({name.rpartition("/")[2] for name in started}))
"""


def test_no_compiler_is_started_to_find_a_library():
    pytest.importorskip("weasyprint", reason="weasyprint is of an extra that is not installed")
    told = subprocess.run([sys.executable, "-c", _LOADED], check=True, capture_output=True, text=True)
    assert set(told.stdout.split()) <= {"ldconfig"}


def test_libraries_are_searched_as_before_afterwards_and_where_nothing_else_finds_them(monkeypatch):
    name = "_findLib_gcc"
    if not hasattr(ctypes.util, name):
        pytest.skip("this system finds libraries in another way")
    before = getattr(ctypes.util, name)
    with environment._no_compiler_asked():
        pass
    assert getattr(ctypes.util, name) is before
    monkeypatch.setattr(environment.shutil, "which", lambda *_, **__: None)
    with environment._no_compiler_asked():
        assert getattr(ctypes.util, name) is before


@pytest.mark.parametrize(
    ("text", "is_long"),
    [
        ("a name", False),
        ("state in sites.toml from when to when the source holds, and for which of the months", False),
        ("x" * 24, False),
        ("x" * 25, True),
        ("at the end of a sentence " + "x" * 25, True),
        ("x" * 10_000, True),
        ("\u202e" + "\U0001f600" * 30, True),
    ],
)
def test_only_words_that_no_column_holds_may_break_anywhere(text, is_long):
    say = environment.template_environment().get_template("partials/macros.html.j2").module.say
    mark = ' class="long"' if is_long else ""
    assert str(say(phrase(quoted(text)))).startswith(f"<bdi data-quoted{mark}>")
    css = environment.template_file("report.css").read_text(encoding="utf-8")
    # Letters of a sentence that may break anywhere are set one by one: most of the time of a report.
    anywhere = [rule for rule in css.splitlines() if "anywhere" in rule]
    assert anywhere
    assert all(".long" in rule for rule in anywhere)
