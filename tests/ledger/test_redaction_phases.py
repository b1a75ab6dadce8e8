"""With the phases go their words, wherever a record repeats them: in the power over time, and in findings."""

import time
from decimal import Decimal

import msgspec
import pytest

import carbonlens
from carbonlens.app.ledger_care import compact, redact
from carbonlens.domain.finding import Finding
from carbonlens.domain.phase import Phase
from carbonlens.domain.run import HourEnergy, Run
from carbonlens.domain.trace import PhaseSpan, PowerTrace, Trace
from carbonlens.errors import SelectionError, UsageError
from carbonlens.ledger import phase_words, redaction
from carbonlens.ledger.records import Stored
from carbonlens.ledger.store import Ledger
from carbonlens.ledger.verify import verify
from carbonlens.metering.phase_energy import not_read, too_quick
from carbonlens.metering.phases import overlapped
from tests.ledger.test_redaction import NOW_US
from tests.ledger.test_store import make_run

WORD = "customer ACME"
SPANS = (PhaseSpan(name=WORD, start_s=0.0, end_s=1.0), PhaseSpan(name="load", start_s=1.0, end_s=2.0))
CURVE = PowerTrace(bin_s=1.0, power_w=(1.0, 0.5), low_w=(1.0, 0.5), high_w=(1.0, 0.5), spans=SPANS)
PHASES = tuple(
    Phase(
        name=name,
        entries=1,
        duration_s=1.0,
        energy_j=Decimal("0.5"),
        grade="D",
        u_random_j=0.1,
        u_by_source_j={"gain": 0.1},
        units=Decimal(4),
        state="unbounded",
    )
    for name in (WORD, "load")
)
SAID = (
    *(too_quick([WORD]), not_read(["load", WORD]), overlapped(WORD)),
    Finding(code="CL150", severity="warning", message=f"slow in '{WORD}' under load", mend=f"see '{WORD}'"),
)


def phased(**more):
    return make_run(**{"phases": PHASES, "power": CURVE, "duration_s": 2.0, "findings": SAID} | more)


def words_at(value, word, path=""):
    """Yield where a text is found in JSON, keys among it, whatever the fields are called."""
    if isinstance(value, dict):
        for key, inner in value.items():
            here = f"{path}.{{}}" if word in str(key) else f"{path}.{key}"
            yield from [here.lstrip(".")] if word in str(key) else []
            yield from words_at(inner, word, here)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from words_at(inner, word, path)
    elif isinstance(value, str) and word in value:
        yield path.lstrip(".")


def after(run, field, **stone):
    """Return the run's JSON without the field, as a ledger would hold it."""
    stored = Stored(run=run, text=msgspec.json.encode(run), file="f")
    made = redaction.entomb(stored, [field], by="b", when_us=0, why="w")
    (left,) = redaction.applied([stored], {stored.sha256: msgspec.structs.replace(made, **stone)})
    return left


@pytest.mark.parametrize("name", [WORD, "the customer's", 'a "b" customer\'s', "in\\out", "two\nlines"])
@pytest.mark.parametrize("quote", [repr, "'{}'".format], ids=["repr", "plain"])
def test_a_name_is_taken_out_however_it_is_quoted(name, quote):
    said = {"code": "CL150", "message": f"slow in {quote(name)} at 1 s", "mend": f"see {quote(name)}"}
    plain = {"phases": [{"name": name}], "findings": [said]}
    (found,) = phase_words.without(plain, "phases", "[gone]")["findings"]
    assert (found["message"], found["mend"]) == ("slow in [gone] at 1 s", "see [gone]")


@pytest.mark.parametrize("form", ["json", "month"])
@pytest.mark.parametrize("field", ["phases", "phases.name"])
def test_no_field_of_a_record_holds_the_name_of_a_phase_that_was_taken_out(tmp_path, field, form):
    Ledger(tmp_path).append(phased())
    if form == "month":
        compact(ledger=tmp_path)
    redact("r1", [field], why="w", ledger=tmp_path)
    (run,) = Ledger(tmp_path).view().runs
    plain = msgspec.to_builtins(run)
    assert list(words_at(plain, WORD)) == []
    assert [f.code for f in run.findings] == [*(f.code for f in SAID), redaction.CODE]
    assert run.findings[3].message == "slow in [redacted] under load", "no word that is no name of a phase"
    assert msgspec.structs.replace(run.power, spans=SPANS) == CURVE
    assert run.energy == phased().energy
    assert WORD.encode() not in b"".join(f.read_bytes() for f in tmp_path.rglob("*") if f.is_file())
    assert verify(tmp_path, now_us=NOW_US).sound
    with pytest.raises(SelectionError):
        redact("r1", [field], why="w", ledger=tmp_path)


@pytest.mark.parametrize("field", [f.name for f in msgspec.structs.fields(Phase)])
def test_with_any_part_of_the_phases_goes_when_they_were(field):
    """It tells how long each lasted, how often it was entered and, with the curve, its energy."""
    try:
        left = after(phased(), f"phases.{field}").run
    except UsageError as error:
        assert "cannot be without it" in str(error)  # noqa: PT017  # each field is one or the other
    else:
        assert left.power.spans == ()
        assert getattr(left.phases[0], field) != getattr(PHASES[0], field)


