"""``account`` and ``explain`` as users run them: width, JSON, refusals, golden trees."""

from decimal import Decimal
from pathlib import Path

import pytest

from tests.app import statement_case as case
from tests.cli.commands import Shell

TEXTS = Path(__file__).parent / "explain_texts"
AT = f"statement.{case.PERIOD}.lab"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("account")
    case.write(folder)
    return folder


@pytest.fixture
def ask(place):
    shell = Shell(place)
    options = ("--inventory", "inventory", "--factors", "factors.csv", "--ledger", "ledger")

    def run(*arguments, code=0):
        return shell(*arguments, *options, code=code)

    run.json = lambda *arguments: shell.json(*arguments, *options)
    return run


def test_the_statement_fits_a_terminal_and_names_place_and_factor(ask):
    text = ask("account", "--period", case.PERIOD).stdout
    lines = text.splitlines()
    assert len(lines) <= 25
    assert all(len(line) <= 80 for line in lines)
    assert "DRAFT" in lines[0]
    assert "attributable to recorded AI workloads" in text
    assert "location-based" in text
    assert "market-based" in text
    assert "Germany" in text
    assert "own/DE" in text


def test_what_no_run_explains_stands_below_the_lines_of_a_label(tmp_path):
    case.write(tmp_path, with_meter=Decimal(2500))
    shell = Shell(tmp_path)
    options = ("--period", case.PERIOD, "--inventory", "inventory", "--factors", "factors.csv")
    text = shell("account", *options, "--by", "team", "--ledger", "ledger").stdout
    assert "unattributed at lab" in text
    shape = shell.json("account", *options, "--by", "team", "--ledger", "ledger")
    assert shape["by"]["unattributed"] == ["lab.unattributed"]
    assert shape["total"]["without"] == []


def test_a_total_says_which_sites_it_lacks_and_the_cause_stands_first(tmp_path):
    case.write(tmp_path)
    sites = tmp_path / "inventory" / "sites.toml"
    sites.write_text(case.SITES.replace('zone = "FR"', 'zone = "XXX"'))
    shell = Shell(tmp_path)
    options = ("--inventory", "inventory", "--factors", "factors.csv", "--ledger", "ledger")
    said = shell("account", "--period", case.PERIOD, *options)
    assert "'XXX'" in said.stderr.split("warning")[1]
    sites.write_text(case.SITES.replace('pue = 1.0\npue_source = "test"\n', ""))
    said = shell("account", "--period", case.PERIOD, *options).stdout
    assert "Total without edge (lower bounds) location-based" in said
    shape = shell.json("account", "--period", case.PERIOD, *options)
    assert shape["total"]["without"] == ["edge.at_least"]


def test_each_part_of_a_cost_has_its_amount(ask):
    cost = ask.json("account", "--period", case.PERIOD)["cost"]
    text = " ".join(ask("account", "--period", case.PERIOD).stdout.split())
    names = {line["name"].replace("_", " ") for line in cost["lines"]}
    parts = text.partition("Cost EUR")[2].partition("(")[2].partition(")")[0].split(", ")
    assert {p.rpartition(" EUR ")[0] for p in parts} == names


def test_hardware_is_printed_with_basis_and_sources(tmp_path):
    case.write(tmp_path)
    (tmp_path / "inventory" / "assets.csv").write_text(
        "id,hardware,site,purchased,life_years\na,nvidia-h100-sxm-80gb,lab,2026-01-01,4\n"
    )
    shell = Shell(tmp_path)
    options = ("--period", case.PERIOD, "--inventory", "inventory", "--ledger", "ledger")
    text = " ".join(shell("account", *options).stdout.split())
    assert "(per calendar hour)" in text
    assert "575.1 kg (boavizta)" in text
    assert "164 kg (nvidia-pcf)" in text
    assert "Made with inventory " in text
    one = shell("account", *options, "--embodied-source", "boavizta").stdout
    assert "nvidia-pcf" not in one
    refused = shell("account", *options, "--embodied-source", "nobody", code=2).stderr
    assert "choose one of boavizta" in refused


