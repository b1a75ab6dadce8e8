"""The JSON shape of ``doctor`` that outside scripts rely on."""

from __future__ import annotations

from typing import Final

from carbonlens.reporting.allowance import allowance_json
from carbonlens.reporting.doctor import Diagnosis, Missing, Part, SourceView

SCHEMA: Final = "carbonlens/doctor/1"


def doctor_json(found: Diagnosis) -> dict[str, object]:
    """Return a diagnosis as JSON; unknown is ``null``, and numbers bear their unit."""
    machine, storage = found.machine, found.storage
    return {
        "schema": SCHEMA,
        "version": found.version,
        "can_measure": found.can_measure,
        "replay": found.replay,
        "parts": [_part(p) for p in found.parts],
        "total": found.total,
        "machine": {
            "system": machine.system,
            "cpu": machine.cpu,
            "threads": machine.threads,
            "virtual": machine.virtual,
            "cpu_family": machine.cpu_family,
            "cpu_tdp_w": machine.tdp_w,
            "visibility": dict(machine.visibility),
            "gpus_present": machine.gpus_present,
            "gpus_used": machine.gpus_used,
            "allowance": allowance_json(machine.allowance),
        },
        "storage": {
            "ledger": storage.ledger,
            "ledger_exists": storage.ledger_exists,
            "ledger_fault": storage.ledger_fault,
            "journal": storage.journal,
            "journal_fault": storage.journal_fault,
        },
        "sources": {
            "file": found.sources_file,
            "declared": [
                {
                    "name": d.name,
                    "answers": d.answers,
                    "said": d.said,
                    "mend": d.mend,
                    "left_out": d.left_out,
                }
                for d in found.declared
            ],
        },
        "calibrations": list(found.calibrations),
        "extras": {
            name: {"installed": not missing, "missing": list(missing)}
            for name, missing in found.extras.items()
        },
        "findings": list(found.findings),
    }


def _part(part: Part) -> dict[str, object]:
    return {
        "part": part.part,
        "name": part.name,
        "device": part.device,
        "source": None if part.source is None else _source(part.source),
        "others": [_source(s) for s in part.others],
        "missing": [_missing(m) for m in part.missing],
        "note": part.note,
        "mend": part.mend,
    }


def _source(source: SourceView) -> dict[str, object]:
    return {
        "sensor": source.sensor,
        "found": source.found,
        "method": source.method,
        "grade": source.grade,
        "factor_95": source.factor_95,
        "boundary": source.boundary,
        "scope": source.scope,
        "update_period_s": source.update_period_s,
        "read_cost_s": source.read_cost_s,
        "tested_on_recordings": source.on_recordings,
    }


def _missing(missing: Missing) -> dict[str, object]:
    return {
        "sensor": missing.sensor,
        "found": missing.found,
        "reason": missing.reason,
        "mend": missing.mend,
    }
