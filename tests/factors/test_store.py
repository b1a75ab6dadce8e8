"""The factors in force: bundled rows, the user's in their place, and the hash of all."""

import pytest

from carbonlens.errors import ConfigError, InputFileError, UsageError
from carbonlens.factors import checks
from carbonlens.factors.place import locate_factors
from carbonlens.factors.store import FactorSet, bundled, open_factors, read_own, with_own
from carbonlens.factors.table_file import write_csv
from tests.factors.rows import row, table

NOW = "2026-11-28T15"
OURS = FactorSet(
    rows=(
        row(factor_id="a", value="0.033", span="life_cycle", flow="consumption", method="location"),
        row(factor_id="b", value="0.044", span="life_cycle", flow="production", method="location"),
        row(factor_id="c", value="0.02", span="direct", period="2023", method="location"),
        row(factor_id="d", value="0.3", subject="DE", span="life_cycle", method="location"),
    )
)


def ids(held, subject="FR"):
    return sorted(r.factor_id for r in held.find("grid", subject))


def test_a_users_row_takes_the_place_of_the_one_that_counts_the_same():
    own = row(factor_id="mine", value="0.05", span="life_cycle", flow="consumption", method="location")
    held = with_own(OURS, [table(own)])
    assert ids(held) == ["b", "c", "mine"]
    override = held.overrides[0]
    assert (override.row, override.place, [r.factor_id for r in override.replaces]) == (
        own, "mine.csv, line 2", ["a"],
    )  # fmt: skip
    assert [(f.code, f.severity) for f in held.findings] == [("CL348", "info")]
    assert "0.05" in held.findings[0].message
    assert "0.033" in held.findings[0].message
    assert held.own == (own,)


def test_what_a_users_row_leaves_open_it_takes_the_place_of_in_every_form():
    held = with_own(OURS, [table(row(factor_id="mine"))])
    assert ids(held) == ["c", "mine"]


def test_another_period_or_subject_is_an_addition():
    held = with_own(OURS, [table(row(factor_id="mine", period="2022"), row(factor_id="m2", subject="XK"))])
    assert ids(held) == ["a", "b", "c", "mine"]
    assert [o.replaces for o in held.overrides] == [(), ()]
    assert held.findings == ()


def test_a_row_with_a_bundled_id_is_that_row_mended():
    held = with_own(OURS, [table(row(factor_id="d", value="0.31", subject="DE", span="direct"))])
    assert [r.value for r in held.rows if r.factor_id == "d"] == [row(value="0.31").value]


def test_a_far_row_is_used_with_a_warning():
    held = with_own(bundled(), [table(row(value="0.424584", source="Old table"))])
    assert {f.code for f in held.findings if f.severity == "warning"} == {"CL347"}
    assert [r.source for r in held.find("grid", "FR") if r.period == "2024"] == ["Old table"]


def test_the_hash_is_of_the_rows_whatever_their_order_and_changes_with_each():
    backwards = FactorSet(rows=OURS.rows[::-1])
    assert backwards.sha256 == OURS.sha256
    for n, changed in enumerate(OURS.rows):
        other = row(factor_id=changed.factor_id, value=changed.value, licence="another")
        assert FactorSet(rows=(*OURS.rows[:n], other, *OURS.rows[n + 1 :])).sha256 != OURS.sha256


def test_without_a_place_the_bundled_rows_are_in_force(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CARBONLENS_FACTORS", raising=False)
    assert open_factors() is bundled()
    (tmp_path / "factors").mkdir()
    assert open_factors() is bundled()


def test_a_folder_of_csv_and_toml_is_read(tmp_path):
    (tmp_path / "a.csv").write_text(write_csv([row(factor_id="x")]))
    (tmp_path / "b.toml").write_text(
        '[[factor]]\nfactor_id = "y"\nkind = "pue"\nsubject = "ours"\nperiod = 2024\nvalue = 1.2\n'
        'source = "s"\naddress = "a"\nlicence = "l"\nvintage = 2025\nu_relative = 0.05\n'
    )
    (tmp_path / "notes.md").write_text("no table")
    held = open_factors(tmp_path, now=NOW)
    assert [(r.factor_id, f"{r.value:f}", r.period) for r in held.own] == [
        ("x", "0.05", "2024"),
        ("y", "1.2", "2024"),
    ]
    assert held.own[1].u_relative == 0.05
    assert held.overrides[1].place == f"{tmp_path / 'b.toml'}, factor 1"
    assert held.files == (str(tmp_path / "a.csv"), str(tmp_path / "b.toml"))


def test_a_refused_row_names_file_line_and_mend_and_counts_the_others(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(write_csv([row(), row(subject="CF", value=0), row(subject="MS", value=1)]))
    with pytest.raises(ConfigError) as error:
        read_own(file, now=NOW)
    said = str(error.value)
    assert f"{file}, line 3: grid CF 2024 is 0 kg/kWh" in said
    assert "1 more row is refused" in said
    assert "CL341" in said


def test_two_files_may_not_say_the_same_thing(tmp_path):
    (tmp_path / "a.csv").write_text(write_csv([row(factor_id="x")]))
    (tmp_path / "b.csv").write_text(write_csv([row(factor_id="y", value="0.06")]))
    with pytest.raises(ConfigError, match="CL344"):
        read_own(tmp_path, now=NOW)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[factor]]\nkind = 'grid'\n", "factor 1: has no factor_id"),
        ("factors = 1\n", "is no factor table"),
        ("[factor]\nkind = 'grid'\n", "is no factor table"),
        ("[[factor\n", "is not valid TOML"),
    ],
)
def test_a_malformed_toml_names_its_place(tmp_path, text, words):
    file = tmp_path / "a.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        read_own(file, now=NOW)
    assert words in str(error.value)


def test_a_place_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(InputFileError, match="no such file"):
        open_factors(tmp_path / "nowhere")


def test_the_place_is_the_option_then_the_variable_then_pyproject(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.carbonlens]\nfactors = "own"\n')
    below = tmp_path / "deep"
    below.mkdir()
    named = {"CARBONLENS_FACTORS": "/var/factors"}
    assert locate_factors(start=below, environ={}) == tmp_path / "own"
    assert str(locate_factors(start=below, environ=named)) == "/var/factors"
    assert str(locate_factors("/x", start=below, environ=named)) == "/x"
    assert locate_factors(start=tmp_path.parent, environ={}) is None
    with pytest.raises(UsageError, match="path is empty"):
        locate_factors("", start=below, environ={})


def test_rows_of_hours_are_found_by_month_in_the_order_of_the_set():
    periods = ("2024-02-01T00", "2024-01-01T01", "2024-02-01T01", "2024-01", "2024-01-01T00", "2023-01-01T00")
    held = FactorSet(rows=tuple(row(period=p) for p in periods))
    found = [r.period for r in held.of_hours("grid", "FR", ("2024-01", "2024-02"))]
    assert found == [p for p in periods if len(p) == 13 and p.startswith("2024")]
    assert held.of_hours("grid", "DE", ("2024-01",)) == ()
    assert [r.period for r in held.of_period("grid", "FR", "2024-01")] == ["2024-01"]


def test_only_rows_of_a_period_are_compared_with_the_users_of_it(monkeypatch):
    asked = []
    real = checks.counts_the_same
    monkeypatch.setattr(checks, "counts_the_same", lambda own, peer: asked.append(own) or real(own, peer))
    hours = [row(period=f"2024-01-01T{n:02}") for n in range(24)]
    assert all(not o.replaces for o in with_own(OURS, [table(*hours)]).overrides)
    assert asked == []
