"""A variant that is a URL: only its own server is measured, and neither it nor anybody hangs."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from carbonlens.domain.bench import Variant
from carbonlens.domain.sources import Sources
from carbonlens.errors import MeasurementError
from carbonlens.instrument.bench_process import ProcessArm
from carbonlens.instrument.bench_server import UrlWork
from carbonlens.instrument.window import Label, Place
from tests.instrument.synthetic import bench_of

SERVER = """
import http.server, os, signal, sys, time
port, how = int(sys.argv[1]), sys.argv[2]
open("pid-" + how, "w").write(str(os.getpid()))
if how == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        open("pid-inner", "w").write(str(os.getpid()))
        time.sleep(600)
class Handler(http.server.BaseHTTPRequestHandler):
    seen = 0
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/":
            self.send_response(int(how)); self.send_header("Location", "/other")
            self.send_header("Content-Length", "0"); self.end_headers()
            return
        open("got", "a").write(f"{body.decode()} {self.headers['X-Mine']};")
        self.send_response(200); self.send_header("Content-Length", "2"); self.end_headers()
        self.wfile.write(b"ok")
    def do_GET(self):
        Handler.seen += 1
        if how == "hangs" and Handler.seen > 1:
            time.sleep(600)
        if how in ("moves", "leaves", "astray", "adrift") and self.path == "/":
            there = {"moves": "/other", "leaves": f"http://localhost:{port}/other",
                     "astray": "http://127.0.0.1:notaport/x", "adrift": "http://[::1/x"}[how]
            self.send_response(302); self.send_header("Location", there)
            self.send_header("Content-Length", "0"); self.end_headers()
            return
        broken = how == "breaks" and Handler.seen > 1
        self.send_response(200)
        self.send_header("Content-Length", "1000" if broken else "2"); self.end_headers()
        if how == "dribbles" and Handler.seen > 1:
            self.wfile.write(b"o"); self.wfile.flush(); time.sleep(600)
        self.wfile.write(b"ok")
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


@pytest.fixture
def port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


@pytest.fixture
def variant(tmp_path, port, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "server.py").write_text(SERVER)

    def of(how, **more):
        serve = (sys.executable, "server.py", str(port), how)
        return Variant(name=how, kind="url", url=f"http://127.0.0.1:{port}/", serve=serve, **more)

    return of


@pytest.fixture
def work(variant):
    opened = []

    def of(how, timeout_s=60.0, **more):
        opened.append(UrlWork(variant(how, **more), timeout_s))
        return opened[-1]

    yield of
    for one in opened:
        one.close()


def is_gone(pid, within_s=20.0):
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def pid_of(place, how):
    return int((place / f"pid-{how}").read_text())


class Deaf:
    """Listens at a port and never answers."""

    def __init__(self, port):
        self.socket = socket.create_server(("127.0.0.1", port))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


def test_somebody_who_answers_already_is_not_measured(work, port, tmp_path):
    with Deaf(port), pytest.raises(MeasurementError, match="answered already"):
        work("plain").load()
    assert not (tmp_path / "pid-plain").exists()


def test_two_variants_do_not_share_an_address(work):
    work("plain").load()()
    with pytest.raises(MeasurementError, match="answered already"):
        work("hangs").load()


def test_somebody_who_answers_when_the_server_has_ended_is_not_measured(work, port):
    plain = work("plain")
    call = plain.load()
    plain._server.kill()
    plain._server.wait()
    with Deaf(port), pytest.raises(MeasurementError, match="ended with -9"):
        call()


@pytest.mark.parametrize("how", ["hangs", "dribbles"])
def test_a_server_that_stops_answering_is_waited_for_no_longer_than_stated(work, how):
    made = work(how, timeout_s=120.0)
    call = made.load()
    made._timeout_s = 1.0  # once it serves: a busy machine takes longer to start it
    begin = time.monotonic()
    with pytest.raises(MeasurementError, match="did not answer"):
        call()
    assert time.monotonic() - begin < 60


def test_an_answer_that_breaks_off_is_none(work):
    call = work("breaks").load()
    with pytest.raises(MeasurementError, match="broke off 998 bytes early"):
        call()


def test_a_redirect_on_the_same_server_is_followed_however_often_it_is_asked(work):
    call = work("moves").load()
    for _ in range(30):
        call()


def test_a_redirect_to_another_server_is_refused_at_once_and_so_named(work, tmp_path):
    begin = time.monotonic()
    with pytest.raises(MeasurementError, match="sends its callers elsewhere, to http://localhost"):
        work("leaves", timeout_s=600.0).load()
    assert time.monotonic() - begin < 300
    assert is_gone(pid_of(tmp_path, "leaves"))


@pytest.mark.parametrize("code", [301, 302, 303])
def test_a_redirect_that_drops_the_body_fails_the_variant_at_once(work, tmp_path, code):
    begin = time.monotonic()
    with pytest.raises(MeasurementError, match=rf"its redirect \({code}\) to .*/other drops the body"):
        work(str(code), timeout_s=600.0, body='{"p": 1}').load()
    assert time.monotonic() - begin < 300
    assert is_gone(pid_of(tmp_path, str(code)))


@pytest.mark.parametrize("code", [307, 308])
def test_after_a_redirect_that_asks_for_the_same_again_the_same_is_sent(work, tmp_path, code):
    call = work(str(code), body="text", headers={"X-Mine": "7"}).load()
    for _ in range(12):
        call()
    assert (tmp_path / "got").read_text() == "text 7;" * 13


