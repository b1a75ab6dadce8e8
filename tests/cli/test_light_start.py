"""The command line starts without the backports, and leaves them to whoever wants them."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from carbonlens.cli import grammar
from carbonlens.cli.commands import MODULES, built

pytest.importorskip("typing_extensions", reason="it comes with extras alone")

LOADED = """
import json, sys
{before}
from carbonlens.cli import light_start
light_start.load_records_library()
without = "typing_extensions" not in sys.modules
import msgspec
from typing import Annotated, NotRequired, TypedDict
class Row(TypedDict):
    a: int
    b: NotRequired[Annotated[int, msgspec.Meta(ge=0)]]
class Record(msgspec.Struct, frozen=True):
    row: Row
found = msgspec.json.decode(b'{{"row": {{"a": 1}}}}', type=Record)
try:
    msgspec.json.decode(b'{{"row": {{"a": 1, "b": -1}}}}', type=Record)
    refused = False
except msgspec.ValidationError:
    refused = True
import typing_extensions
print(json.dumps([without, found.row, refused, bool(typing_extensions.__file__)]))
"""


@pytest.mark.parametrize(("before", "without"), [("", True), ("import typing_extensions", False)])
def test_records_work_and_the_backports_can_be_loaded_afterwards(before, without):
    code = LOADED.format(before=before)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [without, {"a": 1}, True, True]


def test_a_plain_run_loads_neither_backports_nor_the_library_of_command_lines(tmp_path):
    code = (
        "import sys; sys.argv = ['carbonlens', 'run', '--ledger', sys.argv[1], '--', 'true']\n"
        "from carbonlens.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "unwanted = ('typing_extensions', 'click', 'inspect', '_hashlib')\n"
        "print([n for n in unwanted if n in sys.modules],"
        " [n for n in ('ipaddress', 'platform', 'textwrap') if hasattr(sys.modules[n], '__loader__')"
        " and sys.modules[n].__loader__])\n"
    )
    environ = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", code, str(tmp_path / "ledger")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environ)
    assert done.stdout.splitlines()[-1] == "[] []"
    assert (tmp_path / "ledger" / "runs").is_dir()


LATER = """
from carbonlens.cli import light_start
light_start.load_records_library()
{before}
import ipaddress, json, platform, textwrap, urllib.parse, uuid
import importlib.util
assert all(importlib.util.find_spec(name) for name in ("ipaddress", "platform", "textwrap"))
from textwrap import dedent, wrap
told = [
    platform.system(), platform.machine(), platform.python_version(), str(ipaddress.ip_address("::1")),
    urllib.parse.urlsplit("http://[::1]:80/").hostname, dedent(" a\\n b"), wrap("a b", 1),
    textwrap.shorten("a b c", 3, placeholder=""), uuid.UUID(int=1).hex,
    [m.__file__.rpartition("/")[2] for m in (ipaddress, platform, textwrap)],
]
import inspect, pickle
assert inspect.getmodule(textwrap.wrap).__name__ == "textwrap"
assert pickle.loads(pickle.dumps(ipaddress.ip_address("::1"))) == ipaddress.ip_address("::1")
try:
    platform.no_such_thing
except AttributeError:
    print(json.dumps(told))
"""


def test_modules_that_wait_are_there_for_whoever_wants_more_of_them():
    # In a program that has them already, and in one that has not.
    told = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
            ).stdout
        )
        for code in (
            LATER.format(before=""),
            "import ipaddress, platform, textwrap\n" + LATER.format(before=""),
            LATER.format(before="import platform; platform.machine()"),
        )
    ]
    assert told[0] == told[1] == told[2]
    assert told[0][-1] == ["ipaddress.py", "platform.py", "textwrap.py"]


def test_garbage_is_collected_again_when_the_command_begins(tmp_path):
    code = (
        "import gc, sys; sys.argv = ['carbonlens', 'run', '--ledger', sys.argv[1], '--', 'true']\n"
        "from carbonlens.cli import run_plain\n"
        "from carbonlens.cli.main import main\n"
        "was, seen = run_plain.measured, []\n"
        "run_plain.measured = lambda **given: (seen.append(gc.isenabled()), was(**given))[1]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "print(seen)\n"
    )
    environ = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", code, str(tmp_path / "ledger")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environ, timeout=60)
    assert done.stdout.splitlines()[-1] == "[True]"


def test_a_program_that_locks_its_imports_is_not_held_up_for_good():
    code = (
        "import builtins, threading\n"
        "lock, ordinary = threading.RLock(), builtins.__import__\n"
        "def guarded(*words, **named):\n"
        "    with lock:\n"
        "        return ordinary(*words, **named)\n"
        "builtins.__import__ = guarded\n"
        "with lock:\n"
        "    import carbonlens.instrument\n"
        "import msgspec\n"
        "print(msgspec.json.encode([1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "b'[1]'\n", done.stderr


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_the_list_of_commands_is_the_same_however_it_is_asked_for(columns):
    described = (
        "import sys; from carbonlens.cli.commands import built\n"
        "sys.argv[0] = 'carbonlens'; built()(prog_name='carbonlens')"
    )
    listed = "import sys; sys.argv[0] = 'carbonlens'\nfrom carbonlens.cli.main import main; main()"
    for arguments in ([], ["--help"], ["-h"]):
        texts = [
            subprocess.run(
                [sys.executable, "-c", code, *arguments],
                capture_output=True,
                text=True,
                timeout=60,
                env={"COLUMNS": columns, "PATH": "/usr/bin:/bin"},
            )
            for code in (described, listed)
        ]
        assert texts[0].returncode == texts[1].returncode
        assert texts[0].stdout + texts[0].stderr == texts[1].stdout + texts[1].stderr
        assert "bench" in texts[1].stdout + texts[1].stderr


def test_the_list_of_commands_describes_none(monkeypatch):
    made, read = built(), []
    signature = grammar.signature_of
    monkeypatch.setattr(
        grammar, "signature_of", lambda function: (read.append(function), signature(function))[1]
    )
    done = CliRunner().invoke(made, ["--help"])
    assert all(f"  {name} " in done.output for name in MODULES)
    assert [function.__name__ for function in read] == ["root"]
