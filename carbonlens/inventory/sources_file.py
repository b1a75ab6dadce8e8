"""The sources file: meters and devices that a user declares, because no probe can find them.

Looked for in one order, and the first that is there is used alone:

1. the TOML file that the variable ``CARBONLENS_SOURCES`` names;
2. ``[tool.carbonlens.sources]`` in the nearest ``pyproject.toml``;
3. ``sources.toml`` in the configuration folder of this user
   (``$XDG_CONFIG_HOME/carbonlens``, else ``~/.config/carbonlens``).

The last is for what belongs to a machine whatever project runs on it. The ledger's
folder is none of these places: it may be shared by machines that have other meters.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from carbonlens.domain.decoding import convert
from carbonlens.domain.sources import DatasheetDevice, ExternalMeter, ManagementController, Sources
from carbonlens.errors import ConfigError
from carbonlens.ledger.location import has_section, tables_of
from carbonlens.ledger.regular_file import read_regular

if TYPE_CHECKING:
    from carbonlens.inventory.sources_check import Fault

VARIABLE: Final = "CARBONLENS_SOURCES"
FILE: Final = "sources.toml"
_TABLE: Final = ("tool", "carbonlens", "sources")
_MARK: Final = b"carbonlens"
_MOST_BYTES: Final = 256 * 1024
"""A hundred times what a file of many meters holds; more would delay the work it is read for."""

_MOST_SHOWN: Final = 160
"""Characters of an error that repeats what the file holds."""

_RECORDS: Final[dict[str, type[msgspec.Struct]]] = {
    "external": ExternalMeter,
    "datasheet": DatasheetDevice,
    "controller": ManagementController,
}
_LISTS: Final = ("external", "datasheet")


class Declared(NamedTuple):
    """What was declared, and the file it stands in; ``None`` where nothing was."""

    sources: Sources = Sources()
    file: Path | None = None


def find(start: Path, environ: Mapping[str, str] | None = None) -> Declared:
    """Return what is declared for work that runs in a folder.

    Args:
        start: Folder to search from.
        environ: Environment; the process's own when ``None``.

    Raises:
        ConfigError: If the file cannot be read or is malformed.
    """
    variables = os.environ if environ is None else environ
    if variables.get(VARIABLE):
        return load(_expanded(Path(variables[VARIABLE]), VARIABLE))
    # Looked for by texts: paths would be a part of what a run's start takes.
    folders = (str(start), *map(str, start.parents))
    found = next(filter(os.path.isfile, (os.path.join(d, "pyproject.toml") for d in folders)), None)  # noqa: PTH118  # see above
    if found is not None:
        project = Path(found)
        sources = _in_project(project)
        if sources is not None:
            return Declared(sources, project)
    mine = user_file(variables)
    return load(mine) if mine is not None and mine.is_file() else Declared()


def user_file(environ: Mapping[str, str]) -> Path | None:
    """Return where this user's own file would lie; ``None`` for a user without a home."""
    if environ.get("XDG_CONFIG_HOME"):
        return Path(environ["XDG_CONFIG_HOME"]) / "carbonlens" / FILE
    return Path(environ["HOME"]) / ".config" / "carbonlens" / FILE if environ.get("HOME") else None


def load(path: Path) -> Declared:
    """Read a file of its own, whose tables stand at the top.

    Raises:
        ConfigError: If it cannot be read or is malformed.
    """
    try:
        text = _text(path, read_regular(path, at_most=_MOST_BYTES))
    except OSError as error:
        raise ConfigError(
            f"cannot be read ({error.strerror or error})", where=str(path), mend="check the path"
        ) from error
    return Declared(_sources(_parsed(path, text), path, text), path)


def _in_project(path: Path) -> Sources | None:
    """Return the table of a project file; ``None`` where it has none.

    Somebody's private file, or a broken one that does not speak of carbonlens, is no
    concern of ours. It is not parsed for nothing, either: that takes milliseconds.
    """
    try:
        data = read_regular(path, at_most=_MOST_BYTES)
    except OSError:
        return None
    if _MARK not in data:
        return None
    text = _text(path, data)
    if not has_section(text):
        return None
    table: object = _parsed(path, text)
    for name in _TABLE:
        table = table.get(name) if isinstance(table, dict) else None
    return None if table is None else _sources(table, path, text)


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError("is not UTF-8 text", where=str(path), mend="save it as UTF-8") from error


