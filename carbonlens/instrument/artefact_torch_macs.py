"""Multiply-accumulates of one call of a torch module on an example input.

Counted are products of matrices, convolutions, attention and recurrent layers, by the
formulas of ``torch.utils.flop_counter`` (2 operations a multiply-accumulate) and a few
that it lacks. Additions of a bias, normalisation, activations, pooling and interpolation
count nothing, as is usual. Zeros count like other values: masked weights are multiplied
all the same. An operator that is not known makes the count unknown, never a part of it.

The module itself is not called: a copy in evaluation mode is (``artefact_torch_copy``), on
the meta device where nothing is calculated, or on its own device where it needs values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from carbonlens.instrument.artefact_figures import Allowance, UntoldError
from carbonlens.instrument.artefact_torch_copy import chance_kept, copy_of
from carbonlens.instrument.artefact_torch_packed import packed_of
from carbonlens.metering.wording import error_kind

if TYPE_CHECKING:
    import torch

_ROWS: Final = {
    "_int_mm": 0,
    "mv": 0,
    "dot": 0,
    "vdot": 0,
    "addmv": 1,
    "_addmm_activation": 1,
    "_weight_int8pack_mm": 0,
}
"""Operators with one dot product a value of the result; its length is the last one of that operand."""

_HEAVY: Final = re.compile(
    r"(?:^|_)(?:\w*mm|mv|addmv|dot|vdot|addr|ger|matmul|einsum|linear|bilinear|trilinear|\w*conv\w*|convolution"
    r"|attention|transformer|rnn|lstm|gru|fft\w*|stft|linalg|cdist|pdist|cholesky|lu|svd|qr|solve|sparse"
    r"|int[48]pack|embedding_bag|grouped)(?:_|\d|$)"
)
"""Names of operators that multiply and accumulate; one that is not counted makes the count unknown."""

_LIGHT: Final = re.compile(r"^_?(?:upsample|grid_sampler|convert|cummax|cummin|linspace|reflection|unsafe)")
_QUANTIZED_HEAVY: Final = re.compile(r"^(?:linear|conv[123]d)(?:_|$)")
_QUANTIZED_LIGHT: Final = re.compile(
    r"^(?:add|mul|cat|relu6?|leaky_relu|hardswish|elu|celu|sigmoid|softmax|clamp|threshold|prelu|max_pool"
    r"|batch_norm|layer_norm|group_norm|instance_norm|dropout|embedding)"
)


def count_macs(module: torch.nn.Module, example: object, allowance: Allowance) -> int:
    """Return the multiply-accumulates of one call.

    Args:
        module: It is not called; a copy is.
        example: A tensor or array, a list or tuple of positional arguments, or a
            mapping of named ones.
        allowance: Time that may be spent; the call ends with the operator during which it is up.

    Raises:
        UntoldError: If an operator is not known, the call fails on the example, the module
            cannot be copied, or the time is up.
    """
    import torch

    scripted = any(isinstance(m, torch.jit.ScriptModule) for m in module.modules())
    packed = any(True for m in module.modules() for _ in packed_of(m))
    if not packed and not scripted:
        try:
            return _called(copy_of(module, allowance, on_meta=True), example, torch.device("meta"), allowance)
        except UntoldError:
            raise
        except Exception:  # noqa: BLE001, S110  # what needs values is called with them, below
            pass
    allowance.check()
    copied = copy_of(module, allowance, on_meta=False)
    try:
        return _called(copied, example, _device_of(module), allowance)
    except UntoldError:
        raise
    except Exception as error:  # noqa: BLE001  # law 8: any module on any input
        raise UntoldError(f"a call on the example raised {error_kind(error)}") from None


def _called(module: torch.nn.Module, example: object, device: torch.device, allowance: Allowance) -> int:
    import torch

    args, kwargs = _arguments(example, device)
    counter = _counter(allowance)
    with torch.no_grad(), chance_kept(), _plain_attention(), counter:
        module(*args, **kwargs)
    # The module may have caught what was raised in it.
    allowance.check()
    if counter.unknown:
        raise UntoldError(f"the work of {', '.join(sorted(counter.unknown)[:3])} is not known")
    return int(counter.macs)


def _counter(allowance: Allowance) -> Any:  # noqa: ANN401  # its class can be made only once torch is there
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import flop_registry

    class Counter(TorchDispatchMode):  # type: ignore[misc]  # torch is untyped here
        """Adds up the work of every operator that is called."""

        def __init__(self) -> None:
            super().__init__()
            self.macs = 0
            self.unknown: set[str] = set()

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401  # torch's own signature
            del types
            allowance.check()
            out = func(*args, **(kwargs or {}))
            packet = getattr(func, "_overloadpacket", func)
            if packet in flop_registry:
                self.macs += flop_registry[packet](*args, **(kwargs or {}), out_val=out) // 2
                return out
            macs = macs_of(str(getattr(packet, "_qualified_op_name", packet)), args, out)
            if macs is None:
                self.unknown.add(str(packet))
            else:
                self.macs += macs
            return out

    return Counter()


def macs_of(name: str, args: tuple[Any, ...], out: Any) -> int | None:  # noqa: ANN401  # operators return anything
    """Return the multiply-accumulates of an operator that torch's own counter does not know.

    Args:
        name: With its namespace, such as ``aten::relu``.
        args: Its positional arguments.
        out: Its result.

    Returns:
        ``None`` if the work is not known.
    """
    space, _, local = name.rpartition("::")
    if space in {"aten", "prims", "prim"}:
        if local in _ROWS:
            return int(out.numel() * args[_ROWS[local]].shape[-1])
        return 0 if _LIGHT.search(local) or not _HEAVY.search(local) else None
    if space == "quantized":
        if _QUANTIZED_HEAVY.search(local):
            # Every value of the result is one dot product as long as one output's weights.
            weight = args[1].unpack()[0]
            return int(out.numel() * math.prod(weight.shape[1:]))
        return 0 if _QUANTIZED_LIGHT.search(local) else None
    return None


def _device_of(module: torch.nn.Module) -> torch.device:
    import torch

    found = next((p.device for p in module.parameters()), None)
    return found or next((b.device for b in module.buffers()), torch.device("cpu"))


def _arguments(example: Any, device: torch.device) -> tuple[tuple[Any, ...], dict[str, Any]]:  # noqa: ANN401  # the user's
    if isinstance(example, Mapping):
        return (), {str(k): _placed(v, device) for k, v in example.items()}
    if isinstance(example, list | tuple):
        return tuple(_placed(v, device) for v in example), {}
    return (_placed(example, device),), {}


def _placed(value: Any, device: torch.device) -> Any:  # noqa: ANN401  # as above
    """Return an argument as a fresh tensor on a device; what is no tensor stays."""
    import torch

    if isinstance(value, Mapping):
        return {k: _placed(v, device) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_placed(v, device) for v in value)
    if type(value).__module__ == "numpy" and hasattr(value, "__array__"):
        value = torch.tensor(value)
    return value.detach().clone().to(device) if isinstance(value, torch.Tensor) else value


@contextmanager
def _plain_attention() -> Iterator[None]:
    """Have attention layers call operators that can be counted, not one for the whole layer."""
    import torch

    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
