"""Use case: explain a figure from a report's own data, where its ledger is not at hand.

What the file holds is told: the number with its interval, formula and inputs, factors with their
hashes, what the inventory declares, runs where they travel with the report. What it lacks is named,
with the command that opens it by the ledger. Nothing is verified here: ``verify`` does that.
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec

from carbonlens.app.explain import SHOWN, none_such
from carbonlens.app.explain_items import run_makers
from carbonlens.app.explain_records import Records
from carbonlens.app.said_figures import said_figure
from carbonlens.app.sustainability_carried import unpack
from carbonlens.app.sustainability_enclosed import Basis
from carbonlens.app.sustainability_report import SCHEMA as OF_QUARTER
from carbonlens.app.sustainability_verify import basis_in, carried_by, factors_in, write_inventory
from carbonlens.app.verified import computing
from carbonlens.app.verify_reading import data_of, read
from carbonlens.domain.evidence import Evidence
from carbonlens.domain.figure import Figure
from carbonlens.errors import InputFileError, MissingExtraError
from carbonlens.reporting.explanation import Item, Node, item_of, tree
from carbonlens.reporting.report_json import SCHEMA as OF_STUDY

_OF_LEDGER: Final = ("run:", "runs.", "reading:")
_KINDS_OF_LEDGER: Final = ("run", "runs", "reading", "charge")
_CARRIED: Final = "as the report carries it"
_FROM: Final = "from the report alone, not verified: carbonlens verify REPORT"
_LONGEST_ID: Final = 200
"""Characters of an id that a command is told for: ids of ours are shorter."""

_DEEPEST: Final = 200
"""Levels of figures that rest on others; those of a report of ours are a few."""

_OTHER_SET: Final = "as this carbonlens has it: the report rests on another set of factors"


def explain_in_report(figure_ids: Iterable[str], report: Path, *, most: int = SHOWN) -> Iterator[Node]:
    """Yield what each of several figures of a report rests on, as far as the report tells.

    Args:
        figure_ids: As the report's index names them.
        report: A ``.json``, ``.html`` or ``.pdf`` that carbonlens wrote.
        most: Runs of a list that are opened.

    Raises:
        InputFileError: If it cannot be read, or is no report.
        SelectionError: If the report has no such figure; near ones are named.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        held = _InReport(report, folder)
        for name in figure_ids:
            item = held.figure(name)
            if item is None:
                raise none_such(name, held.figures, "list ids: carbonlens explain --report REPORT --list")
            root = msgspec.structs.replace(item, details=(*item.details, _FROM))
            yield _tree(root, held.resolve, most, report)


def _tree(root: Item, resolve: Callable[[str], Item], most: int, report: Path) -> Node:
    """Return all that a figure rests on; a file can have figures rest on each other without an end."""
    try:
        found = tree(root, resolve, most=most)
    except RecursionError as error:
        raise _no_report(report, _TOO_DEEP) from error
    level, depth = [found], 0
    while level:
        level, depth = [child for node in level for child in node.children], depth + 1
        if depth > _DEEPEST:
            raise _no_report(report, _TOO_DEEP)
    return found


_TOO_DEEP: Final = f"has figures that rest on others over more than {_DEEPEST} levels"


def ids_in_report(report: Path) -> tuple[str, ...]:
    """Return the ids of all figures of a report.

    Args:
        report: A ``.json``, ``.html`` or ``.pdf`` that carbonlens wrote.

    Raises:
        InputFileError: If it cannot be read, or is no report.
    """
    return tuple(_shape(report)["figures"])


def _shape(report: Path) -> dict[str, Any]:
    return _opened(report)[2]


def _opened(report: Path) -> tuple[str, bytes, dict[str, Any]]:
    """Return a report's format, bytes and data."""
    kind, content, data = data_of(report)
    try:
        shape = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _no_report(report, "is no JSON") from error
    if not isinstance(shape, dict) or shape.get("schema") not in (OF_QUARTER, OF_STUDY):
        raise _no_report(report, "is no report")
    if not isinstance(shape.get("figures"), dict):
        raise _no_report(report, "lacks its figures")
    return kind, content, shape


def _no_report(report: Path, what: str) -> InputFileError:
    return InputFileError(what, where=str(report), mend="give a report that carbonlens wrote")


