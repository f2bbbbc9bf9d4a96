"""Tensors that are marked otherwise than those that a function was compiled with, and fit it all the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import Constexpr, Float32, cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, ConstraintError, TilewrightError


@cute.kernel
def copy(x: cute.Tensor, y: cute.Tensor) -> None:
    i, _, _ = cute.arch.thread_idx()
    if i < cute.size(x):
        y[i // 4, i % 4] = x[i // 4, i % 4]


@cute.jit
def run(x: cute.Tensor, y: cute.Tensor) -> None:
    copy(x, y).launch(grid=(1, 1, 1), block=(32, 1, 1))


def tensor(x: Any, dynamic: bool) -> Any:
    made = from_dlpack(x, assumed_align=4)
    return made.mark_layout_dynamic(leading_dim=1) if dynamic else made


@pytest.mark.parametrize("compiled", [False, True])
def test_the_extents_decide(compiled: bool) -> None:
    x, y = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros((3, 4), np.float32)
    function = cute.compile(run, tensor(x, compiled), tensor(y, compiled))
    function(tensor(x, not compiled), tensor(y, not compiled))
    np.testing.assert_array_equal(y, x)


def test_other_extents_types_and_addresses_are_refused() -> None:
    x, y = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros((3, 4), np.float32)
    function = cute.compile(run, tensor(x, False), tensor(y, False))
    for wrong in (np.zeros((4, 4), np.float32), np.zeros((3, 8), np.float32)[:, ::2], np.zeros((3, 4), np.int32)):
        with pytest.raises(ArgumentError, match="argument 'x': expected"):
            made = from_dlpack(wrong, assumed_align=4)
            function(made.mark_layout_dynamic(leading_dim=1) if wrong.strides[1] == 4 else made, tensor(y, True))
    with pytest.raises(ArgumentError, match="multiple of 16 bytes"):
        aligned = cute.compile(run, from_dlpack(_at(16, x.shape), assumed_align=16), tensor(y, False))
        aligned(tensor(_at(4, x.shape), True), tensor(y, False))


def _at(offset: int, shape: tuple[int, int]) -> Any:
    """Floats that begin ``offset`` bytes behind a multiple of 64."""
    raw = np.zeros(shape[0] * shape[1] * 4 + 128, np.uint8)
    first = -raw.ctypes.data % 64 + offset
    return raw[first : first + shape[0] * shape[1] * 4].view(np.float32).reshape(shape)


@cute.kernel
def by_address(x: cute.Tensor, y: cute.Tensor, space: Constexpr) -> None:
    i, _, _ = cute.arch.thread_idx()
    four = cute.make_layout(4)
    source = cute.make_ptr(Float32, (x.iterator + 4 * i).llvm_ptr, x.iterator.memspace, assumed_align=16)
    target = cute.make_ptr(Float32, (y.iterator + 4 * i).llvm_ptr, space, assumed_align=16)
    cute.make_tensor(target, four).store(cute.make_tensor(source, four).load() * 2)


@cute.jit
def run_by_address(x: cute.Tensor, y: cute.Tensor, space: Constexpr) -> None:
    by_address(x, y, space).launch(grid=(1, 1, 1), block=(8, 1, 1))


def test_a_pointer_of_a_pointer_has_the_alignment_that_is_promised() -> None:
    x, y = (_at(0, (1, 32)) for _ in range(2))
    x[:] = np.arange(32)
    run_by_address(from_dlpack(x), from_dlpack(y), cute.AddressSpace.gmem)
    np.testing.assert_array_equal(y, x * 2)
    with pytest.raises(ConstraintError, match="a pointer to gmem memory, but mem_space=smem"):
        run_by_address(from_dlpack(x), from_dlpack(y), cute.AddressSpace.smem)
    with pytest.raises(TilewrightError, match="align"):
        run_by_address(from_dlpack(_at(4, (1, 32))), from_dlpack(y), cute.AddressSpace.gmem)
