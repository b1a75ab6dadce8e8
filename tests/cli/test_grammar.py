"""Typed functions as commands: every kind of argument, what is refused, and what the help says."""

import inspect
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Literal

import pytest
from click.testing import CliRunner

from carbonlens.cli import grammar
from carbonlens.cli.commands import built
from carbonlens.errors import UsageError


def text(word: Annotated[str, grammar.Argument(metavar="WORD", help="A word.")]): ...
def names(name: Annotated[list[str] | None, grammar.Option("--name", help="Names.")] = None): ...
def files(file: Annotated[list[Path], grammar.Argument(metavar="FILE...", help="Files.")]): ...
def maybe(file: Annotated[list[Path] | None, grammar.Argument(metavar="[FILE...]", help="F.")] = None): ...
def count(n: Annotated[int, grammar.Option("-n", "--count", min=2, help="How many.")] = 3): ...
def share(x: Annotated[float, grammar.Option("--share", min=0, help="A share.")]): ...
def flag(on: Annotated[bool, grammar.Option("--on", help="On.")] = False): ...
def either(on: Annotated[bool, grammar.Option("--on/--off", help="On or off.")] = True): ...
def place(to: Annotated[Path | None, grammar.Option("--to", dir_okay=False, help="A file.")] = None): ...
def one(kind: Annotated[Literal["a", "b"] | None, grammar.Option("--kind", help="Of two.")] = None): ...
def pick(kind: Annotated[Literal["a", "b"], grammar.Argument(help="Of two.")] = "a"): ...
def made(n: Annotated[int, grammar.Option("--n", parser=len, help="Its length.")] = 0): ...
def plain(word: Annotated[str, grammar.Option("--word", help="A word.")] = ""): ...


def asked(function, *arguments):
    """Return exit code, what the function was called with, and what was printed."""
    calls = []

    def instead(**given):
        calls.append(given)

    instead.__annotations__ = function.__annotations__
    instead.__signature__ = inspect.signature(function)
    app = grammar.Commands(help="All.", context_settings={"help_option_names": ["-h", "--help"]})
    app.add("do", instead)
    done = CliRunner().invoke(app, ["do", *arguments], prog_name="x")
    return done.exit_code, (calls or [None])[0], done.output


@pytest.mark.parametrize(
    ("function", "line", "given"),
    [
        (text, "w", {"word": "w"}),
        (names, "", {"name": None}),
        (names, "--name a --name=b", {"name": ["a", "b"]}),
        (files, "a b", {"file": [Path("a"), Path("b")]}),
        (maybe, "", {"file": None}),
        (maybe, "a", {"file": [Path("a")]}),
        (count, "", {"n": 3}),
        (count, "-n 2", {"n": 2}),
        (count, "--count 7", {"n": 7}),
        (share, "--share 1e-3", {"x": 0.001}),
        (flag, "", {"on": False}),
        (flag, "--on", {"on": True}),
        (either, "", {"on": True}),
        (either, "--off", {"on": False}),
        (place, "", {"to": None}),
        (place, "--to b", {"to": Path("b")}),
        (one, "", {"kind": None}),
        (one, "--kind b", {"kind": "b"}),
        (pick, "", {"kind": "a"}),
        (pick, "b", {"kind": "b"}),
        (made, "--n abc", {"n": 3}),
        (plain, "", {"word": ""}),
    ],
)
def test_each_kind_of_argument_arrives_as_its_type(function, line, given):
    assert asked(function, *line.split()) == (0, given, "")