def _parsed(path: Path, text: str) -> Mapping[str, Any]:
    try:
        return tables_of(text)
    except ValueError as error:  # as TOMLDecodeError is
        raise ConfigError(f"is not valid TOML: {error}", where=str(path), mend="mend that line") from error
    except RecursionError as error:
        raise ConfigError("is nested too deeply", where=str(path), mend="write plain tables") from error


def _sources(table: object, path: Path, text: str) -> Sources:
    from carbonlens.inventory.sources_check import check

    def fault(what: str, mend: str, key: str = "") -> ConfigError:
        shown = what if len(what) <= _MOST_SHOWN else f"{what[: _MOST_SHOWN - 1]}…"
        return ConfigError(shown, where=place_of(path, text, key), mend=mend)

    if not isinstance(table, dict):
        raise fault("sources is no table", "write [tool.carbonlens.sources]", "sources")
    _refuse_unknown(table, Sources, fault)
    for name, kind in _RECORDS.items():
        for entry in _entries(table, name, fault):
            _refuse_unknown(entry, kind, fault)
    try:
        sources = convert(table, Sources, strict=True)
    except msgspec.ValidationError as error:
        raise _typed(str(error), fault) from error
    check(sources, fault)
    return _placed(sources, path.absolute().parent)


def _entries(table: Mapping[str, Any], name: str, fault: Fault) -> Sequence[Mapping[str, Any]]:
    value = table.get(name)
    if value is None:
        return ()
    entries = value if name in _LISTS else [value]
    if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        written = f"[[{name}]]" if name in _LISTS else f"[{name}]"
        raise fault(f"{name} is no table", f"begin each with a line {written}", name)
    return entries


def _refuse_unknown(table: Mapping[str, Any], kind: type[msgspec.Struct], fault: Fault) -> None:
    from carbonlens.inventory.sources_check import nearest

    known = [field.name for field in msgspec.structs.fields(kind)]
    for key in table:
        if key not in known:
            raise fault(f"unknown key '{key}'", nearest(key, known), key)


def _typed(text: str, fault: Fault) -> ConfigError:
    """Return the error of a value of a wrong type, or of a key that is missing."""
    what, _, place = text.partition(" - at `$.")
    key = place.rstrip("`")
    missing = re.search(r"missing required field `(\w+)`", what)
    if missing is not None:
        return fault(f"{key or 'the table'} lacks '{missing[1]}'", f"add {missing[1]} = ...", _first(key))
    return fault(f"{key}: {what[0].lower()}{what[1:]}", "write a value of that kind", key.rpartition(".")[2])


def _first(key: str) -> str:
    return key.partition("[")[0].partition(".")[0]


def place_of(path: Path, text: str, key: str) -> str:
    """Return the file, with the line of a key where it can be told.

    Args:
        path: The file.
        text: What it holds.
        key: The key, or the name of a table.
    """
    written = re.compile(
        rf"^\s*(?:\[+.*?\b{re.escape(key)}\s*\]|[\"']?{re.escape(key)}[\"']?\s*=|.*[{{,]\s*{re.escape(key)}\s*=)"
    )
    begun = path.name != "pyproject.toml"
    for number, line in enumerate(text.splitlines() if key else (), start=1):
        begun = begun or ("carbonlens" in line and line.lstrip().startswith("["))
        if begun and written.match(line):
            return f"{path}:{number}"
    return str(path)


def _placed(sources: Sources, folder: Path) -> Sources:
    """Return the sources with paths that stand in the file taken from the file's folder."""

    def placed(text: str) -> str:
        return str(folder / _expanded(Path(text), str(folder)))

    def command(words: tuple[str, ...]) -> tuple[str, ...]:
        return (placed(words[0]), *words[1:]) if words and "/" in words[0] else words

    replace = msgspec.structs.replace
    external = tuple(
        replace(m, command=command(m.command), pipe=None if m.pipe is None else placed(m.pipe))
        for m in sources.external
    )
    controller = sources.controller
    if controller is not None and controller.ca_file is not None:
        controller = replace(controller, ca_file=placed(controller.ca_file))
    return replace(sources, external=external, controller=controller)


def _expanded(path: Path, where: str) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{str(path)!r}: {error}", where=where, mend="write the path in full") from error
