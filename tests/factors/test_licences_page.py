"""docs/licences.md: every data file of the package stands there, with what its own fields say."""

import os
import re

import pytest

from carbonlens.factors.store import bundled
from tests.factors import licences

UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))
PACKAGE = licences.ROOT / "carbonlens"
LICENCE = re.compile(r"Apache-2\.0|\bMIT\b|ODbL|CC-BY|AGPL|MPL-2|public domain")


def page():
    return licences.PAGE.read_text("utf-8")


def test_golden_part_of_the_page():
    before, _, rest = page().partition(licences.BEGIN)
    _, _, after = rest.partition(licences.END)
    wanted = f"{before}{licences.BEGIN}\n\n{licences.generated()}\n\n{licences.END}{after}"
    if UPDATE:
        licences.PAGE.write_text(wanted, "utf-8")
    assert page() == wanted


@pytest.mark.parametrize("file", licences.data_files(), ids=lambda file: file.name)
def test_each_table_stands_there_with_all_that_its_rows_say(file):
    section = page().partition(f"### {file.relative_to(licences.DATA).as_posix()}\n")[2].partition("\n##")[0]
    rows = licences.records(file)
    wanted = {text for row in rows for text in licences.terms(row)[2:4] if text}
    assert wanted
    assert [text for text in wanted if text not in section] == []
    for row in rows:
        source, address, *_ = licences.terms(row)
        assert re.sub(r"(?<!\d)20\d\d(?!\d).*", "", source) in section
        assert re.sub(r"(?<!\d)20\d\d(?!\d).*", "", address) in section
    assert sum(found.rows for found in licences.said(file)) == len(rows) * (1 + ("zone_source" in rows[0]))


def test_every_data_file_of_the_package_is_named():
    files = [
        file.relative_to(PACKAGE)
        for file in PACKAGE.rglob("*")
        if file.is_file() and file.suffix not in {".py", ".pyc", ".pyi"} and file.name != "py.typed"
    ]
    assert len(files) > 20
    told = page()
    unnamed = [f for f in files if f.name not in told and f"`{f.parent.as_posix()}/`" not in told]
    assert unnamed == []


def test_every_licence_of_a_row_is_named():
    told = page()
    assert {row.licence for row in bundled().rows if row.licence not in told} == set()


def test_every_module_that_quotes_licensed_figures_is_named():
    told = page()
    code = (f for f in PACKAGE.rglob("*.py") if f.parent.name != "factors")
    quoting = [f for f in code if LICENCE.search(f.read_text("utf-8"))]
    assert PACKAGE / "metering" / "cpu_table.py" in quoting
    assert [f for f in quoting if f"`{f.relative_to(PACKAGE).as_posix()}`" not in told] == []


def test_sources_that_differ_by_year_are_told_as_one(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(
        "source,address,licence,version,vintage\n"
        "Table 2021,https://example.org/2021.csv,CC0,v1,2022\n"
        "Table 2023,https://example.org/2023.csv,CC0,v1,2024\n"
        "Other,https://example.org/o,own,,2020\n",
        "utf-8",
    )
    other, table = licences.said(file)
    assert table == ("Table 2021 to 2023", "https://example.org/YEAR.csv", "CC0", "v1", "2022 to 2024", 2)
    assert other.attribution == "Other, https://example.org/o; terms: own"
