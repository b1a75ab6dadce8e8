"""One real run of each wrapper on this machine's GPU (or its CPU), with its figures.

Run with ``python -m tests.bench.bench_wrappers [PART ...]``; prints a table and asserts nothing.
Needs PyTorch; ``transformers`` and ``lightning`` where they are installed. Models are large enough
for the device to work, weights are random: what counts is what is measured. The table of a real GPU
is kept beside this file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

LADDER_ROUNDS, LADDER_WINDOW_S = 10, 1.0
SECONDS = 8.0
"""How long a part works, about."""

MATRICES = """
import sys, time, torch
kind, products = getattr(torch, sys.argv[1]), int(sys.argv[2])
device = "cuda" if torch.cuda.is_available() else "cpu"
side = 8192 if device == "cuda" else 512
a = torch.randn(side, side, device=device).to(kind)
for _ in range(products):
    a @ a
if device == "cuda":
    torch.cuda.synchronize()
"""

RANKS = """
import torch, torch.distributed as dist, carbonlens, os
from torch.nn.parallel import DistributedDataParallel as Parallel
dist.init_process_group("gloo")
device = "cuda" if torch.cuda.is_available() else "cpu"
width = 4096 if device == "cuda" else 256
torch.manual_seed(0)
with carbonlens.track("ddp", role="training", unit="sample") as run:
    model = Parallel(torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(),
                                         torch.nn.Linear(width, 10)).to(device))
    train = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(60):
        train.zero_grad()
        model(torch.randn(1024, width, device=device)).square().mean().backward()
        train.step()
        run.step(units=1024)
dist.destroy_process_group()
"""


def device() -> str:
    """Return what PyTorch works on here."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def settled() -> None:
    """Wait for the device: work that is queued is not yet done."""
    import torch

    if device() == "cuda":
        torch.cuda.synchronize()


def told(run: Any) -> str:
    """Return energy with its interval, by component, and what the run did."""
    from carbonlens.reporting import format as fmt

    energy = fmt.energy(run.total_energy)
    parts = ", ".join(f"{r.component} {r.energy_j:.4g} J {r.grade}" for r in run.energy)
    per = fmt.energy(run.total_energy.scale(1 / float(run.units), "J")).text if run.units else "-"
    codes = " ".join(sorted({f.code for f in run.findings})) or "no findings"
    return (
        f"{run.units or 0:,} {run.unit or 'units'}, {run.duration_s:.1f} s, {energy.text} {energy.interval} "
        f"({parts}), {per} a unit; {codes}"
    )


def say(name: str, text: str) -> None:
    """Print a line of the table at once."""
    print(f"{name:<12} {text}", flush=True)


def change(value: float, low: float, high: float) -> str:
    """Return a ratio with its interval as a change in percent."""
    return f"{100 * (value - 1):+.1f} % [{100 * (low - 1):+.1f}, {100 * (high - 1):+.1f}]"


def command(ledger: Path) -> None:
    """A command that knows nothing of carbonlens."""
    script = ledger.parent / "matrices.py"
    script.write_text(MATRICES, "utf-8")
    work = [sys.executable, str(script), "bfloat16", "3000" if device() == "cuda" else "200"]
    own = [sys.executable, "-m", "carbonlens.cli.main", "run", "--ledger", str(ledger)]
    subprocess.run([*own, "--unit", "product", "--units", work[-1], "--", *work], check=True)
    say("run", told(latest(ledger)))


def latest(ledger: Path) -> Any:
    """Return the newest run of a ledger."""
    return max(recorded(ledger), key=lambda r: r.start_us)


def recorded(ledger: Path) -> Sequence[Any]:
    """Return all runs of a ledger."""
    from carbonlens import Ledger

    return Ledger(ledger).view().runs


def network(width: int, layers: int = 3) -> Any:
    """Return a stack of wide layers on the device."""
    from torch import nn

    sizes = [2048, *[width] * layers, 16]
    parts = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*parts[:-1]).to(device())


def batches(rows: int = 2048) -> Iterator[Any]:
    """Yield random inputs on the device for some seconds."""
    import torch

    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        yield torch.randn(rows, 2048, device=device())
        settled()


