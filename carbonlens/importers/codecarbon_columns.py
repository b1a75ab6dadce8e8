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
from carbonlens.importers.plain_times import seconds_of_texts

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

        letters = np.frombuffer(text, dtype=np.uint8)
        ends = np.flatnonzero(letters == ord("\n"))
        self._text = text
        self._ends = ends
        self._starts = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
        commas = np.diff(np.searchsorted(np.flatnonzero(letters == ord(",")), ends), prepend=0)
        strange = np.isin(letters, list(_STRANGE)) if any(bytes([b]) in text for b in _STRANGE) else None
        self.is_regular = (commas == width - 1) & (ends - self._starts < _LONGEST_LINE)
        if strange is not None:
            before = np.concatenate(([0], np.cumsum(strange)))
            self.is_regular &= before[ends] == before[self._starts]

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


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """Columns of the rows of a block that may be regular, each with its place among the lines.

    Attributes:
        places: Place of each row among the lines of the block.
        keys: What is the same in rows of one kind, as one text.
        projects: Name of the project, as written.
        ids: Of the run.
        local_s: Local seconds since 1970.
        duration_us, duration_s: Of the run.
        stated_uj: Energy as stated.
        energy_uj: Of each part that the file has, the PUE taken out, and of ``total`` the whole.
        kg: Emissions.
    """

    places: npt.NDArray[np.int64]
    keys: npt.NDArray[np.object_]
    projects: npt.NDArray[np.object_]
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
        return self._checked(places, found, gaps)

    def _query(self, file: Path) -> str:
        from carbonlens.ledger.parquet import quoted

        columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(self._width))
        numbers = [n for n in (*_REQUIRED, *self._of_parts()) if n in self._places]
        taken = [f"try_cast({self._cell(n)} AS DOUBLE) AS {n}" for n in numbers]
        # A power that is no number is not there; other numbers must be some, as plain ones.
        texts = ", ".join(f"coalesce({self._cell(n)}, '')" for n in numbers)
        powers = [n for n in numbers if n.endswith("_power")]
        unread = [
            f"({self._cell(n)} IS NOT NULL AND try_cast({self._cell(n)} AS DOUBLE) IS NULL)" for n in powers
        ]
        odd = " OR ".join([f"contains(concat({texts}), '_')", *unread])
        kind = [f"coalesce({self._cell(n)}, '')" for n in _KIND if n in self._places]
        if {"longitude", "latitude"} <= self._places.keys():
            at = f"{self._cell('longitude')}, ',', {self._cell('latitude')}"
            kind.append(
                f"CASE WHEN contains({self._cell('longitude')}, '-71.2') THEN concat({at}) ELSE '' END"
            )
        project = f"coalesce({self._cell('project_name')}, '')" if "project_name" in self._places else "''"
        texted = [self._cell("gpu_energy") if "gpu" in self._parts else "''"]
        return (
            f"SELECT concat_ws(chr(31), {', '.join(kind)}) AS key, {project} AS project, "  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
            f"coalesce({self._cell(self.id_column or '')}, '') AS id, "
            f"coalesce({self._cell('timestamp')}, '') AS stamp, "
            f"coalesce({self._cell('emissions')}, '') AS kg_text, "
            f"coalesce({self._cell('energy_consumed')}, '') AS whole_text, "
            f"coalesce({texted[0]}, '') AS gpu_text, {self._pue()} AS pue, "
            f"{', '.join(taken)}, ({odd}) AS odd "
            f"FROM read_csv({quoted(file)}, delim=',', quote='', escape='', header=false, "
            f"auto_detect=false, columns={{{columns}}})"
        )

    def _pue(self) -> str:
        return f"coalesce({self._cell('pue')}, '')" if "pue" in self._places else "''"

    def _cell(self, name: str) -> str:
        return f"c{self._places[name]}"

    def _of_parts(self) -> list[str]:
        return [f"{p}_{what}" for p in PARTS for what in ("energy", "power")]

    def _checked(
        self, places: npt.NDArray[np.int64], found: Mapping[str, Any], gaps: Mapping[str, Any]
    ) -> Block | None:
        import numpy as np

        local_s, timed = seconds_of_texts(found["stamp"])
        pue, has_pue = _pues(found["pue"])
        good = timed & has_pue & ~found["odd"].astype(bool) & self._plausible(found, gaps, pue)
        rows = np.flatnonzero(good)
        if not len(rows):
            return None
        kept = {name: column[rows] for name, column in found.items()}
        pue = pue[rows]
        duration_us, sure = micros_of(kept["duration"])
        stated_uj, known = micros_of(kept["energy_consumed"], times=J_PER_KWH)
        columns = [f"{p}_energy" for p in self._parts] + ["energy_consumed"]
        names = [*self._parts, "total"]
        energy_uj: dict[str, npt.NDArray[np.int64]] = {}
        sure &= known
        for name, column in zip(names, columns, strict=True):
            energy_uj[name], known = micros_of(kept[column], times=J_PER_KWH, over=pue)
            sure &= known
        # A part of less than half a microjoule has no width to speak of.
        none = np.zeros(len(rows), dtype=bool)
        plain_zero = np.isin(kept["gpu_text"].astype(str), ["0", "0.0"]) if "gpu" in self._parts else none
        for name in names:
            sure &= (energy_uj[name] > 0) | (plain_zero if name == "gpu" else none)
        kept["key"] = kept["key"] + np.where(plain_zero, "\x1f0", "").astype(object)
        ids = [text.strip() for text in kept["id"].tolist()]
        kg, counts = _exact(kept["kg_text"].tolist())
        sure &= counts & np.array([bool(name) for name in ids])
        last = np.flatnonzero(sure)
        chosen = last.tolist()
        return Block(
            places=places[rows][last],
            keys=kept["key"][last],
            projects=kept["project"][last],
            ids=[ids[i] for i in chosen],
            local_s=local_s[rows][last],
            duration_us=duration_us[last],
            duration_s=kept["duration"][last],
            stated_uj=stated_uj[last],
            energy_uj={name: column[last] for name, column in energy_uj.items()},
            kg=[kg[i] for i in chosen],
        )

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


def _pues(texts: npt.NDArray[np.object_]) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return the PUE of each row, and whether it is a plain number."""
    import numpy as np

    told = texts.tolist()
    value_of = {text: _pue(text) for text in set(told)}
    values = np.array([value_of[text] for text in told], dtype=np.float64)
    return np.where(np.isnan(values), 1.0, values), ~np.isnan(values)


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
