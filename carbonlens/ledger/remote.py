"""A ledger behind an address (``s3://bucket/ledger``): whole objects, read and written by fsspec.

An object store has no rename, and needs none: an object appears whole. What is
written has a name no other writer uses, and is put only where the name is free;
where it is taken, the contents are compared. Work happens in a local copy:
changed files are put first, and only then are objects removed.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from carbonlens.errors import CarbonlensError, MissingExtraError, RecordError, UnwritableError
from carbonlens.ledger import layout

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_OBJECT_STORES: Final = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oci", "oss"})
"""Have no folders: making one there would make a bucket."""

_ATTEMPTS: Final = 5
"""How often a ledger is listed again when objects go away while they are fetched."""

_BOTO: Final = {"config_kwargs": {"connect_timeout": 10, "read_timeout": 30, "retries": {"max_attempts": 2}}}
_PATIENCE: Final[Mapping[str, Mapping[str, object]]] = {"s3": _BOTO, "s3a": _BOTO}
"""Options by scheme: a minute and five attempts, as is usual, look like a hang."""


@contextmanager
def working_copy(address: str, *, fetch: bool = True) -> Iterator[Path]:
    """Yield a local copy of a ledger; what changed in it is put back at the end.

    Where the work raises, nothing is put back.

    Args:
        address: Such as ``s3://bucket/ledger``.
        fetch: False for work that only adds: nothing is read then.

    Raises:
        MissingExtraError: If fsspec or the address's own package is not installed.
        RecordError: If it cannot be read, or another record has a new one's name.
        UnwritableError: If it cannot be written.
    """
    files, root = _file_system(address)
    with tempfile.TemporaryDirectory(prefix="carbonlens-") as folder:
        copy = Path(folder)
        before = _fetch(files, root, copy, address) if fetch else {}
        yield copy
        _put_back(files, root, copy, before, address)


def _file_system(address: str) -> tuple[AbstractFileSystem, str]:
    try:
        import fsspec
    except ImportError as error:
        raise MissingExtraError("remote", "fsspec") from error
    try:
        files, root = fsspec.core.url_to_fs(address, **_PATIENCE.get(address.partition(":")[0], {}))
    except ImportError as error:
        raise MissingExtraError("remote", f"the package for {address.partition(':')[0]}") from error
    except ValueError as error:
        raise UnwritableError(
            f"no file system for it ({error})", where=address, mend="write s3://bucket/folder"
        ) from error
    # Listings are cached by default; another host's records must be seen.
    files.use_listings_cache = False
    return files, str(root).rstrip("/")


def _fetch(files: AbstractFileSystem, root: str, copy: Path, address: str) -> dict[str, str]:
    """Copy the ledger here and return the hash of each file by its name.

    Again where another host's compaction takes objects away meanwhile: a part would pass for the whole.
    """
    for _ in range(_ATTEMPTS):
        try:
            files.invalidate_cache()
            names = _listed(files, root, address)
            _copy(files, root, copy, names)
        except FileNotFoundError:
            continue
        except CarbonlensError:
            raise
        except Exception as error:  # Each file system raises a family of errors of its own.
            raise _unreadable(address, error) from error
        return _hashes(copy)
    raise RecordError("objects go away while they are read", where=address, mend="run the command again")


def _listed(files: AbstractFileSystem, root: str, address: str) -> list[str]:
    try:
        names = [str(n)[len(root) + 1 :] for n in files.find(root)]
    except FileNotFoundError as error:
        _refuse_missing_bucket(files, root, address, error)
        return []
    return [n for n in names if not any(part.startswith(".") for part in n.split("/"))]


def _copy(files: AbstractFileSystem, root: str, copy: Path, names: Sequence[str]) -> None:
    """Fetch objects, and leave nothing else in the copy."""
    for name in _hashes(copy).keys() - set(names):
        (copy / name).unlink()
    for name in names:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
    if names:
        files.get([f"{root}/{n}" for n in names], [str(copy / n) for n in names])


def _refuse_missing_bucket(
    files: AbstractFileSystem, root: str, address: str, error: FileNotFoundError
) -> None:
    """Tell a ledger without records, which is fine, from a bucket that is not there."""
    if not _OBJECT_STORES.intersection(_protocols(files)):
        return
    bucket = root.partition("/")[0]
    try:
        there = files.exists(bucket)
    except Exception as fault:  # Each file system raises a family of errors of its own.
        raise _unreadable(address, fault) from fault
    if not there:
        raise RecordError(
            f"there is no bucket {bucket!r}", where=address, mend="check its name, or make it"
        ) from error


def _unreadable(address: str, error: Exception) -> RecordError:
    return RecordError(f"the ledger cannot be read ({_reason(error)})", where=address, mend=_mend(error))


def _mend(error: Exception) -> str:
    """Return what to do about an error that a file system raised, as far as its words tell."""
    text = f"{type(error).__name__} {error}".lower()
    if "timeout" in text or "timed out" in text or "connect" in text:
        return "check the network, and the endpoint (for S3: AWS_ENDPOINT_URL); then run it again"
    if "credential" in text or "forbidden" in text or "access denied" in text or "accessdenied" in text:
        return "check the credentials (for S3: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or AWS_PROFILE)"
    if "bucket" in text:
        return "check the bucket's name, or make it; and the credentials"
    return "check the address, the credentials and the network, then run it again"


def _put_back(
    files: AbstractFileSystem, root: str, copy: Path, before: Mapping[str, str], address: str
) -> None:
    after = _hashes(copy)
    try:
        # Cut off anywhere, what is there names nothing that is not, and takes nothing that proves it.
        for name in sorted(after, key=_order):
            if not _OBJECT_STORES.intersection(_protocols(files)):
                files.makedirs(f"{root}/{name}".rpartition("/")[0], exist_ok=True)
            if name not in before:
                _put_new(files, f"{root}/{name}", (copy / name).read_bytes())
            elif after[name] != before[name]:
                files.pipe_file(f"{root}/{name}", (copy / name).read_bytes())
        _remove(files, [f"{root}/{n}" for n in before if n not in after])
    except CarbonlensError:
        raise
    except Exception as error:  # Each file system raises a family of errors of its own.
        raise UnwritableError(
            f"the ledger cannot be written ({_reason(error)})",
            where=address,
            mend=_mend(error),
        ) from error


def _remove(files: AbstractFileSystem, names: Sequence[str]) -> None:
    """Remove objects; another host's compaction may have removed some meanwhile."""
    try:
        if names:
            files.rm(list(names))
    except FileNotFoundError:
        for name in names:
            with suppress(FileNotFoundError):
                files.rm(name)


