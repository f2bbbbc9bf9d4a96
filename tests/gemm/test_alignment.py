"""Pointers of the library's kernels are aligned because their offsets are, never by rounding up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilewright.gemm
from tilewright import cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError
from tilewright.gemm.addressing import aligned_pointer


@cute.kernel
def fetch(x: cute.Tensor, y: cute.Tensor, step: cute.Int32, divisor: cute.Constexpr):
    offset = cute.assume(step, divisor)
    source = cute.make_tensor(aligned_pointer(x.iterator + offset, 16), cute.make_layout(4))
    registers = cute.make_rmem_tensor(4, x.element_type)
    cute.autovec_copy(source, registers)
    cute.autovec_copy(registers, y)


@cute.jit
def run(x: cute.Tensor, y: cute.Tensor, step: cute.Int32, divisor: cute.Constexpr):
    fetch(x, y, step, divisor).launch(grid=1, block=1)


def test_an_offset_without_divisors_is_refused() -> None:
    x, y = (from_dlpack(np.arange(64, dtype=np.float32), assumed_align=16), np.zeros(4, np.float32))
    run(x, from_dlpack(y), 8, 4)
    assert y.tolist() == [8, 9, 10, 11]
    with pytest.raises(ConstraintError, match="a multiple of 8 bytes as far as is known, where accesses of 16 bytes"):
        run(x, from_dlpack(y), 8, 2)


def test_only_the_loader_of_granules_rounds() -> None:
    """It reads the 16 bytes in which an element lies."""
    sources = Path(tilewright.gemm.__file__).parent.rglob("*.py")
    assert [path.name for path in sources if ".align(" in path.read_text(encoding="utf-8")] == ["granules.py"]
