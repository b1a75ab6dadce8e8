"""Damage of any kind, to every importer's sample: no crash, no figure that cannot be, nothing leaks.

A short set of it runs with the tests. For longer, on all importers or some of them::

    CARBONLENS_FUZZ_SECONDS=600 python -m pytest tests/importers/test_fuzz.py -k as_long -s
    CARBONLENS_FUZZ_SECONDS=60 CARBONLENS_FUZZ_ONLY=zeus,focus python -m pytest ... -k as_long -s
"""

import math
import os
import shutil
import tempfile
import time
import traceback
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from carbonlens.domain.finding import Finding
from carbonlens.errors import CarbonlensError
from carbonlens.importers.harvest import Harvest
from tests.importers.contract_samples import contracts, read, write

SECONDS = float(os.environ.get("CARBONLENS_FUZZ_SECONDS", "0"))
ONLY = set(filter(None, os.environ.get("CARBONLENS_FUZZ_ONLY", "").split(",")))
KINDS = [k for k in contracts() if not ONLY or k.importer.name in ONLY]
NAMES = [f"{k.importer.name}:{k.__name__}" for k in KINDS]
A_ROUND = 60
"""Examples of one importer before the next has its turn, in the long run."""

PIECES = (
    *(b"\0", b"\n", b"\r", b"\r\n", b",", b";", b"\t", b"|", b'"', b"'", b"{", b"}", b"[", b"]", b":", b"\\"),
    *(b"-", b"-1", b"+", b"e", b"1e308", b"1e400", b"-1e400", b"9" * 40, b"0.0", b"-0", b"0x10", b"1_000"),
    *(
        b"nan",
        b"NaN",
        b"inf",
        b"-inf",
        b"Infinity",
        b"null",
        b"true",
        b"N/A",
        b"1e-400",
        b"9223372036854775808",
    ),
    *("١٢٣".encode(), "４５".encode(), "½".encode(), "²".encode(), "−5".encode(), "\u00a0".encode()),
    *(
        "\u2028".encode(),
        "\ufeff".encode(),
        "\U0001f600".encode(),
        b"\xff",
        b"\xed\xa0\x80",
        b"\x1a",
        b"\x1b[0m",
    ),
    *(b"0001-01-01", b"9999-12-31T23:59:59", b"2024-02-30", b"24:00:00", b"1e18", b"-99999999999"),
)
"""What is put in: signs, numbers and words that have broken a reader somewhere."""

PLACE = st.floats(0, 1)
DAMAGE = st.one_of(
    st.tuples(st.just("put in"), PLACE, st.sampled_from(PIECES)),
    st.tuples(
        st.just("overwrite"), PLACE, st.one_of(st.sampled_from(PIECES), st.binary(min_size=1, max_size=8))
    ),
    st.tuples(st.just("take out"), PLACE, st.integers(1, 60)),
    st.tuples(st.just("twice"), PLACE, st.integers(1, 200)),
    st.tuples(st.just("cut off"), PLACE, st.none()),
    st.tuples(
        st.just("swap"),
        st.sampled_from([b",", b";", b"\t", b".", b":", b" ", b"\n"]),
        st.sampled_from(PIECES),
    ),
    st.tuples(
        st.just("number"), PLACE, st.sampled_from([p for p in PIECES if p.strip(b"-+0123456789.e") != p])
    ),
    st.tuples(st.just("lines"), PLACE, PLACE),
)


def damaged(content: bytes, damages: list[tuple]) -> bytes:
    """Return content with damage done to it, one after another."""
    for kind, where, what in damages:
        at = 0 if kind == "swap" else int(where * len(content))
        if kind == "put in":
            content = content[:at] + what + content[at:]
        elif kind == "overwrite":
            content = content[:at] + what + content[at + len(what) :]
        elif kind == "take out":
            content = content[:at] + content[at + what :]
        elif kind == "twice":
            content = content[:at] + content[at : at + what] + content[at:]
        elif kind == "cut off":
            content = content[:at]
        elif kind == "swap":
            content = content.replace(where, what)
        elif kind == "number":
            content = _other_number(content, at, what)
        else:
            lines = content.splitlines(keepends=True)
            if lines:
                a, b = int(where * (len(lines) - 1)), int(what * (len(lines) - 1))
                lines[a], lines[b] = lines[b], lines[a]
            content = b"".join(lines)
    return content


def _other_number(content: bytes, at: int, what: bytes) -> bytes:
    """Replace the next whole number or word of digits by another."""
    digits = b"0123456789.-+eE"
    while at < len(content) and content[at] not in b"0123456789":
        at += 1
    end = at
    while end < len(content) and content[end] in digits:
        end += 1
    return content[:at] + what + content[end:]


