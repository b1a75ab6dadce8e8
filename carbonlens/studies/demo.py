"""The demo: the digits study, measured on this machine, to an HTML and a PDF report."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from carbonlens.domain.comparison import Comparison
from carbonlens.domain.finding import Finding
from carbonlens.domain.study import Gate, Step, Study
from carbonlens.errors import CarbonlensError, MeasurementError, MissingExtraError, UnwritableError
from carbonlens.instrument.progress import Progress, Silent
from carbonlens.studies.ladder import Arm, LadderResult, Pace, Setting, run_ladder

STUDY_NAME = "demo-digits"
LEAST_ACCURACY = 0.975
"""An undertrained baseline would let fine-tuning look like a gain of the pruning."""

_STUDY_FILE = "study.toml"
_LEDGER = "ledger"
_OWN_ENTRIES = (_STUDY_FILE, _LEDGER, "report.html", "report.pdf")
_NEEDED = {
    "analysis": ("numpy", "scipy", "tomli_w"),
    "torch": ("torch", "sklearn"),
    "onnx": ("onnx", "onnxruntime"),
    "report": ("jinja2", "weasyprint", "altair", "vl_convert"),
}


@dataclass(frozen=True)
class DemoResult:
    """What the demo made.

    Attributes:
        files: The reports by format.
        study_file: The study with its assumptions.
        ledger: Folder with every run.
        comparison: What the reports show.
        failed_steps: Error text per step that raised.
        rounds: Complete rounds.
        interrupted: Whether Ctrl-C ended the rounds early.
    """

    files: Mapping[str, Path]
    study_file: Path
    ledger: Path
    comparison: Comparison
    failed_steps: Mapping[str, str]
    rounds: int
    interrupted: bool


def run_demo(
    out_dir: Path,
    *,
    rounds: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    small: bool = False,
) -> DemoResult:
    """Train, export, prune and quantize a small model, measure it, and report.

    Ctrl-C during the rounds ends them; the finished ones are reported on.

    Args:
        out_dir: Folder for ``report.html``, ``report.pdf``, ``study.toml`` and
            ``ledger``; empty, new, or that of a former demo, which is replaced.
        rounds: Rounds to measure, at least 5.
        seed: Decides split, first weights and order of the training examples.
        progress: Whom to tell.
        small: Train less and measure shorter rounds; the figures are rough.

    Raises:
        UnwritableError: If the folder cannot be written or holds something else.
        MissingExtraError: If a package of the demo is not installed.
        MeasurementError: If the baseline failed, or rounds are too few.
        KeyboardInterrupt: If Ctrl-C came before the first round was complete.
    """
    watcher = progress or Silent()
    pace = _pace(rounds, small=small)
    _require_packages()
    _claim(out_dir)
    result, study, findings = _measure(out_dir, pace, seed, watcher, small=small)
    if result.interrupted and result.rounds == 0:
        raise KeyboardInterrupt
    if study.baseline in result.failed:
        raise MeasurementError(
            f"the baseline failed: {result.failed[study.baseline]}",
            where=study.baseline,
            mend="mend that error; nothing can be compared without a baseline",
        )
    return _report(out_dir, result, findings, watcher)


def _measure(
    out_dir: Path, pace: Pace, seed: int, progress: Progress, *, small: bool
) -> tuple[LadderResult, Study, tuple[Finding, ...]]:
    from carbonlens.studies.digits.arms import QUALITY, WORKLOAD, Recipe, digits_arms
    from carbonlens.studies.digits.data import load_digits
    from carbonlens.studies.digits.network import one_thread
    from carbonlens.studies.digits.training import Schedule, load_trainer

    recipe = Recipe(
        training=Schedule(epochs=2 if small else 4, learning_rate=3e-3),
        tuning=Schedule(epochs=1 if small else 4, learning_rate=2e-3),
        seed=seed,
    )
    progress.start(2, "Loading")
    load_trainer()
    progress.advance()
    digits = load_digits(seed)
    progress.advance()
    with tempfile.TemporaryDirectory(prefix="carbonlens-demo-") as folder, one_thread():
        arms = digits_arms(digits, Path(folder), recipe)
        study = _study(arms, QUALITY)
        _write_study(out_dir, study)
        setting = Setting(
            study=study.name, unit=study.unit, workload=WORKLOAD, ledger=(out_dir / _LEDGER).absolute()
        )
        result = run_ladder(arms, setting, pace=pace, progress=progress)
    findings = (*_baseline_findings(result, study, QUALITY), *_interrupt_findings(result, pace))
    return result, study, findings


def _report(
    out_dir: Path, result: LadderResult, findings: tuple[Finding, ...], progress: Progress
) -> DemoResult:
    from carbonlens.app.compare import compared
    from carbonlens.app.report import report

    progress.start(2, "Reporting")
    study_file, ledger = out_dir / _STUDY_FILE, out_dir / _LEDGER
    found = compared(study_file, ledger=ledger).noting(findings)
    comparison = found.comparison
    progress.advance()
    files = report(comparison, out_dir=out_dir, evidence=found.evidence)
    progress.advance()
    return DemoResult(
        files=files,
        study_file=study_file,
        ledger=ledger,
        comparison=comparison,
        failed_steps=result.failed,
        rounds=result.rounds,
        interrupted=result.interrupted,
    )


def _study(arms: tuple[Arm, ...], quality: str) -> Study:
    baseline, *steps = arms
    return Study(
        name=STUDY_NAME,
        title="A small image classifier on this machine",
        baseline=baseline.name,
        baseline_title=baseline.title,
        steps=tuple(Step(name=a.name, title=a.title, measured_on=a.measured_on) for a in steps),
        unit="image",
        gates=(
            Gate(name="accuracy loss under 1 percentage point", metric=quality, kind="max_loss", limit=0.01),
        ),
    )


def _write_study(out_dir: Path, study: Study) -> None:
    from carbonlens.app.assumptions import load_assumptions
    from carbonlens.inventory import study_file
    from carbonlens.ledger.store import Ledger

    text = study_file.dumps(study, load_assumptions(example_assumptions()))
    (out_dir / _STUDY_FILE).write_text(text, "utf-8")
    Ledger(out_dir / _LEDGER).keep_study(study.name, text)


def example_assumptions() -> Path:
    """Return the file of example factors and prices, in a wheel or in the repository.

    Raises:
        MeasurementError: If the installation lacks it.
    """
    package = Path(__file__).parents[1]
    for folder in (package / "_fixtures", package.parent / "fixtures"):
        file = folder / "demo" / "assumptions.toml"
        if file.is_file():
            return file
    raise MeasurementError("the example assumptions are missing", mend="install carbonlens again")


def _baseline_findings(result: LadderResult, study: Study, quality: str) -> tuple[Finding, ...]:
    values = [c.value for c in result.quality.get(study.baseline, ()) if c.name == quality]
    if not values or values[0] >= LEAST_ACCURACY:
        return ()
    return (
        Finding(
            code="CL130",
            severity="warning",
            message=f"the baseline reaches an accuracy of {values[0]:.1%}, under {LEAST_ACCURACY:.1%}: "
            "it is trained too little, so a later step's accuracy may rise by its extra training alone",
            subject=study.baseline,
            mend="train longer, or give a control the same extra training",
        ),
    )


def _interrupt_findings(result: LadderResult, pace: Pace) -> tuple[Finding, ...]:
    if not result.interrupted:
        return ()
    return (
        Finding(
            code="CL131",
            severity="warning",
            message=f"measuring was interrupted after {result.rounds} of {pace.rounds} rounds",
            mend="run the demo again for all rounds",
        ),
    )


def _pace(rounds: int | None, *, small: bool) -> Pace:
    usual = Pace(rounds=5, round_s=0.05, warm_up_s=0.03, steady_s=0.4) if small else Pace(steady_s=1.0)
    return usual if rounds is None else replace(usual, rounds=rounds)


def _require_packages() -> None:
    """Refuse before the work what would fail after it."""
    from carbonlens.app.report import ensure_renderable

    ensure_renderable()
    for extra, packages in _NEEDED.items():
        for package in packages:
            if find_spec(package) is None:
                raise MissingExtraError(extra, package)


def _claim(out_dir: Path) -> None:
    """Make the folder ready and empty of a former demo, before any work starts.

    Runs of two demos in one ledger would be pooled, so the former one goes.
    """
    with _refusing(out_dir):
        out_dir.mkdir(parents=True, exist_ok=True)
        if any(out_dir.iterdir()) and not _is_former_demo(out_dir):
            raise UnwritableError(
                "holds something else than a former demo and its runs",
                where=str(out_dir),
                mend="give a new or an empty folder with -o",
            )
        with tempfile.TemporaryFile(dir=out_dir):
            pass
        for entry in (out_dir / name for name in _OWN_ENTRIES):
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink(missing_ok=True)


def _is_former_demo(out_dir: Path) -> bool:
    from carbonlens.inventory import study_file
    from carbonlens.ledger.store import Ledger

    file = out_dir / _STUDY_FILE
    if not file.is_file():
        return False
    try:
        study, _ = study_file.load(file)
    except CarbonlensError:
        return False
    if study.name != STUDY_NAME:
        return False
    # Runs that somebody else put into this ledger are not ours to remove.
    return all(r.study == STUDY_NAME for r in Ledger(out_dir / _LEDGER).view().runs)


@contextmanager
def _refusing(out_dir: Path) -> Iterator[None]:
    """Turn an error of the file system into a refusal that names the folder."""
    try:
        yield
    except OSError as error:
        raise UnwritableError(
            f"cannot be written ({error.strerror or error})",
            where=str(out_dir),
            mend="give a writable folder with -o",
        ) from error
