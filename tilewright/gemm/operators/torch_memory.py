"""Memory for results of PyTorch calls that are repeated, in little host time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor


def new_tensors(shape: Sequence[int], stride: Sequence[int], dtype: torch.dtype, device: Any) -> Callable[[], Tensor]:
    """A function that makes tensors without values.

    The plain way is ``torch.empty_strided``, 1.5 us of host time. Code of torch.compile allocates by a function without
    PyTorch's dispatcher, which takes 0.5; it allocates on the current device only, and modes of the dispatcher do not
    see it. A PyTorch without this function has the plain way.
    """
    direct, is_current, device = direct_allocation(device)
    plain = partial(torch.empty_strided, shape, stride, dtype=dtype, device=device)
    modes = getattr(torch._C, "_len_torch_dispatch_stack", None)
    if direct is None or modes is None:
        return plain
    short = partial(direct, tuple(shape), tuple(stride), dtype)
    if is_current is None:
        return lambda: plain() if modes() else short()
    return lambda: short() if is_current() and not modes() else plain()


@cache
def direct_allocation(device: Any) -> tuple[Any, Callable[[], bool] | None, torch.device]:
    """PyTorch's function for memory on a kind of device, if it has one, what says whether ``device`` is the current one
    (None: it always is), and the device."""
    device = torch.device(device)
    guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)  # private: it may move
    direct = getattr(guards, f"_empty_strided_{device.type}", None)
    if device.type == "cuda" and torch.cuda.device_count() > 1:
        return direct, lambda: torch.cuda.current_device() == device.index, device
    return direct, None, device
