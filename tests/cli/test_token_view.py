"""How tokens are shown: ``runs show``, JSON, ``compare``, and every block of docs/llm.md."""

import doctest
import re
from decimal import Decimal
from pathlib import Path

import pytest

import carbonlens
from carbonlens.cli.output import clean
from carbonlens.cli.token_view import token_lines
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.tokens import Tokens
from carbonlens.ledger.store import Ledger
from carbonlens.signals.latency import summarise

PAGE = (Path(__file__).parents[2] / "docs" / "llm.md").read_text("utf-8")
BLOCKS = dict(re.findall(r"<!-- example: (\w+) -->\n```\w*\n(.*?)```", PAGE, re.DOTALL))

TOLD = Tokens(
    requests=4,
    prompt=172,
    cached=43,
    output=100,
    prefill_s=1.0,
    decode_s=3.6,
    first_token=summarise([250.0] * 4),
    inter_token=summarise([37.5] * 96),
)


def run_of(tokens=TOLD, **fields):
    reading = Reading(
        component="cpu",
        energy_j=Decimal(120),
        boundary="it",
        grade="B",
        method="counter",
        u_by_source_j={"gain": 3.0},
    )
    return Run(**{"run_id": "run-a", "energy": (reading,), "tokens": tokens, "duration_s": 4.8, **fields})


def test_no_block_is_left_out():
    assert len(BLOCKS) == PAGE.count("```") // 2
    assert set(BLOCKS) == {"generate", "record", "show", "fit"}


def test_the_page_shows_what_is_printed():
    printed = [clean(line) for line in token_lines(run_of())]
    assert printed == [clean(line) for line in BLOCKS["show"].splitlines()]


def test_the_fit_on_the_page_is_what_it_prints():
    block = doctest.DocTestParser().get_doctest(BLOCKS["fit"], {}, "fit", "docs/llm.md", 0)
    said = []
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    failed = doctest.DocTestRunner(optionflags=flags).run(block, out=said.append).failed
    assert failed == 0, "".join(said)


def executed(block, tmp_path, monkeypatch, capsys, **names):
    monkeypatch.chdir(tmp_path)
    exec(BLOCKS[block], names)  # noqa: S102  # the page's own code
    return capsys.readouterr().out.split()


def test_the_page_records_any_engine(tmp_path, monkeypatch, capsys):
    answer = {"prompt": 12, "output": 4, "first_token_ms": 80.0, "inter_token_ms": [9.0, 9.5, 9.1]}
    assert executed("record", tmp_path, monkeypatch, capsys, answers=[answer] * 3) == ["3", "12", "12"]
    [run] = carbonlens.Ledger(tmp_path / ".carbonlens").view().runs
    assert (run.step, run.tokens.prompt, run.tokens.decode_s) == (
        "llama.cpp Q4",
        36,
        pytest.approx(3 * 0.0276),
    )


def test_the_page_follows_a_model(tmp_path, monkeypatch, capsys):
    pytest.importorskip("transformers", reason="transformers is of an extra that is not installed")
    from tests.instrument.tiny_llm import prompts, tiny_llama

    ids, mask = prompts(7, 4)
    inputs = {"input_ids": ids, "attention_mask": mask, "do_sample": False}
    prompt, output, units = executed(
        "generate", tmp_path, monkeypatch, capsys, model=tiny_llama(), inputs=inputs
    )
    assert prompt == "11"
    assert output == units
    assert 2 <= int(output) <= 32


@pytest.fixture
def write(tmp_path):
    ledger = Ledger(tmp_path / ".carbonlens")
    return lambda *runs: [ledger.append(run) for run in runs]


def test_runs_show_prints_the_block_within_80_columns(shell, write):
    write(run_of(start_us=0, end_us=4_800_000))
    lines = shell("runs", "show", "run-a").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    printed = re.sub(r"\s+", " ", " ".join(lines))
    for line in BLOCKS["show"].splitlines():
        assert re.sub(r"\s+", " ", line) in printed


def test_json_has_the_fields(shell, write):
    write(run_of(start_us=0, end_us=4_800_000))
    shown = shell.json("runs", "show", "run-a")["run"]["tokens"]
    assert (shown["requests"], shown["prompt"], shown["cached"], shown["output"]) == (4, 172, 43, 100)
    assert shown["energy_per_output_token"]["value"] == pytest.approx(1.2)
    assert shown["energy_per_1000_output_tokens"]["value"] == pytest.approx(1200)
    assert shown["first_token"]["p50_ms"] == 250
    assert shown["split_by"] == "time"
    total = shown["energy_prefill"]["value"] + shown["energy_decode"]["value"]
    assert total == pytest.approx(120)
    assert [f["code"] for f in shown["findings"]] == ["CL330"]


def test_a_run_without_tokens_says_nothing_of_them(shell, write):
    write(run_of(tokens=None, start_us=0, end_us=4_800_000))
    assert "tokens" not in shell("runs", "show", "run-a").stdout
    assert shell.json("runs", "show", "run-a")["run"]["tokens"] is None


def test_what_is_unknown_is_printed_as_unknown():
    lines = token_lines(run_of(Tokens(output=100)))
    assert lines == [
        "unknown prompt (unknown cached) and 100 output, requests: unknown",
        "first token unknown, next unknown (medians); 20.8/s, decode unknown/s",
        "all energy per output token: 1.20 J [1.14, 1.26], grade B".replace("1.20 J", "1.20\u00a0J"),
        "per request: unknown",
        "prefill per prompt token: unknown",
        "decode per output token after the first: unknown",
    ]


def test_compare_takes_output_tokens_as_the_unit(shell):
    for k in range(5):
        for step, output in (("fp32", 100), ("bf16", 200)):
            block = carbonlens.track(
                step,
                study="chat",
                unit="output token",
                repeat=k + 1,
                ledger=shell.folder / ".carbonlens",
            )
            with block as run:
                sum(i * i for i in range(200_000))
                run.record_tokens(prompt=10, output=output)
    compared = shell.json("compare", "--study", "chat")
    assert compared["unit"] == "output token"
    ratio = compared["steps"][-1]["vs_previous"]["ratio"]["value"]
    assert 0.2 < ratio < 0.8  # half, and the noise of a busy machine
