"""A ledger behind an address (``s3://bucket/ledger``): whole objects, read and written by fsspec.

An object store has no rename, and needs none: an object appears whole. What is
written has a name no other writer uses, and is put only where the name is free;
where it is taken, the contents are compared. Work happens in a local copy:
changed files are put first, and only then are objects removed.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from carbonlens.errors import CarbonlensError, MissingExtraError, RecordError, UnwritableError
from carbonlens.ledger.location import ADDRESS

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_OBJECT_STORES: Final = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oci", "oss"})
"""Have no folders: making one there would make a bucket."""

_LOCAL_SCHEMES: Final = frozenset({"file", "local"})


def address_of(text: str | Path) -> str:
    """Return the address as fsspec wants it, both slashes back in place."""
    found = ADDRESS.fullmatch(str(text))
    if found is None:
        return str(text)
    slash = "/" if found["scheme"] in _LOCAL_SCHEMES else ""
    return f"{found['scheme']}://{slash}{found['rest']}".rstrip("/")


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
        files, root = fsspec.core.url_to_fs(address)
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
    """Copy the ledger here and return the hash of each file by its name."""
    try:
        files.invalidate_cache()
        names = [str(n)[len(root) + 1 :] for n in files.find(root)]
        wanted = [n for n in names if not any(part.startswith(".") for part in n.split("/"))]
        for name in wanted:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
        if wanted:
            files.get([f"{root}/{n}" for n in wanted], [str(copy / n) for n in wanted])
    except FileNotFoundError:
        return _hashes(copy)
    except Exception as error:  # Each file system raises a family of errors of its own.
        raise RecordError(
            f"the ledger cannot be read ({_reason(error)})",
            where=address,
            mend="check the address, the credentials and the network",
        ) from error
    return _hashes(copy)


def _put_back(
    files: AbstractFileSystem, root: str, copy: Path, before: Mapping[str, str], address: str
) -> None:
    after = _hashes(copy)
    try:
        # A month's file before its manifest; both before what they were made from is removed.
        for name in sorted(after, key=lambda n: (n.endswith(".json"), n)):
            if not _OBJECT_STORES.intersection(_protocols(files)):
                files.makedirs(f"{root}/{name}".rpartition("/")[0], exist_ok=True)
            if name not in before:
                _put_new(files, f"{root}/{name}", (copy / name).read_bytes())
            elif after[name] != before[name]:
                files.pipe_file(f"{root}/{name}", (copy / name).read_bytes())
        gone = [f"{root}/{n}" for n in before if n not in after]
        if gone:
            files.rm(gone)
    except CarbonlensError:
        raise
    except Exception as error:  # Each file system raises a family of errors of its own.
        raise UnwritableError(
            f"the ledger cannot be written ({_reason(error)})",
            where=address,
            mend="check the address, the credentials and the network, then run it again",
        ) from error


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
