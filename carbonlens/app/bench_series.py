"""The series of a bench in a ledger: its name, its runs so far, and the files it was begun with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, count, islice
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.bench import Bench
from carbonlens.domain.run import Run
from carbonlens.errors import SelectionError
from carbonlens.instrument.bench import TAG
from carbonlens.instrument.progress import Progress
from carbonlens.inventory import bench_identity, study_file
from carbonlens.inventory.bench_identity import Measured
from carbonlens.ledger.store import Ledger, unwritable, write_atomically

_SPARE_NAMES: Final = 1000
"""Names that benches without a run may have taken, looked through for one to go on with."""


def begun(given: Bench, measured: Measured, store: Ledger) -> str:
    """Return a name that no other series has, and keep beside it what is measured.

    Args:
        given: What is about to be measured.
        measured: Its identity.
        store: Ledger of the series.

    Raises:
        UnwritableError: If the ledger cannot be written.
    """
    taken = {run.study for run in store.view().runs}
    name = next(n for n in _names(given) if n not in taken and _reserved(n, given, store))
    _keep(name, measured, store)
    return name


@contextmanager
def alone(name: str, store: Ledger) -> Iterator[None]:
    """Let no other bench measure the same series within the block: both would count the same rounds.

    The system ends the hold with the process, however that ends. Where the file system has
    no locks, nobody is kept out.

    Args:
        name: Of the series.
        store: Its ledger.

    Raises:
        SelectionError: If another bench is measuring it.
        UnwritableError: If the ledger cannot be written.
    """
    import fcntl

    file = store.study_file(name).with_suffix(".lock")
    try:
        held = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise unwritable(file, error) from error
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SelectionError(
                f"series {name!r} is being measured by another bench",
                where=str(store.path),
                mend="wait for its end; without --resume a bench begins a series of its own",
            ) from error
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(held)


def runs_of(name: str, given: Bench, store: Ledger) -> tuple[Run, ...]:
    """Return what benches recorded of a series by now.

    Runs that a measured command tracks itself may have the names of study and step, and are none.

    Args:
        name: Of the series.
        given: What is measured.
        store: Its ledger.
    """
    tag = given.spec_sha256[:16]
    return tuple(run for run in store.view().runs if run.study == name and run.tags.get(TAG) == tag)


def has_a_round(name: str, given: Bench, store: Ledger) -> bool:
    """Tell whether the baseline of a series and another variant were measured in one of its rounds.

    Args:
        name: Of the series.
        given: What is measured.
        store: Its ledger.
    """
    steps: dict[int, set[str | None]] = {}
    for run in runs_of(name, given, store):
        if run.role == "variant" and run.status == "complete" and run.repeat is not None:
            steps.setdefault(run.repeat, set()).add(run.step)
    # A candidate that failed leaves the series: the rounds of the others are complete without it.
    return any(given.study.baseline in found and len(found) > 1 for found in steps.values())


def gone_on_with(given: Bench, measured: Measured, store: Ledger) -> str:
    """Return the latest series of the same bench.

    Args:
        given: What is about to be measured.
        measured: Its identity.
        store: Ledger of the series.

    Raises:
        SelectionError: If there is none; it names the files that were changed since.
    """
    by_study: dict[str, list[Run]] = {}
    for run in store.view().runs:
        if run.study is not None:
            by_study.setdefault(run.study, []).append(run)
    tag = given.spec_sha256[:16]
    changed: tuple[str, ...] = ()
    found: str | None = None
    for name in islice(_names(given), len(by_study) + _SPARE_NAMES):
        if not any(r.tags.get(TAG) == tag for r in by_study.get(name, ())):
            continue
        before = bench_identity.load(_file(name, store))
        if before is None:
            continue
        since = bench_identity.changed(before, measured)
        if since:
            changed = since
        else:
            found = name
    if found is not None:
        return found
    why = f": since it began, {', '.join(changed)} changed" if changed else ""
    raise SelectionError(
        f"no series {given.study.name!r} measured this way{why}",
        where=str(store.path),
        mend="leave --resume out; a bench begins anew where its folder, window or variants were changed, "
        "or the content of a script, model or module that they name",
    )


class Written:
    """Which of the files that a bench names its first executions write: these say nothing of a change."""

    def __init__(self, name: str, measured: Measured, store: Ledger, progress: Progress) -> None:
        """Note how the files are before the first execution.

        Args:
            name: Of the series.
            measured: Its identity.
            store: Ledger of the series.
            progress: Whom to tell.
        """
        self._name = name
        self._store = store
        self._progress = progress
        self._before = {file: bench_identity.stamp(file) for file in measured.files}

    def leave_out(self) -> None:
        """Take what was written since out of what going on depends on.

        Raises:
            UnwritableError: If the ledger cannot be written.
        """
        kept = bench_identity.load(_file(self._name, self._store))
        written = {f for f, was in self._before.items() if bench_identity.stamp(f) != was}
        if kept is None or not written & kept.files.keys():
            return
        for file in sorted(written & kept.files.keys()):
            self._progress.note(
                f"{file} was written while the variants were checked: --resume does not look at its content"
            )
        rest = {f: sha for f, sha in kept.files.items() if f not in written}
        _keep(self._name, msgspec.structs.replace(kept, files=rest), self._store)


def _names(given: Bench) -> Iterator[str]:
    return chain([given.study.name], (f"{given.study.name}-{i}" for i in count(2)))


def _file(name: str, store: Ledger) -> Path:
    return store.study_file(name).with_suffix(".measured.toml")


def _keep(name: str, measured: Measured, store: Ledger) -> None:
    file = _file(name, store)
    try:
        write_atomically(file, bench_identity.dumps(measured).encode())
    except OSError as error:
        raise unwritable(file, error) from error


def _reserved(name: str, given: Bench, store: Ledger) -> bool:
    """Take a name for this series; ``False`` where another bench, which may have no run yet, has it.

    Raises:
        UnwritableError: If the ledger cannot be written.
    """
    file = store.study_file(name)
    text = study_file.dumps(msgspec.structs.replace(given.study, name=name), given.vector)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        return False
    except OSError as error:
        raise unwritable(file, error) from error
    return True
