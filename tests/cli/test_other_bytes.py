"""Arguments and names that are no UTF-8: texts are refused in a line, paths are taken."""

import json
import os
from pathlib import Path

import click
import msgspec
import pytest

from carbonlens.cli import commands, main, output
from carbonlens.domain.file_names import is_utf8
from carbonlens.domain.finding import Finding

ODD = "a\udcff"
"""How Python gives an argument whose second byte is 0xff (PEP 383)."""


def leaves(command, words=()):
    """Yield each command without commands of its own, and the words it is called by."""
    if isinstance(command, click.Group):
        for name, one in command.commands.items():
            yield from leaves(one, (*words, name))
    else:
        yield words, command


LEAVES = dict(leaves(commands.built()))


def line_with(command, wanted):
    """Return a command line that gives one parameter the odd text, and others what they must have."""
    made = []
    for parameter in sorted(command.get_params(click.Context(command)), key=lambda p: p.param_type_name):
        if parameter is not wanted and not parameter.required:
            continue
        kind = parameter.type
        plain = "1" if kind.name in ("integer", "float", "integer range", "float range") else "x"
        value = ODD if parameter is wanted else getattr(kind, "choices", [plain])[0]
        made += [value] if parameter.param_type_name == "argument" else [parameter.opts[-1], value]
    return made


TEXTS = [
    (words, parameter.name)
    for words, command in LEAVES.items()
    for parameter in command.get_params(click.Context(command))
    if parameter.type is click.STRING and parameter.name in command._in_utf8
]


NO_FILES = [
    (("calibrate",), "meter"),
    (("bench",), "baseline"),
    (("import",), "boundary"),
    (("allocate",), "service"),
    (("study", "plan"), "name"),
    (("study", "plan"), "unit"),
]
"""Texts whose help speaks of files, and that name none."""


def test_most_commands_take_texts():
    assert len(TEXTS) > 60
    assert {words for words, _ in TEXTS} >= {
        ("import",),
        ("bench",),
        ("report",),
        ("runs", "tag"),
        ("compare",),
    }
    assert ("run",) not in {words for words, _ in TEXTS}


@pytest.mark.parametrize(
    ("words", "name"), TEXTS, ids=lambda value: value if isinstance(value, str) else " ".join(value)
)
def test_a_text_of_any_command_is_refused_in_a_line(monkeypatch, capsys, tmp_path, words, name):
    monkeypatch.chdir(tmp_path)
    command = LEAVES[words]
    (wanted,) = [p for p in command.params if p.name == name]
    monkeypatch.setattr("sys.argv", ["carbonlens", *words, *line_with(command, wanted)])
    with pytest.raises(SystemExit) as end:
        main.main()
    said = capsys.readouterr()
    assert (end.value.code, said.out) == (2, "")
    (line,) = said.err.splitlines()
    assert line.endswith(r"'a\xff' is no UTF-8 (write it in UTF-8, or leave those bytes out) [CL001]")
    called = wanted.opts[-1] if wanted.param_type_name == "option" else wanted.human_readable_name.strip("[]")
    assert line.startswith(f"carbonlens: {called}: ")
    assert list(tmp_path.iterdir()) == []


def test_what_names_a_file_may_be_of_any_bytes():
    """Of each option and argument whose help speaks of a file, a folder or a table."""
    named = [
        (words, parameter.name)
        for words, command in LEAVES.items()
        for parameter in command.get_params(click.Context(command))
        if parameter.type is click.STRING
        and parameter.name in command._in_utf8
        and any(word in _help(parameter).lower() for word in (".toml", "folder", "table", " file"))
    ]
    assert named == NO_FILES


def _help(parameter):
    return getattr(parameter, "help", None) or getattr(parameter, "row", "") or ""


def odd_folder(shell):
    """Make a folder whose name is no UTF-8."""
    folder = Path(os.fsdecode(os.fsencode(shell.folder) + b"/caf\xe9"))
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system takes names in UTF-8 alone")
    return folder


CODECARBON = (
    "timestamp,project_name,run_id,duration,emissions,energy_consumed\n2026-03-01T10:00:00,x,1,10,0.1,0.2\n"
)


def test_files_and_folders_of_any_name_are_read_and_written(shell):
    odd = odd_folder(shell)
    (odd / "f.csv").write_text(CODECARBON)
    (odd / "map.toml").write_text('[[place]]\npath = "*"\nteam = "x"\n')
    told = shell.json("import", odd / "f.csv", "--map", odd / "map.toml", "--ledger", "l")
    assert told["totals"]["runs"] == 1
    assert told["files"][0]["path"].endswith(r"caf\xe9/f.csv")
    shell("inventory", "init", odd / "inventory")
    shell("inventory", "check", odd / "inventory")
    shell("account", "--ledger", "l", "--inventory", odd / "inventory")
    shell("ledger", "export", "--ledger", "l", "-o", odd / "runs.csv")
    assert (odd / "runs.csv").read_text().count("\n") == 2


def test_json_tells_names_of_any_bytes(shell):
    odd = odd_folder(shell)
    shell("run", "--ledger", odd / "l", "--", "true")
    told = shell.json("runs", "--ledger", odd / "l")
    assert len(told["runs"]) == 1
    found = Finding(code="CL999", severity="info", message=ODD)
    assert json.loads(output._encoded({"of": [ODD, (ODD, found)], ODD: 1, "raw": msgspec.Raw(b"0.10")})) == {
        "of": [r"a\xff", [r"a\xff", {**msgspec.to_builtins(found), "message": r"a\xff"}]],
        r"a\xff": 1,
        "raw": 0.1,
    }


def test_what_else_is_no_utf8_is_said_in_a_line_and_other_faults_are_not_hidden(monkeypatch, capsys):
    def fails(error):
        def ended():
            raise error

        monkeypatch.setattr(main, "_ended", ended)
        with pytest.raises(BaseException) as raised:  # noqa: PT011  # an end or the error itself
            main.main()
        return raised.value, capsys.readouterr().err

    with pytest.raises(UnicodeEncodeError) as lone:
        f"{'x' * 1000}/home/caf\udce9/data".encode()
    ended, said = fails(lone.value)
    assert ended.code == 2
    assert len(said.splitlines()) == 1
    assert r"/home/caf\xe9/data" in said
    assert len(said) < 300
    with pytest.raises(UnicodeEncodeError) as other:
        "é".encode("ascii")
    assert fails(other.value)[0] is other.value


def test_a_text_is_told_from_bytes_that_are_none():
    assert is_utf8("plain")
    assert is_utf8("café \N{PARTY POPPER}")
    assert not is_utf8("caf\udce9")
    assert not is_utf8("\ud800")
