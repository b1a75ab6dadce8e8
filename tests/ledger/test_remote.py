"""Ledgers behind an address: whole objects, put only where the name is free."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from carbonlens.app.ledger_care import close, compact, export, redact, tag, verify
from carbonlens.errors import MissingExtraError, RecordError, UnwritableError, UsageError
from carbonlens.ledger.location import is_address, locate
from carbonlens.ledger.opening import open_ledger
from carbonlens.ledger.records import current
from carbonlens.ledger.store import Ledger
from tests.ledger.test_compaction import runs_over
from tests.ledger.test_store import make_run


def remote_ids(address):
    with open_ledger(address) as ledger:
        view = ledger.view()
    assert view.findings == ()
    return sorted(r.run_id for r in current(view.runs)[0])


def add(address, *runs):
    with open_ledger(address, fetch=False) as ledger:
        for run in runs:
            ledger.append(run)


@pytest.mark.parametrize(
    "text", ["s3://bucket/a/b", "gs://b/x", "memory://x", "file:///tmp/x", "s3:/bucket/a"]
)
def test_addresses_are_kept_as_given(text):
    assert is_address(text)
    assert is_address(locate(text))
    assert is_address(locate(environ={"CARBONLENS_LEDGER": text}))


@pytest.mark.parametrize("text", ["ledger", "/a/b", "./s3", "C:/x", "a:b", "~/l", "s3:"])
def test_paths_are_no_addresses(text, tmp_path):
    assert not is_address(text)
    assert locate(text, start=tmp_path).is_absolute()


def test_an_address_in_pyproject_is_no_folder_of_the_project(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.carbonlens]\nledger = "s3://bucket/l"\n')
    assert str(locate(start=tmp_path, environ={})) == "s3:/bucket/l"


def test_a_folder_store_refuses_an_address_rather_than_make_a_folder_of_its_name():
    with pytest.raises(UsageError, match="folder only"):
        Ledger(locate("s3://bucket/l"))


@pytest.fixture
def shared(tmp_path):
    pytest.importorskip("fsspec", reason="needs the extra remote")
    return f"file://{tmp_path / 'shared'}"


def test_a_folder_behind_an_address_works_as_a_ledger(shared, tmp_path):
    add(shared, *runs_over(30, 4))
    assert remote_ids(shared) == [f"run-000{i}" for i in range(4)]
    assert len(Ledger(tmp_path / "shared").view().runs) == 4


def test_what_raises_puts_nothing_back(shared):
    add(shared, make_run("a"))

    def fail():
        with open_ledger(shared) as ledger:
            ledger.append(make_run("b"))
            raise KeyError("x")

    with pytest.raises(KeyError):
        fail()
    assert remote_ids(shared) == ["a"]


def test_the_same_object_twice_is_fine_and_another_of_its_name_is_refused(shared):
    add(shared, make_run("a"))
    add(shared, make_run("a"))
    with pytest.raises(RecordError, match="another host"):
        add(shared, make_run("a", energy="9"))
    assert remote_ids(shared) == ["a"]


def test_an_unknown_kind_of_address_and_a_missing_package_are_told():
    pytest.importorskip("fsspec", reason="needs the extra remote")
    with pytest.raises(UnwritableError, match="no file system"), open_ledger("nothing://x/y"):
        pass
    with pytest.raises((MissingExtraError, RecordError)), open_ledger("abfs://x/y"):
        pass


def test_opening_a_folder_loads_no_fsspec():
    code = (
        "import sys; from carbonlens.ledger.opening import open_ledger\n"
        "with open_ledger('x') as l: l.view()\n"
        "assert not {'fsspec', 's3fs', 'aiohttp'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture(scope="module")
def bucket():
    """Run an S3-compatible server on loopback and yield a bucket's address."""
    pytest.importorskip("moto", reason="needs the development group")
    pytest.importorskip("s3fs", reason="needs the extra remote")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    names = {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    before = {k: os.environ.get(k) for k in names}
    os.environ.update(names)
    try:
        for _ in range(600):  # a busy machine takes long to import it
            try:
                urllib.request.urlopen(url, timeout=1).close()
                break
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        import s3fs

        # One that another module's server left behind would ask a port that nobody serves.
        s3fs.S3FileSystem.clear_instance_cache()
        s3fs.S3FileSystem().mkdir("ledgers")
        yield "s3://ledgers"
    finally:
        server.terminate()
        server.wait()
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@pytest.mark.slow
def test_a_ledger_in_a_bucket_through_its_whole_life(bucket, tmp_path):
    address = f"{bucket}/life"
    add(address, *runs_over(60, 12))
    assert len(remote_ids(address)) == 12
    folded = compact(ledger=address, months=["202609", "202610"])
    assert [m.month for m in folded.months] == ["202609", "202610"]
    assert len(remote_ids(address)) == 12
    assert verify(ledger=address).sound
    edited = tag("run-0001", {"team": "v"}, ledger=address)
    assert edited.after.run_id in remote_ids(address)
    close("2026-09", ledger=address)
    redact("run-0001", ["tags.team"], why="w", ledger=address)
    assert verify(ledger=address).sound
    assert export(format_="csv", ledger=address, period="2026-09").runs == 2
    import s3fs

    names = s3fs.S3FileSystem(use_listings_cache=False).find("ledgers/life")
    assert sum(n.endswith(".parquet") for n in names) == 2
    assert not [n for n in names if "/runs/202610/" in n]


@pytest.mark.slow
def test_hosts_that_write_one_bucket_at_once_lose_nothing(bucket):
    address = f"{bucket}/shared"
    code = (
        "import sys\nfrom carbonlens.ledger.opening import open_ledger\n"
        "from tests.ledger.test_store import make_run\n"
        "for i in range(3):\n"
        "    with open_ledger(sys.argv[1], fetch=False) as l: l.append(make_run(f'{sys.argv[2]}-{i}'))\n"
    )
    hosts = [subprocess.Popen([sys.executable, "-c", code, address, str(n)]) for n in range(4)]
    assert [h.wait() for h in hosts] == [0] * 4
    assert len(remote_ids(address)) == 12


@pytest.mark.slow
def test_a_name_that_is_taken_is_compared_not_overwritten(bucket):
    address = f"{bucket}/taken"
    add(address, make_run("a"))
    add(address, make_run("a"))
    with pytest.raises(RecordError, match="another host"):
        add(address, make_run("a", energy="9"))
    assert remote_ids(address) == ["a"]


@pytest.mark.slow
def test_a_bucket_that_is_not_there_or_a_server_that_is_gone_is_named(bucket):
    with pytest.raises(UnwritableError, match="credentials"):
        add("s3://no-such-bucket/l", make_run("a"))
    code = (
        "from carbonlens.ledger.opening import open_ledger\n"
        "with open_ledger('s3://ledgers/life') as l: pass\n"
    )
    env = {**os.environ, "AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert "RecordError: s3://ledgers/life: the ledger cannot be read" in done.stderr
