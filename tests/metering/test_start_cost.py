"""What a run's start does again though it did it a moment ago, and that nothing of it goes stale."""

import threading
import time
import tomllib

import pytest

from carbonlens.inventory import sources_file
from carbonlens.ledger.location import locate, tables_of
from carbonlens.metering.job import this_job
from carbonlens.metering.pace import FAST_S
from carbonlens.metering.sampler import Sampler
from carbonlens.metering.sensors.candidates import shows_amd, shows_nvidia
from tests.metering.test_sampler import Counted


@pytest.fixture
def parsed(monkeypatch):
    """The texts that were parsed as TOML."""
    texts, was = [], tomllib.loads
    monkeypatch.setattr(tomllib, "loads", lambda text: (texts.append(text), was(text))[1])
    tables_of.cache_clear()
    yield texts
    tables_of.cache_clear()


PROJECT = """
[project]
name = "x"
[tool.carbonlens]
ledger = "{}"
[tool.carbonlens.sources]
cpu_tdp_w = {}
"""


def test_a_projects_file_is_parsed_once_while_it_is_the_same_and_a_change_is_seen_at_once(tmp_path, parsed):
    file = tmp_path / "pyproject.toml"
    for name, watts in (("a", 65), ("b", 95), ("a", 65)):
        # Of the same length, and within one tick of the file system's clock.
        file.write_text(PROJECT.format(name, watts))
        for _ in range(3):
            assert locate(start=tmp_path, environ={}) == tmp_path / name
            assert sources_file.find(tmp_path, {}).sources.cpu_tdp_w == watts
    assert len(parsed) == 2
    file.unlink()
    assert locate(start=tmp_path, environ={}) == tmp_path / ".carbonlens"
    assert sources_file.find(tmp_path, {}).file is None


@pytest.mark.parametrize("text", ['[project]\nname = "x"\n', "[broken", "\ufeff[project]\n"])
def test_a_projects_file_that_does_not_speak_of_it_is_not_parsed(tmp_path, parsed, text):
    (tmp_path / "pyproject.toml").write_text(text, "utf-8")
    assert locate(start=tmp_path, environ={}) == tmp_path / ".carbonlens"
    assert sources_file.find(tmp_path, {}).file is None
    assert parsed == []


def test_hardware_that_comes_and_goes_is_seen_each_time(tmp_path):
    for _ in range(2):
        assert not shows_nvidia(tmp_path)
        assert not shows_amd(tmp_path)
        for name, shows in (("nvidia0", shows_nvidia), ("dxg", shows_nvidia), ("kfd", shows_amd)):
            (tmp_path / "dev" / name).mkdir(parents=True)
            assert shows(tmp_path)
            (tmp_path / "dev" / name).rmdir()


def test_the_environment_is_read_as_it_is_at_each_start(monkeypatch):
    for job in ("71", "72"):
        monkeypatch.setenv("SLURM_JOB_ID", job)
        assert this_job().job_id == job


@pytest.mark.parametrize(("rests_s", "woken"), [(FAST_S / 2, False), (FAST_S * 3, True)])
def test_the_sampler_is_woken_where_it_would_come_late_and_only_there(rests_s, woken):
    sampler, one = Sampler(), Counted()
    # A thread that lives and rests; none is started beside it.
    sampler._thread, sampler._wakes_s = threading.current_thread(), time.monotonic() + rests_s
    sampler.add(one)
    # On a machine that stood still the rest may be over already, which wakes nobody.
    late = time.monotonic() > sampler._wakes_s - FAST_S
    assert sampler._added.is_rung() is woken or (woken and late)


def test_windows_one_after_another_are_each_looked_at_in_time():
    def longest_s():
        sampler, waits = Sampler(), []
        for _ in range(8):
            one, begin = Counted(), time.monotonic()
            sampler.add(one)
            while not one.samples:
                time.sleep(0.001)
            waits.append(time.monotonic() - begin)
            sampler.remove(one)
            time.sleep(0.03)
        return max(waits)

    assert min(longest_s() for _ in range(4)) < 2 * FAST_S
