"""``business.toml``: what it may say, and every fault at once with its place."""

import re
from decimal import Decimal
from pathlib import Path

import pytest

from carbonlens.domain.business import Business
from carbonlens.errors import ConfigError, InputFileError
from carbonlens.inventory import business_file
from carbonlens.inventory.business_file import Given

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "business"

HEAD = """
[business]
currency = "EUR"
horizon_months = 36
discount_rate = 0.08
start = "2027-01"
regime = "on_demand"
[volume.expected]
units_per_month = 1000
"""


def read(text, given=Given()):  # noqa: B008 - frozen
    return business_file.read(text, "business.toml", "business.toml", given)


def refused(text, given=Given()):  # noqa: B008 - frozen
    with pytest.raises(ConfigError) as told:
        read(text, given)
    message = str(told.value)
    assert "NaN" not in message.replace("is NaN", "")
    return message


def test_a_whole_file():
    business = business_file.load(EXAMPLES / "business.toml")
    assert isinstance(business, Business)
    assert (business.horizon_months, business.discount_rate, business.start) == (36, 0.08, "2027-01")
    assert (business.volume["high"].units_per_month, business.volume["high"].growth) == (3e11, 0.2)
    assert business.savings[0].until == "2027-06-30"
    assert business.one_offs[0].total == Decimal(5700)
    assert business.grid.change_per_year == -0.05
    assert business.carbon_price.amount_per_tonne == 90


def test_a_device_file():
    devices = business_file.load(EXAMPLES / "embedded.toml").embedded
    assert (devices.before.power_w, devices.after.power_w) == (0.8, 0.15)
    assert (devices.battery_wh, devices.charging_efficiency) == (10, 0.75)


def test_one_regime_for_all_of_the_saving():
    business = read(HEAD)
    assert [(s.of, s.regime) for s in business.savings] == [("cost", "on_demand")]


def test_options_win_over_the_file_and_the_study_fills_in_the_volume():
    given = Given(head={"discount_rate": Decimal("0.05"), "seed": 3}, units_per_month=7.0, currency="USD")
    business = read(HEAD, given)
    assert (business.discount_rate, business.seed, business.currency) == (0.05, 3, "EUR")
    assert business.expected.units_per_month == 1000
    without = HEAD.partition("[volume")[0].replace('currency = "EUR"\n', "")
    business = read(without, given)
    assert (business.expected.units_per_month, business.currency) == (7.0, "USD")


def test_a_volume_of_the_study_is_none_of_devices():
    text = (
        HEAD.partition("[volume")[0].replace('regime = "on_demand"\n', "")
        + """
[[saving]]
name = "battery"
of = "stated"
regime = "on_demand"
unit_cost = 1
[embedded]
units_per_day = 5
life_years = 3
"""
    )
    assert "no volume is stated" in refused(text, Given(units_per_month=7.0))


