"""Tensors at multiples of 256 bytes, as the driver's allocations are; PyTorch's on the CPU are at multiples of 64."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from tilewright.compat import memory

_COPIED = ("as_tensor", "asarray")  # functions that share the memory of an array of the host, where a GPU has a copy


def align(x: torch.Tensor, name: str = "", given: Iterable[Any] = ()) -> None:
    """Move ``x``, which the function ``name`` made of the arguments ``given``, to aligned memory, unless it lies in the
    memory of one of them. Its bytes are copied where they mean something."""
    if not _has_memory(x) or not (x.data_ptr() % memory.ALIGNMENT or name in _COPIED):
        return
    at = _address(x)
    if (at % memory.ALIGNMENT or name in _COPIED) and all(at != _address(other) for other in _tensors(given)):
        _move(x, not name.removeprefix("new_").startswith("empty"))


def resize(function: Callable[..., Any], x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    """``x.resize_(...)``, in memory of PyTorch's own: it can grow."""
    x.data = x.data.clone()
    result = function(x, *args, **kwargs)
    align(result)
    return result


def _has_memory(x: Any) -> bool:
    """Whether ``x`` is a tensor of numbers; neither traced by a compiler nor of a subclass."""
    return (
        type(x) in (torch.Tensor, torch.nn.Parameter)
        and x.layout is torch.strided
        and x.device.type == "cpu"
        and not x.is_quantized
        and not torch._C._functorch.is_functorch_wrapped_tensor(x)
    )


def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _tensors(value)
        elif _has_memory(value):
            yield value


def _address(x: torch.Tensor) -> int:
    return x.untyped_storage().data_ptr()


def _move(x: torch.Tensor, keep: bool) -> None:
    """Give ``x`` other memory with the same bytes, under the same shape and strides."""
    old = x.untyped_storage()
    new = torch.from_numpy(memory.aligned_bytes(old.nbytes())).untyped_storage()
    if keep:
        new.copy_(old)
    x.data = torch.empty(0, dtype=x.dtype).set_(new, x.storage_offset(), x.size(), x.stride())
