"""What every importer keeps to: inherit ``ImporterContract``, give a sample, and be tested.

A subclass stands in the test module of its importer and gives a small valid sample, typed
here and copied from nowhere, with what it comes to. The clothes a file may wear (marks, line
ends, encodings, packing) must change nothing; damage may change figures only with a Finding,
and must never raise anything but ``InputFileError``.
"""

import csv
import gzip
import io
import itertools
import random
import zipfile
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import ClassVar, get_args

import pytest

from carbonlens.app.importing import Placing, import_files
from carbonlens.domain.finding import Severity
from carbonlens.domain.finding_codes import CODES
from carbonlens.domain.units import Boundary, Grade
from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import claims, importers
from carbonlens.importers.contract import Importer, Kind, Options
from carbonlens.importers.harvest import Harvest, harvest
from carbonlens.importers.sources import sources_of

NOT_THERE = ("N/A", "[N/A]", "[Not Supported]", "-", "nan", "")
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
KNOWN_CODES = {code.code for code in CODES}


def energy_of(got: Harvest) -> float | None:
    """Return what the records state in all; ``None`` where one does not know."""
    parts = [r.stated_j if r.stated_j is not None else _sum(r.run) for r in furthest(got)]
    return None if not parts or None in parts else float(sum(parts))


def billed_of(got: Harvest) -> Decimal | None:
    """Return the cash of all lines; ``None`` where one does not state it."""
    amounts = [c.billed.amount if c.billed else None for c in got.charges]
    return None if None in amounts else sum(amounts, Decimal(0))


def _sum(run):
    values = [e.energy_j for e in run.energy]
    return None if not values or None in values else sum(values)


def furthest(got: Harvest):
    """Return the records that count where a format writes one run several times."""
    best = {}
    for place, record in enumerate(got.records):
        key = (record.run.study, record.run.run_id) if record.cumulative else place
        best[key] = record
    return list(best.values())


