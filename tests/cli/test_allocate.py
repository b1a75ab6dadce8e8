"""``carbonlens allocate`` as users run it."""

import pytest

from carbonlens.ledger.store import Ledger
from tests.app.test_allocation import SERVICE, USES, run
from tests.inventory.inventory_files import SITE, TERMS, lay


@pytest.fixture
def filled(shell):
    store = Ledger(shell.folder / ".carbonlens")
    store.append(run("a", 3, 4_000_001, app="chat"))
    lay(shell.folder / "inventory", sites_toml=SITE, reporting_toml=TERMS, services_toml=SERVICE)
    (shell.folder / "inventory" / "service_uses.csv").write_text(USES.replace("search,300", "search,200"))
    return shell


def test_the_printed_column_adds_up(filled):
    done = filled("allocate", "--period", "2026-03")
    assert done.stderr == ""
    text = done.stdout.splitlines()
    assert text[:2] == [
        "Allocation of 2026-03, DRAFT: the period is not closed",
        "chat: 1.11 kWh (it), by tokens, 1 month",
    ]
    assert [line.split() for line in text[2:]] == [
        ["consumer", "share", "kWh"],
        ["ads", "33.3%", "0.370"],
        ["search", "66.7%", "0.741"],
    ]


def test_json_is_exact(filled):
    (chat,) = filled.json("allocate", "--period", "2026-03")["services"]
    assert chat["exact_j"] == "4000001.000000"
    lines = {x["name"]: x for x in chat["lines"]}
    assert lines["rounding"]["kind"] == "rounding"
    assert lines["ads"]["exact_j"] == "1333333.666666666666"
    assert lines["ads"]["energy_j"]["unit"] == "J"


def test_no_service_is_said_with_its_mend(shell):
    done = shell("allocate", "--period", "2026-03", code=2)
    assert "services.toml: the inventory has no service" in done.stderr


@pytest.mark.parametrize("name", ["idle", "not divided", "rounding"])
def test_a_consumer_called_like_a_line_of_ours_is_told_apart(filled, name):
    uses = USES.replace("search,300", "search,200").replace("ads", name)
    (filled.folder / "inventory" / "service_uses.csv").write_text(uses)
    text = filled("allocate", "--period", "2026-03").stdout
    assert f'"{name}"' in text
    assert "search" in text


def test_blanks_around_a_period_are_no_part_of_it(filled):
    plain, padded = (filled("allocate", "--period", p).stdout for p in ("2026-03", " 2026-03 "))
    assert padded == plain
