"""Every code of a Finding or an error, with what it means; ``docs/findings.md`` is made of it."""

from __future__ import annotations

from typing import Final

from carbonlens.domain.finding_codes.accounting import ACCOUNTING
from carbonlens.domain.finding_codes.auditing import AUDITING
from carbonlens.domain.finding_codes.business import BUSINESS
from carbonlens.domain.finding_codes.comparing import COMPARING
from carbonlens.domain.finding_codes.devices import DEVICES
from carbonlens.domain.finding_codes.drivers import DRIVERS
from carbonlens.domain.finding_codes.emissions import EMISSIONS
from carbonlens.domain.finding_codes.entry import FindingCode
from carbonlens.domain.finding_codes.factors import FACTORS
from carbonlens.domain.finding_codes.frameworks import FRAMEWORKS
from carbonlens.domain.finding_codes.general import GENERAL
from carbonlens.domain.finding_codes.importing import IMPORTING
from carbonlens.domain.finding_codes.importing_files import IMPORTING_FILES
from carbonlens.domain.finding_codes.judging import JUDGING
from carbonlens.domain.finding_codes.ledger import LEDGER
from carbonlens.domain.finding_codes.measuring import MEASURING
from carbonlens.domain.finding_codes.recording import RECORDING
from carbonlens.domain.finding_codes.statements import STATEMENTS

FAMILIES: Final[tuple[tuple[str, tuple[FindingCode, ...]], ...]] = (
    ("Codes of errors that stop a command", GENERAL),
    ("Codes of measuring: sensors, counters, readings", MEASURING),
    ("Codes of devices, meters and artefacts", DEVICES),
    ("Codes of recording: calibrations, sources, benches, phases", RECORDING),
    ("Codes of frameworks: training, generation, ONNX Runtime", FRAMEWORKS),
    ("Codes of importing: run tables and bills", IMPORTING),
    ("Codes of importing: other tools' files and meters' logs", IMPORTING_FILES),
    ("Codes of accounting: boundaries, prices, bills, shared devices, tokens", ACCOUNTING),
    ("Codes of factor tables, places and the inventory", FACTORS),
    ("Codes of emissions, water, embodied parts and instruments", EMISSIONS),
    ("Codes of comparing: runs, rounds, steps", COMPARING),
    ("Codes of judging: regularity, intervals, gates, effort, token fits", JUDGING),
    ("Codes of the business case", BUSINESS),
    ("Codes of allocation and statements", STATEMENTS),
    ("Codes of the ledger", LEDGER),
    ("Codes of drivers of change and of savings looked for again", DRIVERS),
    ("Codes of the audit: what is stated does not hold together", AUDITING),
)
"""Headings of the families and their codes, in order."""

CODES: Final[tuple[FindingCode, ...]] = tuple(code for _, family in FAMILIES for code in family)
"""All codes, in order."""
