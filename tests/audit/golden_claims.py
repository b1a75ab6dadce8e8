"""Golden cases as claims: what each input and output of a family is, and nothing else."""

from __future__ import annotations

from decimal import Decimal

from carbonlens.domain.claim import Claim, Stated, stated


def _n(value, unit=None):
    return None if value is None else stated(str(value), unit)


def _round(value, unit=None):
    """Return a number whose trailing zeros are no digits: 833000.0 was printed as 833k."""
    return stated(Decimal(str(value)).normalize(), unit)


def patterson(case, cases):
    i, o = case["inputs"], case["outputs"]
    days = _n(i["days"])
    return (
        Claim(
            what=case["id"],
            hours=Stated(value=days.value * 24, half=days.half * 24),
            device_hours=False,
            devices=_n(i["chips"]),
            watts=_n(i["avg_system_power_w"]),
            pue=_n(i["pue"]),
            energy=_n(o["energy_mwh"], "MWh"),
            boundary="facility",
            factor=_n(i["gross_kg_per_kwh"], "kg/kWh"),
            emissions=_n(o["gross_tco2e"], "t"),
        ),
    )


def bloom(case, cases):
    i, o = case["inputs"], case["outputs"]
    if "parts_t" in i:
        parts = tuple(Claim(what=k, emissions=_n(v, "t")) for k, v in i["parts_t"].items())
        return (Claim(what="total", emissions=_n(o["total_t"], "t"), parts=parts, region="FR"),)
    return (
        Claim(
            what=case["id"],
            hours=_n(i.get("gpu_hours")),
            watts=_n(400 if "gpu_kw" in i else None),
            energy=_n(i.get("energy_kwh", i.get("idle_kwh", o.get("energy_kwh"))), "kWh"),
            boundary="device",
            pue=_n(i.get("pue")),
            factor=_n(i["g_per_kwh"], "g/kWh"),
            emissions=_n(o["tco2e"], "t"),
        ),
    )


def llama(case, cases):
    i, o = case["inputs"], case["outputs"]
    if case["id"] == "llama2/total-row":
        parts = tuple(
            Claim(what=f"row {n}", emissions=_n(t, "t"), hours=_n(h), region="US")
            for n, (t, h) in enumerate(zip(i["visible_rows_t"], i["visible_hours"], strict=True))
        )
        total = Claim(what="total", emissions=_n(o["total_t"], "t"), hours=_n(o["total_hours"]), region="US")
        return (Claim(**{**{f: getattr(total, f) for f in Claim.__struct_fields__}, "parts": parts}),)
    if "logit_h" in i:
        parts = (
            Claim(what="training", hours=_round(i["training_h"])),
            Claim(what="logits", hours=_round(i["logit_h"])),
        )
        return (Claim(what="cumulative", hours=_round(o["stated_cumulative_h"]), parts=parts),)
    if "parts" in i:
        parts = tuple(Claim(what=f"row {n}", emissions=_n(t, "t")) for n, t in enumerate(i["parts"]))
        return (Claim(what="total", emissions=_n(o["total"], "t"), parts=parts, region="US"),)
    factor = i.get("kg_per_kwh", i.get("implied_kg_per_kwh", i.get("implied_factor_kg_per_kwh")))
    energy = o.get("energy_mwh", i.get("total_mwh"))
    return (
        Claim(
            what=case["id"],
            hours=_n(None if "gpu_hours" not in i else _round(i["gpu_hours"]).value),
            watts=_n(i.get("gpu_w")),
            hardware="H100" if i.get("gpu_w") == 700 else "A100",
            pue=_n(i.get("pue", i.get("implied_pue"))),
            energy=_n(energy, "MWh"),
            boundary="facility" if energy is not None else None,
            factor=_n(factor, "kg/kWh"),
            emissions=_n(o["tco2e"], "t"),
        ),
    )


def strubell(case, cases):
    i, o = case["inputs"], case["outputs"]
    if "power_w" not in i:
        return ()
    return (
        Claim(
            what=case["id"],
            hours=_n(i["hours"]),
            device_hours=False,
            watts=_n(i["power_w"]),
            pue=_n(i["pue"]),
            energy=_n(o["kwh_pue"], "kWh"),
            boundary="facility",
            factor=_n(i["lb_per_kwh"], "lb/kWh"),
            emissions=_n(o["co2e_lb"], "lb"),
        ),
    )


