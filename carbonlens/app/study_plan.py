"""Use case: propose the runs of a study, and write them down as a study file."""

from __future__ import annotations

from pathlib import Path

from carbonlens.compare.from_runs import joined
from carbonlens.compare.planning import Plan, Wish, plan
from carbonlens.domain.factor import Vector
from carbonlens.domain.study import Study
from carbonlens.errors import MissingExtraError, UnwritableError


def plan_study(wish: Wish) -> Plan:
    """Return the runs to make.

    Raises:
        UsageError: If a value of the wish is impossible.
        MissingExtraError: If the ``analysis`` extra is not installed.
    """
    from importlib.util import find_spec

    if find_spec("numpy") is None:
        raise MissingExtraError("analysis", "numpy")
    return plan(wish)


def write_study(made: Plan, file: Path, *, name: str, unit: str) -> Path:
    """Write the plan as a study file, which ``compare`` reads after the runs.

    The drawn orders stand in it: without them a mean over orders is no estimate of
    Shapley values.

    Args:
        made: The plan.
        file: Where to write; a file that is there is not overwritten.
        name: Of the study.
        unit: Functional unit.

    Raises:
        ConfigError: If the name or the unit is empty.
        UnwritableError: If the file exists or cannot be written.
    """
    from carbonlens.inventory import study_check, study_file

    study = Study(
        name=name,
        baseline=joined(()),
        steps=(),
        unit=unit,
        margin=made.margin,
        optimizations=made.steps,
        orders=made.orders,
    )
    study_check.check(study, str(file))
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(study_file.dumps(study, Vector()))
    except FileExistsError as error:
        raise UnwritableError(
            "is there already", where=str(file), mend="name another file, or move that one"
        ) from error
    except OSError as error:
        raise UnwritableError(
            f"cannot be written ({error.strerror or error})",
            where=str(file),
            mend="name a file in a writable folder",
        ) from error
    return file
