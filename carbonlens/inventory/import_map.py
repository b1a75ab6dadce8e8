"""The map file of an import (``map.toml``): what paths and projects belong to, what columns hold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from carbonlens.domain.import_map import ImportMap, PlaceRule
from carbonlens.domain.limits import LEAST_UNITS, MOST
from carbonlens.errors import ConfigError
from carbonlens.inventory import toml_file

NO_TAGS: Final[Mapping[str, str]] = {
    **{name: f"give --{name}, or {name} in a [[place]] of --map" for name in ("study", "step", "role")},
    **{name: f"give --{name}, or {name} in a [[place]] of --map" for name in ("units", "site")},
    "zone": "give zone in a [[place]] of --map, or a --site that has one",
}
"""Names of fields that runs have, and what to give instead of a tag of that name.

Not ``unit``: in companies that is a part of the business, too, and runs are asked for by such a tag.
"""

_PLACES: Final = ("team", "site", "zone", "host")


def load(path: Path) -> ImportMap:
    """Read a map: ``[[place]]`` and ``[[table]]`` entries.

    Raises:
        InputFileError: If the file cannot be read.
        ConfigError: If it is malformed, or names no time zone where it should.
    """
    found = toml_file.convert(toml_file.read(path), ImportMap, where=str(path))
    for number, rule in enumerate(found.place, 1):
        if rule.tz is not None and not _is_zone(rule.tz):
            raise ConfigError(
                f"place {number}: no time zone is named {rule.tz!r}",
                where=str(path),
                mend="give an IANA name, such as Europe/Paris",
            )
        _check(number, rule, path)
    for number, table in enumerate(found.table, 1):
        if not table.columns:
            raise ConfigError(
                f"table {number} names no columns",
                where=str(path),
                mend='give columns = { energy_kwh = "..." }',
            )
        _check_names(f"table {number}", {"study": table.study, "unit": table.unit}, path)
    return found


def _check(number: int, rule: PlaceRule, path: Path) -> None:
    """Refuse what no run can bear.

    Raises:
        ConfigError: If a tag is meant for a field, a name is empty, or the units are no number of a record.
    """
    wrong = next((name for name in rule.tags if name in NO_TAGS), None)
    if wrong is not None:
        what = f"place {number}: {wrong} is a field of a run, and no tag"
        raise ConfigError(what, where=str(path), mend=f"give {wrong} = ... in the [[place]] itself")
    # An empty team or site keeps a later place from giving one.
    places = {name: text for name in _PLACES if (text := getattr(rule, name))}
    _check_names(f"place {number}", {**places, **rule.told}, path)
    if rule.units is not None and not (rule.units.is_finite() and LEAST_UNITS <= rule.units < MOST):
        what = f"place {number}: units = {rule.units} is no number that a record holds"
        raise ConfigError(what, where=str(path), mend="give how many units each run did")


def _check_names(whose: str, names: Mapping[str, object], path: Path) -> None:
    empty = next((name for name, text in names.items() if isinstance(text, str) and not text.strip()), None)
    if empty is not None:
        what = f"{whose}: {empty} is empty"
        raise ConfigError(what, where=str(path), mend="give a name, or leave it out")


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
