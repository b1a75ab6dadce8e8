"""The contract of importers for formats that are no text: the sample is bytes, and so is its damage.

A sample is made by the format's own library, so the class skips where that is not installed.
"""

import gzip
import io
import random
import zipfile

import pytest

from tests.conformance.importers import ImporterContract, energy_of


class BinaryContract(ImporterContract):
    """Checks of one importer of a binary format.

    Attributes:
        damages: How often the sample is damaged.
        cuts: At how many places it is cut off.
    """

    is_binary = True
    damages = 120
    cuts = 40

    @property
    def files(self):
        return self.plain()

    def sample(self) -> dict[str, bytes]:
        """Return the sample, name to bytes; it skips where the library is missing."""
        raise NotImplementedError

    def plain(self):
        """Return the sample, made once a test: libraries may write other bytes each time."""
        if not hasattr(self, "_made"):
            self._made = self.sample()
        return self._made

    def main(self):
        return next(iter(self.plain()))

    @pytest.mark.parametrize("dress", ["gzip", "zip"])
    def test_clothes_change_nothing(self, dress):
        assert self.is_whole(self.read(self._dressed(dress)))

    def _dressed(self, dress):
        if dress == "gzip":
            return {name: gzip.compress(content, mtime=0) for name, content in self.plain().items()}
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in self.plain().items():
                archive.writestr(f"inner/{name}", content)
        return {"packed.zip": packed.getvalue()}

    def test_padding_is_taken_out_and_said(self):
        padded = {name: content + b"\0" * 512 for name, content in self.plain().items()}
        self.assert_told(self.read_or_refused(padded), "zero bytes after the end")

    def test_a_cut_off_gzip_gives_what_is_there_and_says_so(self):
        packed = gzip.compress(self.plain()[self.main()], mtime=0)
        for cut in (len(packed) - 4, len(packed) * 3 // 4, len(packed) // 2):
            got = self.read_or_refused(self.with_main(packed[:cut]))
            if got is not None:
                assert any(f.code == "CL240" for f in got.findings), "the cut was not said"

    def test_cut_off_at_every_line_no_figure_is_made_up(self):
        content = self.plain()[self.main()]
        for end in range(0, len(content), max(len(content) // self.cuts, 1)):
            self._no_more_than_whole(content[:end], f"cut after byte {end}")

    def test_cut_off_within_a_line_no_figure_is_made_up(self):
        content = self.plain()[self.main()]
        for end in range(max(len(content) - self.cuts // 2, 0), len(content)):
            self._no_more_than_whole(content[:end], f"cut after byte {end}")

    def _no_more_than_whole(self, content, why):
        got = self.read_or_refused(self.with_main(content))
        found = None if got is None else energy_of(got)
        if found is not None and self.energy_j is not None:
            warned = any(f.severity != "info" for f in got.findings)
            assert found <= self.energy_j * (1 + 1e-6) + 1e-6 or warned, why

    def test_lines_that_stand_twice_count_once_or_are_said(self):
        content = self.plain()[self.main()]
        self.assert_told(self.read_or_refused(self.with_main(content + content)), "the file joined to itself")

    def test_headers_that_repeat_are_no_rows(self):
        """A binary file has one header: the file joined to itself is the nearest, and is held above."""
        assert self.header_lines == 1

    def test_any_damage_is_refused_or_said_and_never_a_crash(self):
        chance = random.Random(7)  # noqa: S311  # a seeded choice of damage, no secret
        whole = self.plain()[self.main()]
        for _ in range(self.damages):
            content = bytearray(whole)
            kind, place = chance.randrange(3), chance.randrange(len(content))
            if kind == 0:
                for _ in range(chance.randrange(1, 12)):
                    content[chance.randrange(len(content))] = chance.randrange(256)
            elif kind == 1:
                del content[place : place + chance.randrange(1, 60)]
            else:
                content[place:place] = content[: chance.randrange(1, 80)]
            self.read_or_refused(self.with_main(bytes(content)))
