"""Where the ledger lies, and where carbonlens keeps state while a run lives."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from carbonlens.domain.patterns import later
from carbonlens.errors import ConfigError, UsageError

LEDGER_VARIABLE = "CARBONLENS_LEDGER"

ADDRESS: Final = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]+):/+(?P<rest>[^/].*)")
"""A ledger that is no folder, such as ``s3://bucket/ledger``; a path object leaves one slash of the two."""


_LOCAL_SCHEMES: Final = frozenset({"file", "local"})


_REMOTE: Final = frozenset(
    b"nfs nfs4 lustre gpfs beegfs cifs smb3 ceph afs panfs wekafs orangefs pvfs2 glusterfs fuse.glusterfs "
    b"fuse.sshfs fuse.ceph fuse.beegfs quobyte fuse.quobyte fuse.juicefs".split()
)
"""File systems whose files lie on other machines, as the kernel and FUSE name them."""

_SECTION: Final = "carbonlens"

_TOOL: Final = later(
    r"""^[ \t]*(\[{1,2}[ \t]*["']?tool["']?[ \t]*\.[ \t]*["']?carbonlens\b"""
    r"""|\[[ \t]*["']?tool["']?[ \t]*\]|["']?tool["']?[ \t]*[.=])""",
    re.MULTILINE,
)
"""How a line of a project's file begins where ``tool.carbonlens`` may be set: by a table of its own, in
one named ``tool``, or by a key before any table. Many files speak of carbonlens as what they depend on."""

_OCTAL: Final = re.compile(rb"\\([0-7]{3})")


def address_of(text: str | Path) -> str:
    """Return the address as fsspec wants it, both slashes back in place."""
    found = ADDRESS.fullmatch(str(text))
    if found is None:
        return str(text)
    slash = "/" if found["scheme"] in _LOCAL_SCHEMES else ""
    return f"{found['scheme']}://{slash}{found['rest']}".rstrip("/")


def is_address(place: str | Path) -> bool:
    """Tell an address, which the extra ``remote`` opens, from a folder."""
    return ADDRESS.fullmatch(str(place)) is not None


