"""Memory for results of PyTorch calls that are repeated, in little host time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor


def new_tensors(shape: Sequence[int], stride: Sequence[int], dtype: torch.dtype, device: Any) -> Callable[[], Tensor]:
    """A function that makes tensors without values.

    The plain way is ``torch.empty_strided``, 1.5 us of host time. Code of torch.compile allocates by a function without
    PyTorch's dispatcher, which takes 0.5; it knows the current device alone, and modes of the dispatcher do not see it.
    """
    device = torch.device(device)
    plain = partial(torch.empty_strided, shape, stride, dtype=dtype, device=device)
    direct = getattr(torch._C._dynamo.guards, f"_empty_strided_{device.type}", None)
    if direct is None:
        return plain
    short = partial(direct, tuple(shape), tuple(stride), dtype)
    modes = torch._C._len_torch_dispatch_stack
    if device.type == "cuda" and torch.cuda.device_count() > 1:
        return lambda: plain() if modes() or torch._C._cuda_getDevice() != device.index else short()
    return lambda: plain() if modes() else short()
