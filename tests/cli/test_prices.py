"""carbonlens prices: list, show, diff."""

from carbonlens.factors.prices_file import bundled_prices


def test_list_names_every_price_with_the_day_from_which_it_holds(shell):
    printed = shell("prices", "list").stdout.splitlines()
    assert len(printed) == 1 + len(bundled_prices())
    assert max(map(len, printed)) <= 80
    listed = shell.json("prices", "list", "--subject", "h100")
    assert {p["subject"] for p in listed["prices"]} == {"azure:Standard_ND96isr_H100_v5", "gpu:H100"}
    assert listed["of"] == len(bundled_prices())


def test_a_price_does_not_hold_before_its_day(shell):
    assert "no such price" in shell("prices", "list", "--on", "2024-01-01").stdout
    assert "is no day" in shell("prices", "list", "--on", "May", code=2).stderr


def test_prices_of_the_inventory_come_first(shell):
    shell("inventory", "init", "inventory")
    listed = shell.json("prices", "list")
    assert {p["price_id"] for p in listed["prices"] if p["own"]} == {
        "example-gpu-hour",
        "example-engineering",
    }
    assert "* example-gpu-hour" in shell("prices", "list").stdout
    assert "yes, of the inventory" in shell("prices", "show", "example-gpu-hour").stdout


def test_show_prints_the_price_whole(shell):
    text = " ".join(shell("prices", "show", "fleet-sim/gpu-h100").stdout.split())
    for words in ("4.02 USD per device_hour (list)", "arXiv 2603.16054", "read on 2026-11-27", "undated"):
        assert words in text
    assert shell.json("prices", "show", "fleet-sim/gpu-h100")["price"]["amount"]["amount"] == "4.02"
    assert "meant: fleet-sim/gpu-h100" in shell("prices", "show", "fleet-sim/gpu-h10", code=2).stderr


def test_diff_against_the_bundled_and_between_tables(shell):
    head = "id,subject,per,amount,currency,valid_from,source,address,read_on"
    row = "fleet-sim/gpu-h100,gpu:H100,device_hour,8.04,USD,2026-11-27,s,https://example.com,2026-11-27"
    for name, text in (("a.csv", row), ("b.csv", row.replace("8.04", "4.02"))):
        (shell.folder / name).write_text(f"{head}\n{text}\n", "utf-8")
    printed = shell("prices", "diff", "a.csv").stdout.splitlines()
    assert printed[1].split() == ["fleet-sim/gpu-h100", "4.02", "USD", "8.04", "USD", "+100.0%"]
    assert printed[2].startswith("1 price changed, 0 alike, ")
    assert shell.json("prices", "diff", "a.csv", "b.csv")["changed"][0]["ratio"] == 0.5
    assert "cannot be read" in shell("prices", "diff", "none.csv", code=3).stderr
