"""Profiles in the terminal and in JSON: time by operator and provider, never an energy."""

import json

import pytest

from carbonlens.cli import output, profile_view
from carbonlens.importers.contract import OperatorTime

NODES = (
    ("Conv", "CUDAExecutionProvider", 600),
    ("Conv", "CUDAExecutionProvider", 200),
    ("NonMaxSuppression", "CPUExecutionProvider", 100),
)
ORT = [
    {"cat": "Session", "name": "model_run", "ts": 0, "dur": 9000, "ph": "X", "args": {}},
    *(
        {
            "cat": "Node",
            "name": f"{op}_{i}_kernel_time",
            "ts": 1000 * i,
            "dur": us,
            "ph": "X",
            "args": {"op_name": op, "provider": provider, "node_index": str(i)},
        }
        for i, (op, provider, us) in enumerate(NODES)
    ),
]


def operator(name, provider="CPU", time_s=1.0, calls=1, cycles=None):
    return OperatorTime(provider=provider, operator=name, calls=calls, time_s=time_s, cycles=cycles)


def test_a_profile_shows_its_operators_and_saves_nothing(shell, tmp_path):
    (tmp_path / "ort.json").write_text(json.dumps(ORT))
    told = shell("import", "ort.json").stdout
    assert "2 operators on CUDAExecutionProvider, CPUExecutionProvider; times, no energy" in " ".join(
        told.split()
    )
    conv = next(line for line in told.splitlines() if line.startswith("Conv "))
    assert conv.split() == ["Conv", "CUDAExecutionProvider", "2", "800", "µs", "100.0%"]
    assert "nothing to save: a profile holds times, and makes no run" in told
    assert all(len(line) <= 80 for line in told.splitlines())


def test_the_json_holds_operators_by_provider_and_no_energy(shell, tmp_path):
    (tmp_path / "ort.json").write_text(json.dumps(ORT))
    (file,) = shell.json("import", "ort.json")["files"]
    told = file["operators"]
    assert (told["count"], told["energy_j"]) == (2, None)
    assert told["longest"][0] == {
        "operator": "Conv",
        "provider": "CUDAExecutionProvider",
        "calls": 2,
        "time_s": pytest.approx(800e-6),
        "cycles": None,
        "share_of_provider": 1.0,
    }


def test_of_many_the_longest_are_shown_and_the_rest_counted():
    many = [operator(f"op{i}", time_s=30.0 - i) for i in range(25)]
    lines = profile_view.lines("a/b/file.json", many)
    assert lines[0] == "file.json: 25 operators on CPU; times, no energy"
    assert len(lines) == 2 + profile_view.SHOWN + 1
    assert lines[-1] == "... and 15 more operators (--json lists 25)"
    assert len(profile_view.as_json(many * 5)["longest"]) == profile_view.LISTED


def test_times_and_cycles_have_shares_of_their_own():
    told = [
        operator("Conv", "QNN", time_s=None, calls=None, cycles=3000),
        operator("MatMul", "QNN", time_s=None, calls=None, cycles=1000),
        operator("call", "QNN", time_s=2.0),
    ]
    shares = [o["share_of_provider"] for o in profile_view.as_json(told)["longest"]]
    assert shares == [0.75, 0.25, 1.0]
    assert "3000 cycles" in "\n".join(profile_view.lines("qnn.csv", told))


@pytest.mark.parametrize("width", [80, 60])
def test_long_names_keep_within_the_terminal_and_stay_apart(monkeypatch, width):
    monkeypatch.setattr(output, "width", lambda: width)
    long = "void cutlass::Kernel<cutlass_80_tensorop_s16816gemm_relu_f16_256x128_32x3_nn_align8_{}>(Params)"
    lines = profile_view.lines("f", [operator(long.format(i), "GPU 0", calls=10**7) for i in range(3)])
    assert all(output.columns(line) <= width for line in lines)
    assert len(set(lines)) == len(lines), "names that read alike are told apart"


def test_an_operator_without_time_has_no_share():
    (told,) = profile_view.as_json([operator("nop", time_s=0.0)])["longest"]
    assert told["share_of_provider"] is None
