"""Each test has a state folder of its own."""

import pytest


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("CARBONLENS_RUN_ID", raising=False)
    monkeypatch.delenv("CARBONLENS_LEDGER", raising=False)
