"""``track`` as users write it: blocks, functions, tasks, threads, forks; and never in the way."""

import asyncio
import io
import os
import subprocess
import sys
import threading
import time
from decimal import Decimal

import numpy as np
import pytest

from carbonlens import stage, track
from carbonlens.instrument.request import Request, described
from carbonlens.instrument.tracked import TrackedRun
from carbonlens.ledger.store import Ledger
from carbonlens.metering.sensors.cpu_model import this_curve
from tests.metering.processes import burn, python, runs


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "ledger"


def test_a_block_is_one_sealed_run(ledger):
    with track(
        "int8", study="demo", unit="image", repeat=2, tags={"k": "v"}, ledger=ledger, zone="DE"
    ) as run:
        assert isinstance(run, TrackedRun)
        assert run.run.status == "running"
        seen = run.run_id
        run.add_units(30)
        run.add_units(Decimal("0.5"))
        run.record_quality("accuracy", outcomes=[1, 1, 0, 1])
        run.record_latencies([1.0, 2.0, 4.0])
        run.describe_model(bytes=1234, macs_per_unit=99)
        burn(0.2)
    (record,) = runs(ledger)
    assert record == run.run
    assert record.run_id == seen == run.run_id
    assert (record.status, record.step, record.study, record.role) == ("complete", "int8", "demo", "variant")
    assert (record.unit, record.units, record.repeat, record.zone) == ("image", Decimal("30.5"), 2, "DE")
    assert record.tags == {"k": "v"}
    assert (record.model_bytes, record.macs_per_unit) == (1234, 99)
    assert (record.latency.n, record.latency.p50_ms, record.latency.p99_ms) == (3, 2.0, None)
    assert Ledger(ledger).outcomes(record.quality[0].outcomes_sha256) == (1, 1, 0, 1)
    assert record.conditions.cpu_s == pytest.approx(0.2, abs=0.1)
    energy = record.total_energy
    assert energy.value == pytest.approx(record.conditions.cpu_s * this_curve().full_w_per_thread, abs=2e-6)
    assert energy.grade == "D"
    assert energy.high / energy.value >= 1.799
    assert record.boundary == "it"


def test_sleep_measures_far_below_load(ledger):
    with track("sleep", ledger=ledger) as asleep:
        time.sleep(0.3)
    with track("work", ledger=ledger) as busy:
        burn(0.3)
    assert asleep.run.total_energy.value < 0.1 * busy.run.total_energy.value


def test_nothing_is_printed(ledger, capfd):
    with track("s", ledger=ledger):
        pass
    assert capfd.readouterr() == ("", "")


def test_a_user_error_passes_unchanged_and_the_run_is_kept_as_failed(ledger):
    error = ValueError("first line\nsecond line with detail")
    with pytest.raises(ValueError, match="first line") as caught, track("s", ledger=ledger) as run:
        raise error
    assert caught.value is error
    (record,) = runs(ledger)
    assert record == run.run
    assert (record.status, record.error) == ("failed", "ValueError")
    assert record.total_energy.value >= 0


def test_a_long_error_is_cut(ledger):
    endless = type("x" * 1000, (RuntimeError,), {})
    with pytest.raises(RuntimeError), track("s", ledger=ledger) as run:
        raise endless
    assert len(run.run.error) == 200