def locate(
    explicit: str | Path | None = None,
    *,
    start: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Path:
    """Return the ledger's folder, which need not exist yet, or its address as it was given.

    The first that is given wins: ``explicit``, the variable
    ``CARBONLENS_LEDGER``, ``[tool.carbonlens] ledger`` in the nearest
    ``pyproject.toml`` (relative to that file), ``./.carbonlens``.

    Args:
        explicit: The ``--ledger`` option.
        start: Folder to search from; the working directory when ``None``.
        environ: Environment; the process's own when ``None``.

    Raises:
        ConfigError: If the nearest ``pyproject.toml`` sets a ledger that is no
            text, or a ``~user`` has no home.
        UsageError: If ``explicit`` is empty.
    """
    if explicit == "":
        # As a path it would be the working folder; a shell variable that is not set gives it.
        raise UsageError("the path is empty", where="--ledger", mend="give a folder, or leave it out")
    if explicit is not None:
        return _whole(Path(explicit), "--ledger")
    variables = os.environ if environ is None else environ
    if variables.get(LEDGER_VARIABLE):
        return _whole(Path(variables[LEDGER_VARIABLE]), LEDGER_VARIABLE)
    here = (start or working_folder()).absolute()
    return from_pyproject(here, "ledger") or here / ".carbonlens"


def _whole(path: Path, where: str) -> Path:
    return path if is_address(path) else expanded(path, where).absolute()


def working_folder() -> Path:
    """Return the folder this process works in.

    Raises:
        ConfigError: If it is gone.
    """
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise ConfigError(
            "the working folder is gone", where=".", mend="change to another, or give --ledger"
        ) from error


def expanded(path: Path, where: str) -> Path:
    """Return the path with ``~`` written out.

    Args:
        path: As it was given.
        where: Option, variable or file that gave it.

    Raises:
        ConfigError: If a ``~user`` has no home.
    """
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{str(path)!r}: {error}", where=where, mend="write the path in full") from error


def from_pyproject(here: Path, key: str) -> Path | None:
    """Return the place that ``[tool.carbonlens]`` of the nearest ``pyproject.toml`` names.

    Args:
        here: Folder to search from.
        key: ``ledger``, ``inventory`` or ``factors``; a relative path is taken from the file's folder.

    Raises:
        ConfigError: If the value is no text, or empty, or a ``~user`` has no home.
    """
    for folder in (here, *here.parents):
        file = folder / "pyproject.toml"
        if not file.is_file():
            continue
        try:
            text = file.read_text("utf-8")
            tables = tables_of(text) if has_section(text) else {}
        except (OSError, ValueError, RecursionError):
            # Somebody's broken or private file must not stop a measurement.
            return None
        tool = tables.get("tool", {})
        section = tool.get("carbonlens", {}) if isinstance(tool, dict) else {}
        value = section.get(key) if isinstance(section, dict) else None
        if value is None:
            return None
        if not isinstance(value, str):
            raise ConfigError(
                f"[tool.carbonlens] {key} is not text", where=str(file), mend=f'write {key} = "path"'
            )
        if not value.strip():
            # As a path it would be the project's own folder.
            raise ConfigError(
                f"[tool.carbonlens] {key} is empty",
                where=str(file),
                mend=f'write {key} = "path", or leave it out',
            )
        return Path(value) if is_address(value) else folder / expanded(Path(value), str(file))
    return None


def has_section(text: str) -> bool:
    """Return whether a project's file may hold ``[tool.carbonlens]``; no where it cannot.

    One without is not parsed for nothing: that takes a tenth of what ``carbonlens run`` does.
    """
    return _SECTION in text and _TOOL.search(text) is not None


@lru_cache(maxsize=4)
def tables_of(text: str) -> Mapping[str, Any]:
    """Return the tables of a TOML text, to be read only: parsed once while the text is the same.

    Every run of a process asks for what the same files say.

    Raises:
        tomllib.TOMLDecodeError: If it is none.
        RecursionError: If it is nested too deeply.
    """
    import tomllib  # 2 ms that a run without such a file is spared

    return tomllib.loads(text)


def state_dir(environ: Mapping[str, str] | None = None) -> Path:
    """Return a writable folder of this user for journals and fallback records.

    Below a home directory it may be shared by several hosts, so what lies in it
    names its host.

    ``$XDG_STATE_HOME/carbonlens``, else ``~/.local/state/carbonlens``; where
    neither can be written, a folder of this user below the temporary one.
    """
    variables = os.environ if environ is None else environ
    candidates: list[Path] = []
    if variables.get("XDG_STATE_HOME"):
        candidates.append(Path(variables["XDG_STATE_HOME"]) / "carbonlens")
    if variables.get("HOME"):
        candidates.append(Path(variables["HOME"]) / ".local" / "state" / "carbonlens")
    for folder in candidates:
        if _usable(folder):
            return folder
    import tempfile

    # The name carries the user, so that two users of one host do not meet.
    fallback = Path(tempfile.gettempdir()) / f"carbonlens-{os.getuid()}"
    if _usable(fallback) and fallback.stat().st_uid == os.getuid():
        return fallback
    return Path(tempfile.mkdtemp(prefix="carbonlens-"))


def local_state_dir(
    environ: Mapping[str, str] | None = None,
    *,
    mounts: Path = Path("/proc/self/mountinfo"),
    fallback: Path = Path("/var/tmp"),  # noqa: S108  # made for this user alone, and checked to be theirs
) -> Path:
    """Return the folder for what is written while runs live: on this host's own disk.

    The state folder, unless it lies on a network file system, as the home directories of a
    cluster do: the ranks of a job would keep its servers busy with their journals. Then a
    folder of this user below ``/var/tmp``, which outlasts jobs and reboots. A folder named
    by ``XDG_STATE_HOME`` is taken as it is.

    Args:
        environ: Environment; the process's own when ``None``.
        mounts: Table of mounts (proc_pid_mountinfo(5)).
        fallback: Folder that is on this host's own disk.
    """
    variables = os.environ if environ is None else environ
    folder = state_dir(environ)
    if variables.get("XDG_STATE_HOME") or not _is_remote(folder, mounts):
        return folder
    local = fallback / f"carbonlens-{os.getuid()}"
    return local if _usable(local) and local.lstat().st_uid == os.getuid() else folder


def _is_remote(folder: Path, mounts: Path) -> bool:
    """Tell whether a folder lies on a network file system; no where the table does not tell."""
    try:
        path, lines = os.fsencode(folder.resolve()), mounts.read_bytes().splitlines()
    except OSError:
        return False
    longest, kind = -1, b""
    for line in lines:
        before, _, after = line.partition(b" - ")
        fields = before.split()
        point = (
            _OCTAL.sub(lambda m: bytes([int(m[1], 8)]), fields[4]).rstrip(b"/") if len(fields) > 4 else b"?"
        )
        # Of two at one place the later one hides the other.
        if len(point) >= longest and (path + b"/").startswith(point + b"/"):
            longest, kind = len(point), after.split(b" ", 1)[0]
    return kind in _REMOTE


def _usable(folder: Path) -> bool:
    if not os.path.isdir(folder):  # noqa: PTH112  # a run's start asks for it twice, and it is there
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            return False
    return os.access(folder, os.W_OK | os.X_OK)