def loop(ledger: Path) -> None:
    """A plain training loop in phases."""
    import torch

    import carbonlens

    with carbonlens.track("loop", role="training", unit="sample", ledger=ledger) as run:
        with run.phase("load"):
            model = network(4096)
            train = torch.optim.SGD(model.parameters(), lr=0.01)
        for step, inputs in enumerate(batches()):
            run.enter_phase("warm-up" if step < 10 else "steady")
            train.zero_grad()
            model(inputs).square().mean().backward()
            train.step()
            run.step(units=len(inputs))
        with run.phase("evaluation"), torch.no_grad():
            model(inputs)
    say("loop", told(run.run))
    say("  phases", ", ".join(f"{p.name} {p.duration_s:.2f} s" for p in run.run.phases))


def huggingface(ledger: Path) -> None:
    """``Trainer`` of transformers."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    from carbonlens.instrument.huggingface import TrackingCallback

    rows = [{"input_ids": torch.randint(0, 1000, (128,)), "labels": i % 2} for i in range(4000)]
    os.environ["CARBONLENS_LEDGER"] = str(ledger)
    tracking = TrackingCallback("trainer", warmup_steps=5)
    with tempfile.TemporaryDirectory() as folder:
        Trainer(
            model=BertForSequenceClassification(
                BertConfig(vocab_size=1000, hidden_size=512, num_attention_heads=8, intermediate_size=2048)
            ),
            args=TrainingArguments(
                output_dir=folder,
                max_steps=120 if device() == "cuda" else 4,
                per_device_train_batch_size=64,
                use_cpu=device() == "cpu",
                report_to="none",
                save_strategy="no",
                disable_tqdm=True,
            ),
            train_dataset=rows,
            callbacks=[tracking],
        ).train()
    say("Trainer", told(tracking.run.run))


def lightning(ledger: Path) -> None:
    """``Trainer`` of Lightning, under whichever of its two names it is installed."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    try:
        import lightning.pytorch as pl
    except ImportError:
        import pytorch_lightning as pl
    from carbonlens.instrument.lightning import TrackingCallback

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layers = network(4096)

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return self.layers(batch[0]).square().mean()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    os.environ["CARBONLENS_LEDGER"] = str(ledger)
    tracking = TrackingCallback("lightning", warmup_steps=5)
    data = DataLoader(TensorDataset(torch.randn(20_000, 2048)), batch_size=500)
    pl.Trainer(
        accelerator="gpu" if device() == "cuda" else "cpu",
        devices=1,
        max_steps=800 if device() == "cuda" else 20,
        callbacks=[tracking],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    ).fit(Module(), data)
    say("Lightning", told(tracking.run.run))


def ddp(ledger: Path) -> None:
    """Two ranks that share the machine's devices: counted once."""
    before = {r.run_id for r in recorded(ledger)} if ledger.exists() else set()
    script = ledger.parent / "ranks.py"
    script.write_text(RANKS, "utf-8")
    start = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    environ = {**os.environ, "CARBONLENS_LEDGER": str(ledger), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *start], env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    for run in recorded(ledger):
        if run.run_id not in before:
            say(f"DDP rank {run.rank}", told(run))
    own = [sys.executable, "-m", "carbonlens.cli.main", "runs", "list", "--ledger", str(ledger)]
    print(subprocess.run(own, capture_output=True, text=True, check=True).stdout)


def ladder(ledger: Path) -> None:
    """Three steps of compression, each with its effort, in interleaved rounds."""
    import torch

    import carbonlens
    from carbonlens.app.terms import parse_terms

    @carbonlens.stage("bf16", inputs="model", study="ladder", ledger=ledger)
    def narrow(model: Any) -> Any:
        return network_like(model, torch.bfloat16)

    @carbonlens.stage("pruned", inputs="model", study="ladder", ledger=ledger)
    def prune(model: Any) -> Any:
        small = network(2048).to(torch.bfloat16)
        train = torch.optim.SGD(small.parameters(), lr=0.01)
        for _ in range(200):
            inputs = torch.randn(2048, 2048, device=device(), dtype=torch.bfloat16)
            train.zero_grad()
            (small(inputs) - model(inputs)).square().mean().backward()
            train.step()
        settled()
        return small.eval()

    @carbonlens.stage("compiled", inputs="model", study="ladder", ledger=ledger)
    def compiled(model: Any) -> Any:
        faster = torch.compile(model)
        faster(torch.randn(4096, 2048, device=device(), dtype=torch.bfloat16))
        settled()
        return faster

    models = {"fp32": network(4096).eval()}
    models["bf16"] = narrow(models["fp32"])
    models["pruned"] = prune(models["bf16"])
    models["compiled"] = compiled(models["pruned"])
    kinds = dict.fromkeys(models, torch.bfloat16) | {"fp32": torch.float32}
    for round_ in range(1, LADDER_ROUNDS + 1):
        for name in list(models)[:: 1 if round_ % 2 else -1]:
            inputs = torch.randn(4096, 2048, device=device()).to(kinds[name])
            with (
                torch.no_grad(),
                carbonlens.track(
                    name, study="ladder", unit="sample", repeat=round_, workload="rows of 2048", ledger=ledger
                ) as run,
            ):
                end = time.monotonic() + LADDER_WINDOW_S
                while time.monotonic() < end:
                    for _ in range(20):
                        models[name](inputs)
                    settled()
                    run.add_units(20 * len(inputs))
    result = carbonlens.compare("ladder", ledger=ledger, baseline="fp32", terms=parse_terms(None, [], None))
    for step in result.steps:
        ratio, effort = step.vs_previous.ratio, step.effort
        say(
            f"  {step.step}",
            f"{change(ratio.value, ratio.low, ratio.high)} on {step.measured_on}, "
            f"effort {effort.energy_j.value if effort else 0:,.0f} J, {step.verdict}, "
            f"{step.decision}",
        )


