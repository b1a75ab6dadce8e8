"""The samples that importers' conformance tests give, for laws that hold for every importer."""

import importlib
import pkgutil
from pathlib import Path

import tests.importers
from carbonlens.importers.claiming import claims, importers
from carbonlens.importers.contract import Importer, Options
from carbonlens.importers.harvest import Harvest, harvest
from carbonlens.importers.sources import Source, sources_of
from tests.conformance.importers import ImporterContract

NO_SAMPLES = {"test_fuzz", "test_unit_lies"}
"""Modules that read the samples and give none."""


def contracts() -> list[type[ImporterContract]]:
    """Return the conformance classes of every installed importer that give a text, by its name."""
    for module in pkgutil.iter_modules(tests.importers.__path__, "tests.importers."):
        name = module.name.rpartition(".")[2]
        if name.startswith("test_") and name not in NO_SAMPLES:
            importlib.import_module(module.name)
    installed = {i.name for i in importers()}
    found, waiting = [], [ImporterContract]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            waiting.append(kind)
            is_text = not kind.is_binary  # bytes are damaged by their own contract
            if is_text and "importer" in vars(kind) and kind.importer.name in installed:
                found.append(kind)
    return sorted(found, key=lambda k: (k.importer.name, k.__qualname__))


def write(folder: Path, files: dict[str, bytes]) -> list[Source]:
    """Write files and return their sources that may be looked at."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return [s for name in files for s in sources_of(folder / name) if s.fault is None]


def read(importer: Importer, sources: list[Source], options: Options) -> list[tuple[str, Harvest]]:
    """Return what each group that the importer claims gave, with its main source's path."""
    mine, _ = claims(sources, [importer])
    return [(str(c.group.main.path), harvest(importer, c.group, options)) for c in mine]
