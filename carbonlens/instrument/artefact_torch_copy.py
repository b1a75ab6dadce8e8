"""A copy of a torch module that may be called without anything of the module being changed.

All that the module holds is copied, not its tensors alone: a forward may fill caches, lists
and queues. What lies outside it (globals, attributes of its class) is no part of a copy; a
function that holds variables of its own cannot be copied, and there is no copy then. The
hooks of others are left out, because they may hold anything.
"""

from __future__ import annotations

import copy
import random
import sys
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from carbonlens.instrument.artefact_figures import Allowance, UntoldError
from carbonlens.instrument.artefact_tensors import PLAIN
from carbonlens.metering.wording import error_kind

if TYPE_CHECKING:
    import torch

MOST_BYTES: Final = 1 << 30
"""Largest module of which the values are copied: it takes the same memory of its device again."""

_HARMLESS: Final = (*PLAIN, type, ModuleType)


class _Memo(dict[int, Any]):
    """What was copied already, which ``copy.deepcopy`` asks before every object: there its time ends."""

    def __init__(self, allowance: Allowance) -> None:
        super().__init__()
        self._allowance = allowance

    def get(self, key: int, default: Any = None) -> Any:  # noqa: ANN401  # as of a dict
        self._allowance.check()
        return super().get(key, default)


def copy_of(module: torch.nn.Module, allowance: Allowance, *, on_meta: bool) -> torch.nn.Module:
    """Return a copy in evaluation mode, without the hooks of others.

    Args:
        module: It is left as it is.
        allowance: Time that may be spent.
        on_meta: Whether the tensors of the copy are without values.

    Raises:
        UntoldError: If it cannot be copied, is too large for that, or takes too long.
    """
    if not on_meta:
        size = sum(t.numel() * t.element_size() for t in _tensors_of(module))
        if size > MOST_BYTES:
            raise UntoldError(f"it needs values, which are copied up to {MOST_BYTES >> 30} GiB only")
    try:
        with chance_kept():
            memo = _Memo(allowance)
            copied = _copied(module, memo, _to_meta if on_meta else _own).eval()
            _check_apart(memo)
            return copied
    except UntoldError:
        raise
    except Exception as error:  # noqa: BLE001  # law 8: a lock, a file, a copy of the user's own making
        raise UntoldError(f"it cannot be copied ({error_kind(error)})") from None


def _copied(module: torch.nn.Module, memo: _Memo, moved: Callable[[Any], Any]) -> torch.nn.Module:
    import torch

    hooks: list[tuple[dict[Any, Any], dict[Any, Any]]] = []
    for theirs in (h for part in module.modules() for h in _hooks_of(part)):
        # Taken out before anything is copied: a hook of others may hold anything.
        ours: OrderedDict[Any, Any] = OrderedDict()
        memo[id(theirs)] = ours
        hooks.append((theirs, ours))
    for tensor in _tensors_of(module):
        memo[id(tensor)] = moved(tensor)
    with _tensors_moved(moved):
        result: torch.nn.Module = copy.deepcopy(module, memo)
        for theirs, own in hooks:
            own.update((k, copy.deepcopy(h, memo)) for k, h in theirs.items() if _is_torchs(h))
    # Modules that lie in lists are no children, and are called all the same.
    for part in [m for m in memo.values() if isinstance(m, torch.nn.Module)]:
        part.training = False
        part._compiled_call_impl = None  # it calls the module itself
        for kept in _hooks_of(part):
            for key in [k for k, h in kept.items() if not _is_torchs(h)]:
                del kept[key]
    return result


def _hooks_of(part: torch.nn.Module) -> list[dict[Any, Any]]:
    return [v for name, v in vars(part).items() if "_hooks" in name and isinstance(v, dict)]


