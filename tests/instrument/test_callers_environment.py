"""What a command sees of the environment is what it would see without us, whatever Python made of it."""

import subprocess
import sys
from pathlib import Path

import pytest

from carbonlens.instrument.callers_environment import callers_environ
from tests.instrument.wrapper import WRAP
from tests.metering.processes import clean_environment

ENV = ("/usr/bin/env",)
ARM = """
from pathlib import Path
from carbonlens.domain.bench import Variant
from carbonlens.domain.sources import Sources
from carbonlens.instrument.bench_command import CommandArm
from carbonlens.instrument.bench_server import UrlWork
from carbonlens.instrument.window import Label, Place
from tests.instrument.synthetic import bench_of
here = Path.cwd()
tell = ("sh", "-c", "/usr/bin/env >> seen")
label = Label(step="a", study="s", role="variant", unit="call")
variant = Variant(name="a", kind="command", command=tell, units=1)
place = Place(ledger=str(here / "ledger"), sources=Sources())
CommandArm(variant, bench_of(("a", "b")), place, label, here).check(record=False)
variant = Variant(name="u", kind="url", url="http://127.0.0.1:1/", serve=("true",))
print(*UrlWork(variant)._environ())
"""


def surroundings(folder, locale):
    """Return an environment without a word of a locale but what is given."""
    known = clean_environment(folder)
    return {n: v for n, v in known.items() if not n.startswith(("LC_", "LANG", "PYTHON"))} | locale


def locale_of(text):
    return {line for line in text.splitlines() if line.startswith(("LC_", "LANG"))}


LOCALES = [
    {},
    {"LANG": "C"},
    {"LC_CTYPE": "C"},
    {"LC_CTYPE": "POSIX", "LANG": "en_US.UTF-8"},
    {"LC_ALL": "C"},
    {"LANG": "xx_XX.UTF-8"},
]
OTHERS = [{"LC_CTYPE": "C.UTF-8"}, {"LANG": "C.UTF-8"}]


@pytest.mark.parametrize("locale", [*LOCALES, *OTHERS], ids=lambda given: " ".join(given.values()) or "none")
def test_a_command_has_the_locale_that_it_has_alone(tmp_path, locale):
    environ = surroundings(tmp_path, locale)
    wrapped = [sys.executable, "-c", WRAP, str(tmp_path / "ledger"), *ENV]
    alone, measured = (
        subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True).stdout
        for command in (ENV, wrapped)
    )
    assert locale_of(measured) == locale_of(alone) == {f"{n}={v}" for n, v in locale.items()}
    others = {line for line in measured.splitlines() if not line.startswith("CARBONLENS_")}
    assert others == {line for line in alone.splitlines() if not line.startswith("CARBONLENS_")}


def test_so_have_commands_and_servers_that_a_bench_measures(tmp_path):
    environ = surroundings(tmp_path, {}) | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", ARM], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "PATH=" in (tmp_path / "seen").read_text()
    assert locale_of((tmp_path / "seen").read_text()) == set()
    assert "PATH" in done.stdout.split()
    assert "LC_CTYPE" not in done.stdout.split()


def test_where_the_system_does_not_tell_pythons_own_stays(tmp_path, monkeypatch):
    monkeypatch.setenv("LC_CTYPE", "C.UTF-8")
    assert callers_environ(tmp_path / "none")["LC_CTYPE"] == "C.UTF-8"
    (tmp_path / "given").write_bytes(b"A=1\0LC_CTYPE=C\0")
    assert callers_environ(tmp_path / "given")["LC_CTYPE"] == "C"
    (tmp_path / "given").write_bytes(b"A=1\0XLC_CTYPE=C\0")
    assert "LC_CTYPE" not in callers_environ(tmp_path / "given")
    monkeypatch.setenv("LC_CTYPE", "de_DE.UTF-8")
    assert callers_environ(tmp_path / "given")["LC_CTYPE"] == "de_DE.UTF-8"


@pytest.mark.parametrize(
    ("start", "is_pythons"),
    [
        (b"", True),
        (b"LANG=POSIX\0", True),
        (b"LC_ALL=\0LC_CTYPE=\0LANG=C\0", True),
        (b"LANG=xx_XX.UTF-8\0", True),
        (b"LANG=C.utf8\0", False),
        (b"LANG=C.utf8\0LANG=C\0", False),
        (b"LC_CTYPE=C.utf8\0LANG=C\0", False),
        (b"LC_ALL=C\0", False),
        (b"PYTHONCOERCECLOCALE=0\0", False),
    ],
)
def test_what_a_program_set_itself_stays(tmp_path, monkeypatch, start, is_pythons):
    """Python sets it where its locale is C as it begins, or one that is not there, not elsewhere."""
    (tmp_path / "given").write_bytes(start)
    monkeypatch.setenv("LC_CTYPE", "C.UTF-8")
    before = dict(part.decode().split("=") for part in reversed(start.split(b"\0")) if part).get("LC_CTYPE")
    assert callers_environ(tmp_path / "given").get("LC_CTYPE") == (before if is_pythons else "C.UTF-8")
