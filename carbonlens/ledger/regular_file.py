"""Reading of small files that others name: nothing but a regular file, and no more than a limit.

A pipe that nobody writes to would hold the caller for ever, and a device such as
``/dev/zero`` never ends.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_regular(path: Path, *, at_most: int) -> bytes:
    """Return what a regular file holds.

    Args:
        path: The file; a link to one serves too.
        at_most: Bytes it may hold.

    Raises:
        OSError: If it cannot be read, is no regular file, or holds more.
    """
    # Looked at before it is opened: opening a device or a pipe can itself do something.
    _check(path.stat(), path)
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as stream:
        _check(os.fstat(handle), path)
        content = stream.read(at_most + 1)
    if len(content) > at_most:
        raise OSError(errno.EFBIG, f"it holds more than {at_most // 1024} KiB", str(path))
    return content


def _check(status: os.stat_result, path: Path) -> None:
    """Raise OSError over what is no regular file."""
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
