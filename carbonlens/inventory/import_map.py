"""The map file of an import (``map.toml``): what paths and projects belong to, what columns hold."""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from carbonlens.domain.import_map import ImportMap
from carbonlens.errors import ConfigError
from carbonlens.inventory import toml_file


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
    for number, table in enumerate(found.table, 1):
        if not table.columns:
            raise ConfigError(
                f"table {number} names no columns",
                where=str(path),
                mend='give columns = { energy_kwh = "..." }',
            )
    return found


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
