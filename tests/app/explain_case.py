"""A rich ledger over the example inventory: meters, bills, cloud, hardware, services, a study."""

from __future__ import annotations

from pathlib import Path

from carbonlens.app.explain_known import Options
from carbonlens.app.inventory import write_example

PERIOD = "2026Q1"

RUNS = """run_id,study,step,energy_j,units,start_utc,duration_s,site,boundary,energy_grade,hardware
a1,rank,baseline,36000000,1000,2026-03-02T08:00:00Z,7200,berlin,device,B,gpu
a2,rank,baseline,38000000,1000,2026-03-02T20:00:00Z,7200,berlin,device,B,gpu
a3,rank,int8,20000000,1000,2026-03-03T08:00:00Z,3600,berlin,device,B,gpu
a4,rank,int8,21000000,1000,2026-03-03T20:00:00Z,3600,berlin,device,B,gpu
c1,train,base,90000000,1,2026-03-04T00:00:00Z,36000,aws-dublin,it,C,p5.48xlarge
c2,train,base,90000000,1,2026-01-04T00:00:00Z,36000,aws-dublin,it,C,p5.48xlarge
f1,eval,base,50000000,1,2026-02-04T00:00:00Z,36000,frankfurt,facility,A,
"""
_TIMES = "2026-03-01T00:00:00Z,2026-04-01T00:00:00Z"
BILL = f"""BillingAccountId,BillingPeriodStart,BillingPeriodEnd,ChargePeriodStart,ChargePeriodEnd,\
BilledCost,EffectiveCost,ListCost,ContractedCost,BillingCurrency,ChargeCategory,ProviderName,InvoiceId,\
ServiceName,ResourceId,RegionId,SkuId,ConsumedQuantity,ConsumedUnit
acct,{_TIMES},2026-03-04T00:00:00Z,2026-03-04T10:00:00Z,800,800,900,800,USD,Usage,AWS,inv-1,EC2,i-1,eu-west-1,sku1,10,Hours
acct,{_TIMES},2026-03-05T00:00:00Z,2026-03-05T10:00:00Z,30,30,30,30,USD,Usage,AWS,inv-1,EBS,vol-1,eu-west-1,sku2,10,GB
"""
ASSUMPTIONS = """
[place]
zone = "DE"
year = 2025

[facility]
pue = 1.2
source = "test"

[electricity]
id = "power"
amount_per_kwh = "0.25"
currency = "EUR"
period = "2026"
source = "test contract"
"""


def write(folder: Path) -> None:
    """Write the example inventory, ``runs.csv``, ``bill.csv`` and ``assumptions.toml`` into a folder."""
    write_example(folder / "inventory")
    (folder / "runs.csv").write_text(RUNS)
    (folder / "bill.csv").write_text(BILL)
    (folder / "assumptions.toml").write_text(ASSUMPTIONS)


def options(folder: Path, **changed: object) -> Options:
    """Return where to look in such a folder."""
    given = {"ledger": folder / ".carbonlens", "inventory": folder / "inventory", **changed}
    return Options(**given)  # type: ignore[arg-type]  # callers give fields of Options, each of its type
