"""What a bench measures, as hashes: only a series of the same is gone on with.

They hold the folder, the window, the commands, and the content of the scripts, models and
modules that they name, as far as these are there when the series begins. How runs are judged
(gates, margin, hours of work, the pace) is no part of it, and neither is what a script reads
or imports by itself.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
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

_INTERPRETER: Final = re.compile(
    r"(python|pypy)[\d.]*t?|(ba|da|k|z)?sh|perl|ruby|node|deno|bun|php|lua(jit)?|julia|Rscript|torchrun"
)
"""Programs whose first argument that is a file is a script, whatever its name."""

_MODULE: Final = re.compile(r"-[bBdEiIOPqsSuvx]*m(.*)")
"""Python's option that names a module, behind others or before its value."""

_PYTHON: Final = re.compile(r"(python|pypy)[\d.]*t?")
_SHELL: Final = re.compile(r"(ba|da|k|z)?sh")

_CODE: Final = re.compile(r"-[A-Za-z]*c")
"""Option of a Python or a shell behind which code stands: what follows that is no script."""

_LINE: Final = re.compile(r"[ \t\r\n();<>&|]")
"""What tells an argument that is a line for a shell from a plain word: what ``shlex`` splits at."""

_REDIRECTED: Final = re.compile(r".*[<>][&|]?")
_ENDING: Final = re.compile(r".*[();].*|[&|]+")
"""Of the operators between a line's words: one before a file of data, and one that ends a command."""

_BETWEEN: Final = re.compile(r"[\s=,:;@'\"]+")
"""What stands between the paths of one argument: ``--model=a.onnx``, ``sh -c "python a.py"``."""


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
    for command in _commands(variant):
        if "/" in command[0] and not is_made:
            yield from _existing(folder / command[0])
        for word in command:
            for path in _paths(word):
                if Path(path).suffix.lower() in kinds:
                    yield from _existing(folder / path)
        for words in _simple_commands(command):
            if not is_made:
                yield from (
                    f for w in words if "/" in w for f in _existing(folder / w) if os.access(f, os.X_OK)
                )
            yield from _scripts(words, folder)
            for flag, value in pairwise((*words[1:], "")):
                if named := _MODULE.fullmatch(flag):
                    yield from _module(named[1] or value, folder)
    for function in (variant.callable, variant.prepare, variant.evaluate, variant.inputs):
        if isinstance(function, str):
            yield from _module(function.partition(":")[0], folder)
    if variant.onnx is not None and not is_made:
        model = folder / variant.onnx
        yield from _existing(model)
        # Weights beside it, as exporters name them.
        yield from (f for f in model.parent.glob(f"{model.name}[._]*") if f.is_file())


def _paths(word: str) -> Iterator[str]:
    """Yield what may be a path in an argument: all of it, its parts, and the value of ``-xVALUE``."""
    yield word
    for part in _BETWEEN.split(word):
        yield part
        if re.match("-[A-Za-z]", part):
            yield part[2:]


def _simple_commands(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield a command, and those in the lines for a shell that it holds."""
    yield words
    is_code = False
    interpreter = ""
    for word in words:
        if is_code:
            is_code = False
        elif _LINE.search(word):
            for inner in _split(word):
                yield from _simple_commands(inner)
        elif _INTERPRETER.fullmatch(Path(word).name):
            interpreter = Path(word).name
        else:
            # Code of Python is no line for a shell, whatever stands in it.
            is_code = bool(_PYTHON.fullmatch(interpreter) and _CODE.fullmatch(word))


def _split(line: str) -> Iterator[list[str]]:
    """Yield the words of each command in a line for a shell, without the files that it redirects to."""
    lexer = shlex.shlex(
        line.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars="();<>|&"
    )
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        tokens = list(lexer)
    except ValueError:  # a quote that is not closed: no shell takes it, and no token may be a line again
        yield [word for word in _LINE.split(line) if word]
        return
    command: list[str] = []
    is_target = False
    for token in tokens:
        if _is_operator(token):
            is_target = _REDIRECTED.fullmatch(token) is not None
            if _ENDING.fullmatch(token):
                yield command
                command = []
        elif is_target:
            is_target = False
        else:
            command.append(token)
    yield command


def _is_operator(token: str) -> bool:
    return bool(token) and not token.strip("();<>|&")


def _scripts(words: Sequence[str], folder: Path) -> Iterator[Path]:
    """Yield scripts that an interpreter in a command runs and whose names do not tell that they are."""
    for place, word in enumerate(words):
        name = Path(word).name
        if not _INTERPRETER.fullmatch(name):
            continue
        takes_code = bool(_PYTHON.fullmatch(name) or _SHELL.fullmatch(name))
        for argument in words[place + 1 :]:
            if (takes_code and _CODE.fullmatch(argument)) or _MODULE.fullmatch(argument):
                break
            found = [f for name in (argument, f"{argument}/__main__.py") for f in _existing(folder / name)]
            if found:
                yield from found
                break


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
