"""Idioms of programs that people wrote for the CuTe DSL, one test for each that once failed."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, ConstraintError, StagingError


@cute.kernel
def scaled(x: cute.Tensor, factor: cutlass.Constexpr, offset: cutlass.Constexpr) -> None:
    i = cute.arch.block_idx()[0] * 4 + cute.arch.thread_idx()[0]
    if i < cute.size(x):
        x[i] = x[i] * factor + offset


@cute.jit
def scale(x: cute.Tensor, factor: cutlass.Constexpr = 1, offset: cutlass.Constexpr = 0) -> None:
    tiles = cute.tiled_divide(x, (4,))
    scaled(x, factor, offset).launch(grid=[tiles.shape[1], 1, 1], block=[4, 1, 1])  # a mode of rank 1


def test_arguments_bound_by_partial_are_compiled_in() -> None:
    x = np.arange(6, dtype=np.int32)
    compiled = cute.compile(partial(partial(scale, factor=2, offset=5), offset=1), from_dlpack(x))
    compiled(from_dlpack(x))
    assert x.tolist() == [1, 3, 5, 7, 9, 11]
    cute.compile(partial(scale, from_dlpack(x)), 3)(from_dlpack(x))
    assert x.tolist() == [3, 9, 15, 21, 27, 33]


def test_a_grid_of_a_pair_is_refused() -> None:
    @cute.jit
    def host(x: cute.Tensor) -> None:
        scaled(x, 1, 0).launch(grid=[(2, 3), 1, 1], block=[4, 1, 1])

    with pytest.raises(StagingError, match="is not an integer"):
        host(from_dlpack(np.zeros(4, np.int32)))


def test_cache_modes_of_asynchronous_copies() -> None:
    modes = cpasync.LoadCacheMode
    assert [m.name for m in modes] == ["ALWAYS", "GLOBAL", "STREAMING", "LAST_USE", "NONE"]
    made = cute.make_copy_atom(cpasync.CopyG2SOp(modes.NONE), cutlass.Float32, num_bits_per_copy=32)
    assert str(made) == str(cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=32))
    for mode in (modes.STREAMING, modes.LAST_USE):
        with pytest.raises(ConstraintError, match=f"no {mode}"):
            cute.make_copy_atom(cpasync.CopyG2SOp(mode), cutlass.Float32, num_bits_per_copy=32)


@pytest.mark.parametrize(
    "make",
    [
        lambda: cute.make_layout((4, 2)),
        lambda: cute.make_tiled_mma(cute.nvgpu.MmaUniversalOp(cutlass.Float32)),
    ],
)
def test_pretty_str_is_what_prints(make: Any) -> None:
    assert cute.pretty_str(make()) == str(make())
    assert cute.pretty_str((2, (3, 4))) == "(2,(3,4))"


def test_an_older_place_of_dsl_user_op() -> None:
    from tilewright.base_dsl._mlir_helpers.op import dsl_user_op

    assert dsl_user_op is cutlass.dsl_user_op


@pytest.mark.parametrize("make", [cute.make_rmem_tensor_like, cute.make_fragment_like])
def test_registers_like_loaded_values(make: Any) -> None:
    """Elements of a loaded row by index: its values are stored into registers that are made like them."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor) -> None:
        values = x[None, cute.arch.thread_idx()[0]].load().to(cutlass.Float32)
        registers, halves = make(values), make(values, cutlass.Float16)
        registers.store(values)
        halves.store((values * 0.5).to(cutlass.Float16))
        for i in cutlass.range_constexpr(4, unroll_full=True):
            y[i, cute.arch.thread_idx()[0]] = registers[3 - i] + halves[i].to(cutlass.Float32)

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor) -> None:
        kernel(x, y).launch(grid=[1, 1, 1], block=[2, 1, 1])

    x = np.arange(8, dtype=np.int8).reshape(4, 2)
    y = np.zeros((4, 2), np.float32)
    host(from_dlpack(x), from_dlpack(y))
    assert (y == x[::-1] + 0.5 * x).all()


def test_names_for_annotations_and_isinstance() -> None:
    from tilewright.cute.nvgpu import tcgen05
    from tilewright.cutlass_dsl import JitCompiledFunction

    def rows(layout: cutlass.Layout) -> int:
        return layout.shape[0]

    assert rows(cute.make_layout((4, 8))) == 4 and cutlass.Layout is cute.Layout
    assert isinstance(cute.compile(scale, from_dlpack(np.zeros(8, np.float32))), JitCompiledFunction)
    assert not isinstance(cute.nvgpu.warpgroup.fence, tcgen05.MmaOp)


def test_an_object_file_is_named_by_its_path(tmp_path: Any) -> None:
    compiled = cute.compile(scale, from_dlpack(np.zeros(8, np.float32)))
    for wrong in (
        {},
        {"file_path": tmp_path, "object_file_path": "f.o"},
        {"object_file_path": "f.o", "file_name": "f"},
    ):
        with pytest.raises(ArgumentError, match="give file_path .* or object_file_path"):
            compiled.export_to_c(**wrong)
