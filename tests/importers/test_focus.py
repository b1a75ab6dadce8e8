"""FOCUS bills of all versions: exact costs, faults by line, and each line once."""

import gzip
from decimal import Decimal
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.domain.money import Money
from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import claims, importers
from carbonlens.importers.focus import IMPORTER
from carbonlens.importers.focus_cells import COSTS, MANDATORY
from carbonlens.importers.sources import Source
from tests.conformance.importers import ImporterContract
from tests.importers.reading import claimed, codes, read_any

PLAIN = {
    "BilledCost": "12.30",
    "EffectiveCost": "12.30",
    "ListCost": "15",
    "ContractedCost": "13.5",
    "BillingCurrency": "USD",
    "BillingAccountId": "acct",
    "BillingPeriodStart": "2026-03-01T00:00:00Z",
    "BillingPeriodEnd": "2026-04-01T00:00:00Z",
    "ChargeCategory": "Usage",
    "ChargeClass": "",
    "ChargeDescription": "GPU hours, on demand",
    "ChargePeriodStart": "2026-03-29T00:00:00Z",
    "ChargePeriodEnd": "2026-03-29T01:00:00Z",
    "PricingQuantity": "1",
    "PricingUnit": "Hours",
    "ServiceCategory": "Compute",
    "ServiceName": "EC2",
    "ResourceId": "i-1",
    "RegionId": "eu-west-3",
    "Tags": '{"team": "vision", "spot": true, "shift": null}',
}
PARTIES = {
    "1.0": {"ProviderName": "AWS", "PublisherName": "AWS", "InvoiceIssuerName": "AWS"},
    "1.2": {"ProviderName": "AWS", "PublisherName": "AWS", "InvoiceIssuerName": "AWS", "InvoiceId": "inv-1"},
    "1.3": {
        "ServiceProviderName": "AWS",
        "HostProviderName": "AWS",
        "ProviderName": "AWS",
        "InvoiceId": "inv-1",
    },
    "1.4": {"ServiceProviderName": "AWS", "HostProviderName": "AWS", "InvoiceId": "inv-1"},
}
HOUR_US = 3_600_000_000
START_US = 1_774_742_400_000_000
"""2026-03-29 00:00 UTC."""


def cell(value):
    return '"' + value.replace('"', '""') + '"' if set(value) & set(',";\n') else value


def table(*rows, delimiter=","):
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [names, *([row.get(name, "") for name in names] for row in rows)]
    return "\n".join(delimiter.join(map(cell, line)) for line in lines) + "\n"


def line(**changes):
    row = {**PLAIN, **PARTIES["1.2"], **changes}
    return {name: value for name, value in row.items() if value is not None}


@pytest.fixture
def read(tmp_path):
    def read_text(text, name="bill.csv"):
        file = tmp_path / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_any(IMPORTER, file)

    return read_text


class TestConformance(ImporterContract):
    """The contract of importers."""

    importer = IMPORTER
    files: ClassVar = {"bill.csv": table(line(), line(ResourceId="i-2", BilledCost="7.7"))}
    runs = 0
    charges = 2
    billed = Decimal("20.0")
    delimiter = ","
    essential = ()


@pytest.mark.parametrize("version", PARTIES)
def test_every_version_gives_the_same_charge(read, version):
    extract = read(table({**PLAIN, **PARTIES[version]}))
    assert extract.findings == ()
    (charge,) = extract.charges
    assert charge.provider == "AWS"
    costs = (charge.billed, charge.effective, charge.list_cost, charge.contracted)
    assert costs == tuple(Money(Decimal(x), "USD") for x in ("12.30", "12.30", "15", "13.5"))
    assert (charge.start_us, charge.end_us) == (START_US, START_US + HOUR_US)
    assert (charge.category, charge.correction, charge.resource_id) == ("usage", False, "i-1")
    assert charge.tags == {"team": "vision", "spot": "true", "shift": ""}
    assert charge.origin.source_line == 2


def test_the_name_of_the_provider_is_no_part_of_a_lines_identity(read):
    ids = {read(table({**PLAIN, **PARTIES[v]})).charges[0].charge_id for v in ("1.2", "1.3", "1.4")}
    assert len(ids) == 1


@pytest.mark.parametrize(
    "content",
    [
        table(line()).encode(),
        b"\xef\xbb\xbf" + table(line()).encode(),
        gzip.compress(table(line()).encode()),
        gzip.compress(b"\xef\xbb\xbf" + table(line()).encode()),
        table(line()).encode("utf-16"),
        table(line(BilledCost="12,3"), delimiter=";").encode(),
        table({k.lower(): v for k, v in line().items()}).encode(),
        table(dict(reversed(line().items()))).encode(),
        table(line(BilledCost="12.3000", ChargePeriodStart="2026-03-29")).encode(),
        table(line(ChargePeriodStart="2026-03-29T02:00:00+02:00")).encode(),
    ],
)
def test_the_spelling_of_a_file_changes_no_charge(read, tmp_path, content):
    (tmp_path / "bill").write_bytes(content)
    (found,), _ = claims([Source(tmp_path / "bill")], importers())
    assert found.importer.name == "focus"
    (charge,) = read(content).charges
    (plain,) = read(table(line())).charges
    assert charge.charge_id == plain.charge_id
    assert charge.billed.amount == Decimal("12.3")


