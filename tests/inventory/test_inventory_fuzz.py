"""Whatever a file holds, reading the folder ends in an inventory or in faults, and never in a crash."""

import tempfile
from pathlib import Path
from typing import Literal, get_args, get_origin

import msgspec
import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from carbonlens.app.inventory import write_example
from carbonlens.inventory.folder import KINDS, read


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    folder = tmp_path_factory.mktemp("example") / "inventory"
    write_example(folder)
    return {f.name: f.read_bytes() for f in folder.iterdir()}


BITS = st.sampled_from(
    rb'|"|,|;|=|[|]]|-|nan|1e999|#|{}|true|9999-99-99|id = 1|1.5|[[tariff.band]]'.split(b"|")
    + b"\n|\xff|\x00|[[band]]\n".split(b"|")
)
CUTS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), BITS), min_size=1, max_size=4)


def damaged(content: bytes, cuts) -> bytes:
    for place, length, bit in cuts:
        at = int(place * len(content))
        content = content[:at] + bit + content[at + length :]
    return content


@pytest.mark.slow
@settings(max_examples=80)
@given(st.data(), CUTS)
def test_a_damaged_file_is_told_and_never_crashes(example, data, cuts):
    name = data.draw(st.sampled_from(sorted(example)))
    with tempfile.TemporaryDirectory() as place:
        for other, content in example.items():
            Path(place, other).write_bytes(damaged(content, cuts) if other == name else content)
        result = read(Path(place))
    assert (result.inventory is None) == bool(result.faults)
    assert all(f.what and f.mend and f.line >= 0 for f in result.faults)
    assert {f.name for f in result.files} == set(example)


@given(
    st.sampled_from(["sites.toml", "prices.csv", "readings.csv", "reporting.toml"]), st.binary(max_size=60)
)
def test_any_bytes_are_told_and_never_crash(name, content):
    with tempfile.TemporaryDirectory() as place:
        Path(place, name).write_bytes(content)
        result = read(Path(place))
    assert (result.inventory is None) == bool(result.faults)


SCALARS = (
    st.text(max_size=5)
    | st.integers(-(10**6), 10**30)
    | st.booleans()
    | st.floats()
    | st.dates()
    | st.times()
    | st.sampled_from(["2026-01", "2026-01..2026-03", "mon", "EUR", "own", "2026"])
)
KEYS = st.sampled_from(
    ["amount", "currency", "name", "weekdays", "months", "ghg_rate", "energy_kwh", "money"]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=4,
)
TABLES = [k for k in KINDS if ".toml" in k.formats]


@settings(max_examples=100)
@given(st.sampled_from(TABLES), st.data())
def test_any_value_under_any_key_is_told_and_never_crashes(kind, data):
    keys = st.sampled_from([*kind.keys, *kind.columns])
    blocks = data.draw(st.lists(st.dictionaries(keys, VALUES, max_size=6), max_size=2))
    with tempfile.TemporaryDirectory() as place:
        Path(place, f"{kind.name}.toml").write_text(tomli_w.dumps({kind.table: blocks}), "utf-8")
        result = read(Path(place))
    assert (result.inventory is None) == bool(result.faults)


CHOICES = [
    (kind, key, get_args(chosen))
    for kind in TABLES
    for key, field in kind.keys.items()
    for type_ in [{f.name: f.type for f in msgspec.structs.fields(kind.type)}[field]]
    for chosen in (type_, *get_args(type_))
    if get_origin(chosen) is Literal
]


@pytest.mark.parametrize(("kind", "key", "words"), CHOICES, ids=[f"{k.name}.{key}" for k, key, _ in CHOICES])
def test_a_wrong_word_is_told_with_the_right_ones(tmp_path, kind, key, words):
    block = tomli_w.dumps({kind.table: [{key: "no-such-word"}]})
    (tmp_path / f"{kind.name}.toml").write_text(block, "utf-8")
    (fault,) = [f for f in read(tmp_path).faults if "no-such-word" in f.what]
    assert key in fault.what
    assert all(str(word) in fault.mend for word in words)
