"""Visibility: which of a node's GPUs the work may use, from its environment alone.

Pure: what the node has and the variables go in, places of devices come out. The rules
are CUDA's own (CUDA C++ Programming Guide, "CUDA Environment Variables", and what
CUDA and PyTorch do with broken lists): the first entry that names nothing ends the
list, an entry named twice leaves no device at all, and a UUID may be shortened as
long as it names one device. Of several MIG instances a process is shown the first
(NVIDIA Multi-Instance GPU User Guide, "CUDA Device Enumeration"). Where a variable
cannot be followed, more is measured rather than less, and a Finding says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.patterns import later

CUDA: Final = "CUDA_VISIBLE_DEVICES"
ORDER: Final = "CUDA_DEVICE_ORDER"
CONTAINER: Final = "NVIDIA_VISIBLE_DEVICES"
ALLOTTED: Final = ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "GPU_DEVICE_ORDINAL")
ROCM: Final = "ROCR_VISIBLE_DEVICES"
HIP: Final = ("HIP_VISIBLE_DEVICES", CUDA)
"""What narrows a list for HIP, in the order it is asked for: only the first that is set counts."""

VARIABLES: Final = (CUDA, ORDER, CONTAINER, *ALLOTTED)
"""All variables on which ``visible`` depends."""

_NUMBER: Final = later(r"\+?([0-9]+)")  # as strtoul reads: what follows the digits is ignored
_TEXT_LENGTH: Final = 40
_MOST_DIGITS: Final = 9
"""A number of more digits is no device's."""

_RANGE: Final = later(r"([0-9]{1,4})-([0-9]{1,4})")
_CDI: Final = "nvidia.com/gpu="
"""Beginning of a device's name in the Container Device Interface."""

