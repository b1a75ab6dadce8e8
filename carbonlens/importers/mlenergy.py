"""ML.ENERGY leaderboard: joules a request, image or video of each configuration of a model.

The same configurations stand in the file of a model and in that of a task; they count once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.domain.run import Run
from carbonlens.importers import unit_checks
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Facts, Group, Item, Kind, Options, RunRecord, Tally
from carbonlens.importers.json_files import Notes, decoded, id_of, quantity
from carbonlens.importers.records import finding, origin_of, reading
from carbonlens.importers.sources import Source

_ENERGY: Final = re.compile(r'"energy_per_(?:request|image|video)_joules"\s*:')
_SAME: Final = 0.01
"""Share by which figures that imply each other may differ."""


class _Configuration(msgspec.Struct, frozen=True):
    gpu_model: str
    num_gpus: int
    model_id: str | None = None
    weight_precision: str | None = None
    max_num_seqs: int | None = None
    batch_size: int | None = None
    avg_power_watts: float | None = None
    energy_per_token_joules: float | None = None
    energy_per_request_joules: float | None = None
    energy_per_image_joules: float | None = None
    energy_per_video_joules: float | None = None
    avg_output_len: float | None = None
    output_throughput_tokens_per_sec: float | None = None
    batch_latency_s: float | None = None
    image_height: int | None = None
    image_width: int | None = None
    video_height: int | None = None
    video_width: int | None = None
    num_frames: int | None = None
    inference_steps: int | None = None

    @property
    def unit(self) -> tuple[str, float | None]:
        """The functional unit, and the joules that one takes."""
        if self.energy_per_image_joules is not None:
            return "image", self.energy_per_image_joules
        if self.energy_per_video_joules is not None:
            return "video", self.energy_per_video_joules
        return "request", self.energy_per_request_joules


class _Results(msgspec.Struct, frozen=True):
    configurations: list[_Configuration]
    task: str
    model_id: str | None = None
    weight_precision: str | None = None


class MlEnergyImporter:
    """Importer of the ML.ENERGY leaderboard's data files."""

    name = "ml-energy"
    version = 1
    kind: Kind = "runs"
    rank = USUAL
    facts = Facts(
        title="ML.ENERGY leaderboard results (JSON)",
        reads="files of a model and of a task, version 3: language, multimodal and diffusion models",
        units="joules a token, request, image or video; watts; GPUs alone",
        grade="B: Zeus, by the driver's counter",
        traps=(
            "a run is one request, image or video; how many were made is not told",
            "a configuration stands in the model's file and the task's: it counts once",
            "joules a token x tokens a request must be the joules a request, and power over rate those a "
            "token: else it is said",
            "no time of measuring is in the file: the energy is in no hour",
        ),
        tested_on=("files of the leaderboard's repository, by hand", "samples typed here after them"),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim JSON of configurations with their joules a unit and GPUs."""
        return each(sources, _is_mine)

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield a run a configuration.

        Raises:
            InputFileError: If it is no whole file of the leaderboard.
        """
        source = group.main
        results = decoded(source, _Results, "file of the ML.ENERGY leaderboard")
        notes = Notes(source)
        rejected = repeated = 0
        seen: set[str] = set()
        for place, told in enumerate(results.configurations, 1):
            try:
                run = _run(source, results, told, options)
            except ValueError as error:
                rejected += 1
                text = f"configuration {place} {error}; it is left out"
                yield finding("CL202", "error", text, source, mend="export the file again")
                continue
            if run.run_id in seen:
                repeated += 1
                notes.say("CL201", "info", "a configuration repeats an earlier one; counted once")
                continue
            seen.add(run.run_id)
            yield from _checks(source, told, place)
            yield RunRecord(run=run)
        if seen:
            text = "energies are of one request, image or video; how many were made is not told"
            notes.say("CL264", "info", text)
            notes.say("CL245", "warning", "when it was measured is not told: the energy is in no hour")
        yield from notes.findings()
        yield Tally(rows=len(results.configurations), rejected=rejected, repeated=repeated)


IMPORTER: Final = MlEnergyImporter()


def _is_mine(source: Source) -> bool:
    if not source.start.lstrip(b"\xef\xbb\xbf\xff\xfe\x00 \r\n\t").startswith(b"{"):
        return False
    start = "\n".join(source.head_lines())
    return '"configurations"' in start and '"gpu_model"' in start and _ENERGY.search(start) is not None


def _run(source: Source, results: _Results, told: _Configuration, options: Options) -> Run:
    unit, value = told.unit
    joules = quantity(value, f"energy_per_{unit}_joules")
    if not joules:
        raise ValueError(f"has no energy_per_{unit}_joules")
    model = told.model_id or results.model_id or "unknown model"
    size = f"{told.image_height or told.video_height}x{told.image_width or told.video_width}"
    tags = {
        "task": results.task,
        "max_num_seqs": told.max_num_seqs,
        "batch_size": told.batch_size,
        "precision": told.weight_precision or results.weight_precision,
        "size": size if unit != "request" else None,
        "frames": told.num_frames,
        "inference_steps": told.inference_steps,
        "tokens_per_request": told.avg_output_len,
    }
    hardware = f"{told.num_gpus} x {told.gpu_model}"
    identity = {**tags, "model": model, "hardware": hardware, "joules": str(joules)}
    return Run(
        run_id=id_of("ml-energy", {**identity, "watts": told.avg_power_watts}),
        energy=(
            reading(
                "gpu",
                joules,
                method="ML.ENERGY, Zeus",
                grade="B",
                meter=hardware,
                boundary=options.boundary or "device",
            ),
        ),
        units=Decimal(1),
        unit=unit,
        workload=model,
        hardware=hardware,
        tags={name: str(text) for name, text in tags.items() if text is not None},
        origin=origin_of(IMPORTER, source),
    )


def _checks(source: Source, told: _Configuration, place: int) -> Iterator[Item]:
    """Yield a Finding where figures that imply each other do not."""
    token_j, request_j = told.energy_per_token_joules, told.energy_per_request_joules
    told_j = token_j * told.avg_output_len if token_j and told.avg_output_len else None
    if told_j and request_j and abs(told_j / request_j - 1) > _SAME:
        text = (
            f"configuration {place}: joules a token x tokens a request are {told_j:.4g} J, "
            f"and {request_j:.4g} J a request are stated"
        )
        yield finding("CL247", "warning", text, source, mend="check their units; both are kept as stated")
    rate, latency = told.output_throughput_tokens_per_sec, told.batch_latency_s
    implied_w = token_j * rate if token_j and rate else None
    value = told.unit[1]
    if latency and value and told.batch_size:
        implied_w = value * told.batch_size / latency
    if implied_w is None or not told.avg_power_watts:
        return
    if abs(implied_w / told.avg_power_watts - 1) > _SAME:
        text = (
            f"configuration {place}: energy and rate are {implied_w:.4g} W, "
            f"and {told.avg_power_watts:.4g} W are stated"
        )
        yield finding("CL247", "warning", text, source, mend="check their units; both are kept as stated")
    yield from unit_checks.of_trace("gpu", told.avg_power_watts / max(told.num_gpus, 1), "W", source)
