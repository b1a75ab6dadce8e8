"""How an import's result is printed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal

import msgspec

from carbonlens.app.importing_charges import CostTotals
from carbonlens.app.importing_totals import FileResult, ImportResult, Totals
from carbonlens.cli import output, profile_view
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import J_PER_KWH
from carbonlens.reporting import format as fmt

_MOST_FILES = 8
_MOST_REFUSED = 20
_MOST_ASIDE = 3
_PATH_WIDTH = 40


def print_as_json(result: ImportResult) -> None:
    """Print the versioned JSON shape."""
    output.print_json(
        {
            "schema": "carbonlens/import/1",
            "ledger": result.ledger,
            "totals": _totals_json(result.totals),
            "files": [_file_json(f) for f in result.files],
        }
    )


def print_as_text(result: ImportResult) -> None:
    """Print what was saved, then what to look at: a line a file, or of many files one a format."""
    if 1 < len(result.files) <= _MOST_FILES:
        names = _told_apart([f.path for f in result.files], _PATH_WIDTH)
        rows = [_row(f, names[f.path]) for f in result.files]
        lines = output.table(["file", "status", "runs", "energy", "reported", "findings"], rows, left=2)
    else:
        lines = _by_format(result) if len(result.files) > 1 else []
    for line in lines:
        output.say(line)
    if len(result.files) > _MOST_FILES:
        _print_refused(result)
    for file in result.files[:_MOST_FILES]:
        if file.operators:
            for line in profile_view.lines(file.path, file.operators):
                output.say(line)
    output.say_words(_summary(result))
    for line in cost_lines(result.totals.cost or {}):
        output.say_words(line)
    for currency, amount in (result.totals.cost_stated or {}).items():
        output.say_words(f"{currency}: stated by runs {_money(amount)}")
    listed = len(result.files) > _MOST_FILES
    findings = [x for f in result.files if not (listed and f.status == "refused") for x in f.findings]
    _print_aside([x for x in findings if x.code == "CL294"])
    output.print_findings(findings)


def _print_aside(findings: Sequence[Finding]) -> None:
    """Say which options stand on no run, though that is a note: whoever gave them waits for what they do."""
    for finding in findings[:_MOST_ASIDE]:
        for line in output.wrap(f"{finding.file}: {finding.message}", output.width(), cut=False):
            output.note(line)
    if len(findings) > _MOST_ASIDE:
        left = counted(len(findings) - _MOST_ASIDE, "more such note")
        output.note(f"... and {left} (--json lists all)")


def _row(file: FileResult, name: str) -> list[str]:
    totals = file.totals
    noted = str(_noted([file]))
    if totals.readings:
        return [name, file.status, counted(totals.readings, "reading"), "-", "-", noted]
    if totals.charges:
        return [name, file.status, counted(totals.charges, "charge"), _billed(totals), "-", noted]
    if totals.profile is not None:
        return [name, file.status, "profile", "-", "-", noted]
    return [name, file.status, str(totals.runs), _energy(totals), _reported(totals), noted]


def _by_format(result: ImportResult) -> list[str]:
    """Return a table with a line a format, and the sums over all."""
    groups: dict[str, list[FileResult]] = {}
    for file in result.files:
        key = "refused" if file.status == "refused" else file.format or "refused"
        groups.setdefault(key, []).append(file)
    rows = [_format_row(name, files) for name, files in sorted(groups.items()) if name != "refused"]
    if "refused" in groups:
        rows.append(["(refused)", str(len(groups["refused"])), "-", "-", "-", str(_noted(groups["refused"]))])
    whole = result.totals
    noted = str(_noted(result.files))
    rows.append(
        [
            "all",
            str(len(result.files)),
            str(whole.runs),
            _kwh(whole),
            _number(whole.emissions_reported_kg),
            noted,
        ]
    )
    return output.table(["format", "files", "runs", "kWh", "reported kg", "findings"], rows)


def _format_row(name: str, files: Sequence[FileResult]) -> list[str]:
    runs = sum(f.totals.runs for f in files)
    with_runs = [f.totals for f in files if f.totals.runs]
    known = [t.energy_known_kwh for t in with_runs if t.energy_known_kwh is not None]
    whole = all(t.energy_kwh is not None for t in with_runs)
    kg = [t.emissions_reported_kg for t in with_runs if t.emissions_reported_kg is not None]
    energy = ("" if whole else "at least ") + _number(math.fsum(known)) if known else "-"
    return [
        name,
        str(len(files)),
        str(runs),
        energy,
        _number(math.fsum(kg)) if kg else "-",
        str(_noted(files)),
    ]


def _print_refused(result: ImportResult) -> None:
    """Name the files that were refused, and why."""
    refused = [f for f in result.files if f.status == "refused"]
    # The end of a path names its file, where no other one that was read ends like it.
    ends = Counter(_end_of(f.path, _PATH_WIDTH) for f in result.files) if refused else Counter()
    for file in refused[:_MOST_REFUSED]:
        # The first one is what it was refused for.
        error = next((x for x in file.findings if x.severity == "error"), None)
        why = _unsaid(file) if error is None else error.message
        mend = f" ({error.mend})" if error is not None and error.mend else ""
        if why.startswith("is of no known format"):
            why, mend = "is of no known format", ""
        if output.columns(f"refused {file.path} {why}{mend}") <= output.width():
            output.say(f"refused {output.clean(file.path)} {why}{mend}")
            continue
        end = _end_of(file.path, _PATH_WIDTH)
        name = end if ends[end] == 1 else output.clean(file.path)
        # A path that is needed whole can be copied.
        for line in output.wrap(f"refused {name} {why}{mend}", output.width(), cut=name == end):
            output.say(line)
    if len(refused) > _MOST_REFUSED:
        left = counted(len(refused) - _MOST_REFUSED, "more refused file")
        output.say(f"... and {left} (--json lists all, with the reason)")


def _unsaid(file: FileResult) -> str:
    if file.part_of is not None:
        return f"is read with {file.part_of}, of which nothing can be used"
    return "nothing of it can be used"


def _told_apart(paths: Sequence[str], width: int) -> dict[str, str]:
    """Return paths in at most so many columns; whole, where two would read alike even so.

    They are cut at their begin, and those that end alike in their middle: from where they differ on.
    """
    names = {path: _end_of(path, width) for path in paths}
    for end in [name for name, count in Counter(names.values()).items() if count > 1]:
        alike = [path for path, name in names.items() if name == end]
        folder = _folder_of_all(alike)
        names |= {path: _without_middle(path, folder, width) for path in alike}
    counts = Counter(names.values())
    return {path: name if counts[name] == 1 else output.clean(path) for path, name in names.items()}


def _folder_of_all(paths: Sequence[str]) -> str:
    """Return the folders that paths begin with alike, with the stroke behind them."""
    first, last = min(paths), max(paths)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[: first.rfind("/", 0, same) + 1]


def _without_middle(path: str, folder: str, width: int) -> str:
    """Return a path in at most so many columns: what comes after a folder, and its end."""
    rest = output.clean(f"…/{path.removeprefix(folder)}" if folder else path)
    if output.columns(rest) <= width:
        return rest
    start = output.clip(rest, width // 2)
    return start + _end_of(rest, width - output.columns(start) + 1).removeprefix("…")


def _end_of(path: str, width: int) -> str:
    """Return a path in at most so many columns, cut at its begin."""
    plain = output.clean(path)
    while output.columns(plain) > width:
        plain = f"…{plain[2 if plain.startswith('…') else 1 :][output.columns(plain) - width :]}"
    return plain


def _noted(files: Sequence[FileResult]) -> int:
    return sum(x.severity != "info" for f in files for x in f.findings)


def _kwh(totals: Totals) -> str:
    if totals.energy_kwh is not None:
        return _number(totals.energy_kwh)
    return "-" if totals.energy_known_kwh is None else f"at least {_number(totals.energy_known_kwh)}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _reported(totals: Totals) -> str:
    return "-" if totals.emissions_reported_kg is None else f"{totals.emissions_reported_kg:.4g} kg"


def _file_json(file: FileResult) -> dict[str, object]:
    shape: dict[str, object] = {
        "path": file.path,
        "format": file.format,
        "status": file.status,
        "totals": _totals_json(file.totals),
        "findings": file.findings,
    }
    if file.part_of is not None:
        shape["part_of"] = file.part_of
    if file.operators:
        shape["operators"] = profile_view.as_json(file.operators)
    return shape


def _summary(result: ImportResult) -> str:
    totals = result.totals
    rejected = f", {counted(totals.rows_rejected, 'row')} rejected" if totals.rows_rejected else ""
    held = f", {counted(totals.runs_known, 'run')} known already" if totals.runs_known else ""
    anew = f" ({totals.runs_replaced} in place of earlier records)" if totals.runs_replaced else ""
    saved = [f"{counted(totals.runs, 'run')}{anew}, {_energy(totals)}"] if totals.runs else []
    if totals.charges:
        saved.append(counted(totals.charges, "charge"))
    if totals.readings:
        saved.append(counted(totals.readings, "meter reading"))
    if not saved and any(f.operators for f in result.files):
        return f"nothing to save: a profile holds times, and makes no run{rejected}"
    if not saved:
        return f"nothing new to save{held}{rejected}"
    return f"saved {', '.join(saved)}{held}{rejected}, in {result.ledger}"


def cost_lines(costs: Mapping[str, CostTotals]) -> list[str]:
    """Return a line a currency, each cost with its basis: they are never added."""
    lines = []
    for currency, cost in costs.items():
        parts = (
            ("cash (billed)", cost.billed),
            ("accrual (effective)", cost.effective),
            ("list", cost.list_cost),
            ("contracted", cost.contracted),
        )
        told = "; ".join(f"{name} {_money(amount)}" for name, amount in parts)
        lines.append(f"{currency}: {told}")
    return lines


def _energy(totals: Totals) -> str:
    if totals.energy_kwh is None and totals.energy_known_kwh is not None:
        known = fmt.energy(Estimate(value=totals.energy_known_kwh * J_PER_KWH, unit="J")).text
        return f"at least {known}"
    if totals.energy_kwh is None:
        return "energy unknown" if totals.runs else "-"
    return fmt.energy(Estimate(value=totals.energy_kwh * J_PER_KWH, unit="J")).text


def _billed(totals: Totals) -> str:
    return ", ".join(f"{_money(c.billed)} {currency}" for currency, c in (totals.cost or {}).items())


def _money(amount: Decimal | None) -> str:
    if amount is None:
        return "unknown"
    # Less than a cent is shown by its first digits, never as 0.00.
    small = 0 < abs(amount) < Decimal("0.01")
    return f"{amount:.2g}" if small else f"{amount:.2f}"


def costs_json(costs: Mapping[str, CostTotals]) -> dict[str, dict[str, msgspec.Raw | None]]:
    """Return the four costs by currency as JSON numbers of all their digits."""
    return {
        currency: {
            "billed": money(c.billed),
            "effective": money(c.effective),
            "list": money(c.list_cost),
            "contracted": money(c.contracted),
        }
        for currency, c in costs.items()
    }


def money(amount: Decimal | None) -> msgspec.Raw | None:
    """Return an amount as a JSON number of all its digits; ``null`` where it is unknown."""
    return None if amount is None else msgspec.Raw(f"{amount:f}".encode())


def _totals_json(totals: Totals) -> dict[str, object]:
    """Return totals; those of bills, readings, traces and such only where there are any."""
    shape = {name: getattr(totals, name) for name in totals.__struct_fields__}
    counts = ("charges", "readings", "runs_known", "runs_replaced")
    for name in (*counts, "cost", "cost_stated", "samples", "mean_power_w", "profile"):
        if not shape[name]:
            del shape[name]
    if totals.energy_kwh is not None or totals.energy_known_kwh is None:
        del shape["energy_known_kwh"]
    if totals.cost is not None:
        shape["cost"] = costs_json(totals.cost)
    if totals.cost_stated is not None:
        shape["cost_stated"] = {currency: money(a) for currency, a in totals.cost_stated.items()}
    return shape
