"""Cases of :mod:`.operand_cases` on a GPU: the entry points' functions are given the same views of memory of the GPU.

``with on_device(): run(point, case)`` replaces the functions of the library that the cases call: each array becomes a
PyTorch tensor of a copy of all of its memory, and what the call has written is copied back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
import torch

from tests.gemm import operand_cases, operand_draws, operand_outputs, operand_scales, operand_weights
from tests.machines import Memories

ENTRY_POINTS = (
    "gemm",
    "launcher",
    "matmul",
    "matmul with bias",
    "matmul with outputs",
    "matmul by a vector",
    "gemm_grouped",
    "grouped_matmul",
    "scaled_matmul",
    "mixed_matmul",
    "sparse_matmul",
    "torch operator",
    "gradients",
)
"""Those whose calls are replaced."""

CALLS = {
    operand_cases: ("gemm", "launcher", "matmul", "gemm_grouped"),
    operand_outputs: ("matmul",),
    operand_scales: ("grouped_matmul", "scaled_matmul"),
    operand_weights: ("mixed_matmul", "sparse_matmul"),
}


def as_array(x: torch.Tensor) -> np.ndarray:
    """A result as a NumPy array."""
    x = x.detach().cpu()
    if x.dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
        name = str(x.dtype).removeprefix("torch.")
        return x.view(torch.uint8 if x.element_size() == 1 else torch.int16).numpy().view(getattr(ml_dtypes, name))
    return x.numpy()


drawn_array = operand_draws.drawn_array


def without_signs(*args: Any, **more: Any) -> operand_draws.Drawn:
    """As PyTorch's tensors are: no stride is below 0."""
    return drawn_array(*args[:5], **more | {"signed": False})


@contextmanager
def on_device(device: str = "cuda") -> Iterator[None]:
    """The cases' calls have tensors of that device."""
    memories = Memories(device, operand_cases.Skipped)  # PyTorch has no strides below 0

    def given(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **more: function(
            *map(memories.give, args), **{name: memories.give(x) for name, x in more.items()}
        )

    def called(function: Callable[..., Any]) -> Callable[..., Any]:
        """Results that are arrays come back, and all memory that the call could have written."""

        def call(*args: Any, **more: Any) -> Any:
            if any(isinstance(x, torch.Tensor) for x in args):  # gradients
                return function(*args, **more)
            found = given(function)(*args, **more)
            if callable(found):
                return lambda: (found(), memories.fetch())
            if hasattr(found, "d"):
                found = found.d
                memories.fetch()
                return mock.Mock(d=as_array(found))
            found = as_array(found) if isinstance(found, torch.Tensor) else [as_array(x) for x in found]
            memories.fetch()
            return found

        return call

    with ExitStack() as stack:
        for module, names in CALLS.items():
            for name in names:
                stack.enter_context(mock.patch.object(module, name, called(getattr(module, name))))
        for name in ("Residual", "Store"):
            function = getattr(operand_outputs, name)
            stack.enter_context(mock.patch.object(operand_outputs, name, given(function)))
        for module in (operand_draws, operand_cases, operand_outputs, operand_scales, operand_weights):
            stack.enter_context(mock.patch.object(module, "drawn_array", without_signs))
        stack.enter_context(mock.patch.object(operand_cases, "torch_of", memories.give))
        stack.enter_context(mock.patch.object(operand_weights, "prepare_weight", given(operand_weights.prepare_weight)))
        stack.enter_context(mock.patch.object(operand_weights, "compress_2_4", given(operand_weights.compress_2_4)))
        yield
