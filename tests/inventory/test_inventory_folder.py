"""The folder as a whole: every fault of every file at once, with its place and its mend."""

import pytest

from carbonlens.errors import ConfigError, InputFileError
from carbonlens.inventory.folder import load, read
from tests.inventory.inventory_files import CERTIFICATE, METER, SITE, TERMS, codes, inventory_of, lay, loaded

ASSET = '[[asset]]\nid = "a"\nhardware = "S"\npurchased = 2026-05-01\n'
MEASURE = '[[initiative]]\nid = "i"\ntitle = "t"\nstart = 2026-02-01\n'
CLAIM = "id,kind,entity,market,energy_mwh,period"
PRICE = "id,subject,per,amount,valid_from,source,address,read_on"


def places(result):
    return [(f.where, f.what) for f in result.faults]


def test_an_empty_folder_is_an_empty_inventory(tmp_path):
    result = read(tmp_path)
    assert result.inventory is not None
    assert (result.files, result.inventory.sites, result.inventory.findings) == ((), (), ())


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputFileError, match="nowhere"):
        read(tmp_path / "nowhere")


def test_all_faults_of_all_files_are_told_at_once(tmp_path):
    result = loaded(
        tmp_path,
        sites_toml='[[site]]\nid = "a"\nkind = "owned"\npue = "x"\n\n[[site]]\nkind = "own"\npeu = 1.2\n',
        meters_toml="[[meter]\n",
        reporting_toml='timezone = "Mars/Base"\nfiscal_year_start = 13\n',
        assets_csv="id,hardware,count,purchased\na,Server,two,2026-13-01\n",
    )
    assert result.inventory is None
    assert [where for where, _ in places(result)] == [
        *("assets.csv:2", "assets.csv:2", "meters.toml:1", "reporting.toml:1", "reporting.toml:2"),
        *("sites.toml:3", "sites.toml:4", "sites.toml:6", "sites.toml:8"),
    ]
    said = {f.where: f for f in result.faults}
    assert "'peu'" in said["sites.toml:8"].what
    assert said["sites.toml:8"].mend == "did you mean 'pue'?"
    assert "lacks 'id'" in said["sites.toml:6"].what
    with pytest.raises(ConfigError) as caught:
        load(tmp_path)
    assert all(f.where in str(caught.value) for f in result.faults)
    assert "9 faults" in caught.value.what


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("sites.toml", "[[sites]]\n", "every block begins with a line [[site]]"),
        ("sites.toml", "site = 3\n", "begin each with a line [[site]]"),
        ("sites.toml", '[[site]]\nid = "a"\nkind = "own"\nzone = ""\n', "leave it out"),
        ("sites.toml", '[[site]]\nid = "a"\nkind = "own"\npue = 1.2\n', "pue_source"),
        ("sites.toml", '[[site]]\nid = "a"\nkind = "own"\npue = nan\npue_source = "s"\n', "finite"),
        ("sites.toml", '[[site]]\nid = "a"\nkind = "own"\ncontrol = "none"\n', "only a colocation"),
        ("sites.toml", SITE + SITE, "give each its own"),
        ("sites.toml", "a = " + "[" * 10_000, "nested too deeply"),
        ("meters.toml", METER.replace("facility", "house"), "meters.toml:4"),
        ("meters.toml", METER + "accuracy_class = 2\n", "share between 0 and 1"),
        ("certificates.toml", CERTIFICATE.replace("energy_mwh = 10\n", ""), "state what it covers"),
        ("certificates.toml", CERTIFICATE.replace("unique_claim", "only_claim"), "known criteria are"),
        ("certificates.toml", CERTIFICATE.replace('"2026"', '"2026Q1"'), "year or a month"),
        ("certificates.csv", f"{CLAIM},ghg_rate\nC,certificate,E,DE,1,2026,maybe\n", "yes or no"),
        ("assets.csv", "id,hardware,purchased,cost\na,S,2026-01-01,5\n", "state cost and currency"),
        ("assets.toml", ASSET + 'retired = "May"\n', "write a date"),
        ("assets.toml", ASSET + "embodied_kg = 5\n", "embodied_source"),
        ("assets.toml", ASSET + "retired = 2025-01-01\n", "both dates"),
        ("initiatives.toml", MEASURE + "end = 2026-01-01\n", "both dates"),
        ("initiatives.toml", MEASURE + "claimed = { energy_kwh = inf }\n", "finite"),
        ("deliveries.toml", '[[delivery]]\nteam = "t"\nmonths = ["2026-00"]\n', "2026-01..2026-12"),
        ("deliveries.toml", '[[delivery]]\nteam = "t"\nmonths = ["2026-05..2026-01"]\n', "2026-01..2026-12"),
        ("deliveries.toml", '[[delivery]]\nteam = "t"\nwhat = "bill"\nmonths = ["2026-05"]\n', "add site"),
        ("prices.csv", f"{PRICE}\np,e,kWh,1,2026-01-01,s,a,2026-01-01\n", "lacks 'currency'"),
        ("prices.csv", f"{PRICE},currency\np,e,kWh,x,2026-01-01,s,a,2026-01-01,EUR\n", "is no number"),
        ("prices.csv", "id,id\n", "keep one of them"),
        ("prices.csv", 'id,subject\n"a,b\n', "check quotes"),
        ("prices.csv", "id,subject\na,b,c\n", "more cells"),
        ("exchange_rates.csv", "base,quote,date,rate,source\nEUR,EUR,2026-01-01,1,s\n", "two currencies"),
        ("exchange_rates.csv", "base,quote,date,rate,source\nUSD,EUR,2026-01-01,0,s\n", "above 0"),
        ("exchange_rates.csv", "base,quote,date,rate,source\neuro,EUR,2026-01-01,1,s\n", "ISO 4217"),
        ("exchange_rates.csv", "base,quote,date,rate,source\nUSD,EUR,2026-01-01,1_0,s\n", "is no number"),
        ("certificate_hours.csv", "certificate,hour_utc,mwh\nX,2026-01-01T00:00Z,1\n", "which is none"),
        ("certificate_hours.csv", "certificate,hour_utc,mwh\nX,2026-01-01T00:30Z,1\n", "begin of a UTC hour"),
        ("reporting.toml", "recalculation_threshold = 5\n", "0.05 means 5 %"),
        ("reporting.toml", 'currencies = "EUR"\n', "did you mean 'currency'?"),
    ],
)  # fmt: skip
def test_what_is_malformed_is_told_with_its_mend(tmp_path, name, text, said):
    (tmp_path / name).write_text(text, "utf-8")
    result = read(tmp_path)
    assert result.inventory is None
    assert any(said in str(f) for f in result.faults), result.faults
    assert {f.file for f in result.faults} == {name}