def test_all_faults_are_told_at_once_each_with_its_line():
    message = refused(
        """[business]
currency = "EURO"
horizon_months = 36
discount_rate = nan
start = "2026-13"
[volume.low]
units_per_month = -5
[volume.expectd]
units_per_month = 1e9
[[saving]]
name = "compute"
regime = "rented"
[[saving]]
name = "x"
regime = "committed"
until = "2026-02-31"
[savings]
[[one_off]]
name = "engineering"
hours = inf
rate = "95"
"""
    )
    assert "has 9 faults" in message
    for place, words in (
        (":2:", "EURO"),
        (":4:", "discount_rate is NaN (write a finite number)"),
        (":5:", "2026-13"),
        (":7:", "[volume.low] units_per_month is -5"),
        (":8:", "unknown key 'expectd' (did you mean 'expected'?)"),
        (":12:", "regime is 'rented'"),
        (":16:", "2026-02-31"),
        (":17:", "unknown table 'savings' (did you mean 'saving'?)"),
        (":20:", "hours is Infinity"),
    ):
        line = next(part for part in message.split("; ") if words in part)
        assert place in line, line


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("horizon_months = 36", "horizon_months = 0", "looks at 0 months"),
        ("horizon_months = 36", "horizon_years = 1.03", "no whole number of months"),
        ("horizon_months = 36", "horizon_years = true", "no whole number of months"),
        ("horizon_months = 36", "horizon_months = 36\nhorizon_years = 3", "horizon_years and horizon_months"),
        ("discount_rate = 0.08", "discount_rate = 8", "0.08 means 8 %"),
        ("discount_rate = 0.08", "discount_rate = -1", "0.08 means 8 %"),
        ("discount_rate = 0.08", "discount_rate = 0.08\ndiscount_low = 0.1", "does not lie between"),
        ('start = "2027-01"', "", "does not state start"),
        ("discount_rate = 0.08", "", "does not state discount_rate"),
        ('regime = "on_demand"', "", "no regime says when a saving is cash"),
        ('regime = "on_demand"', 'regime = "committed"', "committed without an end"),
        ('regime = "on_demand"', 'regime = "on_demand"\nuntil = "2028-01-01"', "has an end"),
        ("[volume.expected]\nunits_per_month = 1000", "", "no volume is stated"),
        ("units_per_month = 1000", "units_per_month = 0", "above 0"),
        ("units_per_month = 1000", "units_per_month = inf", "write a finite number"),
        ("units_per_month = 1000", "units_per_month = 1000\ngrowth = -1", "growth is -1"),
        ("units_per_month = 1000", "units_per_month = 1000\n[volume.low]\nunits_per_month = 1", "state both"),
        (
            "units_per_month = 1000",
            "units_per_month = 1000\n[volume.low]\nunits_per_month = 9e3\n"
            "[volume.high]\nunits_per_month = 9e4",
            "does not lie between its low and high",
        ),
        ("", '[[saving]]\nname = "a"\nregime = "on_demand"\nof = "stated"', "of and unit_cost that differ"),
        ("", '[[saving]]\nname = "a"\nregime = "on_demand"\nunit_cost = 1', "of and unit_cost that differ"),
        (
            "",
            '[[saving]]\nname = "a"\nregime = "on_demand"\n'
            '[[saving]]\nname = "b"\nregime = "on_demand"\nof = "machine"',
            "that another saving counts too",
        ),
        (
            "",
            '[[saving]]\nname = "a"\nregime = "owned"\npurchase_amount = 5\npurchase_date = "2026-12-31"',
            "before the start",
        ),
        (
            "",
            '[[saving]]\nname = "a"\nregime = "owned"\npurchase_amount = 5\npurchase_date = "2027-12-31"\n'
            'deferred_to = "2027-12-31"',
            "not later than it was due",
        ),
        ("", '[[saving]]\nname = "a"\nregime = "owned"\npurchase_amount = 5', "half a purchase"),
        ("", '[[saving]]\nname = "a"\nregime = "on_demand"\ncurrency = "USD"', "is in USD, the case in EUR"),
        ("", '[[one_off]]\nname = "a"', "has no one amount"),
        ("", '[[one_off]]\nname = "a"\namount = 5\nhours = 3\nrate = 2', "has no one amount"),
        ("", '[[one_off]]\nname = "a"\namount = -5', "0 or more"),
        ("", '[[one_off]]\nname = "a"\nhours = 3\nrate = 2\nhours_low = 1', "half a range"),
        ("", '[[one_off]]\nname = "a"\namount = 5\ncurrency = "USD"', "is in USD"),
        ("", '[[one_off]]\nname = "a"\namount = 5\n[[one_off]]\nname = "a"\namount = 5', "is the second 'a'"),
        ("", "[trajectory.grid]\nchange_per_year = 0.1\nindex = {2027 = 1.0}", "index and a change"),
        ("", "[trajectory.grid]\nindex = {2028 = 1.0}", "after the start"),
        ("", "[trajectory.grid]\nindex = {2027 = nan}", "levels above 0"),
        ("", "[trajectory.grid]\nindex = {next = 1.0}", "by year"),
        ("", "[trajectory.grid]\nlow = -0.1", "states one of low and high"),
        ("", "[trajectory.grid]\nchange_per_year = -1.5", "change_per_year is -1.5"),
        ("", "[trajectory.grid]\nchange_per_year = -0.999", "leads to 1e-09 times"),
        ("units_per_month = 1000", "units_per_month = 9e17\ngrowth = 1", "grows to more than 1e+18 a month"),
        ("", '[[saving]]\nname = "a"\nregime = "on_demand"\nchange_per_year = -2', "change_per_year is -2"),
        ("", "[carbon_price]\namount_per_tonne = 5\nchange_per_year = 11", "change_per_year is 11"),
        ("", "[trajectory.gas]\nlow = -0.1", "unknown key 'gas'"),
        ("", "[carbon_price]", "lacks 'amount_per_tonne'"),
        ("", "[embedded]\nunits_per_day = 5\nlife_years = 3", "customers pay"),
        ("", "[embedded]\nunits_per_day = 5\nlife_years = 300", "at most 50"),
        (
            "",
            '[embedded]\nunits_per_day = 5\nlife_years = 3\n[embedded.before]\nname = "a"\npower_w = 1\n'
            "seconds_per_unit = 90_000",
            "computes 450000 s a day",
        ),
        ("", "[embedded]\nunits_per_day = 5\nlife_years = 3\ncharging_efficiency = 75", "write a share"),
        ("", "[[volume]]\nexpected = 3", "is not valid TOML"),
        ("", "seed = ", "is not valid TOML"),
    ],
)
def test_what_cannot_stand_is_refused_in_plain_words(old, new, words):
    text = HEAD.replace(old, new) if old else HEAD + new
    message = refused(text)
    assert words in message
    assert message.startswith("business.toml: has ")


