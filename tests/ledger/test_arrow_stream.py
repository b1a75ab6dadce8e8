"""Columns handed to DuckDB as an Arrow stream: it reads what was handed over, and gives it back."""

from decimal import Decimal
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbonlens.errors import UnwritableError
from carbonlens.ledger import arrow_stream, arrow_structs, bulk
from carbonlens.ledger.arrow_stream import INTEGER, TEXT, WORD, Numbers, Stream, Words, decimal, joined
from carbonlens.ledger.parquet import connect
from tests.ledger.test_alike_text import alike

FORMATS = {
    "number": INTEGER,
    "some": INTEGER,
    "wide": decimal("DECIMAL(24,6)"),
    "text": TEXT,
    "told": TEXT,
    "word": WORD,
    "named": WORD,
}
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)
ROWS = st.lists(
    st.tuples(
        st.integers(-(2**63), 2**63 - 1),
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.integers(0, 10**17),
        TEXTS,
        st.none() | TEXTS,
        TEXTS,
        st.none() | TEXTS,
    ),
    min_size=1,
    max_size=30,
)


def known(values):
    return np.array([value is not None for value in values])


def numbers(values):
    return Numbers(np.array([value or 0 for value in values], dtype=np.int64), known(values))


def words(values):
    listed = sorted({value for value in values if value is not None}) or [""]
    places = [0 if value is None else listed.index(value) for value in values]
    told = joined([text.encode() for text in listed])
    return Words(told, np.array(places, dtype=np.int32), None if None not in values else known(values))


def batch_of(rows):
    number, some, wide, text, told, word, named = map(list, zip(*rows, strict=True))
    return {
        "number": Numbers(np.array(number, dtype=np.int64)),
        "some": numbers(some),
        "wide": numbers(wide),
        "text": joined([t.encode() for t in text]),
        "told": joined([t.encode() for t in told if t is not None], known(told)),
        "word": words(word),
        "named": words(named),
    }


@cache
def connection():
    """Return the one database of these tests: opening takes longer than most of them."""
    return connect()


def read(stream, query="SELECT * FROM made"):
    connection().register("made", stream)
    try:
        return connection().execute(query).fetchall()
    finally:
        connection().unregister("made")


@settings(max_examples=40, deadline=None)
@given(st.lists(ROWS, max_size=4))
def test_what_duckdb_reads_is_what_was_handed_over(batches):
    stream = Stream(FORMATS, lambda: map(batch_of, batches))
    expected = [
        (number, some, None if wide is None else Decimal(wide).scaleb(-6), *texts)
        for rows in batches
        for number, some, wide, *texts in rows
    ]
    assert read(stream) == expected
    assert read(stream) == expected
    assert not arrow_structs.held


def test_no_more_than_a_few_batches_are_made_before_they_are_taken():
    alive = set()

    class Seen(bytes):
        """Text whose end is noted."""

        def __new__(cls, number):
            alive.add(number)
            made = super().__new__(cls, b"x" * 100_000)
            made.number = number
            return made

        def __del__(self):
            alive.discard(self.number)

    most = 0

    def batches():
        nonlocal most
        for number in range(200):
            most = max(most, len(alive))
            whole = Seen(number)
            yield {"text": arrow_stream.Texts(whole, np.array([0, len(whole)]))}

    assert read(Stream({"text": TEXT}, batches), "SELECT sum(length(text)) FROM made") == [(20_000_000,)]
    assert most < 20
    assert not alive


def test_what_making_a_batch_raised_is_kept_and_everything_given_back():
    def batches():
        yield batch_of([(1, 2, 3, "a", "b", "c", "d")] * 5)
        raise ZeroDivisionError("of the maker")

    stream = Stream(FORMATS, batches)
    with pytest.raises(Exception, match="a batch could not be made"):
        read(stream)
    assert str(stream.error) == "of the maker"
    assert not arrow_structs.held


@pytest.mark.parametrize("raised", [KeyboardInterrupt(), SystemExit(3), MemoryError()])
def test_an_interrupt_while_a_batch_is_made_is_no_end_of_the_stream(raised):
    def batches():
        yield batch_of([(1, 2, 3, "a", "b", "c", "d")] * 5)
        raise raised

    stream = Stream(FORMATS, batches)
    with pytest.raises(Exception, match="a batch could not be made"):
        read(stream)
    assert stream.error is raised
    assert not arrow_structs.held


def test_columns_of_two_lengths_are_no_batch():
    stream = Stream({"a": INTEGER, "b": INTEGER}, lambda: iter([{"a": numbers([1]), "b": numbers([1, 2])}]))
    with pytest.raises(Exception, match="a batch could not be made"):
        read(stream)
    assert isinstance(stream.error, ValueError)


def test_a_stream_that_nobody_reads_makes_nothing():
    def batches():
        raise AssertionError("made")
        yield

    stream = Stream({"a": INTEGER}, batches)
    assert stream.__arrow_c_stream__() is not stream.__arrow_c_stream__()
    assert read(stream, "SELECT 1") == [(1,)]


def test_a_fault_of_the_texts_is_said_as_it_is(tmp_path, monkeypatch):
    """A fault in the second thread comes out as itself, and no file stays behind."""

    def broken(_):
        raise UnwritableError("is full", where="here", mend="make room")

    monkeypatch.setattr(bulk.alike_text, "texts_of", broken)
    with pytest.raises(UnwritableError, match="is full"):
        bulk.write(tmp_path / "batch.parquet", [alike(10)])
    assert not list(tmp_path.iterdir())


def test_long_records_are_handed_over_a_few_at_a_time(tmp_path):
    runs = alike(40, run_ids=[f"{i}{'x' * 200_000}" for i in range(40)])
    words = {name: ["a"] for name in bulk._WORDS}
    sizes = [len(batch["record"].whole) for batch in bulk._batches([runs], words)]
    assert len(sizes) == 3
    assert max(sizes) < 10_000_000
    bulk.write(tmp_path / "batch.parquet", [runs])
    with connect() as opened:
        query = f"SELECT count(*), count(record), min(length(run_id)) FROM '{tmp_path / 'batch.parquet'}'"
        assert opened.execute(query).fetchall() == [(80, 40, 200_001)]


KG = st.decimals(0, Decimal("999999999999999"), allow_nan=False, allow_infinity=False) | st.builds(
    lambda digits, places: Decimal(digits).scaleb(-places), st.integers(0, 10**14), st.integers(0, 26)
)


@settings(max_examples=100, deadline=None)
@given(st.lists(KG, min_size=1, max_size=20))
def test_emissions_are_read_as_by_the_widest_type(values):
    texts = [str(value).encode() for value in values]
    stream = Stream({"emissions_reported_kg": TEXT}, lambda: iter([{"emissions_reported_kg": joined(texts)}]))
    query = (
        f"SELECT CAST({bulk._KG} AS DECIMAL(24,9)), CAST(emissions_reported_kg AS DECIMAL(24,9)) FROM made"
    )
    assert all(short == wide for short, wide in read(stream, query))
