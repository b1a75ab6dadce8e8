"""Folders of the kernel's tree are found by patterns, as the shell finds them."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from carbonlens.metering.sensors import sysfs

NAMES = st.lists(st.text("abt0129_.-:[", min_size=1, max_size=6).filter(lambda n: n.strip(".")), max_size=6)
PATTERNS = st.text("abt01*?[]-_:", min_size=1, max_size=6).filter(lambda p: "**" not in p)


@given(NAMES, PATTERNS)
def test_the_same_is_found_as_by_the_library(names, pattern):
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            (Path(folder) / name).touch()
        assert set(sysfs.folders(Path(folder), pattern)) == set(Path(folder).glob(pattern))


def test_numbers_in_names_are_sorted_as_numbers(tmp_path):
    for number in (10, 9, 1, 100):
        (tmp_path / f"hwmon{number}").mkdir()
    found = [f.name for f in sysfs.folders(tmp_path, "hwmon[0-9]*")]
    assert found == ["hwmon1", "hwmon9", "hwmon10", "hwmon100"]


def test_no_folder_holds_nothing(tmp_path):
    (tmp_path / "file").touch()
    assert sysfs.folders(tmp_path / "none", "*") == []
    assert sysfs.folders(tmp_path / "file", "*") == []