class ImporterContract:
    """Checks of one importer.

    Attributes:
        importer: The importer.
        files: The sample: name to text. Names mean nothing to a claim.
        options: What the sample needs beside it.
        runs: How many runs it holds.
        energy_j: What they sum to; ``None`` where the format tells no energy.
        charges, billed: Of a bill: how many lines it holds, and the cash they sum to.
        delimiter: What parts cells, for formats that are tables of one header; ``None`` for others.
        essential: Columns without which no energy can be told (tables only).
        clocks: Whether lines bear times that may go back.
        repeats_count_once: False for formats in which equal lines are ordinary.
        header_lines: Lines before the first row.
        is_binary: Whether the sample is no text: see ``binary_importers``.
    """

    importer: Importer
    files: ClassVar[Mapping[str, str]]
    options: ClassVar[Options] = Options()
    runs: int
    energy_j: float | None = None
    charges: int = 0
    billed: Decimal | None = None
    tolerance: float = 1e-6
    delimiter: str | None = None
    essential: ClassVar[tuple[str, ...]] = ()
    clocks = False
    repeats_count_once = True
    header_lines = 1
    is_binary = False

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path):
        self._root = tmp_path
        self._numbers = itertools.count()
        self.refusals = []
        yield
        assert all(e.what.strip() and e.mend.strip() for e in self.refusals), "a refusal says why"

    def write(self, files: Mapping[str, bytes]) -> list[Path]:
        """Write files into a fresh folder."""
        folder = self._root / f"case-{next(self._numbers)}"
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        return [folder / name for name in files]

    def read(self, files: Mapping[str, bytes]) -> Harvest | None:
        """Read files as an import does; ``None`` where this importer does not claim them."""
        sources = [s for path in self.write(files) for s in sources_of(path) if s.fault is None]
        mine, _ = claims(sources, [self.importer])
        if not mine:
            return None
        whole = Harvest()
        for claim in mine:
            got = harvest(self.importer, claim.group, self.options)
            whole.singles += got.records
            whole.charges += got.charges
            whole.profiles += got.profiles
            whole.findings += got.findings
            whole.rows += got.rows
            whole.rejected += got.rejected
            whole.repeated += got.repeated
        return whole

    def plain(self) -> dict[str, bytes]:
        return {name: text.encode() for name, text in self.files.items()}

    def main(self) -> str:
        """Return the name of the file that damage is done to: the first."""
        return next(iter(self.files))

    def with_main(self, text: str | bytes) -> dict[str, bytes]:
        return self.plain() | {self.main(): text if isinstance(text, bytes) else text.encode()}

    def lines(self) -> list[str]:
        return self.files[self.main()].splitlines(keepends=True)

    def is_whole(self, got: Harvest | None) -> bool:
        """Whether a reading comes to what the sample does."""
        if got is None or len(furthest(got)) != self.runs or len(got.charges) != self.charges:
            return False
        if self.billed is not None and billed_of(got) != self.billed:
            return False
        found = energy_of(got)
        if self.energy_j is None or found is None:
            return found is self.energy_j
        return found == pytest.approx(self.energy_j, rel=self.tolerance, abs=1e-6)

    def read_or_refused(self, files: Mapping[str, bytes]) -> Harvest | None:
        try:
            return self.read(files)
        except InputFileError as error:
            self.refusals.append(error)
            return None

    def assert_told(self, got: Harvest | None, why: str) -> None:
        """Check that damage that changed figures is said, refused, or not claimed at all."""
        if got is None or self.is_whole(got):
            return
        assert got.findings or got.rejected, f"{why}: figures changed without a word"
        found = energy_of(got)
        if found is not None and self.energy_j is not None:
            errors = [f for f in got.findings if f.severity != "info"]
            # More energy than there is may come only with a warning.
            assert found <= self.energy_j * (1 + 1e-6) + 1e-6 or errors, f"{why}: {found} J, silently more"

    def test_it_is_an_importer(self):
        made = self.importer
        assert isinstance(made, Importer)
        assert made.name.strip() == made.name
        assert made.name.isascii()
        assert made.version >= 1
        assert made.kind in get_args(Kind)
        facts = made.facts
        assert all(text.strip() for text in (facts.title, facts.reads, facts.units, facts.grade))
        assert facts.traps
        assert facts.tested_on

    def test_only_it_claims_its_sample_whatever_the_name(self):
        renamed = {f"{i}.bin": content for i, content in enumerate(self.plain().values())}
        sources = [s for path in self.write(renamed) for s in sources_of(path)]
        found, left = claims(sources, importers())
        assert {c.importer.name for c in found} == {self.importer.name}
        assert not left

    def test_it_claims_nothing_of_nothing(self):
        files = {"a": b"hello\nworld\n", "b": b"{}", "c": b"a,b\n1,2\n", "d": bytes(range(256))}
        sources = [s for path in self.write(files) for s in sources_of(path)]
        assert not self.importer.claim(sources)

    def test_the_sample_comes_to_what_it_says(self):
        got = self.read(self.plain())
        assert got is not None
        assert self.is_whole(got), (len(got.records), energy_of(got), got.findings)
        assert not [f for f in got.findings if f.severity == "error"]

    def test_it_reads_as_a_stream(self):
        sources = [s for path in self.write(self.plain()) for s in sources_of(path)]
        (claim, *_), _ = claims(sources, [self.importer])
        items = self.importer.read(claim.group, self.options)
        assert iter(items) is items

    def test_every_record_says_where_it_comes_from_and_what_it_rests_on(self):
        got = self.read(self.plain())
        for record in got.records:
            run = record.run
            assert run.origin.instrument == f"{self.importer.name}/{self.importer.version}"
            assert run.origin.source_file in self.files
            assert len(run.origin.source_sha256) == 64
            assert all(r.grade is None or r.grade in get_args(Grade) for r in run.energy)
            assert all(r.boundary is None or r.boundary in get_args(Boundary) for r in run.energy)
            assert all(r.energy_j is None or r.energy_j >= 0 for r in run.energy)

    def test_findings_are_known_and_bear_the_file(self):
        for finding in self.read(self.plain()).findings:
            assert finding.code in KNOWN_CODES
            assert finding.severity in get_args(Severity)
            assert finding.file

    def test_the_same_content_gives_the_same_records(self):
        one, two = self.read(self.plain()), self.read(self.plain())
        assert [r.run for r in one.records] == [r.run for r in two.records]

    @pytest.mark.parametrize(
        "dress",
        ["bom", "crlf", "utf-16", "utf-16-be", "gzip", "zip", "no end of line", "blank lines after"],
    )
    def test_clothes_change_nothing(self, dress):
        assert self.is_whole(self.read(self._dressed(dress)))

    def _dressed(self, dress: str) -> dict[str, bytes]:
        texts = dict(self.files)
        if dress == "zip":
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, text in texts.items():
                    archive.writestr(f"inner/{name}", text)
            return {"packed.zip": packed.getvalue()}
        wear = {
            "bom": lambda t: b"\xef\xbb\xbf" + t.encode(),
            "crlf": lambda t: t.replace("\n", "\r\n").encode(),
            "utf-16": lambda t: t.encode("utf-16"),
            "utf-16-be": lambda t: b"\xfe\xff" + t.encode("utf-16-be"),
            "gzip": lambda t: gzip.compress(t.encode(), mtime=0),
            "no end of line": lambda t: t.rstrip("\n").encode(),
            "blank lines after": lambda t: t.encode() + b"\n\n\n",
        }[dress]
        return {name: wear(text) for name, text in texts.items()}

    def test_padding_is_taken_out_and_said(self):
        got = self.read_or_refused({name: content + b"\0" * 512 for name, content in self.plain().items()})
        assert self.is_whole(got)
        assert any(f.code == "CL240" for f in got.findings), "padding was not said"

    def test_a_cut_off_gzip_gives_what_is_there_and_says_so(self):
        packed = gzip.compress(self.plain()[self.main()], mtime=0)
        for cut in (len(packed) - 4, len(packed) * 3 // 4, len(packed) // 2):
            got = self.read_or_refused(self.with_main(packed[:cut]))
            if got is not None:
                assert any(f.code == "CL240" for f in got.findings), "the cut was not said"

    def test_cut_off_at_every_line_no_figure_is_made_up(self):
        lines = self.lines()
        for end in range(len(lines)):
            got = self.read_or_refused(self.with_main("".join(lines[:end])))
            found = None if got is None else energy_of(got)
            if found is not None and self.energy_j is not None:
                warned = any(f.severity != "info" for f in got.findings)
                assert found <= self.energy_j * (1 + 1e-6) + 1e-6 or warned, f"cut after line {end}"

    def test_cut_off_within_a_line_no_figure_is_made_up(self):
        text = self.files[self.main()]
        for end in range(0, len(text), max(len(text) // 60, 1)):
            got = self.read_or_refused(self.with_main(text[:end]))
            found = None if got is None else energy_of(got)
            if found is not None and self.energy_j is not None:
                warned = any(f.severity != "info" for f in got.findings)
                assert found <= self.energy_j * (1 + 1e-6) + 1e-6 or warned, f"cut after character {end}"

    def test_lines_that_stand_twice_count_once_or_are_said(self):
        if not self.repeats_count_once:
            return
        lines = self.lines()
        head, rows = lines[: self.header_lines], lines[self.header_lines :]
        self.assert_told(self.read_or_refused(self.with_main("".join(head + rows + rows))), "all rows twice")
        doubled = [line for row in rows for line in (row, row)]
        self.assert_told(self.read_or_refused(self.with_main("".join(head + doubled))), "each row twice")

    def test_headers_that_repeat_are_no_rows(self):
        lines = self.lines()
        head, rows = lines[: self.header_lines], lines[self.header_lines :]
        middle = len(rows) // 2
        got = self.read_or_refused(self.with_main("".join(head + rows[:middle] + head + rows[middle:])))
        self.assert_told(got, "the header again in the middle")
        if self.delimiter is not None:
            assert self.is_whole(got)

    @pytest.mark.parametrize("turn", [1, -1])
    def test_a_table_joined_to_one_of_another_order_is_refused_or_read_by_both_headers(self, turn):
        if self.delimiter is None:
            return
        lines = self.lines()
        head, rows = lines[: self.header_lines], lines[self.header_lines :]
        cells = list(csv.reader([head[-1], *rows[len(rows) // 2 :]], delimiter=self.delimiter))
        turned = io.StringIO()
        writer = csv.writer(turned, delimiter=self.delimiter, lineterminator="\n")
        writer.writerows([cell.strip() for cell in (*row[turn:], *row[:turn])] for row in cells)
        first = "".join(head + rows[: len(rows) // 2])
        got = self.read_or_refused(self.with_main(first + turned.getvalue()))
        if got is None:
            assert any("another header on line" in e.what for e in self.refusals), "it is said why"
        else:
            assert self.is_whole(got), "rows were read by the columns of another header"

    def test_a_clock_that_goes_back_is_said(self):
        if not self.clocks:
            return
        lines = self.lines()
        head, rows = lines[: self.header_lines], lines[self.header_lines :]
        middle = len(rows) // 2
        got = self.read_or_refused(self.with_main("".join(head + rows[middle:] + rows[:middle])))
        self.assert_told(got, "the second half before the first")

    def test_semicolons_with_decimal_commas_are_read_or_said(self):
        if self.delimiter != ",":
            return
        text = self.files[self.main()]
        if '"' in text:
            return
        swapped = text.replace(",", ";").replace(".", ",")
        self.assert_told(self.read_or_refused(self.with_main(swapped)), "decimal commas")

    @pytest.mark.parametrize("word", NOT_THERE)
    def test_a_cell_that_is_not_there_is_never_zero(self, word):
        if self.delimiter is None:
            return
        lines = self.lines()
        header = [c.strip().lower() for c in lines[self.header_lines - 1].rstrip("\n").split(self.delimiter)]
        for column, name in enumerate(header):
            rows = []
            for line in lines[self.header_lines :]:
                cells = line.rstrip("\n").split(self.delimiter)
                rows.append(self.delimiter.join([*cells[:column], word, *cells[column + 1 :]]) + "\n")
            got = self.read_or_refused(self.with_main("".join(lines[: self.header_lines] + rows)))
            self.assert_told(got, f"{name} is {word!r} throughout")
            if name in self.essential and got is not None:
                assert not energy_of(got), f"{name} is {word!r} and yet there is an energy"

    def test_any_damage_is_refused_or_said_and_never_a_crash(self):
        chance = random.Random(7)  # noqa: S311  # a seeded choice of damage, no secret
        text = self.files[self.main()]
        for _ in range(150):
            place, kind = chance.randrange(len(text)), chance.randrange(5)
            if kind == 0:
                broken = text[:place] + text[place + chance.randrange(1, 30) :]
            elif kind == 1:
                broken = text[:place] + chance.choice('",;\t\0\n\r-+eE.{}[]<>\u20ac\ufffd') + text[place:]
            elif kind == 2:
                broken = text[:place] + text[: chance.randrange(1, 80)] + text[place:]
            elif kind == 3:
                broken = text[:place] + chance.choice(("1e400", "-5", "9223372036854775794")) + text[place:]
            else:
                broken = text[:place] + text[place:].replace(",", "", 1)
            self.read_or_refused(self.with_main(broken))
        for _ in range(40):
            content = bytearray(text.encode())
            for _ in range(chance.randrange(1, 12)):
                content[chance.randrange(len(content))] = chance.randrange(256)
            self.read_or_refused(self.with_main(bytes(content)))

    def test_copies_in_a_folder_count_once(self):
        folder = self._root / "many"
        (folder / "old").mkdir(parents=True)
        for name, content in self.plain().items():
            (folder / name).write_bytes(content)
            (folder / "old" / f"{name}.bak").write_bytes(content)
            (folder / f"{name}.gz").write_bytes(gzip.compress(content, mtime=0))
        placing = Placing(
            tz=self.options.tz,
            boundary=self.options.boundary,
            voltage_v=self.options.voltage_v,
            interval_s=self.options.interval_s,
            start_us=self.options.start_us,
            columns=self.options.columns,
        )
        result = import_files([folder], ledger=self._root / "ledger", placing=placing)
        assert result.totals.runs == self.runs
        if self.energy_j is not None:
            expected = pytest.approx(self.energy_j / 3.6e6, rel=max(self.tolerance, 1e-6))
            assert result.totals.energy_kwh == expected
        again = import_files([folder], ledger=self._root / "ledger", placing=placing)
        assert again.totals.runs == 0
        assert not [f for f in again.files if f.status == "imported" and f.totals.runs]

    def test_an_empty_file_and_a_pointer_are_refused_with_the_reason(self):
        for content, why in ((b"", "empty"), (b"\n", "empty"), (b"\0" * 100, "empty"), (LFS, "LFS pointer")):
            (path,) = self.write({self.main(): content})
            result = import_files([path], ledger=self._root / "ledger")
            (file,) = result.refused
            assert why in file.findings[0].message