def _check_apart(memo: _Memo) -> None:
    """See to it that nothing in a copy leads back to the module.

    Raises:
        UntoldError: If a function or reference in it may, which ``copy.deepcopy`` takes as it is.
    """
    for key, kept in tuple(memo.items()):
        if key == id(memo):
            continue  # what deepcopy keeps alive meanwhile
        if isinstance(kept, dict):
            if _leads_back(kept.get("forward")):
                raise UntoldError("its forward was replaced by something that cannot be copied")
            kept = tuple(kept.values())  # noqa: PLW2901  # what lies in it
        if isinstance(kept, tuple | list | set | deque) and any(map(_leads_back, kept)):
            raise UntoldError("it holds a function or a reference that cannot be copied")


def _tensors_of(module: torch.nn.Module) -> Iterator[Any]:
    yield from module.parameters()
    yield from module.buffers()


@contextmanager
def _tensors_moved(moved: Callable[[Any], Any]) -> Iterator[None]:
    """Have ``copy.deepcopy`` move tensors that lie anywhere, those with a history too."""
    import torch
    from torch.overrides import TorchFunctionMode

    class Moving(TorchFunctionMode):  # type: ignore[misc]  # torch is untyped here
        """Moves a tensor where it would be copied."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401  # torch's own signature
            del types
            if func is not torch.Tensor.__deepcopy__:
                return func(*args, **(kwargs or {}))
            tensor, memo = args
            if id(tensor) not in memo:
                memo[id(tensor)] = moved(tensor)
            return memo[id(tensor)]

    with Moving():
        yield


def _leads_back(value: object) -> bool:
    """Tell whether a value may reach the module by what it holds: a function's variables, a reference."""
    import torch

    if isinstance(value, tuple):
        return any(map(_leads_back, value))
    if isinstance(value, weakref.ref):
        return isinstance(value(), torch.nn.Module)
    if isinstance(value, BuiltinFunctionType):
        return not isinstance(value.__self__, type | ModuleType | None)
    if not isinstance(value, FunctionType) or str(value.__module__).startswith("torch."):
        return False
    kept = [*(cell.cell_contents for cell in value.__closure__ or () if _is_set(cell))]
    kept += [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    return not all(isinstance(v, _HARMLESS) or _is_bare(v) for v in kept)


def _is_bare(value: object) -> bool:
    """Tell whether a value is a function that holds nothing, as a decorated one is."""
    if isinstance(value, BuiltinFunctionType):
        return not _leads_back(value)
    return isinstance(value, FunctionType) and not value.__closure__ and not value.__defaults__


def _is_set(cell: Any) -> bool:  # noqa: ANN401  # its type has no public name
    try:
        cell.cell_contents  # noqa: B018  # asking is the test
    except ValueError:
        return False
    return True


def _is_torchs(hook: object) -> bool:
    """Tell whether a hook belongs to torch, which prunes and normalises weights by hooks."""
    place = getattr(hook, "__module__", None) or type(hook).__module__
    return hook is True or str(place).startswith("torch.")


def _to_meta(tensor: Any) -> Any:  # noqa: ANN401  # torch is untyped here
    return _alike(tensor, tensor.detach().to("meta"))


def _own(tensor: Any) -> Any:  # noqa: ANN401  # as above
    return _alike(tensor, tensor.detach().clone())


def _alike(tensor: Any, moved: Any) -> Any:  # noqa: ANN401  # as above
    import torch

    return torch.nn.Parameter(moved, requires_grad=False) if isinstance(tensor, torch.nn.Parameter) else moved


@contextmanager
def chance_kept() -> Iterator[None]:
    """Have all generators of random numbers go on afterwards as if nothing had been drawn."""
    import torch

    ours = random.getstate()
    numpy = sys.modules.get("numpy")
    theirs = None if numpy is None else numpy.random.get_state(legacy=False)
    cuda = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    try:
        with torch.random.fork_rng(devices=cuda):
            yield
    finally:
        random.setstate(ours)
        if numpy is not None:
            numpy.random.set_state(theirs)
