"""Terms given on the command line: a number is read whole or refused."""

import pytest

from carbonlens.app.terms import parse_terms
from carbonlens.errors import ConfigError, UsageError


@pytest.mark.parametrize(
    ("text", "units", "period"),
    [
        ("2e9 a year", 2e9, "a year"),
        ("2,000,000 a year", 2e6, "a year"),
        ("2 000 000 a year", 2e6, "a year"),
        ("2'000 per day", 2e3, "per day"),
        ("2 million a year", 2e6, "a year"),
        ("1.5M/week", 1.5e6, "/week"),
        ("10k a day", 1e4, "a day"),
        ("3 billion", 3e9, None),
        ("2 000 000", 2e6, None),
        (".5 a day", 0.5, "a day"),
        ("5 months", 5.0, "months"),
        ("2 every other day", 2.0, "every other day"),
    ],
)
def test_volume_is_read_with_its_groups_and_size(text, units, period):
    terms = parse_terms(None, [], text)
    assert (terms.volume_units, terms.volume_period) == (units, period)


@pytest.mark.parametrize(
    "text",
    [
        *("2.000.000 a year", "2,00 a day", "2,000 000 a year", "2,000,00 a year", "2,000.5 a year"),
        *("1e6e6 a year", "0x10 a day", "1_000 a day", "2 3 a year", "1.5.2 a day", ",000,000 a year"),
        *("2m a year", "2 MB a year", "2 crore a year", "10 kilo a day", "2 % a year", "-3 a day", "nan"),
        *("", "a year", "2 a year, or more"),
        *(
            "5 one hundred thousand a year",
            "1 half million a year",
            "2 a thousand a year",
            "10 the 1000 a day",
        ),
        *("2 half a million a year", "3 per million a year", "10 over 5 thousand a year", "5 a dozen a day"),
    ],
)
def test_half_a_number_is_no_volume(text):
    with pytest.raises(UsageError, match="--volume"):
        parse_terms(None, [], text)


@pytest.mark.parametrize("text", ["0 a day", "1e-7 a day", "1e18 a year", "1e300 a day", "1e400"])
def test_a_volume_beyond_what_a_run_may_state_is_refused(text):
    with pytest.raises(ConfigError, match="below 1e"):
        parse_terms(None, [], text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1e6 images a year", "'images' is no period; leave the unit out"),
        ("5 one hundred a year", "'one hundred a year' is no plain period"),
        ("2 a thousand a year", "'a thousand a year' is no plain period"),
    ],
)
def test_a_refusal_says_why(text, why):
    with pytest.raises(UsageError, match=why):
        parse_terms(None, [], text)


@pytest.mark.parametrize("period", ["every two weeks", "half a year", "a calendar year", "per km of road"])
def test_a_period_in_plain_words_is_kept(period):
    assert parse_terms(None, [], f"5 {period}").volume_period == period
