"""Where ``SmemAllocator`` puts what libraries allocate by ``utils.SmemPartition``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.errors import ArgumentError
from tilewright.utils import SmemAllocator, SmemPartition

RESERVED = SmemPartition.RESERVED


@cute.struct
class Barriers:
    full: cute.struct.MemRange[cutlass.Int64, 4]
    word: cutlass.Int32


def addresses(allocate: Any) -> list[int]:
    """The addresses in shared memory of the pointers that ``allocate(smem)`` returns, then the bytes of the kernel."""

    @cute.kernel
    def kernel(x: cute.Tensor) -> None:
        pointers = allocate(SmemAllocator())
        for i, pointer in enumerate(pointers):
            x[i] = cutlass.Int32(pointer.toint())
        x[len(pointers)] = cute.arch.get_dyn_smem_size()

    @cute.jit
    def host(x: cute.Tensor) -> None:
        kernel(x).launch(grid=(1, 1, 1), block=(1, 1, 1))

    x = np.full(8, -1, np.int32)
    host(x)
    return x[x >= 0].tolist()


def test_reserved_memory_fills_the_gap_before_a_tile() -> None:
    def allocate(smem: SmemAllocator) -> list[Any]:
        barriers = smem.allocate(Barriers, partition=RESERVED)
        tile = smem.allocate_tensor(cutlass.Float16, cute.make_layout((8, 64)), 1024, partition=SmemPartition.USER)
        more = smem.allocate_array(cutlass.Int64, 2, partition=RESERVED)
        return [barriers.full.data_ptr(), tile.iterator, more]

    assert addresses(allocate) == [0, 1024, 40, 2048]


def test_reserved_memory_that_fits_in_no_gap_is_behind_all_other() -> None:
    def allocate(smem: SmemAllocator) -> list[Any]:
        word = smem.allocate(cutlass.Int32)
        tile = smem.allocate(256, 64)
        large = smem.allocate(64, 4, RESERVED)
        small = smem.allocate(cutlass.Int16, partition=RESERVED)
        aligned = smem.allocate(32, 32, RESERVED)
        between = smem.allocate(24, 8, RESERVED)
        return [word, tile, large, small, aligned, between]

    assert addresses(allocate) == [0, 64, 320, 4, 32, 8, 384]


def test_a_tile_never_begins_in_a_gap() -> None:
    assert addresses(lambda smem: [smem.allocate(4), smem.allocate(8, 64), smem.allocate(4)]) == [0, 64, 72, 76]


def test_unknown_smem_partition_is_refused() -> None:
    with pytest.raises(ArgumentError, match="a member of utils.SmemPartition, not 'reserved'"):
        addresses(lambda smem: [smem.allocate(4, partition="reserved")])
