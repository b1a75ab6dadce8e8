"""Tensors and arrays: how many values they have, how many are not 0, their bytes and hash.

A quantized tensor counts its values, not its codes: 0 is what stands for 0.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from carbonlens.instrument.artefact_figures import Allowance, UntoldError

PLAIN: Final = (str, int, float, bool, complex, bytes, type(None))
"""Values of a state dict or checkpoint that are no arrays, hashed by what they are written as."""

_PIECE: Final = 1 << 24


class Named(NamedTuple):
    """A value and the name that it has in a model."""

    name: str
    value: Any


def count(tensor: Any) -> int:  # noqa: ANN401  # a tensor or an array; their libraries have no types here
    """Return the number of values, the zeros of a sparse tensor included.

    Raises:
        UntoldError: If they are objects.
    """
    if getattr(tensor.dtype, "hasobject", False):
        raise UntoldError("its values are Python objects")
    return math.prod(tensor.shape)


def place_of(tensor: Any) -> tuple[object, ...]:  # noqa: ANN401  # as above
    """Return what several names of one stored tensor or array have in common."""
    if type(tensor).__module__ == "numpy":
        where = tensor.__array_interface__
        return where["data"][0], tensor.shape, tensor.strides, tensor.dtype.str
    import torch

    plain = type(tensor) in {torch.Tensor, torch.nn.Parameter} and tensor.layout == torch.strided
    if not plain or tensor.device.type == "meta" or not tensor.numel() or tensor.is_quantized:
        return (id(tensor),)
    return tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.device


def size(tensor: Any) -> int:  # noqa: ANN401  # as above
    """Return the bytes of the values as they are kept, scales of a quantized tensor included.

    Raises:
        UntoldError: If they are objects.
    """
    if _is_numpy(tensor):
        count(tensor)
        return int(tensor.nbytes)
    return sum(part.numel() * part.element_size() for _, part in stored_parts(tensor))


def nonzeros(tensor: Any, allowance: Allowance) -> int:  # noqa: ANN401  # as above
    """Return how many values are not 0.

    Raises:
        UntoldError: If they cannot be read.
    """
    allowance.check()
    if _is_numpy(tensor):
        import numpy as np

        count(tensor)
        return int(np.count_nonzero(tensor))
    import torch

    tensor = _readable(tensor)
    if str(tensor.layout).startswith("torch.sparse"):
        # A coordinate may stand twice until it is coalesced, and a stored value may be 0.
        tensor = tensor.coalesce() if tensor.layout == torch.sparse_coo else tensor
        tensor = tensor.values()
    elif tensor.is_quantized or type(tensor) not in {torch.Tensor, torch.nn.Parameter}:
        tensor = tensor.dequantize() if hasattr(tensor, "dequantize") else tensor
    if tensor.dtype.itemsize == 1 and tensor.dtype.is_floating_point:
        tensor = tensor.to(torch.float32)  # torch counts no 8-bit floats
    return int(torch.count_nonzero(tensor))


def hash_of(entries: Iterable[Named], allowance: Allowance) -> str:
    """Return the hash of names, types, shapes and values in order.

    It does not depend on device, strides, or whether gradients are wanted.

    Raises:
        UntoldError: If a value cannot be read.
    """
    digest = hashlib.sha256()
    first: dict[int, str] = {}
    for name, value in entries:
        if isinstance(value, PLAIN):
            digest.update(f"{name}\0{type(value).__name__}\0{value!r}\n".encode())
            continue
        shared = first.setdefault(id(value), name)
        if shared != name:
            digest.update(f"{name}\0shared\0{shared}\n".encode())
            continue
        if not hasattr(value, "shape"):
            if type(value).__module__ == "torch":  # a data type, a device, a size
                digest.update(f"{name}\0{value!r}\n".encode())
                continue
            raise UntoldError("there is something in it that is neither an array nor a plain value")
        _put(digest, name, value, allowance)
    return digest.hexdigest()


def _put(digest: Any, name: str, value: Any, allowance: Allowance) -> None:  # noqa: ANN401  # hashlib's own type is private
    if _is_numpy(value):
        import numpy as np

        count(value)
        digest.update(f"{name}\0{value.dtype.str}\0{value.shape}\n".encode())
        _put_bytes(digest, np.ascontiguousarray(value).reshape(-1).view(np.uint8), allowance)
        return
    import torch

    tensor = _readable(value)
    for part, values in stored_parts(tensor):
        digest.update(f"{name}{part}\0{values.dtype}\0{tuple(values.shape)}\n".encode())
        flat = values.detach().cpu().contiguous().reshape(-1)
        # Negated and conjugated views are resolved: the bytes are those of the values.
        flat = flat.resolve_neg().resolve_conj()
        if flat.numel():
            _put_bytes(digest, flat.view(torch.uint8).numpy(), allowance)


def _put_bytes(digest: Any, content: Any, allowance: Allowance) -> None:  # noqa: ANN401  # as above
    for start in range(0, len(content), _PIECE):
        allowance.check()
        digest.update(content[start : start + _PIECE])


def stored_parts(tensor: Any) -> list[tuple[str, Any]]:  # noqa: ANN401  # as above
    """Return the plain tensors that a tensor is kept as, each with the end of its name.

    Raises:
        UntoldError: If it lies on several hosts.
    """
    import torch

    if type(tensor).__name__ == "DTensor":
        raise UntoldError("its values are spread over several processes")
    if hasattr(tensor, "__tensor_flatten__"):
        names: Sequence[str] = tensor.__tensor_flatten__()[0]
        return [
            (f".{name}{rest}", part) for name in names for rest, part in stored_parts(getattr(tensor, name))
        ]
    tensor = tensor.detach()
    if tensor.is_quantized:
        scales = [(".int", tensor.int_repr())]
        if "channel" in str(tensor.qscheme()):
            scales += [
                (".scale", tensor.q_per_channel_scales()),
                (".zero", tensor.q_per_channel_zero_points()),
            ]
        else:
            kept = torch.tensor([tensor.q_scale(), float(tensor.q_zero_point())], dtype=torch.float64)
            scales.append((".scale", kept))
        return scales
    layout = str(tensor.layout)
    if layout == "torch.sparse_coo":
        return [(".indices", tensor._indices()), (".values", tensor._values())]
    if layout in {"torch.sparse_csr", "torch.sparse_bsr"}:
        return [
            (".rows", tensor.crow_indices()),
            (".columns", tensor.col_indices()),
            (".values", tensor.values()),
        ]
    if layout != "torch.strided":
        raise UntoldError(f"its layout is {layout}")
    return [("", tensor)]


def _readable(tensor: Any) -> Any:  # noqa: ANN401  # as above
    """Return a tensor without its gradients, if its values can be read."""
    if tensor.device.type == "meta":
        raise UntoldError("its values are on the meta device: there are none")
    if type(tensor).__name__ == "DTensor":
        raise UntoldError("its values are spread over several processes")
    return tensor.detach()


def _is_numpy(value: object) -> bool:
    return type(value).__module__ == "numpy"
