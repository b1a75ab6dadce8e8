"""Where the ledger is found, in the order the documentation states."""

from pathlib import Path

import pytest

from carbonlens.errors import ConfigError, UsageError
from carbonlens.ledger.location import locate, state_dir


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
