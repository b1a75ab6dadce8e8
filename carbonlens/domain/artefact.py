"""Artefact: what a stage of work took in or gave out, as a hash and a few sizes."""

from __future__ import annotations

from typing import Literal

import msgspec

Direction = Literal["in", "out"]
"""Whether the stage took it in or gave it out."""


class Artefact(msgspec.Struct, frozen=True, kw_only=True):
    """A model, a file or a folder before or after a stage.

    A figure that could not be had is ``None``, never 0.

    Attributes:
        name: What it is called in the stage, for example ``model``.
        direction: Taken in or given out.
        kind: What it is, for example ``torch.nn.Module``, ``onnx`` or ``file``.
        sha256: Hash of its content: of a model in memory, of its names, types, shapes
            and values in order.
        bytes: Size as stored; of a model in memory, of its parameters and buffers.
        parameters: Number of parameters.
        nonzeros: How many of them are not 0.
        macs: Multiply-accumulates of one call on the example input.
    """

    name: str
    direction: Direction
    kind: str | None = None
    sha256: str | None = None
    bytes: int | None = None
    parameters: int | None = None
    nonzeros: int | None = None
    macs: int | None = None