SECRET = "https://h/?key=SECRET"  # noqa: S105  # a made-up address, to look for in records


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        (RuntimeError(f"GET {SECRET}"), "RuntimeError"),
        (KeyError(SECRET), "KeyError"),
        (type("OwnError", (Exception,), {"__str__": lambda self: SECRET})(), "OwnError"),
        (ExceptionGroup(SECRET, [ValueError(SECRET)]), "ExceptionGroup"),
        (UnicodeDecodeError("utf-8", SECRET.encode(), 0, 1, SECRET), "UnicodeDecodeError"),
        (FileNotFoundError(2, SECRET, SECRET), "FileNotFoundError: No such file or directory"),
        (OSError(SECRET), "OSError"),
        (OSError(SECRET, SECRET), "OSError"),
        (SystemExit(SECRET), "exited with 1"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_the_message_of_an_error_is_not_recorded(ledger, error, kept):
    with pytest.raises(type(error)), track("s", ledger=ledger) as run:
        raise error
    assert run.run.error == kept
    assert not any("SECRET" in f.read_text() for f in ledger.rglob("*.json"))


@pytest.mark.parametrize(
    ("error", "status", "exit_code"),
    [
        (KeyboardInterrupt(), "failed", None),
        (SystemExit(0), "complete", 0),
        (SystemExit(None), "complete", 0),
        (SystemExit(3), "failed", 3),
        (SystemExit("no"), "failed", 1),
        (asyncio.CancelledError(), "failed", None),
        (StopIteration(), "failed", None),
    ],
)
def test_how_a_block_ends_is_recorded(ledger, error, status, exit_code):
    with pytest.raises(type(error)), track("s", ledger=ledger) as run:
        raise error
    assert (run.run.status, run.run.exit_code) == (status, exit_code)


def test_functions_are_measured_call_by_call(ledger):
    @track("f", ledger=ledger)
    def double(x, *, plus=0):
        """Say what it does."""
        return 2 * x + plus

    assert double(2, plus=1) == 5
    assert double(3) == 6
    assert (double.__name__, double.__doc__) == ("double", "Say what it does.")
    assert [r.step for r in runs(ledger)] == ["f", "f"]


def test_a_bare_decorator_records_the_functions_name(tmp_path, monkeypatch):
    monkeypatch.setenv("CARBONLENS_LEDGER", str(tmp_path / "ledger"))

    @track
    def train():
        return 1

    assert train() == 1
    (record,) = runs(tmp_path / "ledger")
    assert record.workload.endswith("train")
    assert (record.step, record.role) == (None, "other")


def test_coroutines_are_measured_to_their_end(ledger):
    @track("a", ledger=ledger)
    async def work(x):
        await asyncio.sleep(0.05)
        return x

    async def main():
        return await asyncio.gather(work(1), work(2))

    assert asyncio.run(main()) == [1, 2]
    records = runs(ledger)
    assert all(r.duration_s >= 0.05 for r in records)
    assert [[f.code for f in r.findings] for r in records] == [["CL108"], ["CL108"]]


def test_generators_are_measured_to_their_end(ledger):
    @track("g", ledger=ledger)
    def count():
        got = yield 1
        yield got
        return "done"

    generator = count()
    assert next(generator) == 1
    assert generator.send("x") == "x"
    assert runs(ledger) == ()
    with pytest.raises(StopIteration, match="done"):
        next(generator)
    assert [r.status for r in runs(ledger)] == ["complete"]


def test_nested_blocks_are_one_root(ledger):
    with track("outer", ledger=ledger) as outer, track("inner", ledger=ledger) as inner:
        burn(0.1)
    assert inner.run.parent_run_id == outer.run_id
    assert outer.run.parent_run_id is None
    assert [f.code for f in outer.run.findings + inner.run.findings] == []


def test_threads_inside_a_block_are_its_parts(ledger):
    parts = []

    def work():
        with track("part", ledger=ledger) as part:
            burn(0.05)
        parts.append(part.run)

    with track("whole", ledger=ledger) as whole:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert {p.parent_run_id for p in parts} == {whole.run_id}
    assert len(runs(ledger)) == 4


def test_a_given_parent_is_kept(ledger, monkeypatch):
    parent = "01a21f7d-66a9-73bb-b1ee-43cbbb5813c7"
    monkeypatch.setenv("CARBONLENS_RUN_ID", parent)
    with track("s", ledger=ledger) as run:
        pass
    assert run.run.parent_run_id == parent
    assert os.environ["CARBONLENS_RUN_ID"] == parent


def test_children_of_the_block_are_counted_and_know_their_run(ledger, tmp_path):
    code = (
        "import sys\nfrom carbonlens import track\nfrom tests.metering.processes import burn\n"
        f"with track('part', ledger={str(ledger)!r}): burn(0.2)\n"
    )
    repository = str(next(p for p in map(str, sys.path) if os.path.isdir(os.path.join(p, "tests"))))  # noqa: PTH112, PTH118  # text of a program, kept short
    with track("whole", ledger=ledger) as whole:
        import subprocess

        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": repository},
        )
    part = next(r for r in runs(ledger) if r.step == "part")
    assert part.parent_run_id == whole.run_id
    assert whole.run.conditions.cpu_s >= part.conditions.cpu_s >= 0.2