def test_other_tables_are_not_claimed(tmp_path):
    texts = (b"run_id,study,energy_j,units,step\n", b"BilledCost,x\n", b"", b"a\n")
    for content in (*texts, gzip.compress(b"a,b\n"), b"\x1f\x8b broken"):
        (tmp_path / "any").write_bytes(content)
        assert not claimed(IMPORTER, tmp_path / "any")


def test_null_costs_stay_unknown_and_tiny_ones_stay_exact(read):
    extract = read(table(line(EffectiveCost="null", ListCost="", ContractedCost="1.2E-15")))
    (charge,) = extract.charges
    assert (charge.effective, charge.list_cost) == (None, None)
    assert charge.contracted.amount == Decimal("1.2E-15")
    assert codes(extract) == ["CL234", "CL234"]
    assert "1 line of the bill state no EffectiveCost" in extract.findings[0].message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"BilledCost": "1,234.5"}, "has BilledCost '1,234.5', which is no number"),
        ({"BilledCost": "Infinity"}, "no number"),
        ({"BilledCost": "1_000"}, "no number"),
        ({"BilledCost": "1e18"}, "beyond any plausible figure"),
        ({"BillingCurrency": ""}, "has no BillingCurrency"),
        ({"BillingCurrency": "US$"}, "no code of ISO 4217"),
        ({"BillingCurrency": "XXX"}, "no code of ISO 4217"),
        ({"ChargePeriodEnd": "2026-03-28T00:00:00Z"}, "ChargePeriodEnd before its ChargePeriodStart"),
        ({"ChargePeriodStart": "29.3.2026"}, "no ISO 8601 time"),
        ({"ChargePeriodStart": ""}, "has no charge period"),
        ({"BillingPeriodEnd": "2026-02-01"}, "BillingPeriodEnd before"),
        (dict.fromkeys(COSTS, ""), "none of the four costs"),
        ({"PricingQuantity": "many"}, "PricingQuantity 'many'"),
    ],
)
def test_a_line_that_is_no_charge_is_left_out_and_said_with_its_number(read, changes, words):
    extract = read(table(line(), line(**changes), line(ResourceId="i-2")))
    assert [c.resource_id for c in extract.charges] == ["i-1", "i-2"]
    assert (extract.rows, extract.rows_rejected) == (3, 1)
    (found,) = (f for f in extract.findings if f.code == "CL232")
    assert (found.file, found.line, found.severity) == ("bill.csv", 3, "error")
    assert words in found.message


def test_lines_of_other_lengths_are_refused(read):
    text = table(line()) + "1,2\n" + table(line(ResourceId="i-3")).splitlines()[1] + ",more\n"
    extract = read(text)
    assert [f.line for f in extract.findings] == [3, 4]
    assert "fewer cells" in extract.findings[0].message
    assert "more cells" in extract.findings[1].message


def test_missing_mandatory_columns_are_named_once(read):
    row = {k: v for k, v in line().items() if k not in {"ChargeClass", "ProviderName", "PublisherName"}}
    del row["InvoiceIssuerName"]
    extract = read(table(row))
    assert codes(extract) == ["CL230"]
    assert "ChargeClass, ServiceProviderName" in extract.findings[0].message
    assert len(extract.charges) == 1


@pytest.mark.parametrize("column", ["ChargePeriodStart", "ChargePeriodEnd", "BillingCurrency"])
def test_a_bill_without_a_column_no_charge_can_do_without_is_refused(read, column):
    with pytest.raises(InputFileError, match=f"lacks {column}"):
        read(table(line(**{column: None})))


def test_a_bill_without_any_cost_or_with_a_column_twice_is_refused(read):
    with pytest.raises(InputFileError, match="any of the four costs"):
        read(table(line(**dict.fromkeys(COSTS))))
    with pytest.raises(InputFileError, match="'ListCost' twice"):
        read(table({**line(), "listcost": "1"}))


@pytest.mark.parametrize(
    "content", [gzip.compress(table(line()).encode())[:-9], b"\x1f\x8bno", b'BilledCost,"']
)
def test_a_damaged_file_is_refused(read, content):
    with pytest.raises(InputFileError):
        read(content)


def test_a_line_that_is_there_twice_counts_once_and_says_what_that_is_worth(read):
    extract = read(table(line(), line(), line(AvailabilityZone="a")))
    assert len(extract.charges) == 2
    assert extract.rows_repeated == 1
    (found,) = extract.findings
    assert (found.code, found.line) == ("CL231", 3)
    assert "repeats line 2 in every cell (12.30 USD)" in found.message


@pytest.mark.parametrize(
    ("unit", "joules"), [("kWh", 9_000_000), ("MWh", 9_000_000_000), ("Hours", None), ("", None)]
)
def test_a_quantity_of_energy_is_in_joules_too(read, unit, joules):
    (charge,) = read(table(line(ConsumedQuantity="2.5", ConsumedUnit=unit))).charges
    assert charge.energy_j == joules


