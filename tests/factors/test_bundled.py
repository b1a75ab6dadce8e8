"""The bundled tables: checked, unchanged, described, and in the wheel."""

import json
import os
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import pytest

from carbonlens.factors import checks
from carbonlens.factors.store import bundled, bundled_tables
from carbonlens.factors.table_file import read_csv, write_csv
from tests.factors import pages

HASHES = Path(__file__).parent / "golden_tables.json"
SOURCES = Path(__file__).parents[2] / ".." / "shared" / "sources"
UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))

TABLES = {table.where: table for table in bundled_tables()}


def grid_rows():
    return [row for row in bundled().rows if row.kind == "grid"]


def test_golden_hashes_of_all_rows():
    """Any change of any bundled figure, source or licence shows here: UPDATE_GOLDEN=1 takes it."""
    found = pages.row_hashes()
    if UPDATE:
        HASHES.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    assert found == json.loads(HASHES.read_text("utf-8"))


def test_golden_part_of_the_page():
    text = pages.PAGE.read_text("utf-8")
    before, _, rest = text.partition(pages.BEGIN)
    _, _, after = rest.partition(pages.END)
    wanted = f"{before}{pages.BEGIN}\n\n{pages.generated()}\n\n{pages.END}{after}"
    if UPDATE:
        pages.PAGE.write_text(wanted, "utf-8")
    assert pages.PAGE.read_text("utf-8") == wanted


def test_the_example_of_the_page_is_a_table_that_stands():
    example = pages.PAGE.read_text("utf-8").partition("```csv\n")[2].partition("```")[0]
    checked = checks.check_table(read_csv(example, where="example"), today="2026-11-28T00")
    assert checked.findings == ()
    assert checks.far_from(checked.kept.rows, bundled().find("grid", "FR")) is None


@pytest.mark.parametrize("name", TABLES)
def test_each_row_passes_the_checks(name):
    checked = checks.check_table(TABLES[name], today="2026-11-28T00")
    assert checked.findings == ()
    assert checked.kept == TABLES[name]


def test_ids_are_unique_over_all_tables():
    rows = bundled().rows
    assert len({row.factor_id for row in rows}) == len(rows)


def test_each_row_names_source_address_licence_and_publication():
    for row in bundled().rows:
        assert all((row.source, row.address, row.licence, row.vintage)), row.factor_id
        assert not row.address.startswith(("/", "~"))


def test_each_table_is_read_back_as_it_is_written():
    for table in bundled_tables():
        assert read_csv(write_csv(table.rows), where=table.where) == table


def test_share_alike_tables_have_files_and_notices_of_their_own():
    folder = Path(checks.__file__).parent / "data"
    for name, licence, words in (
        ("electricity_maps_yearly", "ODbL-1.0", "Electricity Maps"),
        ("ember_yearly", "CC-BY-SA-4.0", "Ember"),
    ):
        assert {row.licence for row in TABLES[f"{name}.csv"].rows} == {licence}
        notice = (folder / f"{name}.LICENSE.md").read_text("utf-8")
        assert licence in notice
        assert words in notice
    others = [t for n, t in TABLES.items() if n not in {"electricity_maps_yearly.csv", "ember_yearly.csv"}]
    assert not {row.licence for t in others for row in t.rows} & {"ODbL-1.0", "CC-BY-SA-4.0"}


def test_at_least_sixty_countries_are_covered_in_each_year_from_2023_to_2025():
    from carbonlens.factors.places_file import bundled_places

    countries = {z.zone for z in bundled_places().zones.values() if z.kind == "country"}
    held = defaultdict(set)
    for row in grid_rows():
        held[row.period].add(row.subject)
    assert all(len(held[year] & countries) >= 60 for year in ("2023", "2024", "2025"))
    assert {"FR", "DE", "US", "GB", "SE", "IN", "JP", "BR"} <= held["2025"]


def test_rows_of_bad_figures_are_not_bundled():
    left_out = [
        ("CF", "2022", "Ember"), ("FK", "2022", "Ember"), ("MS", "2022", ""), ("SH", "2022", ""),
        ("gcp:northamerica-northeast1", "2021", ""), ("SE-SE4", "2025", "ENTSO-E"), ("FI", "2025", "ENTSO-E"),
    ]  # fmt: skip
    for subject, period, source in left_out:
        rows = [r for r in grid_rows() if (r.subject, r.period) == (subject, period)]
        assert not [r for r in rows if r.source.startswith(source)] or not source
        if not source:
            assert rows == [r for r in rows if r.source.startswith("Electricity Maps")]
    assert all(row.value > 0 and row.value != 1 for row in grid_rows())


def test_figures_are_those_of_their_sources():
    values = {row.factor_id: row.value for row in bundled().rows}
    assert values["electricity-maps/FR/2025"] == Decimal("0.031")
    assert values["electricity-maps/PL/2025"] == Decimal("0.565")
    assert values["ember/FR/2024"] == Decimal("0.04418")
    # 770.884 lb/MWh x 0.45359237 kg/lb
    assert values["egrid/US/2023"] == Decimal("0.3496671")
    # (436.655 + 0.025 x 28 + 0.003 x 265) lb/MWh
    assert values["egrid/US-CAMX/2023"] == Decimal("0.1987415")
    assert values["gcp/europe-west1/2024"] == Decimal("0.10337")
    assert values["mee/CN-BJ/2023"] == Decimal("0.5554")


def test_the_break_in_googles_definition_is_in_the_rows():
    spans = defaultdict(set)
    for row in TABLES["gcp_regions.csv"].rows:
        spans[row.period].add(row.span)
        assert "no one series" in row.note
    assert {year for year, span in spans.items() if span == {"life_cycle"}} == {"2019", "2020"}
    assert {year for year, span in spans.items() if span == {"direct"}} == {"2021", "2022", "2023", "2024"}


def test_the_tables_are_small():
    folder = Path(checks.__file__).parent / "data"
    assert sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) <= 1_500_000


@pytest.mark.skipif(not SOURCES.exists(), reason="../shared/sources is not here")
def test_the_generator_writes_the_tables_that_are_here(tmp_path):
    import subprocess
    import sys

    pytest.importorskip("codecarbon", reason="codecarbon is of an extra that is not installed")
    root = Path(__file__).parents[2]
    command = [sys.executable, root / "scripts" / "build_factors.py", SOURCES, "-o", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    made = sorted(tmp_path.glob("*.csv"))
    assert len(made) == 4
    for file in made:
        assert file.read_bytes() == (root / "carbonlens" / "factors" / "data" / file.name).read_bytes()
    for words in ("CF 2022 is 0", "MS 2022 is exactly 1", "SH 2022 is exactly 1", "left out SE4: 85.05%"):
        assert words in done.stdout
