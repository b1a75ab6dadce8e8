"""Switching ONNX Runtime's profile on for one session, and reading it at the end."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from carbonlens.domain.counting import counted
from carbonlens.errors import InputFileError
from carbonlens.importers.ort_profile import Profile, read_profile

_DEFAULT_PREFIX: Final = "onnxruntime_profile_"
_MOST_BYTES: Final = 64 * 1024**2
"""A larger profile, of some 100 000 calls of nodes, is not read: the user's program would wait for it."""


class Profiling:
    """The profile of one session.

    Args:
        options: The session's options, which are the user's own.
        warm_up: First calls to leave out of it.
    """

    def __init__(self, options: Any, warm_up: int) -> None:  # noqa: ANN401  # a class of a library imported late
        """Prepare; nothing is switched on yet."""
        self._options = options
        self._warm_up = warm_up
        self._folder: Path | None = None
        self._files: list[str] = []
        self.fault: str | None = None
        self.is_on: bool = bool(options.enable_profiling)

    @contextmanager
    def switched_on(self) -> Iterator[None]:
        """Have a session that is made meanwhile write a profile; the options are as before then."""
        options = self._options
        before = options.enable_profiling, options.profile_file_prefix
        try:
            # Whoever has set a prefix or a profile wants the file where it goes.
            if not before[0] and before[1] == _DEFAULT_PREFIX:
                self._folder = self._folder or Path(tempfile.mkdtemp(prefix="carbonlens-profile-"))
                options.profile_file_prefix = str(self._folder / "profile")
            options.enable_profiling = True
            self.is_on = True
        except Exception as error:  # noqa: BLE001  # law 8: the session is made all the same, without profile
            self.fault = f"could not be switched on ({type(error).__name__})"
        try:
            yield
        finally:
            options.enable_profiling, options.profile_file_prefix = before

    def end(self, session: Any) -> str:  # noqa: ANN401  # as above
        """End the profile of a session and remember its file, which is returned."""
        file: str = session.end_profiling()
        if file:
            self._files.append(file)
            self.is_on = True
        return file

    def read(self) -> Profile | None:
        """Read what was written; what could not be read is said by ``fault``."""
        try:
            if len(self._files) == 1:
                return read_profile(self._files[0], warm_up=self._warm_up, most_bytes=_MOST_BYTES)
            self.fault = self.fault or (
                "was not written" if not self._files else f"is in {counted(len(self._files), 'file')}"
            )
        except InputFileError as error:
            self.fault = error.what
        finally:
            self.discard()
        return None

    def keep_files(self) -> None:
        """Leave the files where they are: the user was told of one."""
        self._folder = None

    def discard(self) -> None:
        """Remove the files, unless the user has been told of them."""
        if self._folder is not None:
            with suppress(OSError):
                shutil.rmtree(self._folder)
