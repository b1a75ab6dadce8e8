"""codecarbon's rows by columns: blocks of lines that are regular in every respect.

DuckDB parts the lines and reads their numbers; numpy checks them. A row of which any cell is
out of the ordinary goes by the row path, as does the first row of each kind: the others of its
kind differ from that one in the columns alone, so that what is made of them is the same.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.domain.limits import MOST_HOURS
from carbonlens.domain.units import J_PER_KWH, US_PER_HOUR
from carbonlens.importers import unit_checks
from carbonlens.importers.exact_micros import micros_of
from carbonlens.importers.plain_times import PLAIN_LENGTH, seconds_of_letters

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from duckdb import DuckDBPyConnection

    from carbonlens.importers.contract import Array

PARTS: Final = ("cpu", "gpu", "ram")

_KIND: Final = (
    *("project_name", "country_iso_code", "country_name", "region", "cloud_provider", "cloud_region"),
    *("on_cloud", "os", "codecarbon_version", "cpu_count", "cpu_model", "gpu_count", "gpu_model"),
    *("ram_total_size", "tracking_mode", "pue"),
)
"""Columns by whose cells rows are of one kind; further ones say nothing that a record holds."""

_REQUIRED: Final = ("duration", "energy_consumed", "emissions")
_SURE: Final = 1e-9
"""Relative margin by which a figure must keep within a bound of the row path to be regular here."""

_PARTS_MISS: Final = 0.005
_LEAST_W: Final = 1e-4
_MOST_S: Final = MOST_HOURS * US_PER_HOUR / 1e6 - 1
_MOST_KWH: Final = 2000.0
"""Above which a float does not hold every microjoule."""

_MOST_KG: Final = 1e9
_MOST_W: Final = 1e12
_LONGEST_LINE: Final = 1 << 20
_FIRST_PRINTED: Final = 32
_STRANGE: Final = frozenset({*range(9), *range(11, 32), ord('"'), 127})
"""Bytes of a line that the row path reads: quotes, and control characters but for tabs."""


class Lines:
    """The lines of one block, by their bytes.

    Args:
        text: Whole lines.
        width: Cells of a regular one.
    """

    def __init__(self, text: bytes, width: int) -> None:
        """Find where lines begin, and which are regular."""
        import numpy as np

        self._text = text
        self._width = width
        letters = np.frombuffer(text, dtype=np.uint8)
        self._ends = np.flatnonzero(letters == ord("\n"))
        self._starts = _starts(self._ends)
        self._commas = np.flatnonzero(letters == ord(","))
        counts = np.diff(np.searchsorted(self._commas, self._ends), prepend=0)
        self.is_regular = (counts == width - 1) & (self._ends - self._starts < _LONGEST_LINE)
        plain = len(self._ends) + text.count(b"\t")
        if np.count_nonzero(letters < _FIRST_PRINTED) > plain or b'"' in text or b"\x7f" in text:
            strange = np.isin(letters, list(_STRANGE))
            before = np.concatenate(([0], np.cumsum(strange)))
            self.is_regular &= before[self._ends] == before[self._starts]

    def __len__(self) -> int:
        """Return their number."""
        return len(self._ends)

    def text(self, place: int) -> str:
        """Return one line; bytes that are no UTF-8 become the mark of such."""
        return self._text[self._starts[place] : self._ends[place]].decode(errors="replace")

    def regular(self) -> bytes:
        """Return the regular lines."""
        if self.is_regular.all():
            return self._text
        pairs = zip(self._starts[self.is_regular].tolist(), self._ends[self.is_regular].tolist(), strict=True)
        return b"".join(self._text[start : end + 1] for start, end in pairs)

    def letters(self, column: int, length: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
        """Return a cell of each regular line, and which of them are of that length.

        Args:
            column: Place of the cell.
            length: In bytes; the letters of other cells mean nothing.

        Returns:
            First letters, second letters and so on of all of them; and which are that long.
        """
        import numpy as np

        regular = self.is_regular
        starts, ends = self._starts[regular], self._ends[regular]
        first = np.searchsorted(self._commas, starts)
        if column > 0:
            starts = self._commas[first + column - 1] + 1
        if column < self._width - 1:
            ends = self._commas[first + column]
        every = np.frombuffer(self._text, dtype=np.uint8)
        found = np.empty((length, len(starts)), dtype=np.uint8)
        for place in range(length):
            every.take(starts + place, mode="clip", out=found[place])
        return found, ends - starts == length


def _starts(ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    import numpy as np

    return np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """Columns of the rows of a block that may be regular, each with its place among the lines.

    Attributes:
        places: Place of each row among the lines of the block.
        kinds: Number of its kind: rows of one say the same but for their columns.
        projects: Name of the project, as written, by the number of the kind.
        ids: Of the run.
        local_s: Local seconds since 1970.
        duration_us, duration_s: Of the run.
        stated_uj: Energy as stated.
        energy_uj: Of each part that the file has, the PUE taken out, and of ``total`` the whole.
        kg: Emissions.
    """

    places: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int64]
    projects: Sequence[str]
    ids: list[str]
    local_s: npt.NDArray[np.int64]
    duration_us: npt.NDArray[np.int64]
    duration_s: Array
    stated_uj: npt.NDArray[np.int64]
    energy_uj: Mapping[str, npt.NDArray[np.int64]]
    kg: list[Decimal]


class Columns:
    """Reads the blocks of one file whose header is known.

    Args:
        connection: A DuckDB.
        header: Names of the columns.
    """

    def __init__(self, connection: DuckDBPyConnection, header: Sequence[str]) -> None:
        """Write the query."""
        self._connection = connection
        self._places = {name: place for place, name in enumerate(header)}
        self._width = len(header)
        self._parts = [p for p in PARTS if f"{p}_energy" in self._places]
        self._kind: list[str] = [n for n in _KIND if n in self._places]
        self.id_column = next((n for n in ("run_id", "id", "experiment_id") if n in self._places), None)

    @property
    def has_rows(self) -> bool:
        """Whether rows of such a header can be regular: a task, or a run without an id, is not."""
        return self.id_column is not None and "task_name" not in self._places

    def read(self, lines: Lines) -> Block | None:
        """Return the rows of a block that may be regular; ``None`` where none is.

        Args:
            lines: The block's lines, of UTF-8.
        """
        import numpy as np

        regular = lines.regular()
        if not regular:
            return None
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "block.csv"
            file.write_bytes(regular)
            got = self._connection.execute(self._query(file)).fetchnumpy()
        found = {name: np.ma.getdata(column) for name, column in got.items()}
        gaps = {name: np.ma.getmaskarray(column) for name, column in got.items()}
        places = np.flatnonzero(lines.is_regular)
        if len(places) != len(found["key"]):
            return None  # DuckDB parted the lines otherwise: the row path reads them.
        local_s, timed = seconds_of_letters(*lines.letters(self._places["timestamp"], PLAIN_LENGTH))
        return self._checked(places, found, gaps, local_s, timed)

    def _query(self, file: Path) -> str:
        from carbonlens.ledger.parquet import quoted

        columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(self._width))
        numbers = [n for n in (*_REQUIRED, *self._of_parts()) if n in self._places]
        taken = [f"try_cast({self._cell(n)} AS DOUBLE) AS {n}" for n in numbers]
        # A power that is no number is not there; other numbers must be some, as plain ones.
        texts = ", ".join(self._cell(n) for n in numbers)
        powers = [n for n in numbers if n.endswith("_power")]
        unread = [
            f"({self._cell(n)} IS NOT NULL AND try_cast({self._cell(n)} AS DOUBLE) IS NULL)" for n in powers
        ]
        odd = " OR ".join([f"contains(concat({texts}), '_')", *unread])
        kind = [self._cell(n) for n in self._kind]
        if {"longitude", "latitude"} <= self._places.keys():
            at = f"{self._cell('longitude')}, ',', {self._cell('latitude')}"
            kind.append(
                f"CASE WHEN contains({self._cell('longitude')}, '-71.2') THEN concat({at}) ELSE '' END"
            )
        zero = (
            f"coalesce({self._cell('gpu_energy')} IN ('0', '0.0'), false)"
            if "gpu" in self._parts
            else "false"
        )
        return (
            f"SELECT concat({', chr(31), '.join([*kind, zero])}) AS key, "  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
            f"coalesce({self._cell(self.id_column or '')}, '') AS id, "
            f"coalesce({self._cell('emissions')}, '') AS kg_text, "
            f"{zero} AS gpu_zero, {', '.join(taken)}, ({odd}) AS odd "
            f"FROM read_csv({quoted(file)}, delim=',', quote='', escape='', header=false, "
            f"auto_detect=false, columns={{{columns}}})"
        )

    def _cell(self, name: str) -> str:
        return f"c{self._places[name]}"

    def _of_parts(self) -> list[str]:
        return [f"{p}_{what}" for p in PARTS for what in ("energy", "power")]

    def _checked(
        self,
        places: npt.NDArray[np.int64],
        found: Mapping[str, Any],
        gaps: Mapping[str, Any],
        local_s: npt.NDArray[np.int64],
        timed: npt.NDArray[np.bool_],
    ) -> Block | None:
        import numpy as np

        keys, kinds = _numbered(found["key"].tolist())
        pue = np.array([_pue(self._told(key, "pue")) for key in keys])[kinds]
        has_pue = ~np.isnan(pue)
        pue = np.where(has_pue, pue, 1.0)
        good = timed & has_pue & ~found["odd"].astype(bool) & self._plausible(found, gaps, pue)
        rows = np.flatnonzero(good)
        if not len(rows):
            return None
        kept = {name: column[rows] for name, column in found.items() if name != "key"}
        energy_uj, duration_us, sure = self._micros(kept, pue[rows])
        ids = list(map(str.strip, kept["id"].tolist()))
        kg, counts = _exact(kept["kg_text"].tolist())
        sure &= counts & np.fromiter(map(bool, ids), dtype=bool, count=len(ids))
        last = np.flatnonzero(sure)
        whole = len(last) == len(rows)
        chosen = last.tolist()
        return Block(
            places=places[rows][last],
            kinds=kinds[rows][last],
            projects=[self._told(key, "project_name") for key in keys],
            ids=ids if whole else [ids[i] for i in chosen],
            local_s=local_s[rows][last],
            duration_us=duration_us[last],
            duration_s=kept["duration"][last],
            stated_uj=energy_uj.pop("stated")[last],
            energy_uj={name: column[last] for name, column in energy_uj.items()},
            kg=kg if whole else [kg[i] for i in chosen],
        )

    def _told(self, key: str, name: str) -> str:
        """Return what rows of a kind have in a column; nothing where there is none."""
        return key.split("\x1f")[self._kind.index(name)] if name in self._places else ""

    def _micros(
        self, kept: Mapping[str, Any], pue: Array
    ) -> tuple[dict[str, npt.NDArray[np.int64]], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Return microjoules by part, ``total`` and ``stated``, microseconds, and where all are sure."""
        import numpy as np

        duration_us, sure = micros_of(kept["duration"])
        stated_uj, known = micros_of(kept["energy_consumed"], times=J_PER_KWH)
        sure &= known
        found = {"stated": stated_uj}
        over = None if (pue == 1).all() else pue
        for name in self._parts:
            found[name], known = micros_of(kept[f"{name}_energy"], times=J_PER_KWH, over=over)
            sure &= known
        found["total"] = stated_uj
        if over is not None:
            found["total"], known = micros_of(kept["energy_consumed"], times=J_PER_KWH, over=over)
            sure &= known
        # A part of less than half a microjoule has no width to speak of.
        plain_zero = kept["gpu_zero"].astype(bool)
        for name in (*self._parts, "total"):
            sure &= (found[name] > 0) | (plain_zero if name == "gpu" else np.False_)
        return found, duration_us, sure

    def _plausible(
        self, found: Mapping[str, Any], gaps: Mapping[str, Any], pue: Array
    ) -> npt.NDArray[np.bool_]:
        """Return which rows have figures of which nothing is said."""
        import numpy as np

        seconds, kwh, kg = (found[n] for n in _REQUIRED)
        with np.errstate(all="ignore"):
            good = (seconds > 0) & (seconds < _MOST_S) & (kwh > 0) & (kwh < _MOST_KWH)
            good &= (kg >= 0) & (kg < _MOST_KG)
            for name in (*_REQUIRED, *(f"{p}_energy" for p in self._parts)):
                good &= ~gaps[name]
            watts = kwh * J_PER_KWH / seconds
            good &= _within(watts, _LEAST_W, unit_checks.MOST_HOST_W)
            ratio = kg / kwh
            good &= (kg == 0) | _within(ratio, unit_checks.LEAST_KG_PER_KWH, unit_checks.MOST_KG_PER_KWH)
            if self._parts:
                parts = sum(found[f"{p}_energy"] for p in self._parts)
                good &= abs(parts - kwh) < (_PARTS_MISS - 1e-6) * kwh
            for part in self._parts:
                good &= _fits_power(found, gaps, part, seconds, pue)
        told: npt.NDArray[np.bool_] = good
        return told


