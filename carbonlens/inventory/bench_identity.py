"""What a bench measures, as hashes: only a series of the same is gone on with.

They hold the folder, the window, the commands, and the content of the scripts, models and
modules that they name, as far as these are there when the series begins. How runs are judged
(gates, margin, hours of work, the pace) is no part of it, and neither is what a script reads
or imports by itself.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import PathFinder
from itertools import pairwise
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.bench import Bench, Variant
from carbonlens.inventory import toml_file

_SCRIPTS: Final = frozenset(
    {
        *(".py", ".pyc", ".pyz", ".ipynb", ".sh", ".bash", ".zsh", ".ksh", ".pl", ".rb", ".php", ".lua"),
        *(".js", ".mjs", ".cjs", ".ts", ".jl", ".r", ".m", ".jar", ".go", ".awk", ".sed", ".sql"),
    }
)
_MODELS: Final = frozenset(
    {
        *(".onnx", ".pt", ".pth", ".ts", ".safetensors", ".gguf", ".ggml", ".tflite", ".h5", ".keras"),
        *(".pb", ".engine", ".plan", ".mlmodel", ".joblib", ".bin"),
    }
)
"""By their endings: other files that a command names may be what it writes."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What the runs of a bench depend on.

    Attributes:
        spec: Hash of what says how they are measured, but for the files.
        files: Hash of the content of each file that is named, by its path; empty for one
            that cannot be read.
    """

    spec: str
    files: Mapping[str, str]


def changed(before: Measured, now: Measured) -> tuple[str, ...]:
    """Return the files whose content is another one now.

    What was not there before may be what a run made: it counts as no change.

    Args:
        before: As a series was begun.
        now: As the same bench is now.
    """
    return tuple(file for file, sha in before.files.items() if now.files.get(file) != sha)


def stamp(file: str) -> tuple[int, int, int] | None:
    """Return what tells that a file was written, with the same content too; ``None`` if it is gone."""
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def dumps(measured: Measured) -> str:
    """Return what is measured as TOML text.

    Raises:
        MissingExtraError: If tomli-w is not installed.
    """
    return toml_file.dumps({"spec": measured.spec, "files": dict(measured.files)})


def load(file: Path) -> Measured | None:
    """Return what a series was begun with; ``None`` if nothing is kept of it.

    Raises:
        InputFileError: If the file cannot be read.
        ConfigError: If it is damaged.
    """
    if not file.is_file():
        return None
    return toml_file.convert(toml_file.read(file), Measured, where=str(file))


def what_is_measured(bench: Bench) -> Measured:
    """Return what the runs of a bench depend on, as its files are now.

    Where a variant is prepared, models and programs may be what that makes: their content
    counts only where none is.

    Args:
        bench: As it is about to be measured.
    """
    folder = Path(bench.folder)
    is_made = any(v.prepare is not None for v in bench.variants)
    files = sorted({f for v in bench.variants for f in _files(v, folder, is_made=is_made)})
    said = {
        "unit": bench.study.unit,
        "workload": bench.workload,
        "folder": str(folder),
        "window_s": bench.pace.window_s,
        "warm_up": bench.pace.warm_up,
        "variants": bench.variants,
        "programs": [shutil.which(p) for v in bench.variants for p, *_ in _commands(v) if "/" not in p],
    }
    return Measured(
        spec=hashlib.sha256(msgspec.json.encode(said, order="deterministic")).hexdigest(),
        files={str(file): _sha256(file) for file in files},
    )


def _commands(variant: Variant) -> Iterator[Sequence[str]]:
    for work in (variant.command, variant.serve, variant.prepare, variant.evaluate):
        if isinstance(work, tuple) and work:
            yield work


def _files(variant: Variant, folder: Path, *, is_made: bool) -> Iterator[Path]:
    """Yield the files that a variant names and whose content counts."""
    kinds = _SCRIPTS if is_made else _SCRIPTS | _MODELS
    for program, *arguments in _commands(variant):
        if Path(program).suffix.lower() in kinds or ("/" in program and not is_made):
            yield from _existing(folder / program)
        for argument in arguments:
            if Path(argument).suffix.lower() in kinds:
                yield from _existing(folder / argument)
        for flag, module in pairwise(arguments):
            if flag == "-m":
                yield from _module(module, folder)
    for function in (variant.callable, variant.prepare, variant.evaluate, variant.inputs):
        if isinstance(function, str):
            yield from _module(function.partition(":")[0], folder)
    if variant.onnx is not None and not is_made:
        model = folder / variant.onnx
        yield from _existing(model)
        # Weights beside it, as exporters name them.
        yield from (f for f in model.parent.glob(f"{model.name}[._]*") if f.is_file())


def _existing(file: Path) -> Iterator[Path]:
    try:
        if file.is_file():
            yield file
    except (OSError, ValueError):  # a name too long for a file, or with a NUL: a text
        return


def _module(name: str, folder: Path) -> Iterator[Path]:
    """Yield the source of a module, which is not imported for it."""
    top, *rest = name.split(".")
    try:
        spec = PathFinder.find_spec(top, [str(folder), *sys.path])
    except (ImportError, ValueError):
        return
    if spec is None:
        return
    places = [Path(p) for p in spec.submodule_search_locations or ()]
    if not places:
        yield from _existing(Path(spec.origin or ""))
    for place in places:
        below = place.joinpath(*rest)
        inside = [below.with_suffix(".py"), below / "__init__.py", below / "__main__.py"]
        yield from (file for one in inside for file in _existing(one))


def _sha256(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""