@pytest.mark.parametrize("how", ["astray", "adrift"])
def test_a_redirect_to_no_address_fails_the_variant_and_its_server_is_ended(work, tmp_path, how):
    with pytest.raises(MeasurementError, match="sent on to no address"):
        work(how, timeout_s=600.0).load()
    assert is_gone(pid_of(tmp_path, how))


def test_one_that_accepts_and_never_answers_is_silent(port, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = f"import socket, time; s = socket.create_server(('127.0.0.1', {port})); time.sleep(600)"
    serve = (sys.executable, "-c", code)
    work = UrlWork(Variant(name="d", kind="url", url=f"http://127.0.0.1:{port}/", serve=serve), 2.0)
    with pytest.raises(MeasurementError, match="is silent after 2 s"):
        work.load()
    # It was ended with the fault, and not with the series.
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


@pytest.mark.slow
def test_a_server_that_ignores_sigterm_is_ended_with_all_it_started(work, tmp_path):
    stubborn = work("stubborn", 30.0)
    stubborn.load()()
    stubborn.close()
    assert is_gone(pid_of(tmp_path, "stubborn"))
    assert is_gone(pid_of(tmp_path, "inner"))


@pytest.mark.slow
@pytest.mark.parametrize("end", ["close", "killed"])
def test_a_worker_leaves_no_server(variant, tmp_path, end):
    how = "stubborn" if end == "close" else "plain"
    bench = bench_of(("a", "b"), window_s=0.01, timeout_s=30.0)
    label, place = (
        Label(step="a", study="s", role="variant"),
        Place(ledger=str(tmp_path / "l"), sources=Sources()),
    )
    arm = ProcessArm(variant(how), _in(bench, tmp_path), place, label, tmp_path)
    arm.check(record=True)
    if end == "killed":
        os.kill(arm._child.pid, signal.SIGTERM)
    else:
        arm.close()
    assert is_gone(arm._child.pid)
    assert is_gone(pid_of(tmp_path, how))
    arm.close()


def _in(bench, folder):
    from msgspec.structs import replace

    return replace(bench, folder=str(folder))


HELD = """
import sys, time
from pathlib import Path
from msgspec.structs import replace
from carbonlens.domain.bench import Variant
from carbonlens.domain.sources import Sources
from carbonlens.instrument.bench_process import ProcessArm
from carbonlens.instrument.window import Label, Place
from tests.instrument.synthetic import bench_of

port, how = sys.argv[1:3]
serve = (sys.executable, "server.py", port, how)
variant = Variant(name=how, kind="url", url=f"http://127.0.0.1:{port}/", serve=serve)
bench = replace(bench_of(("a", "b"), window_s=600.0, timeout_s=600.0), folder=".")
place, label = Place(ledger="l", sources=Sources()), Label(step="a", study="s", role="variant")
arm = ProcessArm(variant, bench, place, label, Path("."))
Path("worker").write_text(str(arm._child.pid))
arm.check(record=True)
arm.measure(1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["plain", "hangs"])
def test_worker_and_server_end_with_a_bench_that_is_killed(variant, port, tmp_path, how):
    variant(how)
    root = Path(__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": str(root), "XDG_STATE_HOME": str(tmp_path / "state")}
    bench = subprocess.Popen([sys.executable, "-c", HELD, str(port), how], cwd=tmp_path, env=env)
    reaper = threading.Thread(target=bench.wait)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (tmp_path / f"pid-{how}").exists():
        time.sleep(0.1)
    time.sleep(2.0)
    os.kill(bench.pid, signal.SIGKILL)
    reaper.start()
    reaper.join(10)
    assert is_gone(int((tmp_path / "worker").read_text()))
    assert is_gone(pid_of(tmp_path, how))


@pytest.mark.parametrize(
    ("serve", "said"),
    [
        (("no-such-server",), "exit code 127"),
        (("/",), "exit code 126"),
        (("true", "a\0b"), "embedded null byte"),
    ],
)
def test_a_server_that_cannot_be_started_is_told_of_like_a_command(serve, said):
    work = UrlWork(Variant(name="a", kind="url", url="http://127.0.0.1:9/", serve=serve))
    with pytest.raises(MeasurementError, match=f"cannot be started.*{said}") as raised:
        work.load()
    assert raised.value.where in (serve[0], repr(serve[0]))
    assert raised.value.mend
    work.close()


def test_what_a_server_tracks_is_no_part_of_the_window_that_it_is_started_in(tmp_path, monkeypatch):
    """It outlives that window: its environment is the bench's, and not that of a run that has ended."""
    seen = tmp_path / "environ"
    work = UrlWork(
        Variant(name="a", kind="url", url="http://127.0.0.1:9/", serve=("sh", "-c", f"env >{seen}"))
    )
    monkeypatch.setenv("CARBONLENS_RUN_ID", "01890000-0000-7000-8000-000000000000")
    monkeypatch.setenv("CARBONLENS_LEDGER", "/of/the/window")
    monkeypatch.setenv("SET_BY_PREPARE", "model")
    with pytest.raises(MeasurementError, match="the server ended with 0"):
        work.load()
    text = seen.read_text()
    assert "SET_BY_PREPARE=model" in text
    assert "01890000" not in text
    assert "/of/the/window" not in text