def test_a_text_that_is_no_text_is_named(tmp_path):
    (tmp_path / "sites.toml").write_bytes(b"\xff\xfa\x00")
    (tmp_path / "meters.toml").mkdir()
    assert [f.file for f in read(tmp_path).faults] == ["meters.toml", "sites.toml"]


def test_a_file_that_nobody_reads_is_named_and_a_note_is_not(tmp_path):
    (tmp_path / "README.md").write_text("notes")
    (tmp_path / ".hidden").write_text("x")
    (tmp_path / "archive").mkdir()
    inventory = inventory_of(tmp_path, site_toml=SITE)
    assert codes(inventory) == ["CL360", "CL360"]
    named = {f.file: f.mend for f in inventory.findings}
    assert named["site.toml"] == "did you mean 'sites.toml'?"
    assert "archive" in named


def test_blocks_in_another_spelling_are_read_too(tmp_path):
    text = 'site = [{ id = "a", kind = "own" }, { id = "b", kind = "cloud" }]\n'
    assert [s.site_id for s in inventory_of(tmp_path, sites_toml=text).sites] == ["a", "b"]
    (fault,) = loaded(tmp_path, sites_toml=text.replace("cloud", "clouds")).faults
    assert "'clouds'" in fault.what


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_a_table_as_spreadsheets_write_it(tmp_path, encoding, end, delimiter):
    rows = [
        ["BASE", "quote ", "date", "rate", "source"],
        ["USD", "EUR", "2026-01-02", "0,8975", '"Bank; own"'],
    ]
    text = "# rates\n" + end.join(delimiter.join(r) for r in [*rows, ["", "", "", "", ""]])
    (tmp_path / "exchange_rates.csv").write_text(text, encoding, newline="")
    (rate,) = load(tmp_path).inventory.exchange_rates
    assert (str(rate.rate), rate.source) == ("0.8975", "Bank; own")