def gemini(case, cases):
    i, o = case["inputs"], case["outputs"]
    if "lb_g_per_kwh" in i:
        factor, emitted = _n(i["lb_g_per_kwh"], "g/kWh"), _n(o["g"], "g")
        return (Claim(what="prompt", energy=_n(i["wh"], "Wh"), factor=factor, emissions=emitted),)
    if "wue_l_per_kwh" in i:
        water = _n(o["ml"])
        litres = Stated(value=water.value / 1000, unit="L", half=water.half / 1000)
        energy, pue, wue = _n(i["wh"], "Wh"), _n(i["pue"]), _n(i["wue_l_per_kwh"])
        return (Claim(what="prompt", energy=energy, boundary="facility", pue=pue, wue=wue, water=litres),)
    return ()


def olmo(case, cases):
    i, o = case["inputs"], case["outputs"]
    if "t" in i:
        parts = tuple(
            Claim(what=f"row {n}", emissions=_n(t, "t"), water=_n(kl, "kL"), region="US")
            for n, (t, kl) in enumerate(zip(i["t"], i["kl"], strict=True))
        )
        return (
            Claim(what="total", emissions=_n(o["t"], "t"), water=_n(o["kl"], "kL"), parts=parts, region="US"),
        )
    if "mwh" not in i:
        return ()
    kilolitres = _n(o["water_kl"])
    common = {"what": case["id"], "energy": _n(i["mwh"], "MWh"), "pue": _n(i["pue"])}
    factor, emitted = _n(i["kg_per_kwh"], "kg/kWh"), _n(o["tco2e"], "t")
    return (Claim(**common, factor=factor, emissions=emitted, region="US"),) if kilolitres else ()


def luccioni(case, cases):
    """Take the hours, power and factor that the 7B run has in its own paper (LLaMA, table 15)."""
    if case["id"] != "luccioni2025/llama-7b-row":
        return ()
    i, own = case["inputs"], cases["llama1/llama-7b"]["inputs"]
    return (
        Claim(
            what=case["id"],
            hours=_n(own["gpu_hours"]),
            watts=_n(own["gpu_w"]),
            pue=_n(own["pue"]),
            factor=_n(own["kg_per_kwh"], "kg/kWh"),
            energy=_n(i["stated_mwh"], "MWh"),
            boundary="facility",
            emissions=_n(i["stated_t"], "t"),
        ),
    )


def card(case, cases):
    i, o = case["inputs"], case["outputs"]
    energy, factor = _n(i["mwh"], "MWh"), _n(i["g_per_kwh"], "g/kWh")
    return (Claim(what="gpt3", energy=energy, factor=factor, emissions=_round(o["kg"], "kg")),)


def sci_ai(case, cases):
    i, o = case["inputs"], case["outputs"]
    if "params_b" in i:
        return tuple(
            Claim(
                what=name,
                emissions=_n(i["kg"], "kg"),
                units=_n(i["params_b"]),
                per_unit=_n(each, "kg"),
                region="x",
            )
            for name, each in o.items()
        )
    if "inferences" in i:
        each = _n(o["g_per_inference"], "g")
        return (
            Claim(
                what="vision",
                emissions=_n(i["kg"], "kg"),
                units=_n(i["inferences"]),
                per_unit=each,
                region="x",
            ),
        )
    return ()


def ccf(case, cases):
    i, o = case["inputs"], case["outputs"]
    if "gpus" not in i:
        return ()
    # The energy has the PUE in it; a card's watts are printed in full.
    return (
        Claim(
            what="p4d",
            hours=_n(i["hours"] * i["gpus"]),
            watts=_n(o["avg_w"]),
            pue=_n(i["pue"]),
            energy=_n(o["kwh"], "kWh"),
            boundary="facility",
            factor=_n(i["kg_per_kwh"], "kg/kWh"),
            emissions=_n(o["kg"], "kg"),
        ),
    )


FAMILIES = {
    "patterson2021": patterson,
    "bloom": bloom,
    "llama1": llama,
    "llama2": llama,
    "llama3": llama,
    "llama3.1": llama,
    "llama3.2": llama,
    "llama4": llama,
    "strubell2019": strubell,
    "gemini2025": gemini,
    "olmo": olmo,
    "luccioni2025": luccioni,
    "climate-awareness-nlp": card,
    "sci-ai": sci_ai,
    "ccf": ccf,
}


def claims_of(case, cases):
    """Return a golden case as claims; none for a family that states no such thing."""
    family = case["id"].partition("/")[0]
    return FAMILIES[family](case, cases) if family in FAMILIES else ()
