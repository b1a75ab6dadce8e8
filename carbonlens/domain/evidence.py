"""Evidence: what a report of a comparison was computed from, complete enough to compute it again.

It travels inside the report (attached to the PDF, embedded in HTML and JSON), so that
``verify`` needs nothing but the file.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Final

import msgspec

from carbonlens.domain.business import Business
from carbonlens.domain.decoding import decode_json
from carbonlens.domain.factor import Vector
from carbonlens.domain.finding import Finding
from carbonlens.domain.number_style import NumberStyle
from carbonlens.domain.run import Run
from carbonlens.domain.study import Study
from carbonlens.errors import InputFileError

SCHEMA: Final = "carbonlens/evidence/1"


class MadeWith(msgspec.Struct, frozen=True, kw_only=True):
    """Versions that a report's bytes depend on.

    Attributes:
        carbonlens: Version of carbonlens.
        libraries: Version by package that draws or lays out.
        templates_sha256: Over names and contents of the templates and style sheets used.
        fonts_sha256: Over the font files.
        own_templates_sha256: Over the files of the user's own folder of templates; ``None`` without one.
        numbers: How its pages write figures; our way for ``None``.
    """

    carbonlens: str
    libraries: dict[str, str] = msgspec.field(default_factory=dict)
    templates_sha256: str | None = None
    fonts_sha256: str | None = None
    own_templates_sha256: str | None = None
    numbers: NumberStyle | None = None


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Inputs of a comparison.

    Attributes:
        schema: Version of this shape.
        study: The study as it was resolved: steps, gates, volume, places.
        runs: Every run that entered, as recorded. Hosts and users that were measured are pseudonyms in
            them; hosts that an import states are not.
        vector: Factors and prices for all arms.
        outcomes: Right (1) or wrong (0) by example, by hash, where the ledger kept them.
        notes: Findings made before comparing: of reading, selecting, measuring.
        made_with: What the report was made with; ``None`` before it is made.
        business: The business case that the report prints beside the comparison; ``None`` without one.
        runs_left_out: How many runs it would hold, where they are too many to travel with a report.
        left_out_sha256: Over those runs and their outcomes, so that reports of different runs
            differ in their evidence too; ``None`` where none is left out.
    """

    schema: str = SCHEMA
    study: Study
    runs: tuple[Run, ...]
    vector: Vector
    outcomes: dict[str, tuple[int, ...]] = msgspec.field(default_factory=dict)
    notes: tuple[Finding, ...] = ()
    made_with: MadeWith | None = None
    business: Business | None = None
    runs_left_out: Annotated[int, msgspec.Meta(ge=0)] = 0
    left_out_sha256: str | None = None

    def noting(self, findings: tuple[Finding, ...]) -> Evidence:
        """Return the same with more findings."""
        return msgspec.structs.replace(self, notes=(*self.notes, *findings)) if findings else self

    def without_runs(self) -> Evidence:
        """Return the same without its runs, which it names by their number and hash."""
        return msgspec.structs.replace(
            self,
            runs=(),
            outcomes={},
            runs_left_out=len(self.runs),
            left_out_sha256=runs_sha256(self),
        )


def encode(evidence: Evidence) -> bytes:
    """Return the evidence as JSON, the same bytes every time."""
    return msgspec.json.encode(evidence)


def decode(content: bytes, where: str) -> Evidence:
    """Return the evidence that a report carries.

    Args:
        content: JSON as ``encode`` gives it.
        where: The report, for the error.

    Raises:
        InputFileError: If it is damaged, or from a newer carbonlens.
    """
    try:
        evidence = decode_json(content, Evidence)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputFileError(
            f"the evidence in it cannot be read ({error})",
            where=where,
            mend="take the file as carbonlens wrote it, or verify against --ledger",
        ) from error
    if evidence.schema != SCHEMA:
        raise InputFileError(
            f"its evidence has the form {evidence.schema!r}, known is {SCHEMA!r}",
            where=where,
            mend="verify it with the carbonlens that wrote it, or a newer one",
        )
    return evidence


def sha256(evidence: Evidence) -> str:
    """Return the hash of what was computed from, whatever it was rendered with."""
    return hashlib.sha256(encode(msgspec.structs.replace(evidence, made_with=None))).hexdigest()


def sha256_of(content: bytes) -> str:
    """Return the hash of evidence as it stands in a report.

    A later carbonlens may hold more in its evidence: what it adds must not change what an earlier
    report says of its own.

    Args:
        content: Its JSON.

    Raises:
        msgspec.DecodeError: If it is no JSON object.
    """
    parts = decode_json(msgspec.json.format(content, indent=-1), dict[str, msgspec.Raw])
    if "made_with" in parts:
        parts["made_with"] = msgspec.Raw(b"null")
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def runs_sha256(evidence: Evidence) -> str:
    """Return the hash of the runs and their outcomes, whatever their order."""
    each = sorted(hashlib.sha256(msgspec.json.encode(run)).digest() for run in evidence.runs)
    outcomes = msgspec.json.encode(dict(sorted(evidence.outcomes.items())))
    return hashlib.sha256(b"".join((*each, outcomes))).hexdigest()
