"""From the records of all files to one inventory: in one order, joined, and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, starmap
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from carbonlens.domain.finding import Finding
from carbonlens.domain.inventory import Inventory, ReportingTerms
from carbonlens.inventory import (
    certificate_hours_file,
    check_assets,
    check_certificates,
    check_rates,
    check_readings,
    check_sites,
    check_tariffs,
    readings,
    services_file,
)
from carbonlens.inventory.certificate_hours_file import Hour
from carbonlens.inventory.faults import Fault, shown
from carbonlens.inventory.readings_file import Rows
from carbonlens.inventory.records import Kind
from carbonlens.inventory.toml_entries import Entry

_CHECKS: Final[tuple[Callable[[Inventory], Iterator[Finding]], ...]] = (
    check_sites.check,
    check_readings.check,
    check_certificates.check,
    check_assets.check,
    check_tariffs.check,
)
_MAY_REPEAT: Final = frozenset({"certificates"})
"""An id claimed twice is a matter of the market (CL373), and no slip of a pen."""


class Parts:
    """What the files of a folder gave, file by file."""

    def __init__(self) -> None:
        self.terms = ReportingTerms()
        self.readings: list[Rows] = []
        self.hours: list[Hour] = []
        self.uses: list[services_file.Row] = []
        self.strangers: dict[str, str] = {}
        self._records: dict[str, list[Any]] = {}
        self._places: dict[tuple[str, str], tuple[str, int]] = {}

    def add(self, kind: Kind[Any], found: Iterable[tuple[Any, Entry]], faults: list[Fault]) -> int:
        """Take the records of one file, and return how many they are.

        Args:
            kind: What they are.
            found: Each with its entry.
            faults: Takes names that two of them have.
        """
        count = 0
        held = self._records.setdefault(kind.name, [])
        for record, entry in found:
            count += 1
            name = name_of(kind.name, record)
            earlier = self._places.get((kind.name, name))
            if earlier is not None and kind.id_field and kind.name not in _MAY_REPEAT:
                file, line = earlier
                what = f"id {shown(name)} is that of {file}:{line} too"
                faults.append(entry.fault(what, "give each its own", "id"))
                continue
            self._places[kind.name, name] = min(earlier or (entry.file, entry.line), (entry.file, entry.line))
            if kind.name == "certificates" and record.source is None:
                record = replace(record, source=entry.file)  # noqa: PLW2901  # the same record, with its file
            held.append(record)
        return count

    def of(self, name: str) -> tuple[Any, ...]:
        """Return the records of one kind, each once, in an order that no file decides."""
        held = self._records.get(name, [])
        once = {msgspec.json.encode(r): r for r in held}
        return tuple(sorted(once.values(), key=lambda r: (name_of(name, r), msgspec.json.encode(r))))

    @property
    def places(self) -> dict[tuple[str, str], tuple[str, int]]:
        """File and line of each record, by kind and name."""
        uses = {
            ("service_uses", f"{row.service} {row.month} {row.consumer}"): (entry.file, entry.line)
            for row, entry in reversed(self.uses)
        }
        return self._places | uses

    def placed(self, finding: Finding) -> Finding:
        """Return the finding with the file and line of the record it is about."""
        found = self._places.get((Path(finding.file or "").stem, finding.subject or ""))
        if finding.line is not None or found is None:
            return finding
        return replace(finding, file=found[0], line=found[1] or None)


def name_of(kind: str, record: Any) -> str:  # noqa: ANN401  # of any kind
    """Return what a record of a kind is called in Findings."""
    names: Mapping[str, Callable[[Any], str]] = {
        "deliveries": lambda r: str(r.team),
        "exchange_rates": check_rates.rate_name,
        "price_index": lambda r: f"{r.currency} {r.year}",
    }
    if kind in names:
        return names[kind](record)
    # The first field of the others is their id.
    return str(getattr(record, record.__struct_fields__[0]))


def assembled(parts: Parts, faults: list[Fault]) -> Inventory:
    """Return the inventory, with the Findings of every check.

    Args:
        parts: What the files gave.
        faults: Takes what only the files together show.
    """
    meters = parts.of("meters")
    counted, findings = readings.joined(parts.readings, meters, faults)
    rates, doubtful = check_rates.settled(parts.of("exchange_rates"))
    indices, unsettled = check_rates.settled_indices(parts.of("price_index"))
    inventory = Inventory(
        terms=parts.terms,
        sites=parts.of("sites"),
        meters=meters,
        readings=counted,
        certificates=check_certificates.uniquely_claimed(
            certificate_hours_file.joined(parts.of("certificates"), parts.hours, faults)
        ),
        assets=parts.of("assets"),
        initiatives=parts.of("initiatives"),
        deliveries=parts.of("deliveries"),
        tariffs=parts.of("tariffs"),
        prices=parts.of("prices"),
        exchange_rates=rates,
        price_indices=indices,
        expenses=parts.of("expenses"),
        invoices=parts.of("invoices"),
        services=services_file.joined(parts.of("services"), parts.uses, faults),
    )
    every = chain(
        starmap(_stranger, parts.strangers.items()),
        findings,
        doubtful,
        unsettled,
        *(check(inventory) for check in _CHECKS),
    )
    placed = sorted(map(parts.placed, every), key=_order)
    return replace(inventory, findings=tuple(placed))


def _stranger(name: str, mend: str) -> Finding:
    return Finding(
        code="CL360",
        severity="warning",
        message=f"{name} is none of the inventory's files, and is not read",
        file=name,
        subject=name,
        mend=mend,
    )


def _order(finding: Finding) -> tuple[str, int, str, str, str]:
    return finding.file or "", finding.line or 0, finding.code, finding.subject or "", finding.message
