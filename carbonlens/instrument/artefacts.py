"""Artefacts: what a model, a file or a folder is, by its kind.

Which figures a kind has: a module all of them (multiply-accumulates given an example),
an ONNX model too; a state dict and arrays all but those; files, folders and bytes a size
and a hash. Nothing that is not loaded already is imported for an object in memory.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from carbonlens.domain.artefact import Artefact, Direction
from carbonlens.domain.finding import Finding
from carbonlens.instrument.artefact_figures import Allowance, Figures, UntoldError, untold
from carbonlens.metering.wording import error_kind, plain


def look_at(
    thing: object, name: object, direction: Direction, *, example: object = None, allowance: Allowance
) -> tuple[Artefact, tuple[Finding, ...]] | None:
    """Return the figures of an artefact and what must be said of them; raises nothing of its own.

    Args:
        thing: A module, a state dict, an array, bytes, an ONNX model, or a path.
        name: What it is called; ``None`` comes back when that is no text.
        direction: Taken in or given out.
        example: Input of one call, for the multiply-accumulates.
        allowance: Time that may be spent.
    """
    try:
        called = plain(name)
    except Exception:  # noqa: BLE001  # law 8: the user's own object as a name
        return None
    figures = Figures(called, direction, allowance)
    try:
        _look(thing, figures, example)
    except UntoldError as error:
        figures.withdraw(str(error))
    except Exception as error:  # noqa: BLE001  # law 8: whatever the user's object does when it is touched
        figures.withdraw(f"looking at it raised {error_kind(error)}")
    try:
        return figures.artefact, figures.findings
    except Exception as error:  # noqa: BLE001  # law 8: as above
        nothing = Artefact(name=called, direction=direction)
        return nothing, (untold(called, direction, f"nothing is known ({error_kind(error)})"),)


def _look(thing: object, figures: Figures, example: object) -> None:
    if isinstance(thing, str | os.PathLike):
        if not os.fspath(thing):
            raise UntoldError("its path is empty")  # which Path takes for the working folder
        _look_at_path(Path(os.fsdecode(thing)), figures, example)
    elif isinstance(thing, bytes | bytearray | memoryview):
        content = memoryview(thing)
        figures.kind = "bytes"
        figures.tell("bytes", lambda: content.nbytes)
        figures.tell_hash(lambda: hashlib.sha256(content).hexdigest())
    elif _is(thing, "torch.nn", "Module"):
        from carbonlens.instrument import artefact_torch

        artefact_torch.look(thing, figures, example)
    elif _is(thing, "torch.export", "ExportedProgram"):
        from carbonlens.instrument import artefact_torch

        # A module around the program's own weights, which makes no copy of them.
        artefact_torch.look(thing.module(), figures, example)  # type: ignore[attr-defined]  # as its class says
        figures.kind = "torch.export.ExportedProgram"
    elif _is(thing, "onnx", "ModelProto"):
        from carbonlens.instrument import artefact_onnx

        artefact_onnx.look_at_proto(thing, figures, example)
    elif isinstance(thing, Mapping) or _is(thing, "torch", "Tensor") or _is(thing, "numpy", "ndarray"):
        from carbonlens.instrument import artefact_values

        artefact_values.look(thing, figures)
    else:
        figures.kind = plain(type(thing).__name__)[:60]
        figures.withdraw("it is neither a model, a state dict, an array nor a path")


def _look_at_path(path: Path, figures: Figures, example: object) -> None:
    from carbonlens.instrument import artefact_files

    if path.suffix.lower() == artefact_files.ONNX and path.is_file():
        from carbonlens.instrument import artefact_onnx

        artefact_onnx.look_at_file(path, figures, example)
    else:
        artefact_files.look(path, figures)


def _is(thing: object, module: str, name: str) -> bool:
    """Tell whether a thing is of a library's class, without importing the library."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(thing, kind)