def _order(name: str) -> tuple[bool, bool, bool, str]:
    """Return a key that puts files before what names or needs them.

    Tombstones and outcomes come first: a record that was changed without its tombstone is altered
    for ever, as nothing is left to redact. Then content, manifests, and marks of what they replace.
    """
    is_needed = name.partition("/")[0] in {layout.REDACTIONS, layout.OUTCOMES}
    return not is_needed, name.endswith(layout.RETIRED), name.endswith(".json"), name


def _protocols(files: AbstractFileSystem) -> tuple[str, ...]:
    own = files.protocol
    return (own,) if isinstance(own, str) else tuple(own)


def _put_new(files: AbstractFileSystem, name: str, content: bytes) -> None:
    try:
        try:
            files.pipe_file(name, content, mode="create")
        except (NotImplementedError, TypeError):
            # A file system that cannot say "only if absent": looking first is the best there is.
            if files.exists(name):
                raise FileExistsError(name) from None
            files.pipe_file(name, content)
    except FileExistsError as error:
        if bytes(files.cat_file(name)) == content:
            return
        raise RecordError(
            "another host wrote a different object of this name", where=name, mend="run the command again"
        ) from error


def _hashes(copy: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for file in sorted(copy.rglob("*")):
        place = file.relative_to(copy)
        if file.is_file() and not any(part.startswith(".") for part in place.parts):
            with file.open("rb") as stream:
                found[place.as_posix()] = hashlib.file_digest(stream, "sha256").hexdigest()
    return found


def _reason(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