def test_one_tracker_serves_many_blocks(ledger):
    tracker = track("s", ledger=ledger)
    with tracker as one, tracker as two:
        assert one.run_id != two.run_id
    assert len(runs(ledger)) == 2


@pytest.mark.parametrize(
    ("said", "on"), [(None, None), ("prune+int8", ("prune", "int8")), ([], ()), (["a"], ("a",))]
)
def test_optimizations_that_are_on(ledger, said, on):
    with track("s", ledger=ledger, on=said) as run:
        pass
    assert run.run.on == on


TEXTS = ["step", "study", "unit", "job_id", "workload", "zone", "site", "hardware"]


@pytest.mark.parametrize(
    ("field", "given"),
    [
        *((field, blank) for field in TEXTS for blank in ("", " \t")),
        ("attempt", 0),
        *((field, -1) for field in ("attempt", "repeat")),
    ],
)
def test_what_is_empty_or_counts_from_elsewhere_is_said_and_not_recorded(ledger, field, given):
    with track(**{"step": "s", field: given}, ledger=ledger) as run:
        pass
    (finding,) = [f for f in run.run.findings if f.code == "CL110"]
    assert finding.subject == field
    assert "empty text" in finding.message or "number below" in finding.message
    with track("s", ledger=ledger) as plain:
        pass
    unstated = None if field == "step" else getattr(plain.run, field)
    assert getattr(run.run, field) == unstated


def test_a_loop_that_counts_its_rounds_from_0_keeps_the_first_one(ledger):
    for number in range(3):
        with track("s", repeat=number, ledger=ledger):
            pass
    with stage("s", repeat=0, ledger=ledger) as one:
        pass
    assert sorted(r.repeat for r in runs(ledger)) == [0, 0, 1, 2]
    assert (one.run.repeat, [f.code for f in one.run.findings if f.code == "CL110"]) == (0, [])


