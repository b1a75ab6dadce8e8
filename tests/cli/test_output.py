"""Text for the terminal: names that are cut stay apart, and show letters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.cli import output
from carbonlens.cli.output import clip_apart, columns
from carbonlens.domain.finding import Finding
from carbonlens.reporting import format


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["resnet50-baseline-int8", "short"], ["resnet50-baseline-i…", "short"]),
        (
            ["resnet50-baseline-int8", "resnet50-baseline-int8-pruned"],
            ["resnet50-…eline-int8", "resnet50-…nt8-pruned"],
        ),
        # They differ only where the cut would be.
        (
            ["resnet50-baseline-int8-with-a-tail", "resnet50-baseline-int4-with-a-tail"],
            ["…8-with-a-tail", "…4-with-a-tail"],
        ),
        # One is the other's beginning, and both end alike.
        (["ab" * 15, "ab" * 20], ["ababababa…ababababab"] * 2),
    ],
)
def test_names_that_read_alike_are_cut_where_they_differ(names, shown):
    assert clip_apart(names, 20) == shown


@given(st.lists(st.text("ab-語", min_size=1, max_size=30), min_size=1, max_size=4), st.integers(5, 25))
def test_every_name_fits_and_shows_some_of_itself(names, width):
    for text in clip_apart(names, width):
        assert columns(text) <= width
        assert text.strip("…")


@pytest.mark.parametrize("width", range(16, 60))
@pytest.mark.parametrize(
    "joined", ["+56.0 % to +101\N{NO-BREAK SPACE}%)", "from 3.4\N{NO-BREAK SPACE}mJ on", "2 %; then"]
)
def test_a_line_does_not_part_a_number_from_its_unit(joined, width):
    lines = output.wrap(f"the widest interval of all of them is {joined} and that is wide", width)
    assert max(map(len, lines)) <= width
    assert not [line for line in lines if line.strip().startswith(("%", "mJ"))]
    assert " ".join(" ".join(lines).split()).endswith("and that is wide")


def test_what_other_programs_say_in_several_lines_is_one(capsys):
    output.note("RuntimeError: first\nsecond\r\n\tthird \x1b[31mred")
    assert capsys.readouterr().err == "RuntimeError: first second   third \N{REPLACEMENT CHARACTER}[31mred\n"
    said = Finding(code="CL999", severity="warning", message="it says\nno more", file="a\nb")
    output.print_findings([said])
    assert "\N{REPLACEMENT CHARACTER}" not in capsys.readouterr().err


@given(st.floats(-1e9, 1e9), st.integers(-3, 3))
def test_digits_of_a_number_stand_together_on_a_terminal(value, places):
    printed = format.fixed(value, places)
    assert " " not in output.clean(f"[{printed}, {printed}]").replace(", ", "")
    assert output.clean(printed) == printed.replace(format.GROUP, "")


def test_a_narrow_space_beside_a_word_stays_a_space():
    assert output.clean(f"Quoi{format.GROUP}: 1{format.GROUP}450 J") == "Quoi : 1450 J"
