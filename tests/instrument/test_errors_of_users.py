"""What the user's own objects raise inside a wrapper: only its kind is recorded (law 11)."""

import re
from pathlib import Path

import pytest

import carbonlens
from tests.instrument.onnx_models import mlp

ROOM = Path(carbonlens.__file__).parent / "instrument"
WRAPPERS = "transformers token* onnxruntime* huggingface* lightning training* stage artefact*".split()
TEXT = "patient John Doe, born 1970"


class Told:
    """Raises a text of the user's wherever it is touched by name."""

    def __getattr__(self, name):
        raise ValueError(TEXT)

    def __call__(self, *args, **kwargs):
        raise ValueError(TEXT)


def test_no_wrapper_records_the_message_of_an_error():
    files = {file for pattern in WRAPPERS for file in ROOM.glob(f"{pattern}.py")}
    assert len(files) > 15
    for file in files:
        text = file.read_text("utf-8")
        assert "error_text" not in text, file.name
        # ``str(error)`` is for our own UntoldError alone.
        handlers = re.findall(r"except (.*?) as error:.*?\n((?: {8,}.*\n|\n)+?)(?= {0,8}\S)", text)
        for kind, body in handlers:
            assert kind == "UntoldError" or not re.search(r"str\(error\)|\{error[!}:]", body), file.name


def texts(run):
    return str(run.run) + str(run.run.findings)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["cache", "stopping", "model", "streamer"])
def test_what_generate_is_given(tmp_path, place):
    torch = pytest.importorskip("torch", reason="torch is of an extra that is not installed")
    pytest.importorskip("transformers", reason="transformers is of an extra that is not installed")
    from carbonlens.instrument.transformers import track_generate
    from tests.instrument import tiny_llm

    model = Told() if place == "model" else tiny_llm.tiny_llama()
    given = {
        "cache": {"past_key_values": Told()},
        "stopping": {"stopping_criteria": [Told()]},
        "streamer": {"streamer": Told()},
    }.get(place, {})
    ids = torch.tensor([[5, 6, 7]])
    with (
        carbonlens.track(ledger=tmp_path) as run,
        track_generate(model, run),
        pytest.raises((ValueError, AttributeError)),
    ):
        model.generate(ids, max_new_tokens=2, **given)
    assert TEXT not in texts(run)
    assert {f.code for f in run.run.findings} & {"CL174", "CL172"}


def test_a_session_of_onnx(tmp_path):
    onnxruntime = pytest.importorskip(
        "onnxruntime", reason="onnxruntime is of an extra that is not installed"
    )
    from carbonlens.instrument.onnxruntime import TrackedSession

    class Own(onnxruntime.InferenceSession):
        is_over = False

        def get_providers(self):
            if self.is_over:
                raise ValueError(TEXT)
            return super().get_providers()

    bare = Own(mlp(tmp_path), providers=["CPUExecutionProvider"])
    with carbonlens.track(ledger=tmp_path / "ledger") as run, TrackedSession(bare, run=run):
        Own.is_over = True
    assert TEXT not in texts(run)
    assert "execution was not recorded: ValueError" in texts(run)


def test_a_training_hook():
    from carbonlens.instrument.request import Request
    from carbonlens.instrument.training import Training, quiet

    class Callback:
        training = Training(Request(step="a"), 0, None)

        @quiet
        def on_step_end(self):
            raise ValueError(TEXT)

    callback = Callback()
    callback.training.begin()
    callback.on_step_end()
    callback.training.end()
    assert TEXT not in texts(callback.training.handle)
    assert "failed (ValueError)" in texts(callback.training.handle)