def figures(got: Harvest):
    """Yield each number of what was read, with what it is."""
    for record in got.records:
        run = record.run
        yield "stated energy", record.stated_j
        for name in ("duration_s", "emissions_reported_kg", "start_us", "end_us", "coverage", "lost_s"):
            yield name, getattr(run, name)
        for reading in (*run.energy, *run.beside):
            yield f"{reading.component} energy", reading.energy_j
            yield "covered_s", reading.covered_s
            for sigma in reading.u_by_source_j.values():
                yield "sigma", sigma
        yield from (("energy of an hour", row.energy_j) for row in run.energy_by_hour)
        if record.measured is not None:
            for name in ("mean_power_w", "covered_s", "uncovered_s"):
                yield name, getattr(record.measured, name)
    for profile in got.profiles:
        yield "span_s", profile.span_s
        yield from profile.facts.items()
        for operator in profile.operators:
            yield "time_s", operator.time_s
            yield "cycles", operator.cycles


def said(findings: list[Finding]) -> bool:
    return any(f.severity != "info" for f in findings)


def check(got: Harvest) -> None:
    """Hold what was read against what can be."""
    for name, value in figures(got):
        if value is None:
            continue
        assert math.isfinite(value), f"{name} is {value}"
        assert value >= 0 or name in {"start_us", "end_us"} or said(got.findings), (
            f"{name} is {value}: not said"
        )
    for profile in got.profiles:
        assert profile.events >= 0
    for charge in got.charges:
        amount = charge.billed.amount if charge.billed else None
        assert amount is None or amount.is_finite()
    assert min(got.rows, got.rejected, got.repeated) >= 0
    assert got.rejected + got.repeated <= got.rows, "more rows were left out than there are"
    # What cannot be written into a ledger or printed as JSON is no figure either.
    msgspec.json.encode([r.run for r in got.records], enc_hook=str)
    for finding in got.findings:
        assert finding.message.strip()


def summary(got: list[tuple[str, Harvest]]):
    """Return what must stay equal for equal bytes."""
    return [([r.run for r in h.records], h.charges, h.profiles, h.rows, h.rejected) for _, h in got]


WHOLE: dict = {}
"""What the whole sample of each kind comes to, read before any damage was."""


def attempt(kind, damages: list[tuple], which: int, root: Path) -> None:
    """Damage one file of a sample, and read it beside a whole copy of the sample."""
    files = {name: text.encode() for name, text in kind.files.items()}
    victim = list(files)[which % len(files)]
    broken = files | {victim: damaged(files[victim], damages)}
    folder = Path(tempfile.mkdtemp(dir=root))
    try:
        if kind not in WHOLE:
            WHOLE[kind] = summary(read(kind.importer, write(folder / "whole", files), kind.options))
        hurt = write(folder / "hurt", broken)
        refused = None
        try:
            for _, got in read(kind.importer, hurt, kind.options):
                check(got)
        except CarbonlensError as error:
            refused = error
        assert refused is None or (refused.what.strip() and refused.mend.strip())
        # The whole sample comes to the same beside and after the broken one.
        again = write(folder / "whole", files)
        assert summary(read(kind.importer, again, kind.options)) == WHOLE[kind], "a whole file changed"
    finally:
        shutil.rmtree(folder)


CALM = {
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "phases": (Phase.generate, Phase.shrink),
}
DAMAGES = st.lists(DAMAGE, min_size=1, max_size=5)


@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
def test_no_damage_makes_a_crash_or_a_figure_that_cannot_be(tmp_path, kind):
    @settings(max_examples=15, **CALM)
    @given(DAMAGES, st.integers(0, 3))
    def one(damages, which):
        attempt(kind, damages, which, tmp_path)

    one()


def some(kind, number: int, root: Path):
    """Return a test of some examples of one importer, other ones for each number."""

    @seed(number)
    @settings(max_examples=A_ROUND, **CALM | {"phases": (Phase.generate,)})
    @given(DAMAGES, st.integers(0, 3))
    def one(damages, which):
        attempt(kind, damages, which, root)

    return one


@pytest.mark.timeout(0)  # it takes as long as it is asked to
@pytest.mark.skipif(not SECONDS, reason="asked for by CARBONLENS_FUZZ_SECONDS")
def test_for_as_long_as_asked(tmp_path):
    end = time.monotonic() + SECONDS
    found: dict[str, str] = {}
    count = rounds = 0
    while time.monotonic() < end:
        for name, kind in zip(NAMES, KINDS, strict=True):
            if time.monotonic() >= end:
                break
            one = some(kind, rounds * 7919 + len(name), tmp_path)
            try:
                count += A_ROUND
                one()
            except Exception as error:  # noqa: BLE001  # every kind of failure is what is looked for
                last = traceback.extract_tb(error.__traceback__)[-1]
                key = f"{name} {type(error).__name__} {Path(last.filename).name}:{last.lineno}"
                if key not in found:
                    found[key] = "".join(traceback.format_exception(error))[-2500:]
                    print(f"\n== {key}\n{found[key]}", flush=True)
        rounds += 1
    print(f"\nabout {count} examples, {rounds} rounds of {len(KINDS)} samples, {len(found)} kinds of failure")
    assert not found, "\n".join(found)
