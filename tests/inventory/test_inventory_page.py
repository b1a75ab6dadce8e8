"""docs/inventory.md: its examples are an inventory, and every key of every file stands there."""

import re
from pathlib import Path

import pytest

from carbonlens.domain.certificate import CRITERIA
from carbonlens.domain.initiative import Saving
from carbonlens.domain.pricing import TariffBand
from carbonlens.domain.service import Use
from carbonlens.inventory import certificate_hours_file, readings_file, reporting_file, services_file
from carbonlens.inventory.folder import KINDS, read

PAGE = (Path(__file__).parents[2] / "docs" / "inventory.md").read_text("utf-8")
PACKAGE = Path(__file__).parents[2] / "carbonlens"
BLOCKS = dict(re.findall(r"<!-- example: ([\w.-]+) -->\n```\w*\n(.*?)```", PAGE, re.DOTALL))
SECTIONS = dict(re.findall(r"^## ([\w*.-]+)[^\n]*\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))


def test_the_examples_are_an_inventory_without_findings(tmp_path):
    for name, text in BLOCKS.items():
        (tmp_path / name).write_text(text, "utf-8")
    result = read(tmp_path)
    assert (result.faults, result.inventory.findings) == ((), ())
    assert all(f.kind and f.rows for f in result.files)
    kinds = {f.kind for f in result.files}
    assert kinds == {*(k.name for k in KINDS), "reporting", "readings", "certificate_hours", "service_uses"}


@pytest.mark.parametrize("kind", [*KINDS, reporting_file.KIND], ids=lambda k: k.name)
def test_every_key_is_explained(kind):
    (section,) = (text for name, text in SECTIONS.items() if name.split(".")[0] == kind.name)
    words = set(re.findall(r"`([\w-]+)`", section))
    assert {*kind.keys, *kind.columns} <= words


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("readings*.csv", readings_file.COLUMNS),
        ("certificate_hours*.csv", certificate_hours_file.COLUMNS),
        ("certificates.toml", CRITERIA),
        ("initiatives.toml", Saving.__struct_fields__),
        ("tariffs.toml", TariffBand.__struct_fields__),
        ("services.toml", Use.__struct_fields__),
        ("service_uses*.csv", services_file.USES.keys),
    ],
)
def test_every_column_and_inner_key_is_explained(name, columns):
    assert set(columns) <= set(re.findall(r"`([\w-]+)`", SECTIONS[name]))


def test_every_code_is_explained():
    sources = [*(PACKAGE / "inventory").glob("*.py"), PACKAGE / "accounting" / "deliveries.py"]
    used = {code for file in sources for code in re.findall(r"\"(CL3\d\d)\"", file.read_text("utf-8"))}
    assert used == set(re.findall(r"^\| (CL\d{3}) \|", PAGE, re.MULTILINE))