def test_no_volume_no_rate_and_no_regime_are_told_together_without_a_file():
    with pytest.raises(ConfigError) as told:
        business_file.of_options(Given(currency="EUR"))
    message = str(told.value)
    for words in ("discount_rate", "horizon_months", "start", "--horizon", "--discount-rate"):
        assert words in message
    assert message.startswith("the business case: has 3 faults")


def test_a_rate_of_0_and_one_of_100_percent_stand():
    for rate in ("0", "1.0"):
        assert read(HEAD.replace("0.08", rate)).discount_rate == float(rate)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputFileError, match="cannot be read"):
        business_file.load(tmp_path / "none.toml")
    broken = tmp_path / "b.toml"
    broken.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="UTF-8"):
        business_file.load(broken)


@pytest.mark.parametrize("year", ["²²²²", "٢٠٢٨"])
def test_a_year_of_an_index_is_written_in_plain_digits(year):
    text = f'{HEAD}[trajectory.grid]\nindex = {{2026 = 1.0, "{year}" = 1.0}}\n'
    assert "an index is by year" in refused(text)


@pytest.mark.parametrize("months", ["9" * 400, "601"])
def test_a_horizon_beyond_all_bounds_is_told_in_few_words(months):
    message = refused(HEAD.replace("horizon_months = 36", f"horizon_months = {months}"))
    assert "looks at more than 600 months" in message
    assert len(message) < 300


DEVICES = """
[embedded]
units_per_day = 1000
life_years = 4
battery_wh = 10
rest_power_w = 0.015
charging_efficiency = 0.75

[embedded.before]
name = "CPU"
power_w = 0.8
seconds_per_unit = 0.04
idle_power_w = 0.004

[embedded.after]
name = "NPU"
power_w = 0.15
seconds_per_unit = 0.02
"""


@pytest.mark.parametrize("value", ["1e-308", "1e308", "1e-13", "nan", "inf", "1" + "0" * 30])
@pytest.mark.parametrize("key", re.findall(r"(?m)^(\w+) = [\d.]+$", DEVICES)[:8])
def test_a_figure_of_a_device_has_a_size_that_sums_and_pages_can_hold(key, value):
    text = re.sub(rf"(?m)^{key} = .*$", f"{key} = {value}", DEVICES, count=1)
    assert f"{key} is" in refused(HEAD + text)
