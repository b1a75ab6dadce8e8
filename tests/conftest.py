"""What every test relies on: signals as a terminal gives them, and no clock in a law.

A test run started in the background or under nohup inherits ignored signals, and
would hand them on to the programs it tests. How long an example takes is a matter of
the machine: times are measured in ``tests/bench`` alone.

A verdict is one of a commit: ``make test`` draws the same examples each time, so that what
fails in one place fails in every other. ``make fuzz`` draws new ones.
"""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

_NO_CLOCK = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("carbonlens", derandomize=True, **_NO_CLOCK)
settings.register_profile("fuzz", print_blob=True, **_NO_CLOCK)
settings.load_profile("fuzz" if os.environ.get("CARBONLENS_FUZZ") else "carbonlens")

for _number, _usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGQUIT, signal.SIG_DFL),
):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, _usual)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put modules with slow tests first: what two workers share out at the end is quick."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session")
def company_report(tmp_path_factory):
    """The report of the illustrative company's last quarter, made once for all tests and workers."""
    from tests.app.company_report import company_report_of

    return company_report_of(tmp_path_factory)
