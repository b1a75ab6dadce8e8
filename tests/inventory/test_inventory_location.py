"""Where the inventory is found, in the order the documentation states."""

import pytest

from carbonlens.errors import ConfigError, InputFileError, UsageError
from carbonlens.inventory.location import locate


def folder(path):
    path.mkdir(parents=True)
    return path


def test_the_first_that_is_given_wins(tmp_path):
    named, project = folder(tmp_path / "named"), folder(tmp_path / "project")
    variable, here = folder(tmp_path / "variable"), folder(tmp_path / "inventory")
    environ = {"CARBONLENS_INVENTORY": str(variable)}
    assert locate(start=tmp_path, environ={}) == here
    (tmp_path / "pyproject.toml").write_text('[tool.carbonlens]\ninventory = "project"\nledger = "l"\n')
    assert locate(start=tmp_path, environ={}) == project
    assert locate(start=folder(tmp_path / "deep" / "er"), environ={}) == project
    assert locate(start=tmp_path, environ=environ) == variable
    assert locate(named, start=tmp_path, environ=environ) == named


def test_nobody_has_to_have_an_inventory(tmp_path):
    assert locate(start=tmp_path, environ={"CARBONLENS_INVENTORY": ""}) is None
    (tmp_path / "inventory").write_text("a file")
    assert locate(start=tmp_path, environ={}) is None


def test_a_folder_that_is_named_must_be_there(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.carbonlens]\ninventory = "nowhere"\n')
    (tmp_path / "file").write_text("")
    for named, environ in ((tmp_path / "file", {}), (None, {"CARBONLENS_INVENTORY": "/nowhere"}), (None, {})):
        with pytest.raises(InputFileError):
            locate(named, start=tmp_path, environ=environ)
    with pytest.raises(UsageError):
        locate("", start=tmp_path, environ={})


def test_a_path_that_is_none_is_refused(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.carbonlens]\ninventory = 3\n")
    with pytest.raises(ConfigError, match="inventory is not text"):
        locate(start=tmp_path, environ={})
