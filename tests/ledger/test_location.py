"""Where the ledger is found, in the order the documentation states."""

import os
from pathlib import Path

import pytest

from carbonlens.errors import ConfigError, UsageError
from carbonlens.ledger import location
from carbonlens.ledger.location import local_state_dir, locate, state_dir


def test_option_wins_over_everything(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.carbonlens]\nledger = "a"\n')
    found = locate(tmp_path / "x", start=tmp_path, environ={"CARBONLENS_LEDGER": "/nowhere"})
    assert found == tmp_path / "x"


def test_an_empty_option_is_refused_and_an_empty_variable_is_none(tmp_path):
    with pytest.raises(UsageError, match="--ledger"):
        locate("", start=tmp_path, environ={})
    assert locate(start=tmp_path, environ={"CARBONLENS_LEDGER": ""}) == tmp_path / ".carbonlens"


def test_variable_wins_over_pyproject(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.carbonlens]\nledger = "a"\n')
    assert locate(start=tmp_path, environ={"CARBONLENS_LEDGER": str(tmp_path / "v")}) == tmp_path / "v"


def test_pyproject_path_is_relative_to_that_file(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.carbonlens]\nledger = "energy/ledger"\n')
    deep = tmp_path / "src" / "deep"
    deep.mkdir(parents=True)
    assert locate(start=deep, environ={}) == tmp_path / "energy" / "ledger"


def test_the_nearest_pyproject_decides_even_without_a_section(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.carbonlens]\nledger = "outer"\n')
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "pyproject.toml").write_text("[project]\n")
    assert locate(start=inner, environ={}) == inner / ".carbonlens"


def test_default_is_a_hidden_folder_here(tmp_path):
    assert locate(start=tmp_path, environ={}) == tmp_path / ".carbonlens"


@pytest.mark.parametrize("text", ["not toml [", "tool = 3\n", "[tool]\ncarbonlens = 1\n"])
def test_a_broken_pyproject_never_stops_a_measurement(tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(text)
    assert locate(start=tmp_path, environ={}) == tmp_path / ".carbonlens"


def test_a_ledger_that_is_no_text_is_named(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.carbonlens]\nledger = 3\n")
    with pytest.raises(ConfigError, match=r"pyproject\.toml"):
        locate(start=tmp_path, environ={})


def test_state_dir_falls_back_when_home_cannot_be_written(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    found = state_dir({"HOME": str(blocked), "XDG_STATE_HOME": str(blocked)})
    assert found.is_dir()
    assert blocked not in found.parents


def test_state_dir_follows_xdg(tmp_path):
    assert state_dir({"XDG_STATE_HOME": str(tmp_path), "HOME": "/nowhere"}) == Path(tmp_path) / "carbonlens"


MOUNT = "36 35 98:0 / {point} rw,noatime - {kind} server:/home rw\n"


@pytest.mark.parametrize(
    ("mounts", "local"),
    [
        ([("/", "ext4")], False),
        ([("/", "ext4"), ("{home}", "nfs4")], True),
        ([("/", "ext4"), ("{home}", "autofs"), ("{home}", "lustre")], True),
        ([("/", "nfs"), ("{home}", "xfs")], False),
        ([("/", "overlay"), ("{home}x", "nfs4")], False),
        ([], False),
    ],
)
def test_what_is_written_while_runs_live_stays_on_this_host(tmp_path, mounts, local):
    home = tmp_path / "a home"
    home.mkdir()
    point = str(home).replace(" ", "\\040")
    table = tmp_path / "mountinfo"
    table.write_text("".join(MOUNT.format(point=p.format(home=point), kind=k) for p, k in mounts))
    found = local_state_dir({"HOME": str(home)}, mounts=table, fallback=tmp_path)
    own = tmp_path / f"carbonlens-{os.getuid()}"
    assert found == (own if local else home / ".local" / "state" / "carbonlens")
    assert not local or found.stat().st_mode & 0o077 == 0


def test_a_named_state_folder_is_taken_as_it_is(tmp_path):
    table = tmp_path / "mountinfo"
    table.write_text(MOUNT.format(point=tmp_path, kind="nfs4"))
    state = {"XDG_STATE_HOME": str(tmp_path)}
    assert local_state_dir(state, mounts=table, fallback=tmp_path) == tmp_path / "carbonlens"


def test_a_local_folder_of_somebody_else_is_not_used(tmp_path):
    table = tmp_path / "mountinfo"
    table.write_text(MOUNT.format(point=tmp_path, kind="nfs4"))
    link = tmp_path / f"carbonlens-{os.getuid()}"
    link.symlink_to(tmp_path)
    if os.getuid() != 0:
        pytest.skip("needs root to make what belongs to another user")
    os.lchown(link, 65534, 65534)
    own = local_state_dir({"HOME": str(tmp_path)}, mounts=table, fallback=tmp_path)
    assert own == tmp_path / ".local" / "state" / "carbonlens"


def test_a_table_of_mounts_that_cannot_be_read_changes_nothing(tmp_path):
    found = local_state_dir({"HOME": str(tmp_path)}, mounts=tmp_path / "none", fallback=tmp_path)
    assert found == tmp_path / ".local" / "state" / "carbonlens"


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_ledger_of_a_project_is_refused(tmp_path, text):
    """As a path it would be the project itself."""
    (tmp_path / "pyproject.toml").write_text(f'[tool.carbonlens]\nledger = "{text}"\n')
    with pytest.raises(ConfigError, match="is empty"):
        locate(start=tmp_path, environ={})


@pytest.mark.parametrize(
    "text",
    [
        '[tool.carbonlens]\nledger = "x"\n',
        '  [ tool . "carbonlens" ]\nledger = "x"\n',
        '["tool".\'carbonlens\']\nledger = "x"\n',
        '[tool]\ncarbonlens = {ledger = "x"}\n',
        '[tool]\ncarbonlens.ledger = "x"\n',
        'tool.carbonlens.ledger = "x"\n',
        'tool = {carbonlens = {ledger = "x"}}\n',
        '"tool".carbonlens.ledger = "x"\n',
        '[tool.other]\na = 1\n[tool.carbonlens]\nledger = "x"\n',
    ],
)
def test_a_project_may_write_its_section_in_any_way_toml_knows(tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(text)
    assert locate(None, start=tmp_path, environ={}) == tmp_path / "x"


def test_a_project_that_only_depends_on_carbonlens_is_not_parsed(tmp_path, monkeypatch):
    parsed = []
    monkeypatch.setattr(location, "tables_of", lambda text: parsed.append(text) or {})
    text = (
        '[project]\nname = "mine"\ndependencies = ["carbonlens>=1"]\n'
        "[project.scripts]\ncarbonlens = 'carbonlens.cli.main:main'\n[tool.ruff]\nline-length = 100\n"
    )
    (tmp_path / "pyproject.toml").write_text(text)
    assert locate(None, start=tmp_path, environ={}) == tmp_path / ".carbonlens"
    assert parsed == []
    (tmp_path / "pyproject.toml").write_text(text + "[tool.carbonlens.sources]\n")
    locate(None, start=tmp_path, environ={})
    assert len(parsed) == 1
