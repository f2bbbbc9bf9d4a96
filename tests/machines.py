"""One test for both machines: ``@MACHINES`` gives it ``machine``, which puts arrays where its kernels run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.cute.runtime import from_dlpack


def torch_type(dtype: np.dtype) -> Any:
    """PyTorch's type of a NumPy array's elements, those of ml_dtypes among them."""
    import torch

    return getattr(torch, dtype.name)


def on_gpu(array: np.ndarray) -> Any:
    """A copy of the array as a PyTorch tensor of the GPU; ml_dtypes' floats become PyTorch's."""
    import torch

    raw = array.view({1: np.uint8, 2: np.int16}[array.itemsize]) if array.dtype.kind == "V" else array
    return torch.from_numpy(np.ascontiguousarray(raw)).cuda().view(torch_type(array.dtype))


class OnMachine:
    """``run(program, *arrays)`` calls the program with NumPy arrays as tensors; what it wrote is in them afterwards."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, program: Any, *arrays: Any, **options: Any) -> None:
        """``options`` go to from_dlpack; arguments that are not arrays are passed on."""
        if self.name == "cpu":
            program(*(from_dlpack(a, **options) if isinstance(a, np.ndarray) else a for a in arrays))
            return
        torch = pytest.importorskip("torch")
        if torch.cuda.get_device_capability()[0] < 9:
            pytest.skip("needs a GPU with clusters")
        there = [torch.from_numpy(a).cuda() if isinstance(a, np.ndarray) else a for a in arrays]
        program(*(from_dlpack(a, **options) if isinstance(a, torch.Tensor) else a for a in there))
        for here, away in zip(arrays, there, strict=True):
            if isinstance(here, np.ndarray):
                here[...] = away.cpu().numpy()


MACHINES = pytest.mark.parametrize(
    "machine", [OnMachine("cpu"), pytest.param(OnMachine("cuda"), marks=pytest.mark.gpu)], ids=lambda m: m.name
)
