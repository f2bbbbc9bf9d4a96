"""What the operators of PyTorch share, which functions of the library call while PyTorch records: the types of results,
and the refusal of gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from tilewright.errors import ArgumentError
from tilewright.gemm.tuning.stand_in import numeric_class


def need_no_gradient(name: str, tensors: Iterable[Tensor | None], detached: str = "its operands") -> None:
    """ArgumentError where one of the tensors requires a gradient, which the operator does not have."""
    if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors):
        raise ArgumentError(f"{name} has no gradient: call it under torch.no_grad(), or detach {detached}")


def result_dtype(out_dtype: Any, out: Tensor | None) -> torch.dtype | None:
    """PyTorch's dtype of a result: ``out_dtype``, a dtype or a numeric class, else that of ``out``; None: the
    operator's default."""
    if out_dtype is None:
        return None if out is None else out.dtype
    dtype: torch.dtype = out_dtype if isinstance(out_dtype, torch.dtype) else numeric_class(out_dtype).torch_dtype
    return dtype
