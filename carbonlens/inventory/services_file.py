"""``services.toml``: shared services; ``service_uses*.csv``: what their consumers used by month."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from carbonlens.domain.service import Service, Use
from carbonlens.inventory.faults import Fault, shown
from carbonlens.inventory.records import Kind, Problem, read
from carbonlens.inventory.toml_entries import Entry
from carbonlens.inventory.values import Rule, a_month, a_sigma, above_0, at_least_0, plain

PREFIX: Final = "service_uses"

_USE_KEYS: Final = Use.__struct_fields__
_COUNTED: Final = frozenset({"measured", "activity", "requests", "tokens"})


class UseRow(Use, frozen=True, kw_only=True):
    """A use in a file of its own, which names its service."""

    service: str


def _shape(values: dict[str, Any]) -> Iterator[Problem]:
    """Refuse what no use has."""
    uses = values.get("use")
    if isinstance(uses, list) and all(isinstance(u, dict) for u in uses):
        values["use"] = [{k: v for k, v in u.items() if k in _USE_KEYS} for u in uses]
        for key in sorted({k for u in uses for k in u} - set(_USE_KEYS)):
            yield "use", f"a use has the unknown key {key!r}", f"known are {', '.join(_USE_KEYS)}"


def _check(service: Service) -> Iterator[Problem]:
    if not service.tags and service.meter is None:
        yield "tags", "names neither tags nor a meter", "add tags of its runs, or the meter of its energy"
    for use in service.uses:
        yield from (("use", what, mend) for what, mend in _faults_of(use, service))
    places = [(u.month, u.consumer) for u in service.uses]
    for month, consumer in sorted({p for p in places if places.count(p) > 1}):
        yield "use", f"states {month} of {shown(consumer)} twice", "keep one of them"


def _faults_of(use: Use, service: Service) -> Iterator[tuple[str, str]]:
    name = f"{use.month} of {shown(use.consumer)}"
    rules: tuple[tuple[str, Any, Rule], ...] = (
        ("month", use.month, a_month),
        ("consumer", use.consumer, plain),
        ("count", use.count, at_least_0),
        ("request", use.request, at_least_0),
        ("u_relative", use.u_relative, a_sigma),
    )
    for key, value, rule in rules:
        wrong = None if value is None else plain(value) or rule(value)
        if wrong:
            yield f"{key} of {name} is {shown(value)}", wrong
    if use.request is not None and service.basis in _COUNTED:
        yield f"request of {name} is stated", "only the basis request_or_usage has it"


KIND: Final = Kind(
    name="services",
    table="service",
    type=Service,
    id_field="service_id",
    rules={"capacity": above_0},
    renamed={"use": "uses"},
    shape=_shape,
    check=_check,
)
"""How a service stands in its file."""

USES: Final = Kind(
    name="service_uses",
    table="use",
    type=UseRow,
    formats=(".csv",),
    rules={"month": a_month, "count": at_least_0, "request": at_least_0, "u_relative": a_sigma},
)
"""How a use stands in a CSV."""

Row = tuple[UseRow, Entry]
"""A use with its row."""


def read_uses(text: str, file: str, faults: list[Fault]) -> list[Row]:
    """Return the uses of one file.

    Args:
        text: Its content.
        file: Its name.
        faults: Takes what is wrong.
    """
    return read(USES, text, file, faults)


def joined(services: Sequence[Service], rows: Iterable[Row], faults: list[Fault]) -> tuple[Service, ...]:
    """Return the services with all their uses, in order of month and consumer.

    Args:
        services: As ``services.toml`` states them.
        rows: Of all files.
        faults: Takes uses of no service, and uses that are stated twice and differ.
    """
    known = {s.service_id: s for s in services}
    uses = {s.service_id: {(u.month, u.consumer): u for u in s.uses} for s in services}
    for row, entry in sorted(rows, key=lambda r: (r[1].file, r[1].line)):
        use = Use(**{key: getattr(row, key) for key in _USE_KEYS})
        if row.service not in known:
            mend = "write its id as services.toml has it"
            faults.append(entry.fault(f"names the service {shown(row.service)}, which is none", mend))
            continue
        for what, mend in _faults_of(use, known[row.service]):
            faults.append(entry.fault(what, mend))
        if uses[row.service].setdefault((use.month, use.consumer), use) != use:
            what = f"states {use.month} of {shown(use.consumer)} a second time with another figure"
            faults.append(entry.fault(what, "keep one of them"))
    return tuple(
        replace(s, uses=tuple(use for _, use in sorted(uses[s.service_id].items()))) for s in services
    )