def test_a_second_header_is_no_line(read):
    text = table(line())
    assert read(text + text.splitlines()[0] + "\n\n").rows == 1


def test_custom_and_allocated_columns_become_tags_where_small(read):
    extract = read(
        table(
            line(
                x_Cluster="a",
                x_Blob="y" * 300,
                AllocatedResourceId="pod-1",
                AllocatedTags='{"team": "shared", "ns": "n1"}',
            )
        )
    )
    (charge,) = extract.charges
    assert charge.tags["x_Cluster"] == "a"
    assert "x_Blob" not in charge.tags
    assert charge.tags["AllocatedResourceId"] == "pod-1"
    assert (charge.tags["team"], charge.tags["ns"]) == ("vision", "n1")
    assert codes(extract) == ["CL235"]


def test_tags_without_braces_are_read_and_broken_ones_are_said(read):
    (charge,) = read(table(line(Tags='"a":"b","n":2'))).charges
    assert charge.tags == {"a": "b", "n": "2"}
    extract = read(table(line(Tags="a=b"), line(Tags='{"a": {"b": 1}}', ResourceId="i-2")))
    assert [c.tags for c in extract.charges] == [{}, {}]
    assert codes(extract) == ["CL233"]
    assert "2 lines" in extract.findings[0].message


def test_words_that_the_format_does_not_have_are_unknown(read):
    extract = read(
        table(line(ChargeCategory="Rebate", CommitmentDiscountStatus="Half", ChargeClass="Correction"))
    )
    (charge,) = extract.charges
    assert (charge.category, charge.commitment_status, charge.correction) == (None, None, True)
    assert codes(extract) == ["CL238", "CL238"]


amounts = st.decimals(-(10**12), 10**12, places=9, allow_nan=False)


@given(st.lists(amounts, min_size=1, max_size=20), st.integers(1, 19))
def test_overlapping_files_give_each_line_one_id(tmp_path_factory, costs, cut):
    folder = tmp_path_factory.mktemp("bills")
    rows = [line(BilledCost=f"{c:f}", ResourceId=f"i-{n}") for n, c in enumerate(costs)]
    (folder / "a.csv").write_text(table(*rows), "utf-8")
    (folder / "b.csv").write_text(table(*rows[:cut]), "utf-8")
    whole, part = (read_any(IMPORTER, folder / name).charges for name in ("a.csv", "b.csv"))
    assert {c.charge_id for c in part} <= {c.charge_id for c in whole}
    assert len({c.charge_id for c in whole}) == len(costs)
    assert sum(c.billed.amount for c in whole) == sum(costs)


@given(st.binary(max_size=300))
def test_any_bytes_are_claimed_or_not_and_read_or_refused(tmp_path_factory, content):
    file = tmp_path_factory.mktemp("bills") / "bill.csv"
    file.write_bytes(content)
    claimed(IMPORTER, file)
    for head in (b"", table(line()).encode()):
        file.write_bytes(head + content)
        try:
            extract = read_any(IMPORTER, file)
        except InputFileError:
            continue
        assert extract.rows == len(extract.charges) + extract.rows_rejected + extract.rows_repeated


def test_mandatory_columns_are_columns_of_the_plain_line():
    assert set(MANDATORY) <= set(PLAIN)


INVOICE = (
    "BilledCost,BillingAccountId,BillingCurrency,BillingPeriodEnd,BillingPeriodStart,ChargeCategory,"
    "InvoiceDetailId,InvoiceDetailGrain,InvoiceId,InvoiceIssueDate,InvoiceIssuerName,PaymentCurrency\n"
    "120.50,a-1,USD,2026-05-01,2026-04-01,Usage,d-1,Service,inv-1,2026-05-03,Cloud,USD\n"
)
COMMITMENT = (
    "BillingCurrency,ContractCommitmentId,ContractCommitmentCost,ContractCommitmentPeriodStart,ContractId\n"
    "USD,c-1,100000,2026-01-01,k-1\n"
)


@pytest.mark.parametrize(
    ("content", "name", "mend"),
    [
        (INVOICE, "invoice detail", "invoices.csv"),
        (INVOICE.lower(), "invoice detail", "invoices.csv"),
        # A column more does not make charges of it, nor one less.
        (INVOICE.replace("PaymentCurrency\n", "ChargePeriodStart\n"), "invoice detail", "cost and usage"),
        (INVOICE.replace("InvoiceDetailGrain,", "Grain,"), "invoice detail", "cost and usage"),
        (COMMITMENT, "contract commitment", "cost and usage"),
    ],
)
def test_the_other_data_sets_are_refused_by_their_names(read, tmp_path, content, name, mend):
    with pytest.raises(InputFileError, match=f"is the {name} data set") as error:
        read(content)
    assert mend in error.value.mend


def test_a_line_of_cost_and_usage_may_name_the_detail_of_its_invoice(read):
    found = read(table(line(InvoiceDetailId="d-1")))
    assert found.charges