def _fits_power(
    found: Mapping[str, Any], gaps: Mapping[str, Any], part: str, seconds: Array, pue: Array
) -> npt.NDArray[np.bool_]:
    """Return where the power beside a part's energy is that which the energy implies, or not told."""
    import numpy as np

    kwh: Array = found[f"{part}_energy"]
    good = kwh >= 0
    if f"{part}_power" not in found:
        return good
    stated_w = found[f"{part}_power"]
    untold = gaps[f"{part}_power"] | np.isnan(stated_w)
    ratio = kwh * J_PER_KWH / seconds / stated_w
    most = unit_checks.MOST_RATIO
    fits = _within(ratio, 1 / most, most) | _within(ratio / pue, 1 / most, most)
    fits &= (stated_w > 0) & (stated_w < _MOST_W)
    told: npt.NDArray[np.bool_] = good & (untold | (stated_w == 0) | (kwh == 0) | fits)
    return told


def _within(values: Array, least: float, most: float) -> npt.NDArray[np.bool_]:
    return (values >= least * (1 + _SURE)) & (values <= most * (1 - _SURE))


def _numbered(keys: Sequence[str]) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return texts, each once, and the place of each of the given among them."""
    import numpy as np

    number_of = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return list(number_of), np.fromiter(map(number_of.__getitem__, keys), dtype=np.int64, count=len(keys))


def _pue(text: str) -> float:
    if text.strip() == "":
        return 1.0
    try:
        value = float(text)
    except ValueError:
        return float("nan")
    return max(value, 1.0) if 0 <= value < 100 and "_" not in text else float("nan")


def _exact(texts: Sequence[str]) -> tuple[list[Decimal], npt.NDArray[np.bool_]]:
    """Return the exact numbers, which were read as floats before, and where there is one."""
    import numpy as np

    try:
        found = list(map(Decimal, texts))
    except ArithmeticError:
        told = [_number(text) for text in texts]
        return [t or Decimal(0) for t in told], np.array([t is not None for t in told])
    return found, np.ones(len(texts), dtype=bool)


def _number(text: str) -> Decimal | None:
    try:
        return Decimal(text)
    except ArithmeticError:
        return None