def test_idle_hardware_has_the_digits_of_what_it_is_part_of(tmp_path):
    case.write(tmp_path)
    (tmp_path / "inventory" / "assets.csv").write_text(
        "id,hardware,count,site,purchased,life_years,embodied_kg,embodied_low_kg,embodied_high_kg,"
        "embodied_source,devices\na,S,1,lab,2026-01-01,1,3486,2000,5000,x,h1\n"
    )
    shell = Shell(tmp_path)
    text = shell("account", "--period", case.PERIOD, "--inventory", "inventory", "--ledger", "ledger").stdout
    whole, idle = " ".join(text.split()).split("amortised ")[1].split(", of it idle ")
    assert whole.split()[0] == idle.split()[0]


def test_initiatives_stand_beside_the_statement_and_are_never_subtracted(tmp_path):
    case.write(tmp_path)
    shell = Shell(tmp_path)
    options = ("--period", case.PERIOD, "--inventory", "inventory", "--ledger", "ledger")
    before = shell.json("account", *options)
    (tmp_path / "inventory" / "initiatives.toml").write_text(
        '[[initiative]]\nid = "int8"\ntitle = "Serve in int8"\nstart = 2026-01-15\n'
        "claimed = { energy_kwh = 9000, emissions_location_kg = 3000, "
        'money = { amount = 2400, currency = "EUR" } }\n'
        'verified = { energy_kwh = 7600 }\nverified_by = "an audit"\n'
    )
    after = shell.json("account", *options)
    assert (before["total"], before["initiatives"]) == (after["total"], [])
    (one,) = after["initiatives"]
    at = f"statement.{case.PERIOD}.initiative.int8"
    assert one["a_year"]["claimed"]["money"]["id"] == f"{at}.claimed.money"
    assert one["a_year"]["verified"]["energy_kwh"]["value"] == 7600
    assert {f"{at}.claimed.energy_kwh", f"{at}.verified.energy_kwh"} <= {f["id"] for f in after["figures"]}
    text = " ".join(shell("account", *options).stdout.split())
    assert "Initiative int8, a year and in no total: claimed 9 MWh, 3 t CO₂e location-based" in text
    assert "verified 7.6 MWh by an audit" in text
    assert "confirm" not in text
    assert "7.6 MWh" in shell("explain", f"{at}.verified.energy_kwh", *options[2:]).stdout


def test_json_holds_every_figure_with_its_inputs(ask):
    found = ask.json("account", "--period", case.PERIOD, "--by", "team")
    assert found["schema"] == "carbonlens/account/1"
    assert found["status"] == "draft"
    figures = {f["id"]: f for f in found["figures"]}
    location = figures[f"{AT}.location_kg"]
    assert location["inputs"] == [f"{AT}.facility_kwh", "own/DE"]
    assert location["estimate"]["value"] == pytest.approx(float(case.it_kwh() * case.PUE * case.GRID))
    assert [line["line"] for line in found["by"]["lines"]] == ["by.team.blue", "by.team.red"]


@pytest.mark.parametrize("name", ["facility_kwh", "market_kg", "electricity.EUR"])
def test_a_figure_is_explained_down_to_file_lines(ask, name):
    """Golden texts: ``python -m tests.cli.test_account`` writes them anew."""
    text = ask("explain", f"{AT}.{name}").stdout
    assert all(len(line) <= 80 for line in text.splitlines())
    assert text == (TEXTS / f"{name}.txt").read_text()


def test_the_whole_tree_is_in_the_json(ask):
    found = ask.json("explain", f"{AT}.it_kwh")["figure"]

    def runs(node):
        own = [i for i in node["further_inputs"] if i.startswith("run:")]
        own += [node["id"]] if node["kind"] == "run" else []
        return own + [i for child in node["inputs"] for i in runs(child)]

    assert sorted(runs(found)) == sorted(f"run:{r.run_id}" for r in case.runs() if r.site == "lab")


