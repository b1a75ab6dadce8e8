"""Every installed importer has its conformance tests; none is forgotten."""

import importlib
import pkgutil
import tomllib
from pathlib import Path

import pytest

import tests.importers
from carbonlens.importers.claiming import GROUP, importers
from carbonlens.importers.contract import Importer
from tests.conformance.importers import ImporterContract

ROOT = Path(__file__).parents[2]
MAPPED = {"mapped-table"}  # claims nothing by itself: a map does; tests/importers/test_mapped_table.py


def with_a_sample():
    """Return the importers that a module of tests/importers gives a sample of."""
    found = set()
    for module in pkgutil.iter_modules(tests.importers.__path__, "tests.importers."):
        if module.name.rpartition(".")[2].startswith("test_"):
            importlib.import_module(module.name)
    waiting = [ImporterContract]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            waiting.append(kind)
            if hasattr(kind, "importer"):
                found.add(kind.importer.name)
    return found


def test_every_importer_is_tested_by_the_contract():
    names = {i.name for i in importers()}
    assert names - with_a_sample() - MAPPED == set()


@pytest.mark.parametrize("importer", importers(), ids=lambda i: i.name)
def test_an_entry_point_leads_to_an_importer(importer):
    assert isinstance(importer, Importer)


def test_names_are_unique():
    names = [i.name for i in importers()]
    assert len(names) == len(set(names))


def test_what_is_installed_is_what_the_project_declares():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][GROUP]
    assert len(importers()) == len(declared), "install again: the entry points changed"
