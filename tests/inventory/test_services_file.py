"""``services.toml`` and ``service_uses*.csv``: what is malformed is told with its place."""

from decimal import Decimal

import pytest

from carbonlens.domain.service import Use
from tests.inventory.inventory_files import SITE, codes, inventory_of, loaded

SERVICE = '[[service]]\nid = "chat"\ntags = { app = "chat" }\nbasis = "tokens"\n'
USE = '[[service.use]]\nmonth = "2026-03"\nconsumer = "a"\ncount = 10\n'
HEAD = "service,month,consumer,count\n"


def faults(folder, **texts):
    return [(f.where, f.what) for f in loaded(folder, **texts).faults]


def test_uses_of_all_files_come_together(tmp_path):
    rows = HEAD + "chat,2026-03,a,10\nchat,2026-03,b,\nchat,2026-02,a,7.5\n"
    inventory = inventory_of(tmp_path, services_toml=SERVICE + USE, service_uses_csv=rows)
    assert inventory.services[0].uses == (
        Use(month="2026-02", consumer="a", count=Decimal("7.5")),
        Use(month="2026-03", consumer="a", count=Decimal(10)),
        Use(month="2026-03", consumer="b"),
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('[[service]]\nid = "chat"\nbasis = "tokens"\n', "names neither tags nor a meter"),
        (SERVICE.replace("tokens", "token"), "basis is 'token'"),
        (SERVICE + "capacity = 0\n", "capacity is 0"),
        (SERVICE + 'idle = "gone"\n', "idle is 'gone'"),
        (SERVICE + USE + "cuont = 3\n", "a use has the unknown key 'cuont'"),
        (SERVICE + USE.replace("10", "-1"), "count of 2026-03 of 'a' is -1"),
        (SERVICE + USE.replace("2026-03", "March"), "month of March of 'a' is 'March'"),
        (SERVICE + USE + "request = 3\n", "request of 2026-03 of 'a' is stated"),
        (SERVICE + USE + USE, "states 2026-03 of 'a' twice"),
        (SERVICE + USE + "u_relative = 3\n", "u_relative of 2026-03 of 'a' is 3"),
    ],
)
def test_faults_of_services(tmp_path, text, what):
    found = faults(tmp_path, services_toml=text)
    assert found
    assert any(said.startswith(what) for _, said in found), found


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ("chet,2026-03,a,1\n", "names the service 'chet', which is none"),
        ("chat,2026-3,a,1\n", "month is '2026-3'"),
        ("chat,2026-03,a,-1\n", "count is '-1'"),
        ("chat,2026-03,a,many\n", "count 'many' is no number"),
        ("chat,2026-03,a,1\nchat,2026-03,a,2\n", "states 2026-03 of 'a' a second time"),
        ("chat,,a,1\n", "lacks 'month'"),
    ],
)
def test_faults_of_uses(tmp_path, rows, what):
    found = faults(tmp_path, services_toml=SERVICE, service_uses_csv=HEAD + rows)
    line = rows.count("\n") + 1
    assert [(where, said.startswith(what)) for where, said in found] == [(f"service_uses.csv:{line}", True)]


def test_a_site_that_nobody_declared_is_found(tmp_path):
    inventory = inventory_of(tmp_path, sites_toml=SITE, services_toml=SERVICE + 'site = "paris"\n')
    assert codes(inventory) == ["CL365"]
