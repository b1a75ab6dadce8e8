"""From entries of a file to records, with every fault of every entry."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, Generic, Literal, TypeVar, get_args, get_origin

import msgspec

from carbonlens.domain.decoding import convert
from carbonlens.domain.money import Money
from carbonlens.inventory import csv_entries, toml_entries
from carbonlens.inventory.faults import Fault, shown
from carbonlens.inventory.toml_entries import INVALID, Entry
from carbonlens.inventory.values import Rule, plain

T = TypeVar("T", bound=msgspec.Struct)

_NUMBERS: Final = frozenset({int, float, Decimal, Money})

Problem = tuple[str, str, str]
"""Key, what is wrong, and the mend."""


class Kind(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """How one kind of record stands in its file.

    Attributes:
        name: Stem of the file: ``sites``.
        table: Its blocks in TOML: ``[[site]]``.
        type: The record.
        id_field: Field that names it, written as ``id``; ``None`` for records without a name.
        formats: Suffixes of the files.
        rules: Field to what its value must fulfil.
        left_out: Fields that no file states.
        renamed: Key to the field it is.
        columns: Columns of a CSV beside the record's fields.
        shape: Turns keys into fields where they differ; works in place, and yields what is wrong.
        check: Yields what is wrong between fields of one record.
    """

    name: str
    table: str
    type: type[T]
    id_field: str | None = None
    formats: tuple[str, ...] = (".toml",)
    rules: Mapping[str, Rule] = {}  # a frozen record's default is never mutated
    left_out: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = {}  # likewise
    columns: tuple[str, ...] = ()
    shape: Callable[[dict[str, Any]], Iterator[Problem]] | None = None
    check: Callable[[T], Iterator[Problem]] | None = None

    @property
    def keys(self) -> dict[str, str]:
        """Key of a file to the field it is."""
        fields = [f for f in self.type.__struct_fields__ if f not in self.left_out]
        keys = {"id" if f == self.id_field else f: f for f in fields}
        for key, field in self.renamed.items():
            keys.pop(field, None)
            keys[key] = field
        return keys


def read(kind: Kind[T], text: str, file: str, faults: list[Fault]) -> list[tuple[T, Entry]]:
    """Return the records of one file, each with the entry it was made of.

    Args:
        kind: What the file holds.
        text: Its content.
        file: Its name; the suffix tells the format.
        faults: Takes what is wrong; an entry with a fault gives no record.
    """
    is_csv = file.endswith(".csv")
    found = _csv(kind, text, file, faults) if is_csv else toml_entries.entries(text, file, kind.table, faults)
    records = ((build(kind, entry, faults, is_text=is_csv), entry) for entry in found)
    return [(record, entry) for record, entry in records if record is not None]


def build(kind: Kind[T], entry: Entry, faults: list[Fault], *, is_text: bool = False) -> T | None:
    """Return the record of an entry; ``None`` if it has a fault.

    Args:
        kind: What it is.
        entry: Keys and values.
        faults: Takes what is wrong.
        is_text: Whether its values are the cells of a CSV.
    """
    before = len(faults)
    keys, known = kind.keys, {f.name: f for f in msgspec.structs.fields(kind.type)}
    values = dict(entry.values)
    if kind.shape is not None:
        faults.extend(entry.fault(what, mend, key) for key, what, mend in kind.shape(values))
    written = {field: key for key, field in keys.items()}
    fields: dict[str, Any] = {}
    for key, value in values.items():
        if value is INVALID:
            continue
        if key not in keys:
            faults.append(toml_entries.unknown_key(entry, key, list(keys)))
            continue
        field = known[keys[key]]
        converted = _converted(value, field.type, kind.rules.get(field.name), is_text=is_text)
        if isinstance(converted, _Wrong):
            what = converted.what or f"is {shown(value)}"
            faults.append(entry.fault(f"{key} {what}", converted.mend, key))
        else:
            fields[field.name] = converted
    for name, field in known.items():
        if field.required and written.get(name) not in values:
            faults.append(entry.fault(f"lacks {written[name]!r}", f"add {written[name]}"))
    if len(faults) > before or any(f.required and name not in fields for name, f in known.items()):
        return None
    record = kind.type(**fields)
    if kind.check is not None:
        faults.extend(entry.fault(what, mend, key) for key, what, mend in kind.check(record))
    return record if len(faults) == before else None


class _Wrong(msgspec.Struct, frozen=True):
    mend: str
    what: str = ""


def _converted(value: Any, type_: Any, rule: Rule | None, *, is_text: bool) -> Any:  # noqa: ANN401  # of any field
    try:
        converted = convert(_cell(value, type_) if is_text else value, type_)
    except msgspec.ValidationError as error:
        return _Wrong(_mend(type_), _told(str(error), value))
    wrong = plain(converted)
    if wrong is None and rule is not None and converted is not None:
        wrong = rule(converted)
    return converted if wrong is None else _Wrong(wrong)


def _mend(type_: Any) -> str:  # noqa: ANN401  # of any field
    """Return how to mend a value of a wrong kind; where few words are right, these."""
    words = [w for t in (type_, *get_args(type_)) if get_origin(t) is Literal for w in get_args(t)]
    return f"write one of {', '.join(words)}" if words else "write a value of that kind"


def _told(text: str, value: object) -> str:
    """Return a conversion error as the rest of a sentence that begins with the key."""
    what, _, place = text.partition(" - at `$")
    inside = re.sub(r"^\.|`$", "", place)
    within = f" at {inside}" if inside else ""
    return f"is {shown(value)}{within}: {what[0].lower()}{what[1:]}"


def _cell(value: Any, type_: Any) -> Any:  # noqa: ANN401  # of any field
    """Return a cell's text as the value its field takes."""
    if not isinstance(value, str):
        return value
    kinds = {type_, *get_args(type_)}
    if kinds & {float, Decimal}:
        return Decimal(value)
    if int in kinds:
        return int(value) if value.lstrip("+-").isdigit() else value
    return value.split() if get_origin(type_) is tuple else value


def _csv(kind: Kind[T], text: str, file: str, faults: list[Fault]) -> list[Entry]:
    known = {f.name: f.type for f in msgspec.structs.fields(kind.type)}
    keys = kind.keys
    numbers = [k for k, f in keys.items() if _NUMBERS & {known[f], *get_args(known[f])}]
    columns = [*keys, *kind.columns]
    aliases = {} if kind.id_field is None else {kind.id_field: "id"}
    return csv_entries.entries(text, file, faults, columns=columns, numbers=numbers, aliases=aliases)