class _InReport:
    """What can be looked up in a report."""

    def __init__(self, report: Path, folder: Path) -> None:
        """Read the report's data.

        Args:
            report: The file.
            folder: An empty one, for the files that the report carries.
        """
        self._report, self._folder = report, folder
        self._kind, self._content, self._shape = _opened(report)

    @property
    def figures(self) -> Mapping[str, object]:
        """What the report says of each figure, by id."""
        found: dict[str, object] = self._shape["figures"]
        return found

    def figure(self, name: str) -> Item | None:
        """Return a figure that the report prints."""
        given = self.figures.get(name)
        if given is None:
            return None
        said = said_figure(name, given, str(self._report))
        derived = self._derived.get(name)
        formula, inputs = said.formula, said.inputs
        if derived is not None:
            # A study's report prints figures without what they are made of: that follows from its runs.
            formula, inputs = formula or derived.formula, inputs or derived.inputs
        return Item(
            item_id=name,
            kind="figure",
            title=said.label,
            estimate=said.estimate,
            formula=formula,
            inputs=inputs,
            details=(f"printed: {said.printed} {said.printed_interval}".rstrip(),),
        )

    def resolve(self, name: str) -> Item:
        """Return what an id stands for; what the report lacks is named with the command that has it."""
        found = self.figure(name) or self._record(name)
        if found is not None:
            return found
        what = "stands in the ledger" if name.startswith(_OF_LEDGER) else "not printed in the report"
        return Item(
            item_id=name, kind="unknown", title=what, details=(f"needs the ledger: {_command(name)}",)
        )

    def _record(self, name: str) -> Item | None:
        make = self._runs.get(name.removeprefix("run:")) if name.startswith("run:") else None
        if make is not None:
            return make()
        derived = self._derived.get(name)
        if derived is not None:
            made = item_of(derived, "figure" if derived.inputs else "assumption")
            words = "computed from the runs in the report" if derived.inputs else "stated as an assumption"
            return msgspec.structs.replace(made, details=(words,))
        if name.startswith("study:"):
            return Item(item_id=name, kind="study", title=f"study {name.removeprefix('study:')}")
        records = self._records
        if records is None:
            return None
        found = records.find(name, of_ledger=False)
        if found is None or found.kind == "meter":
            return self._of_ledger(name, records) or found
        if found.kind == "factor" and name in self._doubtful:
            return msgspec.structs.replace(found, details=(*found.details, _OTHER_SET))
        return found

    def _of_ledger(self, name: str, records: Records) -> Item | None:
        """Return what stands in the ledger's records, where the report carries them."""
        if not self._carried:
            return None
        try:
            found = records.find(name)
        except MissingExtraError:
            return None  # Then it is told as what the report lacks.
        if found is None or found.kind not in _KINDS_OF_LEDGER:
            return found
        return msgspec.structs.replace(found, details=(*found.details, _CARRIED))

    @cached_property
    def _basis(self) -> Basis | None:
        if self._shape["schema"] != OF_QUARTER:
            return None
        return basis_in(self._shape, str(self._report))

    @cached_property
    def _records(self) -> Records | None:
        """Rows of factors and what the inventory declares, as a quarter's report carries them."""
        if self._basis is None:
            return None
        where = str(self._report)
        inventory, ledger = self._folder / "inventory", self._folder / "ledger"
        inventory.mkdir()
        write_inventory(self._basis, inventory, where)
        if self._carried:
            unpack(self._carried, ledger, where)
        return Records(inventory=inventory, factors=factors_in(self._basis), ledger=ledger)

    @cached_property
    def _carried(self) -> bytes:
        """The ledger's records that a quarter's report carries; empty where it has none."""
        if self._basis is None:
            return b""
        return carried_by(self._kind, self._content, self._shape, str(self._report))

    @cached_property
    def _doubtful(self) -> frozenset[str]:
        """Rows of factors that the report does not carry, where its set is another one than that in force."""
        if self._basis is None or self._records is None:
            return frozenset()
        held = self._records.factors
        if held.sha256 == self._basis.factors_sha256:
            return frozenset()
        own = {row.factor_id for row in self._basis.factors}
        return frozenset(row.factor_id for row in held.rows if row.factor_id not in own)

    @cached_property
    def _evidence(self) -> Evidence | None:
        if self._shape["schema"] != OF_STUDY or self._shape.get("evidence") is None:
            return None
        return read(self._report).evidence

    @cached_property
    def _runs(self) -> Mapping[str, Callable[[], Item]]:
        return {} if self._evidence is None else run_makers(self._evidence.runs)

    @cached_property
    def _derived(self) -> Mapping[str, Figure]:
        """Figures that follow from the runs that a study's report carries, with formula and inputs."""
        if self._evidence is None or self._evidence.runs_left_out:
            return {}
        from carbonlens.app.explain_study import figures_of_evidence

        with computing(str(self._report)):
            return {f.figure_id: f for f in figures_of_evidence(self._evidence)}


def _command(name: str) -> str:
    """Return the command that explains an id by its ledger; the id of an odd file is not put into it."""
    if not name.isprintable() or len(name) > _LONGEST_ID or name.startswith("-"):
        return "carbonlens explain FIGURE --ledger DIR"
    quoted = shlex.quote(name)
    return f"carbonlens explain {quoted if quoted != name else repr(name)} --ledger DIR"