@pytest.mark.parametrize(
    ("function", "line", "said"),
    [
        (text, "", "Missing argument 'WORD'."),
        (files, "", "Missing argument 'FILE...'."),
        (share, "", "Missing option '--share'."),
        (share, "--share x", "Invalid value for '--share': 'x' is not a valid float"),
        (share, "--share -1", "Invalid value for '--share': -1.0 is not in the range x>=0."),
        (count, "-n x", "Invalid value for '-n' / '--count': 'x' is not a valid int"),
        (count, "-n 1", "Invalid value for '-n' / '--count': 1 is not in the range x>=2."),
        (one, "--kind c", "Invalid value for '--kind': 'c' is not one of 'a', 'b'."),
        (pick, "c", "Invalid value for 'kind': 'c' is not one of 'a', 'b'."),
        (place, "--to .", "Invalid value for '--to': File '.' is a directory."),
        (names, "--name", "Option '--name' requires an argument."),
        (flag, "--on=1", "Option '--on' does not take a value."),
        (flag, "more", "Got unexpected extra argument (more)"),
        (flag, "--no", "No such option"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_function_is_called(function, line, said):
    code, given, output = asked(function, *line.split())
    assert (code, given) == (2, None)
    assert said in output


@pytest.mark.parametrize(
    ("function", "rows"),
    [
        (text, ["Usage: x do [OPTIONS] {WORD}", "  WORD  A word.  [required]"]),
        (maybe, ["Usage: x do [OPTIONS] [FILE...]", "  [FILE...]  F."]),
        (pick, ["Usage: x do [OPTIONS] [kind]:<a|b>", "  kind:<a|b>  Of two.  [default: a]"]),
        (names, ["  --name <str>  Names."]),
        (count, ["  -n, --count <int>  How many.  [default: 3; x>=2]"]),
        (share, ["  --share <float>  A share.  [x>=0; required]"]),
        (flag, ["  --on        On."]),
        (either, ["  --on / --off  On or off.  [default: on]"]),
        (place, ["  --to <path>  A file."]),
        (one, ["  --kind <a|b>  Of two."]),
        (plain, ["  --word <str>  A word."]),
    ],
)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_the_help_names_type_default_and_what_is_required(function, rows, option):
    code, given, output = asked(function, option)
    assert (code, given) == (0, None)
    assert [row for row in rows if row not in output.splitlines()] == []
    assert ("\nArguments:\n" in output) == ("{" in output or "Usage: x do [OPTIONS] [" in output)


def test_a_type_that_no_command_line_gives_is_a_fault_of_the_command():
    def command(x: Annotated[complex, grammar.Option("--x", help="X.")] = 0): ...

    with pytest.raises(TypeError, match="no option or argument is of type"):
        grammar.Command("do", command).main(["--x", "1"], standalone_mode=False)


def test_an_error_of_ours_passes_through_a_parser():
    def refuse(_text):
        raise UsageError("it is refused", mend="give another")

    def command(x: Annotated[int, grammar.Option("--x", parser=refuse, help="X.")] = 0): ...

    with pytest.raises(UsageError, match="it is refused"):
        grammar.Command("do", command).main(["--x", "1"])


@pytest.fixture
def bare():
    """Commands without arguments, out of alphabetical order."""
    made = grammar.Commands(help="All.")
    for name in ("show", "list", "add"):
        made.add(name, lambda: print("ran"))
    return made


def test_commands_are_listed_as_they_were_added(bare):
    rows = CliRunner().invoke(bare, ["--help"]).output.partition("Commands:")[2].split()
    assert [row for row in rows if row in ("add", "list", "show")] == ["show", "list", "add"]


def test_where_no_command_is_named_the_help_is_shown_as_a_mistake(bare):
    done = CliRunner().invoke(bare, [])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Commands:" in done.stderr


@pytest.mark.parametrize(("word", "near"), [("lsit", " Did you mean 'list'?"), ("qqq", "")])
def test_an_unknown_command_is_told_the_nearest(bare, word, near):
    done = CliRunner().invoke(bare, [word])
    assert done.exit_code == 2
    assert done.stderr.endswith(f"Error: No such command {word!r}.{near}\n")


def test_an_exit_code_of_a_command_is_the_programs(bare):
    def command():
        raise grammar.Exit(4)

    bare.add("fail", command)
    assert CliRunner().invoke(bare, ["fail"]).exit_code == 4
    assert CliRunner().invoke(bare, ["show"]).output == "ran\n"


def test_a_function_before_the_commands_knows_which_one_follows():
    seen = []
    made = grammar.Commands(help="All.", before=lambda: seen.append(grammar.named()), alone=True)
    made.add("show", lambda: seen.append("ran"))
    assert CliRunner().invoke(made, []).exit_code == 0
    assert CliRunner().invoke(made, ["show"]).exit_code == 0
    assert seen == [None, "show", "ran"]


def test_an_interrupt_ends_as_shells_expect_without_a_word():
    code = (
        "import os, signal\nfrom carbonlens.cli import grammar\n"
        "made = grammar.Commands(help='All.')\n"
        "made.add('wait', lambda: os.kill(os.getpid(), signal.SIGINT))\nmade(['wait'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, "", "")


def every_command(command, path=("carbonlens",)):
    """Return each command with the words it is called by."""
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from every_command(inner, (*path, name))


COMMANDS = dict(every_command(built()))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_the_help_of_every_command_fits_80_columns(path):
    environ = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    done = CliRunner(env=environ).invoke(built(), [*path[1:], "--help"], terminal_width=80, prog_name=path[0])
    assert done.exit_code == 0
    assert done.output.startswith(f"Usage: {' '.join(path)} ")
    assert [line for line in done.output.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_parameter_of_every_command_is_told_in_its_help(path):
    output = CliRunner().invoke(built(), [*path[1:], "--help"], terminal_width=500).output
    command = COMMANDS[path]
    context = command.make_context(path[-1], [], resilient_parsing=True)
    for parameter in command.get_params(context):
        option = parameter.param_type_name == "option"
        assert all(name in output for name in (parameter.opts if option else [parameter.metavar]))
        assert parameter.get_help_record(context)[1]
