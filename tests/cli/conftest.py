"""A shell in an empty folder for each test."""

import pytest

from tests.cli.commands import Shell


@pytest.fixture
def shell(tmp_path):
    return Shell(tmp_path)
