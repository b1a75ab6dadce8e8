"""The command line starts without the backports, and leaves them to whoever wants them."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("typing_extensions")

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
        "print([n for n in ('typing_extensions', 'typer', 'click', 'inspect') if n in sys.modules])\n"
    )
    environ = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", code, str(tmp_path / "ledger")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environ)
    assert done.stdout.splitlines()[-1] == "[]"
    assert (tmp_path / "ledger" / "runs").is_dir()
