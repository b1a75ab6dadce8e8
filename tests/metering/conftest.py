"""Each test has a state folder of its own, and ends the sessions that it began."""

import pytest

from carbonlens.metering.sampler import process_sampler


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("CARBONLENS_RUN_ID", raising=False)
    monkeypatch.delenv("CARBONLENS_LEDGER", raising=False)


@pytest.fixture(autouse=True)
def _no_session_goes_on():
    """A session that is left open is looked at by the sampler while other tests run."""
    yield
    assert process_sampler()._entries == {}