@pytest.mark.parametrize(
    ("name", "said"),
    [("run-07", "runs.csv:9"), ("own/DE", "Test table"), ("GO-1", "certificates.toml")],
)
def test_records_are_explained_by_their_own_ids(ask, name, said):
    assert said in ask("explain", name).stdout


def test_a_figure_of_a_comparison_is_explained_down_to_its_rows(shell):
    rows = ["run_id,study,step,energy_j,units,repeat,boundary,energy_grade"]
    for i in range(1, 5):
        rows += [f"b{i},s,baseline,10{i},10,{i},it,B", f"q{i},s,int8,5{i},10,{i},it,B"]
    (shell.folder / "r.csv").write_text("\n".join(rows) + "\n")
    shell("import", "r.csv")
    text = shell("explain", "step.int8.change_vs_baseline", "--study", "s").stdout
    assert "[step.baseline.energy_per_unit]" in text
    assert "file r.csv:3" in text


def test_an_unknown_id_names_near_ones(ask):
    refused = ask("explain", f"{AT}.locaton_kg", code=2).stderr
    assert f"{AT}.location_kg" in refused
    assert "--list" in refused


def test_ids_can_be_listed(ask):
    assert f"{AT}.market_kg" in ask("explain", "--list", "--period", case.PERIOD).stdout.splitlines()


def test_a_wrong_period_is_a_usage_error(ask):
    assert "is no period" in ask("account", "--period", "May", code=2).stderr
    assert "no runs in 2026-06" in ask("account", "--period", "2026-06", code=2).stderr


def _write() -> None:
    import tempfile

    TEXTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        case.write(folder)
        shell = Shell(folder)
        for one in ("facility_kwh", "market_kg", "electricity.EUR"):
            options = ("--inventory", "inventory", "--factors", "factors.csv", "--ledger", "ledger")
            (TEXTS / f"{one}.txt").write_text(shell("explain", f"{AT}.{one}", *options).stdout)


if __name__ == "__main__":
    _write()


@pytest.mark.parametrize("metered", [None, "2600"])
@pytest.mark.parametrize("by", [None, "team", "zone"])
def test_printed_columns_add_up_and_a_figure_has_one_text(tmp_path, metered, by):
    from carbonlens.app.statement import make_statement
    from carbonlens.reporting.statement_columns import TOTAL, columns_of

    case.write(tmp_path, with_meter=None if metered is None else Decimal(metered))
    where = {n: tmp_path / n for n in ("ledger", "inventory")}
    made = make_statement(case.PERIOD, by=by, factors=tmp_path / "factors.csv", **where).statement
    columns = columns_of(made)
    for name, held in columns.held.items():
        lines = made.lines
        rests = [x.key for x in made.unattributed]
        site = [x.key for x in lines if x.site_id == "lab" and x.kind == "recorded"]
        whole = ["lab.metered"] if metered else site
        sums = [(TOTAL, [*whole, "edge"])]
        sums += [("lab.metered", [*site, *rests])] if metered else []
        sums += [(TOTAL, [*(g.key for g in made.groups), *rests])] if by else []
        for total, keys in sums:
            assert sum(held.numbers[k] for k in keys) == pytest.approx(held.numbers[total]), (name, total)
    given = [x for n, p in where.items() for x in (f"--{n}", str(p))]
    asked = [*(["--by", by] if by else []), "--factors", str(tmp_path / "factors.csv")]
    text = Shell(tmp_path)("account", "--period", case.PERIOD, *given, *asked).stdout
    scope = columns.scope(next(s for s in made.scopes if s.place.key == "scope_2"), made.scopes[0].kg)
    whole = next(x for x in made.lines if x.key == ("lab.metered" if metered else "lab"))
    assert scope == columns.text("location_kg", whole)
    assert "rounded to add up" in text
