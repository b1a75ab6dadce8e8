"""What feeds the stated inputs of a family of golden cases to the package.

None of the adaptors does arithmetic of its own beyond units and sums of what the package
returns, and the package knows of none of them.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from importlib import resources

import pytest

from carbonlens.accounting import conversions as units
from carbonlens.accounting import formulas, power
from carbonlens.accounting.amortisation import embodied_share_kg, hours_kg, life_hours, rate_per_hour
from carbonlens.accounting.base_year import Change, recalculation
from carbonlens.accounting.boundaries import Overheads, energies
from carbonlens.accounting.demand import Demand, Period, Rest
from carbonlens.accounting.embodied import server_share_kg
from carbonlens.accounting.embodied_range import embodied_range
from carbonlens.accounting.focus_identity import cost_identity
from carbonlens.accounting.hourly_matching import hourly_kg, hourly_match, load_weighted_rate, unweighted_kg
from carbonlens.accounting.market_based import market_based
from carbonlens.accounting.pedigree import sd95
from carbonlens.accounting.propagation import exactly, through
from carbonlens.accounting.sci import Component, EmbodiedShare, FunctionalUnit, Intensity, combined, sci
from carbonlens.accounting.sci_ai import sci_ai
from carbonlens.accounting.water import water
from carbonlens.compare.break_even import break_even
from carbonlens.domain.certificate import CRITERIA, Certificate
from carbonlens.domain.charge import Charge
from carbonlens.domain.estimate import Estimate, add
from carbonlens.domain.money import Money
from carbonlens.factors.table_file import read_csv


def kg_of(kwh, pue, kg_per_kwh):
    return formulas.emissions_kg(formulas.facility_kwh(kwh, pue), kg_per_kwh)


def parts(values, unit):
    return add([exactly(v, unit) for v in values], unit).value


def patterson2021(x):
    device = power.energy_of_power_kwh(x["avg_system_power_w"], x["chips"] * x["days"] * 24)
    kwh = formulas.facility_kwh(device, x["pue"])
    return {
        "energy_mwh": units.kwh_to_mwh(kwh),
        "gross_tco2e": units.kg_to_tonne(formulas.emissions_kg(kwh, x["gross_kg_per_kwh"])),
        "net_tco2e": units.kg_to_tonne(formulas.emissions_kg(kwh, x["net_kg_per_kwh"])),
    }


def bloom(x):
    if "parts_t" in x:
        total = parts(x["parts_t"].values(), "t")
        return {"total_t": total, **{f"share_{k}": v / total for k, v in x["parts_t"].items()}}
    kwh = x.get("energy_kwh", x.get("idle_kwh"))
    if kwh is None:
        kwh = power.energy_of_power_kwh(x["gpu_kw"] * 1000, x["gpu_hours"])
    facility = formulas.facility_kwh(kwh, x.get("pue", 1.0))
    kg = formulas.emissions_kg(facility, units.g_per_kwh_to_kg_per_kwh(x["g_per_kwh"]))
    return {
        "energy_kwh": facility,
        "energy_mwh": units.kwh_to_mwh(facility),
        "tco2e": units.kg_to_tonne(kg),
    }


def model_card(x):
    if "parts" in x:
        return {"total": parts(x["parts"], "t")}
    if "total_mwh" in x:
        return {
            "tco2e": units.kg_to_tonne(
                formulas.emissions_kg(units.mwh_to_kwh(x["total_mwh"]), x["kg_per_kwh"])
            )
        }
    kwh = power.energy_of_power_kwh(x["gpu_w"], x["gpu_hours"])
    pue = x.get("pue", x.get("implied_pue", 1.0))
    rate = x.get("kg_per_kwh", x.get("implied_kg_per_kwh", x.get("implied_factor_kg_per_kwh")))
    facility = formulas.facility_kwh(kwh, pue)
    return {
        "energy_mwh": units.kwh_to_mwh(facility),
        "tco2e": units.kg_to_tonne(formulas.emissions_kg(facility, rate)),
        # All of its electricity is matched by certificates: a blend of zero-rated ones.
        "market_based_t": matched_in_full(facility),
    }


def matched_in_full(kwh):
    demand = Demand(
        entity="e",
        market="m",
        period=Period(name="2024", months=("2024-01",)),
        kwh=exactly(kwh, "kWh"),
        rest=Rest(residual=exactly(0.5, "kg/kWh")),
    )
    blend = market_based([demand], [certificate(Decimal(repr(kwh)) / 1000)]).blends[0]
    return units.kg_to_tonne(blend.emissions_kg.value)


def certificate(mwh, **fields):
    met = dict.fromkeys(CRITERIA, True)
    given = {"certificate_id": "c", "kind": "certificate", "entity": "e", "market": "m", "period": "2024"}
    given["value_kg_per_kwh"] = Decimal(0)
    return Certificate(**{**given, "energy_mwh": mwh, "retired": "2025-01-31", "criteria": met, **fields})


def strubell2019(x):
    if "gpus" in x:
        hours = x["gpus"] * x["hours"]
        return {
            "low": formulas.machine_cost(hours, x["usd_low"]),
            "high": formulas.machine_cost(hours, x["usd_high"]),
        }
    kwh = formulas.facility_kwh(power.energy_of_power_kwh(x["power_w"], x["hours"]), x["pue"])
    kg = formulas.emissions_kg(kwh, units.lb_per_kwh_to_kg_per_kwh(x["lb_per_kwh"]))
    return {"kwh_pue": kwh, "co2e_lb": kg / units.lb_to_kg(1.0)}


def gemini2025(x):
    if "wue_l_per_kwh" in x:
        around = Overheads(pue=exactly(x["pue"]))
        energy = energies(
            exactly(units.kwh_to_j(units.wh_to_kwh(x["wh"])), "J"), boundary="facility", around=around
        )
        return {"ml": water(energy, exactly(x["wue_l_per_kwh"], "L/kWh"), None).site_l.value * 1000}
    it = parts([x["accelerator_wh"], x["host_wh"], x["idle_wh"]], "Wh")
    total = parts([it, x["overhead_wh"]], "Wh")
    return {"total_wh": total, "pue": formulas.pue_of(total, it)}


def olmo(x):
    if "l_per_gpu" in x:
        rate = rate_per_hour(x["l_per_gpu"], life_hours(x["years"]))
        return {"l_per_gpu_h": rate, "total_kl": hours_kg(rate, x["gpu_hours"]) / 1000}
    if "t" in x:
        return {"t": parts(x["t"], "t"), "kl": parts(x["kl"], "kL")}
    effort = exactly(units.tonne_to_kg(x["train_t"]), "kg")
    each = exactly(units.g_per_kwh_to_kg_per_kwh(x["g_per_batch"]) / x["prompts_per_batch"], "kg")
    return {"inferences": break_even("carbon", effort, each, "inference").units.value}


def luccioni2025(x):
    return {"ratio": through(lambda a, b: a / b, exactly(x["max_wh"]), exactly(x["min_wh"]), unit="1").value}


UNIT = FunctionalUnit(name="request", plural="requests")


def component(kwh, g_per_kwh, *shares, stage=None):
    rate = exactly(units.g_per_kwh_to_kg_per_kwh(g_per_kwh), "kg/kWh")
    return Component(
        name="c",
        energy_kwh=exactly(kwh, "kWh"),
        intensity=Intensity(factor_id="grid", rate=rate),
        embodied=shares,
        stage=stage,
    )


def grams(kg):
    """Return a share whose whole is reserved: known embodied emissions."""
    return EmbodiedShare(total_kg=exactly(kg, "kg"), reserved_h=1, life_h=1)


def sci_case(x):
    if "te_kg" in x and "el_h" not in x:
        share = EmbodiedShare(
            total_kg=exactly(x["te_kg"], "kg"), reserved_h=x["hours"], life_h=life_hours(x["years"])
        )
        return {"g": units.kg_to_g(share.kg.value)}
    if "mem" in x:
        both = {
            k: EmbodiedShare(
                total_kg=exactly(x["te_kg"], "kg"),
                reserved_h=1,
                life_h=x["el_h"],
                reserved=x[k][0],
                available=x[k][1],
            )
            for k in ("mem", "cpu")
        }
        return {f"{k}_g": units.kg_to_g(share.kg.value) for k, share in both.items()}
    if "parts" in x:
        scores = [sci([component(0.0, 0.0, grams(g / 1000))], exactly(0.25), UNIT) for g in x["parts"]]
        return {"sci_g": combined(scores).score.value}
    share = grams(x["m_g"] / 1000) if "m_g" in x else None
    kwh = x.get("e_kwh")
    if kwh is None:
        kwh = power.energy_of_power_kwh(x["tdp_w"] * x["tdp_coeff"], x["hours"])
        share = EmbodiedShare(
            total_kg=exactly(x["te_kg"], "kg"),
            reserved_h=x["tir_h"],
            life_h=x["el_h"],
            reserved=x["rr"],
            available=x["tor"],
        )
    score = sci([component(kwh, x["g_per_kwh"], share)], exactly(1.0), UNIT)
    return {"e_kwh": kwh, "m_g": units.kg_to_g(share.kg.value), "sci_g": score.score.value}


def sci_ai_case(x):
    if "flops" in x:
        unit = FunctionalUnit(name="FLOP", plural="FLOP", per=1e15)
        made = [component(0.0, 0.0, grams(x["kg"]), stage="development")]
        score = sci_ai("provider", made, exactly(x["flops"]), unit)
        return {"g_per_1e15_flop": score.sci.score.value}
    unit = FunctionalUnit(name="inference", plural="inferences")
    used = [component(0.0, 0.0, grams(x["kg"]), stage="operation")]
    score = sci_ai("consumer", used, exactly(x["inferences"]), unit)
    return {"g_per_inference": score.sci.score.value}


def mlenergy(x):
    each = power.energy_per_piece_j(x["avg_power_w"], x["tok_per_s"])
    return {
        "j_per_token": each,
        "j_per_request": units.kwh_to_j(power.energy_of_pieces_kwh(each, x["avg_output_len"])),
        "avg_batch_size": power.in_flight(x["tok_per_s"], x["median_itl_ms"] / 1000),
    }


def mlperf_power(x):
    if "kj_ac" in x:
        seconds = x["minutes"] * 60
        ac, dc = x["kj_ac"] * 1000, x["kj_dc"] * 1000
        return {
            "mwh_ac": units.kwh_to_mwh(formulas.energy_kwh(ac)),
            "kw_avg_ac": power.average_power_w(ac, seconds) / 1000,
            "w_per_gpu_dc": power.average_power_w(dc, seconds) / x["accelerators"],
            "ac_dc_loss": power.loss_share(ac, dc),
        }
    return {
        "j_per_sample": power.energy_per_piece_j(x["system_power_w"], x["samples_per_s"]),
        "samples_per_j": power.pieces_per_j(x["system_power_w"], x["samples_per_s"]),
    }


def ccf(x):
    if "base" in x:
        return {
            "total_kg": parts(x.values(), "kg"),
            "gpu_kg_each": rate_per_hour(x["additional_gpus"], 8),
        }
    watts = power.power_at_utilisation_w(x["idle_w"], x["max_w"], x["util"])
    kwh = formulas.facility_kwh(power.energy_of_power_kwh(watts, x["gpus"] * x["hours"]), x["pue"])
    return {"avg_w": watts, "kwh": kwh, "kg": formulas.emissions_kg(kwh, x["kg_per_kwh"])}


def boavizta(x):
    table = resources.files("carbonlens.factors") / "data" / "embodied.csv"
    rows = read_csv(table.read_text("utf-8"), where="embodied.csv").rows
    wanted = x["name"].casefold().replace(" ", "")
    subjects = {r.subject for r in rows if r.name.casefold().replace(" ", "") == wanted}
    assert len(subjects) == 1, f"{x['name']} names {sorted(subjects)}"
    return {"embodied_kgco2e": embodied_range(rows, subjects.pop(), "boavizta").kg.value}


def ecologits(x):
    share = server_share_kg(x["gpu"], x["installed"], x["server_kg"], x["gpu_kg"])
    kg = embodied_share_kg(share, x["seconds"], x["life_s"], 1, x["batch"])
    return {"server_share_kg": share, "g_per_request": units.kg_to_g(kg)}


def conversions(x):
    return {
        name.replace("_lb_mwh", "_g_kwh"): units.kg_per_kwh_to_g_per_kwh(
            units.lb_per_mwh_to_kg_per_kwh(value)
        )
        for name, value in x.items()
    }


def gum(x):
    if "kwh" in x:
        given = {k: Estimate(value=v, unit=k, u_random=u) for k, (v, u) in x.items()}
        kg = through(kg_of, given["kwh"], given["pue"], given["kg_per_kwh"], unit="kg")
        return {"kg": kg.value, "u_rel": kg.u_total / kg.value, "u": kg.u_total, "U_k2": 2 * kg.u_total}
    before, after = (Estimate(value=v, unit="kWh", u_random=u) for v, u in (x["E0"], x["E1"]))
    value, u = x["ci"]
    shared = Estimate(value=value, unit="kg/kWh", u_by_source={"ci": u})
    saved = through(lambda a, b, ci: (a - b) * ci, before, after, shared, unit="kg", signed=True)
    each = [through(formulas.emissions_kg, e, shared, unit="kg") for e in (before, after)]
    assert each[0].minus(each[1]).u_total == pytest.approx(saved.u_total, rel=1e-12)
    alone = math.hypot(*(e.u_total for e in each))
    return {"saved_kg": saved.value, "u_correct": saved.u_total, "u_if_treated_independent": alone}


def pedigree(x):
    return {"sd95": sd95(x["basic"], x["scores"])}


def scope2(x):
    if "load_mwh" in x:
        load = {h: exactly(units.mwh_to_kwh(v), "kWh") for h, v in enumerate(x["load_mwh"])}
        clean = {h: Decimal(units.mwh_to_kwh(v)) for h, v in enumerate(x["contracted_clean_mwh"])}
        rate = exactly(units.t_per_mwh_to_kg_per_kwh(x["residual_t_per_mwh"]), "kg/kWh")
        match = hourly_match(load, clean, rate)
        return {
            "annual_matched_mwh": units.kwh_to_mwh(match.annual_matched_kwh.value),
            "annual_mb_t": units.kg_to_tonne(match.annual_kg.value),
            "hourly_matched_mwh": units.kwh_to_mwh(match.matched_kwh.value),
            "hourly_score": match.score.value,
            "hourly_mb_t": units.kg_to_tonne(match.hourly_kg.value),
        }
    rates = [units.g_per_kwh_to_kg_per_kwh(g) for g in x["g_per_kwh"]]
    return {
        "hourly_g": units.kg_to_g(hourly_kg(x["kwh"], rates)),
        "flat_mean_ci_g": units.kg_to_g(unweighted_kg(x["kwh"], rates)),
        "load_weighted_ci": units.kg_per_kwh_to_g_per_kwh(load_weighted_rate(x["kwh"], rates)),
    }


def baseyear(x):
    base = exactly(x["base_t"], "kg")
    changed = exactly(x["base_t"] * x["method_factor_change"], "kg")
    grown = exactly(x["base_t"] + x["organic_growth_t"], "kg")
    method = Change(reason="factor", detail="new factor", old_kg=base, new_kg=changed)
    organic = Change(reason="organic", detail="more work", old_kg=base, new_kg=grown)
    found = recalculation(2024, base, [method, organic], x["threshold"])
    growth = recalculation(2024, base, [organic], x["threshold"])
    return {
        "method_change": found.change,
        "recalculate": found.is_needed,
        "new_base_t": found.recalculated_kg.value,
        "organic_growth_triggers": growth.is_needed,
    }


def focus(x):
    bought = charge("purchase", x["purchase"])
    used = [charge("usage", line) for line in x["usage"]]
    bill = cost_identity([bought, *used])
    return {
        "sum_effective_usage": bill.effective_of_use.amount,
        "sum_billed_purchase": bill.covering_billed.amount,
        "billed_total": bill.billed.amount,
        "effective_total": bill.effective.amount,
        "list_double_counted": (bill.list_cost + bill.covering_list).amount,
        "list_excluding_covering_purchase": bill.list_cost.amount,
        "savings_vs_list": bill.savings.amount,
    }


def charge(category, line):
    money = {k: Money(Decimal(str(line[k])), "USD") for k in ("BilledCost", "EffectiveCost", "ListCost")}
    return Charge(
        charge_id=json.dumps(line),
        start_us=0,
        end_us=1,
        category=category,
        billed=money["BilledCost"],
        effective=money["EffectiveCost"],
        list_cost=money["ListCost"],
    )


ADAPTORS = {
    "patterson2021": patterson2021,
    "bloom": bloom,
    "llama1": model_card,
    "llama2": model_card,
    "llama3": model_card,
    "llama3.1": model_card,
    "llama3.2": model_card,
    "llama4": model_card,
    "strubell2019": strubell2019,
    "gemini2025": gemini2025,
    "olmo": olmo,
    "luccioni2025": luccioni2025,
    "sci": sci_case,
    "sci-ai": sci_ai_case,
    "mlenergy": mlenergy,
    "mlperf-power": mlperf_power,
    "ccf": ccf,
    "boavizta": boavizta,
    "ecologits": ecologits,
    "units": conversions,
    "gum": gum,
    "pedigree": pedigree,
    "scope2": scope2,
    "baseyear": baseyear,
    "focus": focus,
}
"""What feeds a family's inputs to the package; a family without one fails."""
