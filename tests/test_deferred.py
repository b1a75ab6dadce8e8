"""A program that measures starts without the backports, and finds them as ever when it wants them."""

import json
import subprocess
import sys
import threading

import pytest

from carbonlens._deferred import Deferred, real

pytest.importorskip("typing_extensions", reason="it comes with extras alone")

MEASURED = """
import json, sys
{before}
import carbonlens
with carbonlens.track("s", ledger=sys.argv[1]) as run:
    run.add_units(2)
loaded = [name in sys.modules for name in ("typing_extensions", "inspect", "ast")]
print(json.dumps(loaded + [run.run.status]))
"""

USED = """
import json, sys
{before}
import carbonlens
carbonlens.track
import msgspec
from msgspec import _utils
loaded = "typing_extensions" in sys.modules
from typing import Annotated, NotRequired, TypedDict
class Row(TypedDict):
    a: int
    b: NotRequired[Annotated[int, msgspec.Meta(ge=0)]]
class Record(msgspec.Struct):
    row: Row
    more: "list[Row]" = []
found = msgspec.json.decode(b'{{"row": {{"a": 1}}}}', type=Record)
try:
    msgspec.json.decode(b'{{"row": {{"a": 1, "b": -1}}}}', type=Record)
    refused = False
except msgspec.ValidationError:
    refused = True
hints = _utils.get_type_hints(Row)
try:
    import typing_extensions as backports
except ImportError:
    import typing as backports
same = hints == backports.get_type_hints(Row, include_extras=True)
print(json.dumps([loaded, found.row, refused, same, backports.__name__, type(backports).__name__]))
"""

NONE = (
    "class No:\n"
    "    def find_spec(self, name, path=None, target=None):\n"
    "        if name == 'typing_extensions': raise ModuleNotFoundError(name)\n"
    "sys.meta_path.insert(0, No())"
)
"""A machine where the backports are not installed."""


def told(code, *arguments, before=""):
    command = [sys.executable, "-c", code.format(before=before), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_measuring_loads_no_backports_nor_what_they_load(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert told(MEASURED, tmp_path / "ledger") == [False, False, False, "complete"]
    # Who has them has them, and it is measured all the same.
    assert told(MEASURED, tmp_path / "ledger", before="import typing_extensions")[::3] == [True, "complete"]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("", [False, "typing_extensions"]),
        ("import typing_extensions", [True, "typing_extensions"]),
        ("import msgspec", [True, "typing_extensions"]),
        (NONE, [False, "typing"]),
    ],
    ids=["later", "before", "records before", "not installed"],
)
def test_the_users_own_records_are_read_by_the_backports_where_they_are(before, expected):
    loaded, module = expected
    assert told(USED, before=before) == [loaded, {"a": 1}, True, True, module, "module"]


MEANWHILE = """
import builtins, json, sys, threading
{before}
found = []
def elsewhere():
    import typing_extensions
    from typing_extensions import TypedDict, get_type_hints
    found.append([TypedDict.__module__, typing_extensions.__name__, typing_extensions.deprecated.__name__])
was = builtins.__import__
def importing(name, *given, **more):
    if name == "msgspec" and not found:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join(60)
    return was(name, *given, **more)
builtins.__import__ = importing
import carbonlens.instrument
builtins.__import__ = was
import typing_extensions
found.append([typing_extensions is sys.modules["typing_extensions"], type(typing_extensions).__name__])
print(json.dumps(found))
"""


def test_another_thread_that_wants_them_meanwhile_gets_them():
    names, last = told(MEANWHILE)
    assert names == ["typing_extensions", "typing_extensions", "deprecated"]
    assert last == [True, "module"]


@pytest.fixture
def switching():
    """Threads take turns as often as can be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("switching")
def test_threads_that_want_a_module_at_the_same_time_all_get_the_same(monkeypatch, tmp_path):
    (tmp_path / "this_is_wanted.py").write_text("NAME = 'wanted'\n")
    monkeypatch.syspath_prepend(tmp_path)
    for _ in range(300):
        stand_in = Deferred("this_is_wanted", {})
        monkeypatch.setitem(sys.modules, "this_is_wanted", stand_in)
        found, ready = [], threading.Barrier(8)

        def ask(stand_in=stand_in, found=found, ready=ready):
            ready.wait()
            try:
                found.append((real("this_is_wanted"), stand_in.NAME))
            except BaseException as error:  # noqa: BLE001  # told to the test's own thread
                found.append(error)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        module = sys.modules["this_is_wanted"]
        assert not isinstance(module, Deferred)
        assert found == [(module, "wanted")] * 8