def test_decimal_commas_and_points_in_one_file_are_refused(tmp_path):
    text = "base;quote;date;rate;source\nUSD;EUR;2026-01-02;1.234;s\nUSD;EUR;2026-01-03;1,5;s\n"
    (fault,) = loaded(tmp_path, exchange_rates_csv=text).faults
    assert (fault.line, "line 2" in fault.what, "line 3" in fault.what) == (3, True, True)
    assert loaded(tmp_path, exchange_rates_csv=text.replace(";", ",").replace("1,5", "1.5")).inventory


def test_records_are_as_stated(tmp_path):
    assets = (
        "id;hardware;count;purchased;life_years;embodied_kg;embodied_source;devices;cost;currency\n"
        "a;Server;3;2025-03-14;4,5;575,1;factor table;GPU-1 GPU-2;1250,50;EUR\n"
    )
    prices = (
        "price_id,subject,per,amount,currency,valid_from,source,address,read_on\n"
        "p,electricity,kWh,0.1234567890123456789,EUR,2026-01-01,s,a,2026-01-01\n"
    )
    inventory = inventory_of(
        tmp_path,
        reporting_toml=TERMS + "base_year = 2025\n",
        assets_csv=assets,
        prices_csv=prices,
        deliveries_toml='[[delivery]]\nteam = "t"\nmonths = ["2025-11..2026-02", "2026-02"]\n',
        certificates_toml=CERTIFICATE,
        certificate_hours_csv="certificate,hour_utc,mwh\nC1,2026-01-01T00:00Z,4\nC1,2026-01-01T02:00+01:00,6\n",
    )
    (asset,), (price,), (delivery,) = inventory.assets, inventory.prices, inventory.deliveries
    assert (asset.count, asset.life_years, asset.embodied_kg) == (3, 4.5, 575.1)
    assert (asset.devices, str(asset.cost.amount)) == (("GPU-1", "GPU-2"), "1250.50")
    assert str(price.amount.amount) == "0.1234567890123456789"
    assert delivery.months == ("2025-11", "2025-12", "2026-01", "2026-02")
    assert (inventory.terms.timezone, inventory.terms.base_year) == ("Europe/Berlin", 2025)
    (certificate,) = inventory.certificates
    assert (certificate.retired, certificate.unmet, certificate.source) == (
        "2026-04-30",
        (),
        "certificates.toml",
    )
    assert {h % 24: str(v) for h, v in certificate.hourly_mwh.items()} == {0: "4", 1: "6"}


def test_an_asset_in_toml_states_its_cost_in_two_ways(tmp_path):
    block = '[[asset]]\nid = "{}"\nhardware = "S"\npurchased = 2026-05-01\n{}\n'
    text = block.format("a", 'cost = 25.5\ncurrency = "EUR"') + block.format(
        "b", 'cost = { amount = "25.5", currency = "EUR" }'
    )
    first, second = inventory_of(tmp_path, assets_toml=text).assets
    assert first.cost == second.cost
    assert str(first.cost.amount) == "25.5"


def test_the_same_hour_twice_with_another_figure_is_refused(tmp_path):
    hours = "certificate,hour_utc,mwh\nC1,2026-01-01T00:00Z,4\nC1,2026-01-01T00:00Z,5\n"
    (fault,) = loaded(tmp_path, certificates_toml=CERTIFICATE, certificate_hours_csv=hours).faults
    assert "second time" in fault.what


def test_files_are_laid_under_their_names(tmp_path):
    lay(tmp_path, readings_a_csv="", exchange_rates_csv="")
    assert sorted(f.name for f in tmp_path.iterdir()) == ["exchange_rates.csv", "readings-a.csv"]
    assert [f.kind for f in read(tmp_path).files] == ["exchange_rates", "readings"]


@pytest.mark.parametrize("number", ["1e999999999999999999999", "9" * 5000, "0." + "1" * 100, "1e400", "nan"])
def test_a_number_of_no_plausible_size_is_a_fault_and_no_crash(tmp_path, number):
    toml = CERTIFICATE.replace("energy_mwh = 10", f"energy_mwh = {number}")
    rates = f"base,quote,date,rate,source\nUSD,EUR,2026-01-01,{number},s\n"
    assert {f.file for f in loaded(tmp_path, certificates_toml=toml, exchange_rates_csv=rates).faults} == {
        "certificates.toml",
        "exchange_rates.csv",
    }


def test_a_year_may_stand_without_quotes(tmp_path):
    text = CERTIFICATE.replace('"2026"', "2026")
    assert inventory_of(tmp_path, certificates_toml=text).certificates[0].period == "2026"
