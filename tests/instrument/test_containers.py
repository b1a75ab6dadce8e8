"""``run`` where containers put it: no machine id, no home, no user, nothing writable, few rights."""

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.metering.processes import clean_environment, runs

RUN = [sys.executable, "-m", "carbonlens.cli.main", "run"]
WORK = [sys.executable, "-S", "-c", "sum(range(3_000_000)); print('done')"]


def can(*unshare: str) -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", *unshare, "true"], capture_output=True).returncode == 0


def inside(folder, setup, *options, unshare=("--mount",), work=WORK, drop=(), **more):
    """Run a command in namespaces of its own, after a set-up as root of those."""
    environ = {k: v for k, v in clean_environment(folder, **more).items() if k not in drop}
    script = f'set -e\n{setup}\nexec "$@"'
    return subprocess.run(
        ["unshare", *unshare, "sh", "-c", script, "sh", *RUN, *options, "--", *work],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
    )


def done(result):
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr
    assert len(result.stderr.splitlines()) <= 2, result.stderr
    assert "Traceback" not in result.stderr


needs_mounts = pytest.mark.skipif(not can("--mount"), reason="needs the right to mount")


@needs_mounts
def test_without_a_machine_id_the_host_is_known_all_the_same(tmp_path):
    hide = (
        "for f in /etc/machine-id /var/lib/dbus/machine-id; do [ ! -e $f ] || mount --bind /dev/null $f; done"
    )
    for _ in range(2):
        done(inside(tmp_path, hide, "--ledger", "ledger"))
    first, second = runs(tmp_path / "ledger")
    assert first.host_id == second.host_id
    done(inside(tmp_path, ":", "--ledger", "ledger"))
    # Containers of one kernel are one host, whatever machine id each of them has.
    assert runs(tmp_path / "ledger")[-1].host_id == first.host_id


@needs_mounts
def test_a_read_only_root_keeps_the_run_where_a_volume_is(tmp_path):
    setup = 'mount --make-rprivate /; mount --bind "$VOLUME" "$VOLUME"; mount -o remount,bind,ro /'
    (tmp_path / "volume").mkdir()
    volume = tmp_path / "volume"
    environ = {"VOLUME": str(volume), "XDG_STATE_HOME": "", "HOME": "/", "TMPDIR": str(volume)}
    done(inside(tmp_path, setup, "--ledger", str(volume / "ledger"), **environ))
    (run,) = runs(volume / "ledger")
    assert run.total_energy.value > 0
    assert not [f for f in run.findings if f.code == "CL113"]


@needs_mounts
def test_nothing_writable_at_all_costs_the_record_and_not_the_command(tmp_path):
    setup = "mount --make-rprivate /; mount -o remount,bind,ro /"
    environ = {"XDG_STATE_HOME": "", "HOME": "/", "TMPDIR": "/"}
    result = inside(tmp_path, setup, drop=("PYTEST_CURRENT_TEST",), **environ)
    done(result)
    assert "saved run" not in result.stderr
    assert "not saved" in result.stderr or "not kept" in result.stderr


@pytest.mark.skipif(not can("--user", "--map-user=12345"), reason="needs user namespaces")
def test_a_user_without_a_name_and_a_home_is_measured(tmp_path):
    (tmp_path / "tmp").mkdir()
    result = inside(
        tmp_path,
        ":",
        "--ledger",
        "ledger",
        unshare=("--user", "--map-user=12345"),
        drop=("HOME", "USER", "LOGNAME", "XDG_STATE_HOME"),
        TMPDIR=str(tmp_path / "tmp"),
    )
    done(result)
    (run,) = runs(tmp_path / "ledger")
    assert run.total_energy.value > 0
    assert (tmp_path / "tmp" / "carbonlens-12345" / "journal").is_dir()


@pytest.mark.skipif(not can("--mount", "--pid", "--fork", "--mount-proc"), reason="needs pid namespaces")
def test_a_pid_namespace_without_sys_counts_the_commands_time(tmp_path):
    """As process 1 of a container, without control groups or counters in sight."""
    work = [sys.executable, "-S", "-c", "import time\nwhile time.process_time() < 0.5: pass\nprint('done')"]
    result = inside(
        tmp_path,
        "mount --make-rprivate /; mount -t tmpfs none /sys",
        "--ledger",
        "ledger",
        unshare=("--mount", "--pid", "--fork", "--mount-proc"),
        work=work,
    )
    done(result)
    (run,) = runs(tmp_path / "ledger")
    assert 0.48 <= run.conditions.cpu_s < 2.0


@pytest.mark.skipif(not can("--mount"), reason="needs the right to mount")
def test_without_proc_the_command_runs(tmp_path):
    result = inside(tmp_path, "mount --make-rprivate /; mount -t tmpfs none /proc", "--ledger", "ledger")
    done(result)


def test_few_open_files_do_not_reach_the_command(tmp_path):
    result = subprocess.run(
        ["sh", "-c", 'ulimit -n 16; exec "$@"', "sh", *RUN, "--ledger", "ledger", "--", *WORK],
        cwd=tmp_path,
        env=clean_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
    )
    done(result)


@contextmanager
def group(controller, **files):
    """Make a control group of version 1 with limits, where that is allowed."""
    folder = Path("/sys/fs/cgroup") / controller / f"carbonlens-test-{os.getpid()}"
    try:
        folder.mkdir()
        for name, value in files.items():
            (folder / f"{controller}.{name}").write_text(value)
    except OSError:
        with suppress(OSError):
            folder.rmdir()
        pytest.skip(f"control groups of {controller} cannot be made here")
    try:
        yield folder
    finally:
        folder.rmdir()


@pytest.mark.parametrize(
    ("controller", "limits"),
    [("cpu", {"cfs_period_us": "100000", "cfs_quota_us": "50000"}), ("pids", {"max": "2"})],
)
def test_a_limited_group_does_not_stop_the_command(tmp_path, controller, limits):
    """Half a processor; and no process to spare, so that no thread of ours can start."""
    line = [*RUN, "--ledger", "ledger", "--", *WORK]
    with group(controller, **limits) as folder:
        result = subprocess.run(
            ["sh", "-c", f'echo $$ >{folder}/cgroup.procs; exec "$@"', "sh", *line],
            cwd=tmp_path,
            env=clean_environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=60,
        )
    done(result)
    if controller == "cpu":
        (run,) = runs(tmp_path / "ledger")
        assert run.total_energy.value > 0
    else:
        assert "not measured" in result.stderr
