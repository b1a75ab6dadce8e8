"""Every room takes ``--ledger s3://...``: a server of the same interface stands on loopback."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from carbonlens.ledger import outbox
from carbonlens.metering.deposit import UPLOAD_WAIT_S, deposit
from tests.ledger.test_remote import bucket  # noqa: F401  # a fixture is found by its name here
from tests.ledger.test_store import make_run

pytestmark = pytest.mark.slow

CLI = Path(sys.executable).with_name("carbonlens")


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def ask(*args, code=0, **env):
    done = subprocess.run([CLI, *map(str, args)], capture_output=True, text=True, env={**os.environ, **env})
    assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
    return done


def answer(*args, **env):
    return json.loads(ask(*args, "--json", **env).stdout)


TABLE = "run_id,study,step,repeat,energy_j,units,boundary,energy_grade\n" + "".join(
    f"{step}{i},s,{step},{i},{joules + i},100,it,B\n"
    for i in range(1, 6)
    for step, joules in (("fp32", 1000), ("int8", 700))
)


def test_the_rooms_read_and_write_a_bucket(bucket, tmp_path):  # noqa: F811  # the fixture
    where = ("--ledger", f"{bucket}/rooms")
    table = tmp_path / "runs.csv"
    table.write_text(TABLE)
    assert answer("import", table, *where)["totals"]["runs"] == 10
    assert answer("import", table, *where)["files"][0]["status"] == "duplicate"
    ran = ask("run", *where, "--study", "own", "--", sys.executable, "-c", "print('hello')")
    assert ran.stdout == "hello\n"
    assert "could not be written" not in ran.stderr
    listed = answer("runs", "list", *where)
    assert (len(listed["runs"]), listed["ledger"]) == (11, where[1])
    (mine,) = [r["run_id"] for r in listed["runs"] if r["study"] == "own"]
    assert answer("runs", "show", mine, *where)["run"]["run_id"] == mine
    tagged = answer("runs", "tag", mine, "team=v", *where)
    assert tagged["supersedes"] == mine
    answer("runs", "supersede", mine, "--by", "units=3", *where)
    assert len(answer("runs", "list", *where)["runs"]) == 11
    step = answer("compare", "--study", "s", *where)["steps"][0]
    assert step["verdict"] == "better"
    ask("check", "--study", "s", "--fail-if", "energy:>+3%@95%", *where)
    assert answer("ledger", "verify", *where)["sound"]
    code = f"import carbonlens\nwith carbonlens.track('x', ledger={where[1]!r}): pass\n"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert len(answer("runs", "list", *where)["runs"]) == 12


def test_a_run_survives_a_server_that_is_away_and_is_sent_by_the_next_command(bucket):  # noqa: F811  # the fixture
    where = ("--ledger", f"{bucket}/away")
    down = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"}
    command = ("--", sys.executable, "-c", "import sys; print('out'); sys.exit(7)")
    ran = ask("run", *where, *command, code=7, **down)
    assert ran.stdout == "out\n"
    said = [line for line in ran.stderr.splitlines() if "could not be written" in line]
    assert len(said) == 1
    assert where[1] in said[0]
    assert len(outbox.waiting(where[1])) == 1
    assert len(answer("runs", "list", *where)["runs"]) == 1
    assert outbox.waiting(where[1]) == []


def test_a_server_that_never_answers_holds_the_job_no_longer_than_promised(bucket, monkeypatch):  # noqa: F811  # the fixture
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        import s3fs

        s3fs.S3FileSystem.clear_instance_cache()
        before = time.monotonic()
        done = deposit(make_run("a"), Path("s3:/ledgers/silent"))
        # Loading the packages under load takes its own time; the server would hold it for ever.
        assert time.monotonic() - before < UPLOAD_WAIT_S + 20
    assert "no answer within" in done.fault
    assert done.ledger == outbox.folder_of("s3://ledgers/silent")
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.mark.parametrize(
    ("address", "env", "code", "said", "mend"),
    [
        ("s3://no-such-bucket/x", {}, 3, "no bucket", "make it"),
        ("s3://ledgers/x", {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, 3, "cannot be read", "network"),
        (
            "s3://ledgers/x",
            {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "true"},
            3,
            "cannot be read",
            "credentials",
        ),
        ("s3://ledgers/nothing-here", {}, 2, "not there", "--ledger"),
        ("nothing://x/y", {}, 2, "no file system", "s3://"),
        ("gs://bucket/x", {}, 3, "remote", "pip install"),
    ],
)
def test_a_bad_address_is_told_with_its_mend(bucket, address, env, code, said, mend):  # noqa: F811  # the fixture
    done = ask("runs", "list", "--ledger", address, code=code, **env)
    assert said in done.stderr
    assert mend in done.stderr
    assert "Traceback" not in done.stderr


def test_without_the_extra_the_error_names_it(tmp_path):
    code = (
        "import sys; sys.modules['fsspec'] = None\n"
        "from carbonlens.cli.main import main\n"
        "sys.argv = ['carbonlens', 'runs', '--ledger', 's3://b/x']\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 3
    assert "carbonlens[remote]" in done.stderr
