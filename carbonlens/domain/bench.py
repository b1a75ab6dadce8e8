"""Bench: variants measured in turn, and when enough has been measured."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal

import msgspec

from carbonlens.domain.factor import Vector
from carbonlens.domain.study import Study

VariantKind = Literal["command", "callable", "onnx", "url"]


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """One way to do the same work.

    Attributes:
        name: Name its runs carry.
        kind: What does the work.
        command: Program and arguments, run without a shell.
        callable: ``module:function``, called again and again in processes of its own.
        onnx: Path of a model, run by ONNX Runtime in processes of its own.
        url: Address that is requested again and again.
        serve: Command of the server that answers at ``url``; it is started and ended
            with the variant, since what is measured is its process and its requests.
        units: Functional units of one execution, call or request; what the callable
            returns when ``None``.
        prepare: Makes the variant ready, once; measured as its effort. A command
            as a tuple, or ``module:function``, whose value the callable gets.
        evaluate: Measures the quality, once. A command or ``module:function``.
        inputs: ``module:function`` that returns the feed of an ONNX model; seeded noise
            of the model's own shapes when ``None``.
        providers: Execution providers of an ONNX model, in order.
        body: Request body of a URL.
        headers: Request headers of a URL.
        environment: Variables set for its processes.
    """

    name: str
    kind: VariantKind
    command: tuple[str, ...] = ()
    callable: str | None = None
    onnx: str | None = None
    url: str | None = None
    serve: tuple[str, ...] = ()
    units: Decimal | None = None
    prepare: tuple[str, ...] | str | None = None
    evaluate: tuple[str, ...] | str | None = None
    inputs: str | None = None
    providers: tuple[str, ...] = ()
    body: str | None = None
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How long and how often to measure.

    Attributes:
        half_width: Wanted half width of each step's interval, as a relative change.
        least: Complete rounds before the series may end on its width.
        most: Complete rounds after which it ends in any case.
        window_s: Least length of one measured window; shorter work is repeated in it.
        budget_s: Time for the rounds; after it no round begins, unless fewer than
            ``least`` are complete. No limit when ``None``.
        warm_up: Executions or calls of each variant before the rounds, the first
            call apart.
        timeout_s: Longest one execution may take; no limit when ``None``.
    """

    half_width: float = 0.01
    least: int = 10
    most: int = 40
    window_s: float = 1.0
    budget_s: float | None = None
    warm_up: int = 1
    timeout_s: float | None = None


class Bench(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured.

    Attributes:
        study: Baseline, steps and gates, as they are compared afterwards.
        variants: Baseline first, in the order of the study's steps.
        pace: How long and how often.
        vector: Factors and prices of the comparison.
        workload: What is done, the same for all variants.
        folder: Folder the commands run in and modules are imported from.
        spec_sha256: Hash of what says all this, but for the files it names, so that only the same is resumed.
    """

    study: Study
    variants: tuple[Variant, ...]
    pace: Pace
    vector: Vector
    workload: str | None = None
    folder: str = "."
    spec_sha256: str = ""
