"""Verification of power samples: days, merged files and their manifests."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.errors import MissingExtraError
from carbonlens.ledger import layout, parquet, sample_files, samples


def sample_faults(ledger: Path) -> list[Finding]:
    """Return sample files that are not what they should be, and merging that was cut off.

    Checked are: manifests of merged days can be read and name what gave the merged
    file its name, every file can be read, a sample lies in its own day, has a
    possible power and interval, and is met once. Without DuckDB only the manifests
    are checked.

    Raises:
        OSError: If a folder cannot be read.
    """
    found: list[Finding] = []
    for day in samples.days(ledger):
        folder = ledger / layout.SAMPLES / day
        found += _manifest_faults(folder)
        found += _row_faults(folder, day)
    return found


def _manifest_faults(folder: Path) -> list[Finding]:
    found: list[Finding] = []
    files = {f.name for f in layout.files_in(folder, ".parquet")}
    for file in layout.files_in(folder, ".json"):
        names = sample_files.names_in(file)
        if names is None:
            found.append(_fault("the manifest of merged samples cannot be read", file, samples.RESTORE))
            continue
        if file.stem != sample_files.merged_name(names):
            found.append(_fault("the manifest's files do not give its name", file, samples.RESTORE))
        elif f"{file.stem}.parquet" not in files:
            text = f"the samples of {counted(len(names), 'merged file')} are gone"
            found.append(_fault(text, file.with_suffix(".parquet"), samples.RESTORE))
        elif not files.isdisjoint(names):
            found.append(_half_merged(folder))
    manifests = {f.stem for f in layout.files_in(folder, ".json")}
    if any(n.startswith(sample_files.MERGED) and n.removesuffix(".parquet") not in manifests for n in files):
        found.append(_half_merged(folder))
    return found


_FAULTY_ROWS: Final = """
SELECT sum(strayed), sum(impossible), count(*) FILTER (covered > reach)
FROM (SELECT count(*) FILTER (t_us // 86_400_000_000 IS DISTINCT FROM {day}) AS strayed,
             count(*) FILTER (power_mw < 0 OR dt_us < 0
                              OR (dt_us IS NULL) <> (pair_mw IS NULL)) AS impossible,
             sum(dt_us) AS covered,
             max(t_us) - min(t_us - coalesce(dt_us, 0)) AS reach
      FROM read_parquet({file}) GROUP BY run_id, device)
"""
"""A device's intervals end where the next begins: together they cannot be longer than from first to last."""


def _row_faults(folder: Path, day: str) -> list[Finding]:
    """Return files that cannot be read, and rows that no writer of ours makes."""
    try:
        connection = parquet.connect()
    except MissingExtraError:
        return []
    import duckdb

    found: list[Finding] = []
    try:
        number = datetime.strptime(day, "%Y%m%d").replace(tzinfo=UTC).timestamp() // 86_400
    except ValueError:
        return [_fault("the folder's name is no day", folder, "move it elsewhere")]
    try:
        for file in sample_files.counting(folder):
            query = _FAULTY_ROWS.format(day=int(number), file=parquet.quoted(file))
            try:
                ((strayed, impossible, doubled),) = connection.execute(query).fetchall()
            except duckdb.Error as error:
                found.append(samples.unreadable(file, error))
                continue
            wrong = {
                "samples of another day": strayed,
                "impossible samples": impossible,
                "devices of a run with samples met twice": doubled,
            }
            said = ", ".join(f"{n} {what}" for what, n in wrong.items() if n)
            if said:
                found.append(_fault(f"the file was altered: {said}", file, samples.RESTORE))
    finally:
        connection.close()
    return found


def _fault(text: str, file: Path, mend: str) -> Finding:
    return Finding(code="CL510", severity="error", message=text, file=str(file), mend=mend)


def _half_merged(folder: Path) -> Finding:
    return Finding(
        code="CL515",
        severity="info",
        message=f"samples of {folder.name} are half merged; each counts once",
        file=str(folder),
        mend="run: carbonlens ledger compact",
    )
