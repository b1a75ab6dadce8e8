"""``bench`` as users run it: two scripts, a bench file, failures, Ctrl-C and going on."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

WORK = """
import hashlib, time

def heavy(data=b"x" * 2000):
    for _ in range(60):
        hashlib.sha256(data).digest()
    return 60

def light(data=b"x" * 2000):
    for _ in range(15):
        hashlib.sha256(data).digest()
    return 60

def data():
    return b"y" * 2000

def long():
    with open("long", "a") as stream:
        stream.write("x")
    time.sleep(1.2)
    return b"y" * 2000

def quality(*_):
    return {"accuracy": {"outcomes": [1] * 95 + [0] * 5}}

def broken(*_):
    raise ValueError("no such layer")

def nothing():
    return 0

def dies(*_):
    import os, signal
    os.kill(os.getpid(), signal.SIGKILL)
"""

HEAD = '[bench]\nname = "hash"\nunit = "digest"\nwindow_s = 0.03\nmost_rounds = 10\n'


def variant(name, **fields):
    lines = [f"{k} = {json.dumps(v)}" for k, v in {"name": name, **fields}.items()]
    return "[[variant]]\n" + "\n".join(lines) + "\n"


@pytest.fixture
def folder(shell, tmp_path):
    (tmp_path / "work.py").write_text(WORK)
    return tmp_path


def python(code):
    return f'{sys.executable} -c "{code}"'


SPIN = "import hashlib; [hashlib.sha256(b'x' * 2000).digest() for _ in range({})]"


def test_two_commands_to_a_comparison_and_a_page(shell, folder):
    found = shell.json(
        *("bench", "--baseline", python(SPIN.format(20_000)), "--candidate", python(SPIN.format(2_000))),
        *("--units", 20_000, "--unit", "digest", "--window", 0.02, "--rounds", 10, "--report", "out"),
    )
    step = found["comparison"]["steps"][0]
    assert found["rounds"] == 10
    assert step["vs_baseline"]["ratio"]["value"] < 1
    assert step["verdict"] in ("better", "inconclusive")
    assert (folder / "out" / "report.html").is_file()
    assert (folder / "out" / "report.pdf").read_bytes().startswith(b"%PDF")
    # The study is kept, so that the ledger's other commands know it.
    again = shell.json("compare", "--study", found["study"])
    assert again["steps"][0]["vs_baseline"] == step["vs_baseline"]
    assert {r["unit"] for r in shell.json("runs")["runs"]} == {"digest"}


def test_functions_with_effort_quality_and_gate(shell, folder):
    spec = folder / "bench.toml"
    spec.write_text(
        HEAD
        + variant("heavy", callable="work:heavy", evaluate="work:quality")
        + variant("light", callable="work:light", prepare="work:data", evaluate="work:quality")
        + '[[gate]]\nname = "acc"\nmetric = "accuracy"\nkind = "max_loss"\nlimit = 0.2\n'
    )
    found = shell.json("bench", spec)
    step = found["comparison"]["steps"][0]
    assert (step["step"], step["verdict"], step["decision"]) == ("light", "better", "adopt")
    assert step["gates"][0]["outcome"] == "pass"
    assert found["comparison"]["break_even"]


@pytest.mark.slow
def test_a_long_effort_is_done_once_and_the_process_that_is_kept_is_told(shell, folder):
    spec = folder / "bench.toml"
    spec.write_text(
        HEAD
        + variant("heavy", callable="work:heavy", prepare="work:long")
        + variant("light", callable="work:light", prepare="work:long")
    )
    found = shell.json("bench", spec)
    assert (folder / "long").read_text() == "xx"
    assert found["in_one_process"] == ["heavy", "light"]
    assert "CL188" in [f["code"] for f in found["comparison"]["findings"]]
    printed = shell("bench", spec, "--resume").stdout.splitlines()
    assert "CL188 info: one process for all rounds of heavy, light" in printed
    assert (folder / "long").read_text() == "xxxx"


def test_a_variant_that_fails_its_gate_is_not_adopted(shell, folder):
    spec = folder / "bench.toml"
    spec.write_text(
        HEAD
        + variant("heavy", callable="work:heavy", evaluate="work:quality")
        + variant(
            "light", callable="work:light", evaluate=[sys.executable, "-c", "print('{\"accuracy\": 0.1}')"]
        )
        + '[[gate]]\nname = "acc"\nmetric = "accuracy"\nkind = "min_value"\nlimit = 0.5\n'
    )
    step = shell.json("bench", spec)["comparison"]["steps"][0]
    assert step["gates"][0]["outcome"] == "undetermined"  # one number without its n
    assert step["decision"] != "adopt"


SAYS_ZERO = "import os; open(os.environ['CARBONLENS_RESULT'], 'w').write('{\"units\": 0}')"

BAD = {
    "raises": ({"callable": "work:broken"}, "no such layer"),
    "no-function": ({"callable": "work:missing"}, "cannot be loaded"),
    "no-module": ({"callable": "nowhere:f"}, "cannot be loaded"),
    "no-name": ({"callable": ":f"}, "cannot be loaded"),
    "relative": ({"callable": ".work:f"}, "cannot be loaded"),
    "killed": ({"callable": "work:dies"}, "signal 9"),
    "not-found": ({"command": "no-such-program", "units": 1}, "127"),
    "not-executable": ({"command": "/etc/hostname", "units": 1}, "126"),
    "exit-code": ({"command": "false", "units": 1}, "exit code 1"),
    "zero-units": ({"callable": "work:nothing"}, "says its units are 0"),
    "says-zero": ({"command": [sys.executable, "-c", SAYS_ZERO], "units": 1}, "its units are 0"),
    "no-model": ({"onnx": "none.onnx"}, "none.onnx"),
    "no-server": ({"url": "http://127.0.0.1:9/", "serve": "true"}, "server"),
}


def test_variants_that_fail_are_told_and_the_others_are_measured(shell, folder):
    spec = folder / "bench.toml"
    bad = "".join(variant(name, measured_on="heavy", **fields) for name, (fields, _) in BAD.items())
    spec.write_text(
        HEAD + variant("heavy", callable="work:heavy") + variant("light", callable="work:light") + bad
    )
    found = shell.json("bench", spec, code=3)
    assert found["failed"].keys() == BAD.keys()
    for name, (_, said) in BAD.items():
        assert said in found["failed"][name]
    status = {s["step"]: s["status"] for s in found["comparison"]["steps"]}
    assert status == {"light": "accepted", **dict.fromkeys(BAD, "failed")}


def test_a_gate_on_what_nobody_records_stays_open_and_is_said(shell, folder):
    spec = folder / "bench.toml"
    spec.write_text(
        HEAD
        + variant("heavy", callable="work:heavy")
        + variant("light", callable="work:light")
        + '[[gate]]\nname = "acc"\nmetric = "accuracy"\nkind = "max_loss"\nlimit = 0.2\n'
    )
    compared = shell.json("bench", spec)["comparison"]
    assert (compared["steps"][0]["verdict"], compared["steps"][0]["decision"]) == ("better", "undetermined")
    assert compared["steps"][0]["gates"][0]["outcome"] == "undetermined"
    (said,) = [f["message"] for f in compared["findings"] if f["code"] == "CL448"]
    assert "accuracy" in said


def test_resuming_takes_what_is_judged_otherwise_and_refuses_what_is_measured_otherwise(shell, folder):
    spec = folder / "bench.toml"
    variants = variant("heavy", callable="work:heavy") + variant("light", callable="work:light")
    spec.write_text(HEAD + variants)
    first = shell.json("bench", spec)
    more = HEAD.replace("most_rounds = 10", "most_rounds = 11\nmargin = 0.05\nhalf_width = 0.0001")
    spec.write_text(more + variants)
    second = shell.json("bench", spec, "--resume")
    assert (second["study"], second["rounds"], first["rounds"]) == (first["study"], 11, 10)
    spec.write_text(more + variants.replace("work:light", "work:heavy"))
    refused = shell("bench", spec, "--resume", code=2)
    assert "begins anew" in refused.stderr
    assert refused.stdout == ""


def test_a_baseline_that_fails_ends_it(shell, folder):
    spec = folder / "bench.toml"
    spec.write_text(HEAD + variant("bad", callable="work:broken") + variant("light", callable="work:light"))
    done = shell("bench", spec, code=3)
    assert "no such layer" in done.stderr
    assert done.stdout == ""


def test_each_bench_is_a_study_of_its_own(shell, folder):
    spec = folder / "bench.toml"
    spec.write_text(HEAD + variant("heavy", callable="work:heavy") + variant("light", callable="work:light"))
    assert [shell.json("bench", spec)["study"] for _ in range(2)] == ["hash", "hash-2"]


def test_what_a_command_says_of_itself_is_taken(shell, folder):
    code = (
        "import json, os; open(os.environ['CARBONLENS_RESULT'], 'w').write(json.dumps("
        "{'units': 7, 'latencies_ms': [1.0, 2.0], 'quality': {'accuracy': 0.9}}))"
    )
    spec = folder / "bench.toml"
    command = [sys.executable, "-c", code]
    spec.write_text(HEAD + variant("a", command=command, units=1) + variant("b", command=command, units=1))
    found = shell.json("bench", spec)
    runs = [r for r in shell.json("runs")["runs"] if r["step"] == "a"]
    assert all(float(r["units"]) % 7 == 0 for r in runs if r["units"])
    assert found["comparison"]["steps"][0]["energy_per_unit_j"]["value"] > 0


def test_a_server_is_measured_with_its_requests(shell, folder):
    server = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        sum(range(int(sys.argv[2])))
        self.send_response(200); self.send_header("Content-Length", "2"); self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
    (folder / "server.py").write_text(server)
    first, second = free_ports(2)
    spec = folder / "bench.toml"
    spec.write_text(
        HEAD
        + variant(
            "slow",
            url=f"http://127.0.0.1:{first}/",
            serve=[sys.executable, "server.py", str(first), "900000"],
        )
        + variant(
            "fast", url=f"http://127.0.0.1:{second}/", serve=[sys.executable, "server.py", str(second), "9"]
        )
    )
    found = shell.json("bench", spec)
    assert found["comparison"]["steps"][0]["verdict"] == "better"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", first), timeout=2)


def free_ports(n):
    open_ = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [s.getsockname()[1] for s in open_]
    for s in open_:
        s.close()
    return ports


def begun(shell, folder, *arguments):
    """Return a bench that was started."""
    return subprocess.Popen(
        [sys.executable, "-m", "carbonlens.cli.main", "bench", *map(str, arguments)],
        cwd=folder,
        env=shell.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_ctrl_c_keeps_finished_rounds_and_resume_goes_on(shell, folder):
    spec = folder / "bench.toml"
    spec.write_text(
        HEAD.replace("0.03", "0.3").replace("= 10", "= 12")
        + variant("heavy", callable="work:heavy")
        + variant("light", callable="work:light")
    )
    process = begun(shell, folder, spec, "--json")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if sum(1 for _ in folder.glob(".carbonlens/runs/*/*.json")) >= 8:
            break
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    first = json.loads(out)
    assert first["ended"] == "interrupted"
    assert 1 <= first["rounds"] < 12
    assert "CL166" in [f["code"] for f in first["comparison"]["findings"]]
    second = shell.json("bench", spec, "--resume")
    assert (second["study"], second["rounds"]) == (first["study"], 12)


def test_ctrl_c_twice_ends_at_once_and_names_what_goes_on(shell, folder):
    """The first waits for what is being measured; who presses again is told that the rounds are kept."""
    slow = ["--baseline", "sleep 0.3", "--candidate", "sleep 0.3", "--units", "1", "--window", "3"]
    process = begun(shell, folder, *slow, "--rounds", "40")
    deadline = time.monotonic() + 60
    while sum(1 for _ in folder.glob(".carbonlens/runs/*/*.json")) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    time.sleep(0.15)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT), err
    assert "--resume" in err
    assert "nothing to compare" not in err


@pytest.mark.parametrize("calls", [1, 2])
def test_ctrl_c_before_a_round_is_complete_says_so(shell, folder, calls):
    """While it is checked, or when one of two was measured: there is nothing to compare."""
    (folder / "slow.sh").write_text(
        f"echo . >> calls\n[ $(wc -l < calls) -lt {calls} ] || {{ touch stuck; sleep 2; }}\n"
    )
    quick = ["--baseline", "sh slow.sh", "--candidate", "sleep 0.05", "--units", "1", "--window", "0.01"]
    process = begun(shell, folder, *quick)
    deadline = time.monotonic() + 60
    while not (folder / "stuck").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT), err
    assert "before a round was complete" in err
    assert "no measured run" not in err + out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--baseline"),
        (["--baseline", "true"], "--units"),
        (["--baseline", "true", "--units", "1"], "--candidate"),
        (["--baseline", "true", "--candidate", "true", "--units", "0"], "positive"),
        (["--baseline", "true", "--candidate", "tru'e", "--units", "1"], "quote"),
        (["--baseline", "true", "--candidate", "true", "--units", "1", "--rounds", "3"], "allow 10 at least"),
        (["--baseline", "true", "--candidate", "true", "--units", "1", "--half-width", "0"], "stop rule"),
        (["--baseline", "true", "--candidate", "true", "--units", "1", "--window", "nan"], "window_s"),
        (["--baseline", "true", "--candidate", "true", "--units", "1", "--resume"], "series"),
        (["none.toml"], "none.toml"),
        (["none.toml", "--baseline", "true"], "both"),
    ],
)
def test_a_wrong_request_is_refused_before_any_work(shell, arguments, said):
    done = shell("bench", *arguments, code=3 if arguments == ["none.toml"] else 2)
    assert said in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("how", [(), ("--json",)])
def test_candidates_that_all_fail_are_named_and_end_it_with_3(shell, how):
    broken = python("raise SystemExit(9)")
    done = shell("bench", "--baseline", "true", "--candidate", broken, "--units", 1, *how, code=3)
    assert "every candidate failed" in done.stderr
    assert "exit code 9" in done.stderr
