"""What counting tokens costs: a token's step and a call of generate(), on a tiny model.

Run with ``python -m tests.bench.bench_tokens``; prints a table. Bare and
followed calls are interleaved, and their difference is a median of pairs, because a tiny
model's step (under a millisecond) scatters by more than the hook costs.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

PAIRS = 40
SHORT, LONG = 2, 66


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of some work, which a busy machine disturbs less than wall time."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def generate_us(folder: Path) -> tuple[float, float, float]:
    """Return microseconds a call, microseconds a token, and a token's bare microseconds."""
    import carbonlens
    from carbonlens.instrument.transformers import track_generate
    from tests.instrument.tiny_llm import prompts, tiny_llama

    model = tiny_llama(eos=None)
    ids, mask = prompts(8, 8)
    extra: dict[int, list[float]] = {SHORT: [], LONG: []}
    bare: dict[int, list[float]] = {SHORT: [], LONG: []}
    with carbonlens.track(ledger=folder) as run:
        for k in range(PAIRS):
            for new in (SHORT, LONG):
                asked = {"input_ids": ids, "attention_mask": mask, "do_sample": False, "max_new_tokens": new}

                def plain(asked: dict[str, object] = asked) -> None:
                    model.generate(**asked)

                def followed(asked: dict[str, object] = asked) -> None:
                    with track_generate(model, run):
                        model.generate(**asked)

                first, second = (plain, followed) if k % 2 else (followed, plain)
                times = {first: seconds(first)}
                times[second] = seconds(second)
                extra[new].append(times[followed] - times[plain])
                bare[new].append(times[plain])
    call = statistics.median(extra[SHORT])
    token = (statistics.median(extra[LONG]) - call) / (LONG - SHORT)
    step = (statistics.median(bare[LONG]) - statistics.median(bare[SHORT])) / (LONG - SHORT)
    return call * 1e6, token * 1e6, step * 1e6


def put_us(count: int = 200_000) -> float:
    """Return the microseconds of noting one step, alone."""
    from carbonlens.instrument.transformers import _Clock

    clock = _Clock(None)
    clock.put(object())
    token = object()
    begin = time.process_time()
    for _ in range(count):
        clock.put(token)
    return (time.process_time() - begin) / count * 1e6


def record_us(folder: Path, count: int = 2000) -> float:
    """Return the microseconds of ``record_tokens`` with 64 steps."""
    import carbonlens

    steps = [9.5] * 64
    with carbonlens.track(ledger=folder) as run:
        begin = time.process_time()
        for _ in range(count):
            run.record_tokens(prompt=100, cached=0, output=65, first_token_ms=80, inter_token_ms=steps)
        return (time.process_time() - begin) / count * 1e6


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_STATE_HOME"] = name
        folder = Path(name) / "ledger"
        call, token, step = generate_us(folder)
        print(f"{'generate(): a call more':44}{call:10.1f} us")
        print(f"{'generate(): a token more (noisy)':44}{token:10.1f} us")
        print(f"{'  of a bare step of the tiny model':44}{step:10.1f} us")
        print(f"{'noting a step, alone':44}{put_us():10.2f} us")
        print(f"{'record_tokens with 64 steps':44}{record_us(folder):10.1f} us")


@pytest.mark.bench
def test_print_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers", reason="transformers is of an extra that is not installed")
    monkeypatch.setenv("XDG_STATE_HOME", "")  # put back afterwards: main sets a folder of its own
    main()


@pytest.mark.bench
def test_noting_a_step_takes_microseconds() -> None:
    pytest.importorskip("transformers", reason="transformers is of an extra that is not installed")
    assert put_us(20_000) < 20


if __name__ == "__main__":
    main()
