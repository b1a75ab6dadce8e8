"""``stage`` around the work of real libraries."""

import warnings

import pytest

from carbonlens import stage
from tests.metering.processes import runs

torch = pytest.importorskip("torch", reason="torch is of an extra that is not installed")
from torch import nn  # noqa: E402  # torch is an extra
from torch.nn import functional  # noqa: E402  # as above

from tests.instrument.networks import mlp  # noqa: E402  # as above


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "ledger"


@pytest.mark.slow
def test_a_student_learns_from_a_teacher(ledger):
    teacher = mlp()

    @stage("distilled", inputs=("teacher",), outputs="student", example=torch.zeros(1, 64), ledger=ledger)
    def distill(teacher):
        student = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
        for _ in range(20):
            x = torch.rand(32, 64)
            loss = functional.mse_loss(student(x), teacher(x).detach())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return student.eval()

    assert isinstance(distill(teacher), nn.Module)
    (record,) = runs(ledger)
    before, after = record.artefacts
    assert (before.name, before.parameters, before.macs) == ("teacher", 9610, 9472)
    assert (after.name, after.parameters, after.macs) == ("student", 65 * 16 + 17 * 10, 64 * 16 + 160)
    assert record.conditions.cpu_s > 0


@pytest.mark.slow
def test_an_export_is_looked_at_with_the_example_of_its_source(ledger, tmp_path):
    pytest.importorskip("onnx", reason="onnx is of an extra that is not installed")
    file, example = tmp_path / "m.onnx", torch.zeros(1, 64)
    with (
        stage(
            "export", inputs={"model": mlp()}, outputs={"model": file}, example=example, ledger=ledger
        ) as s,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        torch.onnx.export(
            mlp(), (example,), str(file), dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "n"}}
        )
    before, after = s.run.artefacts
    assert (after.kind, after.parameters, after.macs) == ("onnx", before.parameters, before.macs)
    assert after.bytes == file.stat().st_size
    assert [f.code for f in s.run.findings if f.code.startswith("CL14")] == []
