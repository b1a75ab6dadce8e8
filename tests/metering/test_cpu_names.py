"""Names that are one processor, and names that only look alike."""

import pytest

from carbonlens.metering.cpu_names import TdpTable, cores_in, plain_name

TABLE = TdpTable(
    [
        ("AMD EPYC 7763", "280.0"),
        ("Intel Xeon Platinum 8380", "270"),
        ("Intel Xeon Platinum 8380H", "250"),
        ("Intel Xeon E3-1240 v2", "69.0"),
        ("Intel Core i7-1365U", "15"),
        ("Intel Core i7-8650U", "15.0"),
        ("Intel Atom E665CT", "3.6"),
        ("Intel Atom E665CT", "7.0"),
        ("Intel Celeron 1200", "29.32.9"),
        ("Some Prototype", "0.0"),
        ("A Cluster", "12000"),
        ("AMD Ryzen 7 5800U", "15"),
    ]
)


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("AMD EPYC 7763 64-Core Processor", "AMD EPYC 7763"),
        ("AMD EPYC 7763 2.45GHz", "AMD EPYC 7763"),
        ("Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz", "Intel Xeon Platinum 8380"),
        ("Intel(R) Xeon(R) Platinum 8380H CPU @ 2.90GHz", "Intel Xeon Platinum 8380H"),
        ("Intel Xeon E3-1240V2", "Intel Xeon E3-1240 v2"),
        ("13th Gen Intel(R) Core(TM) i7-1365U", "Intel Core i7-1365U"),
        ("AMD Ryzen 7 5800U with Radeon Graphics", "AMD Ryzen 7 5800U"),
        ("intel xeon platinum 8380, 2,30 GHz", "Intel Xeon Platinum 8380"),
    ],
)
def test_the_whole_name_is_found_however_it_is_written(name, row):
    assert TABLE.look_up(name)[1] == row


@pytest.mark.parametrize(
    "name",
    [
        "",
        "AMD EPYC",
        "AMD EPYC 7763P 64-Core Processor",
        "Intel(R) Xeon(R) Processor",
        "Intel(R) Xeon(R) CPU @ 2.20GHz",
        "Intel(R) Xeon(R) Platinum 8380HL",
        "Xeon Platinum 8380",
        "Intel Xeon E3-1240",
        "Intel Atom E665CT",  # two rows with two powers
        "Intel Celeron 1200",  # no number
        "Some Prototype",  # no power
        "A Cluster",
    ],
)
def test_a_name_that_is_only_alike_finds_nothing(name):
    assert TABLE.look_up(name) is None


def test_two_rows_that_agree_are_one():
    assert TdpTable([("X 1", "5"), ("x 1 Processor", "5.0")]).look_up("X 1") == (5.0, "X 1")


def test_cores_that_a_name_states():
    assert cores_in("AMD EPYC 7763 64-Core Processor") == 64
    assert cores_in("Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz") is None


def test_plain_name_is_stable():
    once = plain_name("Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz")
    assert once == plain_name(once) == "intel xeon gold 6248"