OWN = {
    *("step", "on", "unit", "workload", "hardware", "zone", "site", "error", "tags.{}", "run_id"),
    *("job_id", "parent_run_id", "host_id", "machine_id", "device_uuids", "study", "process", "ancestors"),
    *("energy.component", "energy.method", "energy.u_by_source_j.{}", "energy.devices"),
    *("beside.component", "beside.method", "beside.u_by_source_j.{}", "beside.devices"),
    *("energy_by_hour.component", "quality.name", "quality.outcomes_sha256", "execution.provider"),
    *("artefacts.name", "artefacts.kind", "artefacts.sha256", "cost.currency", "conditions.devices.device"),
    *("trace.file", "trace.sha256"),
    *(f"origin.{n}" for n in ("instrument", "source_file", "source_sha256", "program", "args_sha256")),
    *(f"origin.{n}" for n in ("args", "python", "platform", "imported_as.prefixes", "imported_as.told.{}")),
    *("supersedes", "supersedes_study", "supersedes_also"),
    *(f"findings.{n}" for n in ("code", "message", "file", "mend", "subject")),
}
"""Fields of a record that no phase is named in: each is taken out by its own name, or never.

A field that is added later must be put here or be taken out with the phases.
"""


def filled(kind, word):
    """Return JSON of a type in which every text is the word."""
    inspect = msgspec.inspect
    if isinstance(kind, inspect.StructType):
        return {f.encode_name: filled(f.type, word) for f in kind.fields}
    if isinstance(kind, inspect.UnionType):
        return filled(next(t for t in kind.types if not isinstance(t, inspect.NoneType)), word)
    if isinstance(kind, inspect.VarTupleType | inspect.ListType | inspect.SetType):
        return [filled(kind.item_type, word)]
    if isinstance(kind, inspect.TupleType):
        return [filled(t, word) for t in kind.item_types]
    if isinstance(kind, inspect.DictType):
        return {filled(kind.key_type, word): filled(kind.value_type, word)}
    if isinstance(kind, inspect.StrType):
        return word
    if isinstance(kind, inspect.LiteralType):
        return kind.values[0]
    return (
        False if isinstance(kind, inspect.BoolType) else "1" if isinstance(kind, inspect.DecimalType) else 1
    )


def test_of_every_text_that_a_record_can_hold_it_is_known_whether_it_goes_with_the_phases():
    plain = filled(msgspec.inspect.type_info(Run), WORD)
    run = msgspec.convert(plain, Run)
    held, left = (set(words_at(msgspec.to_builtins(r), WORD)) for r in (run, after(run, "phases").run))
    assert held - left == {"phases.name", "phases.u_by_source_j.{}", "power.spans.name"}
    assert left == OWN


def test_a_tombstone_of_an_older_version_gives_what_it_gave_and_the_next_takes_the_rest():
    older = after(phased(), "phases", schema_version=4)
    assert (older.run.phases, older.run.power.spans) == ((), SPANS)
    left = after(older.run, "phases").run
    assert left.power.spans == ()
    assert list(words_at(msgspec.to_builtins(left.findings[:3]), WORD)) == []


@pytest.mark.parametrize(
    "left",
    [{"power": CURVE}, {"energy_by_hour": (HourEnergy(hour_utc=1, component="cpu", energy_j=Decimal(1)),)}],
)
def test_energy_that_only_another_field_tells_is_held_and_taken_out(left):
    made = after(make_run(energy=None, **left), "energy").run
    assert (made.power, made.energy_by_hour) == (None, ())


def test_a_part_that_no_phase_has_is_none_and_takes_nothing_out(tmp_path):
    Ledger(tmp_path).append(phased())
    with pytest.raises(SelectionError, match=r"holds phases\.nope"):
        redact("r1", ["phases.nope"], why="w", ledger=tmp_path)
    assert Ledger(tmp_path).view().runs[0].power == CURVE


def test_the_file_of_readings_that_names_the_phases_is_named(tmp_path):
    there, gone = tmp_path / "there.csv", tmp_path / "gone.csv"
    there.write_text(WORD)
    for name, file in (("r-there", there), ("r-gone", gone), ("r-near", "near.csv")):
        run = phased(run_id=name, trace=Trace(file=str(file), sha256="0" * 64))
        Ledger(tmp_path / "l").append(run)
        done = redact(name, ["phases"], why="w", ledger=tmp_path / "l")
        assert done.remaining == (() if file == gone else (str(file),))
    Ledger(tmp_path / "l").append(make_run("r-tag", tags={"a": "b"}, trace=run.trace))
    assert redact("r-tag", ["tags.a"], why="w", ledger=tmp_path / "l").remaining == ()


def test_of_a_run_that_was_tracked_nothing_in_its_ledger_names_the_phase(tmp_path):
    """What the meter itself says of phases, now and in versions to come."""
    with carbonlens.track("a", ledger=tmp_path, trace=True) as run:
        with run.phase(WORD):
            end = time.process_time() + 0.25
            while time.process_time() < end:
                pass
        first, second = run.phase(f"{WORD} II"), run.phase(f"{WORD} III")
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)  # Before what was entered later: a Finding names it.
        second.__exit__(None, None, None)
    held = set(words_at(msgspec.to_builtins(run.run), WORD))
    assert held >= {"phases.name", "power.spans.name", "findings.message"}
    redact(run.run.run_id, ["phases"], why="w", ledger=tmp_path)
    assert [f.name for f in tmp_path.rglob("*") if f.is_file() and WORD.encode() in f.read_bytes()] == []
