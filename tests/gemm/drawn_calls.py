"""An operator of the library with drawn operands, as ``call_sequences`` calls it."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import torch

ROWS = (0, 1, 2, 3, 4, 5)
"""Choices of :func:`fewer`."""
LAYOUTS = ("rows", "columns", "padded", "spread", "odd")
FLOATS: dict[str, torch.dtype] = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
EIGHT: dict[str, torch.dtype] = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}


def laid(x: torch.Tensor, how: str) -> torch.Tensor:
    """The numbers of ``x`` as a view of another kind."""
    raw = x.view(torch.uint8) if x.element_size() == 1 else x
    rows, columns = raw.shape
    if how == "columns":
        found = raw.T.contiguous().T
    elif how == "odd":
        found = raw.new_zeros(raw.numel() + 1)[1:].view(rows, columns)
    else:
        wide = {"rows": columns, "padded": columns + 16, "spread": 2 * columns}[how]
        found = raw.new_zeros(rows, wide)[:, :: 2 if how == "spread" else 1][:, :columns]
    found.copy_(raw)
    return found.view(x.dtype)


def fewer(rows: int, choice: int) -> int:
    """All rows, half of them, numbers that are near to all, or none."""
    return (rows, max(1, rows // 2), rows - 1, rows - 2, rows - 3, 0)[choice]


def as_float(x: Any) -> np.ndarray:
    return x.detach().double().cpu().numpy() if isinstance(x, torch.Tensor) else np.asarray(x).astype(np.float64)


class Calls(ABC):
    """An operator with operands; ``choices`` are the properties of a call, the first value of each is taken first.
    On a GPU those of ``on_gpu`` take their places."""

    choices: ClassVar[dict[str, tuple[Any, ...]]] = {}
    on_gpu: ClassVar[dict[str, tuple[Any, ...]] | None] = {"arch": (None,)}
    """None: the operator is not one of this GPU."""
    repeats: ClassVar[bool] = True
    """Whether something is kept of a call for its repetition."""

    def __init__(self, choose: random.Random, device: str = "cpu") -> None:
        self.random, self.numbers = choose, np.random.default_rng(choose.randrange(1 << 30))
        self.device = device
        self.properties = self.choices | ((self.on_gpu or {}) if device == "cuda" else {})
        self.draw()

    def tensor(self, x: np.ndarray) -> torch.Tensor:
        return torch.as_tensor(x, device=self.device)

    @abstractmethod
    def draw(self) -> None:
        """Draw the extents of the operands."""

    @abstractmethod
    def fill(self) -> None:
        """Draw the numbers of the operands; before each call."""

    @abstractmethod
    def call(self, **state: Any) -> tuple[Any, np.ndarray]:
        """The result, and what it should be."""

    def integers(self, *shape: int) -> np.ndarray:
        return self.numbers.integers(-3, 4, shape)

    def powers(self, *shape: int) -> np.ndarray:
        return np.exp2(self.numbers.integers(-2, 3, shape)).astype(np.float32)

    def extents(self, *choices: tuple[int, ...]) -> list[int]:
        return [self.random.choice(values) for values in choices]
