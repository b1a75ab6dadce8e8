"""Text for the terminal: names that are cut stay apart, and show letters."""

from __future__ import annotations

import io
import sys
import tempfile
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.app.importing_charges import CostTotals
from carbonlens.app.importing_totals import ImportResult, Totals
from carbonlens.cli import commands, import_view, main, output
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


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self):
        return True


def ended(monkeypatch, stderr, *arguments):
    """Run a command line in this process; returns the lines on its standard error."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "argv", ["carbonlens", *arguments])
    monkeypatch.setattr(sys, "stderr", stderr)
    with pytest.raises(SystemExit) as end:
        main.main()
    assert end.value.code
    return stderr.getvalue().splitlines()


@pytest.mark.parametrize("command", commands.MODULES)
def test_no_message_of_any_command_is_wider_than_the_terminal(command, monkeypatch, tmp_path, capsys):
    """Each is asked for what is not there, and refuses it in lines that fit."""
    monkeypatch.chdir(tmp_path)
    lines = ended(monkeypatch, Terminal(), command, "--not-an-option-of-this-command", "a value " * 20)
    assert lines
    assert all(columns(line) <= 80 for line in lines)
    assert capsys.readouterr().out == ""


@pytest.fixture
def short_folder():
    """A folder whose name fits a line: that of a test's own may not, and no line breaks within a name."""
    with tempfile.TemporaryDirectory() as name:
        yield name


SENTENCE = "EUR: cash (billed) 1.12; accrual (effective) 12.30; list 1.2e-15; contracted 13.50, in /a/b"


def test_a_sentence_is_lines_on_a_terminal_and_one_line_in_a_pipe(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for stream, most in ((Terminal(), 2), (io.StringIO(), 1)):
        monkeypatch.setattr(sys, "stdout", stream)
        output.say_words(SENTENCE)
        lines = stream.getvalue().splitlines()
        assert len(lines) == most
        assert " ".join(" ".join(lines).split()) == SENTENCE
        assert most == 1 or max(map(columns, lines)) <= 80


def test_the_costs_of_a_bill_fit_a_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", Terminal())
    amount = Decimal("123456.78")
    costs = CostTotals(billed=amount, effective=amount, list_cost=amount, contracted=amount)
    totals = Totals(charges=2, cost={"EUR": costs})
    import_view.print_as_text(ImportResult(ledger="a/ledger/somewhere/" * 3, files=(), totals=totals))
    lines = sys.stdout.getvalue().splitlines()
    assert max(map(columns, lines)) <= 80
    assert "EUR: cash (billed) 123456.78;" in lines[-2]


def test_a_long_error_is_lines_on_a_terminal_and_one_line_in_a_log(monkeypatch, short_folder):
    monkeypatch.chdir(short_folder)
    refused = (
        "export",
        "badge",
        "--study",
        "a study that has such a long name that no line holds it all " * 2,
    )
    shown = ended(monkeypatch, Terminal(), *refused)
    assert len(shown) > 1
    assert all(columns(line) <= 80 for line in shown)
    (logged,) = ended(monkeypatch, io.StringIO(), *refused)
    assert " ".join(" ".join(shown).split()) == " ".join(logged.split())