def test_a_rank_below_0_in_the_environment_is_said_and_none(ledger, monkeypatch):
    monkeypatch.setenv("RANK", "-1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with track("s", ledger=ledger) as run:
        pass
    assert run.run.rank is None
    assert any("RANK" in f.message for f in run.run.findings)


def test_a_rank_below_0_of_a_callback_is_said_and_none():
    notes = []
    assert described(Request(rank=-1), None, notes).rank is None
    assert [(f.code, f.subject) for f in notes] == [("CL110", "rank")]
    assert described(Request(rank=0), None, []).rank == 0


@pytest.mark.parametrize(
    ("field", "secret", "wanted"),
    [
        ("repeat", "sk-secret-9", "a value of type str was given; a whole number is wanted"),
        ("role", "sk-secret-9", "known ones: "),
        ("tags", ["sk-secret-9"], "a value of type list was given; a dictionary of texts is wanted"),
        ("on", 4242, "a value of type int was given; a list of names"),
    ],
)
def test_a_wrong_field_is_not_repeated_and_what_is_wanted_is_said(ledger, field, secret, wanted):
    with track("s", ledger=ledger, **{field: secret}) as run:
        pass
    (finding,) = [f for f in run.run.findings if f.code == "CL110"]
    assert finding.message.startswith(f"{field} was not recorded: ")
    assert wanted in finding.message
    assert "secret" not in f"{run.run}"
    assert "4242" not in finding.message


def test_wrong_arguments_do_not_stop_the_work(ledger):
    with track("s", ledger=ledger, role="bogus", tags={1: 2}) as run:
        run.add_units("many")
        run.record_quality("acc", "high")
        run.record_latencies(None)
    assert (run.run.status, run.run.role, run.run.tags) == ("complete", "other", {"1": "2"})
    assert [f.code for f in run.run.findings] == ["CL110"] * 4


def test_what_cannot_be_measured_still_runs_and_is_no_parent_of_others(tmp_path, ledger):
    code = (
        "import os, resource, sys\nfrom carbonlens import track\n"
        "with track('s', ledger=sys.argv[1]): pass\n"
        "getrusage = resource.getrusage\ndel resource.getrusage\n"
        "with track('s', ledger=sys.argv[1]) as run:\n"
        "    print('runs', os.environ.get('CARBONLENS_RUN_ID'))\n"
        "resource.getrusage = getrusage\nprint(run.run.status)\n"
    )
    done = python(code, tmp_path, str(ledger))
    assert done.stdout == "runs None\nfailed\n", done.stderr
    assert "was not measured" in done.stderr
    assert list((tmp_path / "state" / "carbonlens" / "journal").iterdir()) == []


def test_a_stderr_that_raises_does_not_reach_the_work(tmp_path, monkeypatch):
    class Broken(io.StringIO):
        def write(self, text):
            raise RuntimeError("no stderr of this world")

    monkeypatch.setattr(sys, "stderr", Broken())
    (tmp_path / "file").write_text("")
    with track("s", ledger=tmp_path / "file" / "ledger") as run:
        pass
    assert run.run.status == "complete"
    assert "CARBONLENS_RUN_ID" not in os.environ


class Unsayable:
    """A value that raises when it is written."""

    def __str__(self):
        raise RuntimeError("never")


@pytest.mark.parametrize(
    ("field", "said", "kept"),
    [
        ("repeat", "1", 1),
        ("repeat", -1, None),
        ("repeat", np.int64(1), 1),
        ("repeat", "first", None),
        ("repeat", 1.5, None),
        ("repeat", 2**80, None),
        ("step", 7, "7"),
        ("unit", "caf\udce9", "caf\ufffd"),
        ("study", "\ud800", "\ufffd"),
        ("zone", Unsayable(), None),
        ("on", 3, None),
        ("tags", ["no", "mapping"], {}),
        ("tags", {"k": "\udcff"}, {"k": "\ufffd"}),
    ],
)
def test_a_field_of_another_kind_is_coerced_or_named_and_the_run_is_kept(ledger, field, said, kept):
    with track(**{field: said}, ledger=ledger) as run:
        pass
    (record,) = runs(ledger)
    assert record == run.run
    assert getattr(record, field) == kept
    found = [(f.code, f.subject) for f in record.findings]
    assert found == ([] if kept else [("CL110", field)])


def test_an_error_text_that_utf8_cannot_hold_does_not_cost_the_run(ledger):
    with pytest.raises(OSError, match="b"), track("s", ledger=ledger):
        raise OSError("b\udce9d")
    assert runs(ledger)[0].error == "OSError"


def test_an_error_that_cannot_say_what_it_is_is_recorded_by_its_type(ledger):
    class MuteError(Exception):
        def __str__(self):
            raise RuntimeError("never")

    with pytest.raises(MuteError), track("s", ledger=ledger):
        raise MuteError
    assert runs(ledger)[0].error == "MuteError"


@pytest.mark.parametrize("place", ["~nosuchuser/x", 3])
def test_a_ledger_that_is_no_place_is_replaced_and_said_once(tmp_path, capfd, place):
    with track("s", ledger=place) as run:
        pass
    assert len(runs(tmp_path / "state" / "carbonlens" / "ledger")) == 1
    assert "CL112" in [f.code for f in run.run.findings]
    told = capfd.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 1


def test_tensors_without_data_do_not_reach_the_work(ledger):
    torch = pytest.importorskip("torch", reason="torch is of an extra that is not installed")
    with track("s", ledger=ledger) as run:
        run.record_quality("acc", torch.zeros(1, device="meta"))
        run.record_quality(Unsayable(), 1.0)
        run.add_units(torch.zeros(1, device="meta"))
        run.record_latencies(torch.zeros(1, device="meta"))
        run.add_units(Decimal("9e999999"))
        run.add_units(Decimal("9e999999"))
    assert run.run.status == "complete"
    assert {f.subject for f in run.run.findings} >= {"quality acc", "quality", "units", "latencies"}


def test_one_tracker_in_two_threads_keeps_their_runs_apart(ledger):
    tracker = track("s", ledger=ledger)
    first_is_in, second_is_in, first_is_out = threading.Event(), threading.Event(), threading.Event()
    handles = {}

    def first():
        with tracker as run:
            handles["first"] = run
            run.record_quality("who", 1.0)
            first_is_in.set()
            second_is_in.wait(60)
        first_is_out.set()

    def second():
        first_is_in.wait(60)
        with tracker as run:
            handles["second"] = run
            run.record_quality("who", 2.0)
            second_is_in.set()
            first_is_out.wait(60)
            assert handles["first"].run.status == "complete"
            handles["seen"] = run.run.status

    threads = [threading.Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert handles["seen"] == "running"
    assert {r.quality[0].value for r in runs(ledger)} == {1.0, 2.0}


def test_one_tracker_in_two_tasks_keeps_their_runs_apart(ledger):
    tracker = track("s", ledger=ledger)

    async def work(seconds):
        with tracker as run:
            await asyncio.sleep(seconds)
        return run.run.duration_s

    async def main():
        return await asyncio.gather(work(0.05), work(0.3))

    short, long = asyncio.run(main())
    assert short < 0.25 < long


def test_async_generators_are_measured_to_their_end(ledger):
    seen = []

    @track("ag", ledger=ledger)
    async def count():
        try:
            got = yield 1
            try:
                yield got
            except KeyError:
                yield "caught"
        finally:
            seen.append("closed")

    async def main():
        source = count()
        assert await anext(source) == 1
        assert await source.asend("x") == "x"
        assert await source.athrow(KeyError("k")) == "caught"
        assert runs(ledger) == ()
        with pytest.raises(StopAsyncIteration):
            await anext(source)
        assert len(runs(ledger)) == 1
        early = count()
        assert await anext(early) == 1
        await early.aclose()
        assert [c async for c in count()] == [1, None]

    asyncio.run(main())
    assert seen == ["closed"] * 3
    assert [r.status for r in runs(ledger)] == ["complete"] * 3


def test_the_command_of_a_subprocess_error_is_not_recorded(ledger):

    secret = ["false", "--token", "sk-SECRET-123"]
    with pytest.raises(subprocess.CalledProcessError), track("s", ledger=ledger) as run:
        subprocess.run(secret, check=True)
    assert run.run.error == "CalledProcessError: exit status 1"
    with pytest.raises(subprocess.TimeoutExpired), track("s", ledger=ledger) as run:
        raise subprocess.TimeoutExpired(secret, 5)
    assert run.run.error == "TimeoutExpired: after 5 s"


def test_error_texts_hide_arguments_and_environment(tmp_path, ledger):
    code = (
        "import os, sys\nfrom carbonlens import track\n"
        "with track('s', ledger=sys.argv[1]) as run:\n    run.add_units(sys.argv[2])\n"
        "    raise ValueError(f'{sys.argv[2]} and {sys.argv[3][8:]} and ' + os.environ['KEY'] + ' epoch 3')\n"
    )
    python(code, tmp_path, str(ledger), "planted-one", "--token=planted-two", KEY="planted-three")
    (record,) = runs(ledger)
    assert record.error == "ValueError"
    assert "planted" not in str(record)


def test_the_ledger_is_found_as_the_command_line_finds_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with track("s"):
        pass
    assert len(runs(tmp_path / ".carbonlens")) == 1


def test_a_folder_left_behind_does_not_matter(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with track("s", ledger="relative"):
        monkeypatch.chdir(tmp_path / "elsewhere")
    assert len(runs(tmp_path / "relative")) == 1


def test_an_unwritable_ledger_is_one_line_a_ledger_and_the_runs_are_kept(tmp_path, capfd):
    (tmp_path / "file").write_text("a file where the folder should be")
    for _ in range(3):
        with track("s", ledger=tmp_path / "file" / "ledger") as run:
            pass
    told = capfd.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 1
    assert "could not be written" in told.err
    fallback = tmp_path / "state" / "carbonlens" / "ledger"
    assert len(runs(fallback)) == 3
    assert "CL112" in [f.code for f in run.run.findings]


def test_a_closed_stderr_does_not_matter(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    with track("s", ledger=tmp_path / "file" / "ledger"):
        pass
    monkeypatch.setattr(sys, "stderr", None)
    with track("s", ledger=tmp_path / "file" / "other"):
        pass


def test_a_fork_inside_a_block_leaves_the_run_to_the_parent(ledger):
    with track("parent", ledger=ledger) as run:
        pid = os.fork()
        if pid == 0:
            with track("child", ledger=ledger):
                burn(0.1)
            os._exit(0)
        os.waitpid(pid, 0)
    child, parent = sorted(runs(ledger), key=lambda r: r.step)
    assert (parent.run_id, child.parent_run_id) == (run.run_id, run.run_id)
    assert parent.conditions.cpu_s >= child.conditions.cpu_s >= 0.1


def test_a_forked_child_that_leaves_the_block_writes_nothing(tmp_path, ledger):
    code = (
        "import os, sys\nfrom carbonlens import track\n"
        "with track('s', ledger=sys.argv[1]) as run:\n"
        "    pid = os.fork()\n"
        "if pid:\n    os.waitpid(pid, 0)\n"
        "print(run.run.status)\n"
    )
    done = python(code, tmp_path, str(ledger))
    assert sorted(done.stdout.split()) == ["complete", "running"], done.stderr
    assert len(runs(ledger)) == 1


@pytest.mark.parametrize("outer", ["", "with track('outer', ledger=sys.argv[1]) as outer:\n    "])
def test_what_a_forked_child_does_after_the_block_is_no_part_of_it(tmp_path, ledger, outer):
    block = "with track('a', ledger=sys.argv[1]):\n"
    indent = "    " if outer else ""
    code = (
        "import os, sys\nfrom carbonlens import track\n"
        f"{outer}{block}{indent}    pid = os.fork()\n"
        f"{indent}if not pid:\n"
        f"{indent}    print(os.environ.get('CARBONLENS_RUN_ID'))\n"
        f"{indent}    with track('b', ledger=sys.argv[1]): pass\n"
        f"{indent}    sys.stdout.flush(); os._exit(0)\n"
        f"{indent}os.waitpid(pid, 0)\n"
    )
    done = python(code, tmp_path, str(ledger))
    kept = {r.step: r for r in runs(ledger)}
    parent = kept["outer"].run_id if outer else None
    assert kept["b"].parent_run_id == kept["a"].parent_run_id == parent
    assert done.stdout.strip() == str(parent)


def test_a_script_that_turns_sigterm_into_an_exit_seals_its_run(tmp_path, ledger):
    code = (
        "import os, signal, sys\nfrom carbonlens import track\n"
        "signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))\n"
        "with track('s', ledger=sys.argv[1]):\n    os.kill(os.getpid(), signal.SIGTERM)\n    signal.pause()\n"
    )
    assert python(code, tmp_path, str(ledger)).returncode == 143
    assert [(r.status, r.exit_code) for r in runs(ledger)] == [("failed", 143)]


def test_windows_leave_half_of_the_files_to_the_work(tmp_path, ledger):
    code = (
        "import os, resource, sys\nfrom contextlib import ExitStack\nfrom carbonlens import track\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "with ExitStack() as stack:\n"
        "    opened = [stack.enter_context(track('s', ledger=sys.argv[1])) for _ in range(70)]\n"
        "    files = [stack.enter_context(open(os.devnull)) for _ in range(25)]\n"
        "print(sum('CL111' in {f.code for f in r.run.findings} for r in opened))\n"
    )
    done = python(code, tmp_path, str(ledger))
    assert 30 < int(done.stdout) < 70, done.stderr
    assert len(runs(ledger)) == 70


def test_worker_processes_of_a_pool_are_counted(ledger):
    from concurrent.futures import ProcessPoolExecutor

    with track("pool", ledger=ledger) as run, ProcessPoolExecutor(2) as pool:
        list(pool.map(burn, [0.15] * 4))
    assert run.run.conditions.cpu_s >= 0.55


def test_the_program_is_named_without_its_arguments(tmp_path, ledger):
    script = tmp_path / "train_me.py"
    script.write_text("import sys\nfrom carbonlens import track\nwith track('s', ledger=sys.argv[1]): pass\n")

    from tests.metering.processes import clean_environment

    subprocess.run(
        [sys.executable, str(script), str(ledger), "--token", "hf_secretToken"],
        check=True,
        env=clean_environment(tmp_path),
    )
    (record,) = runs(ledger)
    assert record.origin.program == "train_me.py"
    assert len(record.origin.args_sha256) == 64
    assert "hf_secretToken" not in str(record)


def test_static_and_class_methods_stay_what_they_are(ledger, monkeypatch):
    monkeypatch.setenv("CARBONLENS_LEDGER", str(ledger))

    class Work:
        @track("static", ledger=ledger)
        @staticmethod
        def double(n):
            return 2 * n

        @track
        @classmethod
        def name(cls, suffix):
            return cls.__name__ + suffix

        @track("above", ledger=ledger)
        @classmethod
        async def wait(cls):
            return cls

    class Heir(Work):
        pass

    assert (Work.double(2), Heir().double(3)) == (4, 6)
    assert (Work.name("!"), Heir().name("!")) == ("Work!", "Heir!")
    assert asyncio.run(Heir.wait()) is Heir
    assert [r.step for r in runs(ledger)].count("static") == 2
    assert len(runs(ledger)) == 5


@pytest.mark.parametrize(
    ("name", "more", "better"),
    [
        ("accuracy", {}, True),
        ("loss", {}, False),
        ("score", {}, None),
        ("score", {"outcomes": [1, 0]}, True),
        ("loss", {"higher_is_better": True}, True),
        ("accuracy", {"higher_is_better": None}, None),
    ],
)
def test_a_quality_has_the_direction_that_is_stated_or_its_name_tells(ledger, name, more, better):
    with track("int8", ledger=ledger) as run:
        run.record_quality(name, 0.5, **more)
    assert run.run.quality[0].higher_is_better is better


def test_what_a_launcher_says_and_cannot_be_is_left_out_and_said(ledger, monkeypatch):
    monkeypatch.setenv("RANK", "5")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("SLURM_RESTART_COUNT", "9" * 30)
    with track("int8", ledger=ledger) as run:
        pass
    assert (run.run.rank, run.run.attempt) == (None, 1)
    said = {f.subject: f.message for f in run.run.findings if f.code == "CL110"}
    assert said.keys() == {"RANK", "SLURM_RESTART_COUNT"}
    assert "999" not in "".join(said.values())
