"""The inventory commands as users run them."""

import pytest

from tests.inventory.inventory_files import METER, SITE, TERMS, lay


def test_init_and_check(shell):
    done = shell("inventory", "init", "inventory")
    assert "saved 18 files" in done.stdout
    done = shell("inventory", "check")
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "0 findings" in done.stdout
    assert "invented" in done.stdout
    assert done.stderr == ""
    assert "holds files already" in shell("inventory", "init", "inventory", code=2).stderr
    assert shell.json("inventory", "init", "other")["files"][0] == "assets.csv"


def test_init_takes_the_folder_that_every_command_finds(shell):
    shell("inventory", "init")
    assert "invented" in shell("inventory", "check").stdout


def test_findings_are_listed_and_exit_0(shell):
    rows = "meter,start,end,energy,unit\nm1,2026-01-01,2026-01-02,1,kWh\nm2,2026-01-01,2026-01-02,1,kWh\n"
    site = SITE + 'pue = 0.5\npue_source = "s"\n'
    place = lay(
        shell.folder / "x", sites_toml=site, meters_toml=METER, reporting_toml=TERMS, readings_csv=rows
    )
    done = shell("inventory", "check", "x")
    assert "CL368 error: sites.toml:1" in done.stderr
    assert "CL364 warning" in done.stderr
    assert max(map(len, (done.stdout + done.stderr).splitlines())) <= 80
    shown = shell.json("inventory", "check", place)
    assert (shown["schema"], shown["faults"], shown["deliveries"]) == ("carbonlens/inventory/1", [], None)
    assert {f["file"]: (f["rows"], f["findings"]) for f in shown["files"]} == {
        "meters.toml": (1, 0),
        "readings.csv": (2, 1),
        "reporting.toml": (1, 0),
        "sites.toml": (1, 1),
    }
    assert [f["code"] for f in shown["findings"]] == ["CL364", "CL368"]


def test_a_malformed_file_exits_2_and_names_every_fault(shell):
    lay(shell.folder / "inventory", sites_toml="[[site]]\nkin = 1\n", meters_toml="[[meter]\n")
    done = shell("inventory", "check", code=2)
    assert "sites.toml:2: unknown key 'kin'" in done.stderr
    assert "meters.toml:1" in done.stderr
    assert "4 faults to mend" in done.stdout
    shown = shell.json("inventory", "check", code=2)
    assert [(f["file"], f["line"]) for f in shown["faults"]] == [
        *(("meters.toml", 1), ("sites.toml", 1), ("sites.toml", 1), ("sites.toml", 2)),
    ]
    assert all(f["mend"] for f in shown["faults"])


def test_no_inventory_is_said_with_what_to_do(shell):
    assert "carbonlens inventory init" in shell("inventory", "check", code=2).stderr
    assert "not there" in shell("inventory", "check", "nowhere", code=3).stderr


def test_deliveries_are_held_against_the_ledger(shell):
    text = '[[delivery]]\nteam = "ai"\nmonths = ["2025-01..2025-02"]\n'
    lay(shell.folder / "inventory", deliveries_toml=text)
    assert "Deliveries" not in shell("inventory", "check").stdout
    shell("run", "--tag", "team=ai", "--", "true")
    done = shell("inventory", "check")
    assert "Deliveries: 0 of 2 expected deliveries came (0 %)." in done.stdout
    assert "CL379 warning" in done.stderr
    assert shell.json("inventory", "check")["deliveries"] == {"expected": 2, "came": 0, "share": 0.0}


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ('zone = "XXX"', "'XXX'"),
        ('kind = "cloud"\nprovider = "aws"\nregion = "eu-centrl-1"', "eu-centrl-1"),
        ('kind = "cloud"\nprovider = "aws"\nregion = "us-east-1"\nzone = "FR"', "declared in zone FR"),
        ('kind = "cloud"\nprovider = "aws"\nregion = "us-east-1"\nzone = "QQQ"', "'QQQ'"),
    ],
)
def test_a_place_that_is_none_is_said_where_it_is_declared(shell, declared, said):
    kind = "" if "kind" in declared else 'kind = "own"\n'
    lay(shell.folder / "x", sites_toml=f'[[site]]\nid = "s"\n{kind}{declared}\n', reporting_toml=TERMS)
    (found,) = [f for f in shell.json("inventory", "check", "x")["findings"] if f["code"] == "CL481"]
    assert said in found["message"]
    assert (found["file"], "sites.toml" in found["mend"]) == ("sites.toml", True)
    # It is declared there already.
    assert "declare it" not in found["mend"]
    assert "CL481" in shell("inventory", "check", "x").stderr


def test_a_place_that_is_one_is_not_said(shell):
    sites = '[[site]]\nid = "s"\nkind = "own"\nzone = "FR"\n[[site]]\nid = "t"\nkind = "customer"\n'
    lay(shell.folder / "x", sites_toml=sites, reporting_toml=TERMS)
    assert "CL481" not in {f["code"] for f in shell.json("inventory", "check", "x")["findings"]}