def network_like(model: Any, kind: Any) -> Any:
    """Return a copy of a model in another number format."""
    import copy

    return copy.deepcopy(model).to(kind)


def tokens(ledger: Path) -> None:
    """A language model of random weights that writes."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    import carbonlens
    from carbonlens.accounting.tokens import token_figures
    from carbonlens.instrument.transformers import track_generate
    from carbonlens.reporting import format as fmt

    big = {"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 16, "num_attention_heads": 16}
    small = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = LlamaConfig(vocab_size=32000, **(big if device() == "cuda" else small))
    kind = torch.bfloat16 if device() == "cuda" else torch.float32
    model = LlamaForCausalLM(config).eval().to(device()).to(kind)
    for size in (1, 16):
        ids = torch.randint(3, 32000, (size, 512), device=device())
        asked = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        model.generate(**asked, do_sample=False, max_new_tokens=4, min_new_tokens=4)
        step = f"batch{size}"
        with carbonlens.track(step, unit="output token", ledger=ledger) as run, track_generate(model, run):
            model.generate(**asked, do_sample=False, max_new_tokens=256, min_new_tokens=256)
        found = token_figures(run.run)
        assert found is not None
        say(f"LLM {step}", told(run.run))
        say(
            "  tokens",
            f"{fmt.energy(found.per_output).text} an output token, "
            f"prompt {fmt.energy(found.per_prompt).text}, decoding {fmt.energy(found.per_decoded).text}, "
            f"first token {run.run.tokens.first_token.p50_ms:.1f} ms, "
            f"then {run.run.tokens.inter_token.p50_ms:.2f} ms",
        )


def pair(ledger: Path) -> None:
    """Two scripts, one command."""
    script = ledger.parent / "matrices.py"
    script.write_text(MATRICES, "utf-8")
    products = "100"
    arms = [f"{sys.executable} {script} {kind} {products}" for kind in ("float32", "bfloat16")]
    begun = time.monotonic()
    asked = ["--baseline", arms[0], "--candidate", arms[1], "--units", products, "--unit", "product"]
    own = [sys.executable, "-m", "carbonlens.cli.main", "bench", *asked, "--budget", "60", "--json"]
    done = subprocess.run([*own, "--ledger", str(ledger)], stdout=subprocess.PIPE, text=True, check=True)
    step = json.loads(done.stdout)["comparison"]["steps"][0]
    ratio = step["vs_baseline"]["ratio"]
    say(
        "bench",
        f"{change(ratio['value'], ratio['low'], ratio['high'])}, "
        f"{step['verdict']}, {step['decision']}; {time.monotonic() - begun:.0f} s",
    )


PARTS: dict[str, Callable[[Path], None]] = {
    "command": command,
    "loop": loop,
    "huggingface": huggingface,
    "lightning": lightning,
    "ddp": ddp,
    "tokens": tokens,
    "pair": pair,
    "ladder": ladder,
}


def main() -> None:
    """Run the parts that are named, or all; what one part lacks is said in its line."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = str(Path(folder) / "state")
        for name in sys.argv[1:] or PARTS:
            try:
                PARTS[name](Path(folder) / "ledger")
            except ImportError as error:
                say(name, f"not run: {error}")


if __name__ == "__main__":
    main()