_OLD_MIG: Final = later(r"MIG-(GPU-[^/]+)/([0-9]{1,9})/([0-9]{1,9})", re.IGNORECASE)


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """One MIG instance of a device.

    Attributes:
        uuid: ``MIG-...``.
        gpu_instance, compute_instance: Its ids on the device.
        part: Its share of the device's compute slices; ``None`` when it cannot be told.
    """

    uuid: str
    gpu_instance: int | None = None
    compute_instance: int | None = None
    part: float | None = None


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU as the driver lists it.

    Attributes:
        uuid: ``GPU-...``.
        name: Of the product.
        minor: Number of its device file; ``None`` when the driver does not say.
        divided: Whether MIG is on.
        instances: MIG instances that this process is shown.
    """

    uuid: str
    name: str = ""
    minor: int | None = None
    divided: bool = False
    instances: tuple[Instance, ...] = ()


class Pick(msgspec.Struct, frozen=True):
    """A device the work may use, by its place, and the instance of it where one is named."""

    device: int
    instance: int | None = None


class Visibility(msgspec.Struct, frozen=True, kw_only=True):
    """What the work may use.

    Attributes:
        picks: In the order the work sees them.
        findings: What could not be told.
    """

    picks: tuple[Pick, ...]
    findings: tuple[Finding, ...] = ()


def visible(environ: Mapping[str, str], devices: Sequence[Device]) -> Visibility:
    """Return which of the devices the work may use.

    Args:
        environ: The work's environment.
        devices: Those that it can open, in the driver's (PCI) order.
    """
    limits, notes = _limits(environ, devices)
    inside = [devices[place] for place in limits]
    text = environ.get(CUDA)
    chosen = picks(text, inside)
    notes += _names_nothing(text, chosen, inside)
    chosen, more = _one_instance(text, chosen, inside)
    notes += more
    notes += _order_unknown(environ, text, chosen, inside)
    return Visibility(
        picks=tuple(Pick(limits[p.device], p.instance) for p in chosen),
        findings=tuple(notes),
    )


def picks(text: str | None, devices: Sequence[Device]) -> tuple[Pick, ...]:
    """Return what a list such as ``CUDA_VISIBLE_DEVICES`` chooses.

    Args:
        text: Its value: indices, ``GPU-`` or ``MIG-`` identifiers; ``None`` when unset.
        devices: What there is to choose from.

    Returns:
        Every device for ``None``, none for an empty list.
    """
    if text is None:
        return tuple(Pick(place) for place in range(len(devices)))
    entries = _entries(text)
    by_name = entries[0].upper().startswith(("GPU-", "MIG-"))
    found: list[Pick] = []
    for entry in entries:
        named = _named(entry, devices) if by_name else _numbered(entry, len(devices))
        if not named:
            break  # the first that names nothing ends the list
        if any(pick in found for pick in named):
            return ()  # CUDA shows no device when one is named twice
        found += named
    return tuple(found)


def amd_visible(environ: Mapping[str, str], uuids: Sequence[str]) -> tuple[int, ...]:
    """Return the places of the AMD GPUs that the work may use.

    ``ROCR_VISIBLE_DEVICES`` takes indices and UUIDs; ``HIP_VISIBLE_DEVICES``, or else
    ``CUDA_VISIBLE_DEVICES``, counts among those that are left (ROCm documentation, "GPU
    isolation techniques").

    Args:
        environ: The work's environment.
        uuids: ``GPU-...`` of each device, in the driver's order; an empty text when unknown.
    """
    devices = [Device(uuid=uuid) for uuid in uuids]
    kept = [pick.device for pick in picks(environ.get(ROCM), devices)]
    text = next((environ[name] for name in HIP if name in environ), None)
    return tuple(kept[pick.device] for pick in picks(text, [devices[place] for place in kept]))


def _limits(environ: Mapping[str, str], devices: Sequence[Device]) -> tuple[list[int], list[Finding]]:
    """Return the places of what a container or a scheduler allots, and what is said of it."""
    everything = list(range(len(devices)))
    scheduler = next((name for name in ALLOTTED if name in environ), None) if CUDA not in environ else None
    notes: list[Finding] = []
    for name in filter(None, (CONTAINER if CONTAINER in environ else None, scheduler)):
        entries = _expanded(environ[name])
        if not _limits_something(entries, devices):
            continue
        places = _allotted(entries, devices, by_minor=name.startswith("SLURM"))
        if places is not None:
            return places, [*notes, _narrowed(name, len(places), len(devices))]
        if CUDA not in environ:
            notes.append(_not_followed(name, environ[name], len(devices)))
    return everything, notes


def _expanded(text: str) -> list[str]:
    """Return the entries of a list of allotted devices, without ranges and without a kind's name.

    SLURM writes lists of ranges in brackets too.
    """
    found: list[str] = []
    bare = text.strip()
    bare = bare[1:-1] if bare.startswith("[") and bare.endswith("]") else bare
    for entry in (e.removeprefix(_CDI) for e in _entries(bare)):
        spread = _RANGE.fullmatch(entry)
        if spread is None or int(spread[2]) < int(spread[1]):
            found.append(entry)
        else:
            found += map(str, range(int(spread[1]), int(spread[2]) + 1))
    return found or [""]


def _limits_something(entries: Sequence[str], devices: Sequence[Device]) -> bool:
    """Tell whether a list of allotted devices names fewer than can be reached.

    Such a list counts the host's devices. A container or a cgroup that was limited by it
    shows fewer, numbered anew: as many as it names, or less, are all meant. ``none`` and
    ``void`` only say that a container's runtime added none; what can be opened counts.
    """
    return entries[0].lower() not in {"", "all", "none", "void"} and len(entries) < len(devices)


def _allotted(entries: Sequence[str], devices: Sequence[Device], *, by_minor: bool) -> list[int] | None:
    """Return the places a list of allotted devices names; ``None`` when it cannot be followed."""
    found: list[int] = []
    for entry in entries:
        place = _allotted_place(entry, devices, by_minor=by_minor)
        if place is None:
            return None
        if place not in found:
            found.append(place)
    return found


def _allotted_place(entry: str, devices: Sequence[Device], *, by_minor: bool) -> int | None:
    if entry.upper().startswith(("GPU-", "MIG-")):
        named = _named(entry, devices)
        return named[0].device if len(named) == 1 else None
    number = entry.partition(":")[0]  # "0:1" is instance 1 of device 0
    if not re.fullmatch(r"[0-9]+", number) or len(number) > _MOST_DIGITS:
        return None
    if by_minor and all(d.minor is not None for d in devices):
        return next((k for k, d in enumerate(devices) if d.minor == int(number)), None)
    return int(number) if int(number) < len(devices) else None


def _entries(text: str) -> list[str]:
    return [entry.strip() for entry in text.split(",")]


def _numbered(entry: str, count: int) -> list[Pick]:
    found = _NUMBER.match(entry)
    if found is None or len(found[1]) > _MOST_DIGITS or int(found[1]) >= count:
        return []
    return [Pick(int(found[1]))]


def _named(entry: str, devices: Sequence[Device]) -> list[Pick]:
    """Return what an identifier names: one pick, none, or all devices it may be on.

    An instance that the driver does not show may lie on any divided device that hides
    its instances; they are all returned, because less would be a favourable guess.
    """
    if entry.upper().startswith("GPU-"):
        place = _only(k for k, d in enumerate(devices) if _begins(d.uuid, entry))
        return [] if place is None else [Pick(place)]
    if (old := _OLD_MIG.fullmatch(entry)) is not None:
        return _old_instance(old[1], int(old[2]), int(old[3]), devices)
    matches = [
        Pick(k, i)
        for k, d in enumerate(devices)
        for i, instance in enumerate(d.instances)
        if _begins(instance.uuid, entry)
    ]
    if matches:
        return matches if len(matches) == 1 else []
    return [Pick(k) for k, d in enumerate(devices) if d.divided and not d.instances]


def _old_instance(uuid: str, gpu: int, compute: int, devices: Sequence[Device]) -> list[Pick]:
    """Return the instance of an identifier as drivers before R470 gave them."""
    place = _only(k for k, d in enumerate(devices) if _begins(d.uuid, uuid))
    if place is None:
        return []
    for i, instance in enumerate(devices[place].instances):
        if (instance.gpu_instance, instance.compute_instance) == (gpu, compute):
            return [Pick(place, i)]
    return [Pick(place)]


def _begins(uuid: str, entry: str) -> bool:
    return uuid.casefold().startswith(entry.casefold())


def _only(places: Iterable[int]) -> int | None:
    found = list(places)
    return found[0] if len(found) == 1 else None


def _names_nothing(text: str | None, chosen: Sequence[Pick], devices: Sequence[Device]) -> list[Finding]:
    if text is None or chosen or not devices or not text.strip() or text.strip().startswith("-"):
        return []
    return [
        Finding(
            code="CL133",
            severity="warning",
            message=f"{CUDA} names no device of the {len(devices)} there are, or one of them twice: "
            "the work sees no GPU, and none is measured",
            mend=f"check {CUDA} against: nvidia-smi -L",
            subject="energy.gpu",
        )
    ]


def _one_instance(
    text: str | None, chosen: Sequence[Pick], devices: Sequence[Device]
) -> tuple[tuple[Pick, ...], list[Finding]]:
    """Return what CUDA shows a process of a list that begins with a MIG instance: that one alone."""
    first = _entries(text)[0] if text is not None else ""
    if not chosen or not first.upper().startswith("MIG-"):
        return tuple(chosen), []
    shown = tuple(chosen[: len(_named(first, devices))])
    left = len(chosen) - len(shown)
    if not left:
        return shown, []
    return shown, [
        Finding(
            code="CL137",
            severity="warning",
            message=f"{CUDA} names {counted(left, 'GPU or MIG instance', 'GPUs or MIG instances')} after the "
            "first MIG instance: CUDA shows a process the first alone, and that is measured",
            mend=f"measure each process by itself, each with its own instance in {CUDA}",
            subject="energy.gpu",
        )
    ]


def _order_unknown(
    environ: Mapping[str, str], text: str | None, chosen: Sequence[Pick], devices: Sequence[Device]
) -> list[Finding]:
    """Say that indices count in an order of CUDA's own where GPUs differ."""
    by_number = text is not None and _NUMBER.match(text.strip()) is not None
    some = 0 < len({p.device for p in chosen}) < len(devices)
    mixed = len({d.name for d in devices}) > 1
    if not (by_number and some and mixed) or environ.get(ORDER, "").strip().upper() == "PCI_BUS_ID":
        return []
    return [
        Finding(
            code="CL132",
            severity="warning",
            message=f"{CUDA} counts GPUs from the fastest, by a rule that is not published, and this node "
            "has different ones: those measured are chosen in PCI order and may be others than the work uses",
            mend=f"set {ORDER}=PCI_BUS_ID, or name the GPUs by UUID (nvidia-smi -L)",
            subject="energy.gpu",
        )
    ]


def _not_followed(name: str, text: str, of: int) -> Finding:
    shown = text if len(text) <= _TEXT_LENGTH else f"{text[:_TEXT_LENGTH]}..."
    return Finding(
        code="CL138",
        severity="warning",
        message=f"{name}={shown!r} does not tell which of {counted(of, 'GPU')} are the work's: all that can "
        "be reached are measured",
        mend=f"name the GPUs of the work in {CUDA} (nvidia-smi -L lists them)",
        subject="energy.gpu",
    )


def _narrowed(name: str, kept: int, of: int) -> Finding:
    return Finding(
        code="CL134",
        severity="info",
        message=f"{counted(of, 'GPU')} can be reached and {name} allots {kept} of them: those are measured",
        mend=f"set {CUDA} if the work uses others",
        subject="energy.gpu",
    )
