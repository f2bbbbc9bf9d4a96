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


ALIGNMENT = 128


def _owner(x: np.ndarray) -> np.ndarray:
    """The array whose memory a view sees; one by ``as_strided`` is based on an object that holds it."""
    base = x.base
    while base is not None and not isinstance(base, np.ndarray):
        base = getattr(base, "base", None)
    return x if base is None else _owner(base)


class Memories:
    """The GPU's copies of the memories that arrays look at, by the address of each."""

    def __init__(self, device: str = "cuda", refusal: type[Exception] = ValueError) -> None:
        """``refusal`` is raised for strides below 0, which PyTorch does not have."""
        self.device, self.refusal = device, refusal
        self.held: dict[int, tuple[np.ndarray, Any]] = {}

    def give(self, x: Any) -> Any:
        """The same view of the GPU's memory; in lists and tuples, too."""
        if type(x) in (list, tuple):
            return type(x)(map(self.give, x))
        if not isinstance(x, np.ndarray):
            return x
        import torch

        if any(step < 0 for step in x.strides):
            raise self.refusal(f"no tensor of PyTorch has the strides {x.strides}")
        whole = _owner(x)
        address, first = whole.ctypes.data, x.ctypes.data - whole.ctypes.data
        if address not in self.held:
            raw = whole.ravel("K").view(np.uint8)
            room = torch.zeros(raw.size + ALIGNMENT, dtype=torch.uint8, device=self.device)
            there = room[(address - room.data_ptr()) % ALIGNMENT :][: raw.size]
            there.copy_(torch.from_numpy(raw))
            self.held[address] = raw, there
        there = self.held[address][1][first:]
        elements = there[: there.numel() // x.itemsize * x.itemsize].view(torch_type(x.dtype))
        return torch.as_strided(
            elements, x.shape, [step // x.itemsize for step in x.strides], elements.storage_offset()
        )

    def fetch(self) -> None:
        for raw, there in self.held.values():
            raw[...] = there.cpu().numpy()
        self.held.clear()


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
