"""Shared-memory layouts of a tile, and the tiled copies that move it."""

from __future__ import annotations

from math import gcd
from typing import Any

from tilewright import cute
from tilewright.errors import ConstraintError
from tilewright.gemm.config import LEAST_ASYNCHRONOUS, Major, Operand


def smem_swizzled(dtype: Any, tile: tuple[int, int], major: Major, unit: int, stages: int | None = None) -> Any:
    """A (MN, K[, stages]) layout whose rows are XOR-ed in units of ``unit`` bits, so that accesses of that much a row
    (ldmatrix: 16 bytes; four lanes with a pair each in the epilogue) spread over all banks.

    The contiguous mode is cut into rows of at most 128 bytes, one turn of the banks; the row's number is XOR-ed in.
    """
    contiguous = tile[1] if major is Major.K else tile[0]
    row = gcd(contiguous, 1024 // dtype.width)
    bits = max(0, log2(row * dtype.width // unit))
    atom = cute.make_layout((8, row), stride=(row, 1))
    if major is Major.MN:
        atom = cute.make_layout((row, 8), stride=(1, row))
    swizzle = cute.make_swizzle(bits, log2(unit // dtype.width), log2(1024 // unit))
    swizzled = cute.make_composed_layout(swizzle, 0, atom)
    shape, order = (tile, (0, 1)) if stages is None else ((*tile, stages), (0, 1, 2))
    return cute.tile_to_shape(swizzled, shape, order)


def log2(power: int) -> int:
    return power.bit_length() - 1


def smem_padded(dtype: Any, tile: tuple[int, int], major: Major, stages: int) -> Any:
    """A (MN, K, stages) layout with MN contiguous for SIMT: rows of K are padded by 16 bytes if the source is
    K-major."""
    pad = 128 // dtype.width if major is Major.K else 0
    pitch = tile[0] + pad
    return cute.make_layout((*tile, stages), stride=(1, pitch, pitch * tile[1]))


def global_to_shared(operand: Operand, tile: tuple[int, int], threads: int, granules: bool = False) -> Any:
    """The tiled copy of a (MN, K) tile: threads along the contiguous mode first, each with one vector; cp.async from 4
    bytes up. ``granules``: vectors of 16 bytes that come from registers."""
    if granules:
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), operand.dtype, num_bits_per_copy=128)
        return vectors_along(atom, tile, operand.major, 128 // operand.dtype.width, threads)
    vector = operand.vector
    if operand.copy_bits >= LEAST_ASYNCHRONOUS:
        cached = cute.nvgpu.LoadCacheMode.GLOBAL if operand.copy_bits == 128 else cute.nvgpu.LoadCacheMode.ALWAYS
        op: cute.nvgpu.cpasync.CopyG2SOp | cute.nvgpu.CopyUniversalOp
        op = cute.nvgpu.cpasync.CopyG2SOp(cache_mode=cached)
    else:
        op = cute.nvgpu.CopyUniversalOp()
    atom = cute.make_copy_atom(op, operand.dtype, num_bits_per_copy=operand.copy_bits)
    return vectors_along(atom, tile, operand.major, vector, threads)


def vectors_along(atom: Any, tile: tuple[int, int], major: Major, vector: int, threads: int) -> Any:
    """A tiled copy whose threads go along the contiguous mode of ``tile`` first, each holding ``vector`` elements of
    it."""
    contiguous = tile[1] if major is Major.K else tile[0]
    other = tile[0] if major is Major.K else tile[1]
    along = min(contiguous // vector, threads)
    across = threads // along
    if along * across != threads or contiguous % (along * vector) or other % across:
        raise ConstraintError(
            f"{threads} threads with {vector} elements each cannot cover a tile of {tile}: {along} go along its "
            f"{contiguous} contiguous elements and {threads / along:g} along its {other} others"
        )
    if major is Major.K:
        return cute.make_tiled_copy_tv(
            atom, cute.make_layout((across, along), stride=(along, 1)), cute.make_layout((1, vector))
        )
    return cute.make_tiled_copy_tv(
        atom, cute.make_layout((along, across), stride=(1, along)), cute.make_layout((vector, 1))
    )


def aligned(tensor: Any, operand: Operand) -> Any:
    """``tensor`` with the promise that its rows begin and end on multiples of the operand's vector."""
    vector, contiguous = operand.vector, 1 if operand.major is Major.K else 0
    shape = tuple(cute.assume(n, divby=vector) if mode == contiguous else n for mode, n in enumerate(tensor.shape))
    stride = tuple(s if isinstance(s, int) else cute.assume(s, divby=vector) for s in tensor.stride)
    return cute.make_tensor(tensor.iterator, cute.make_layout(shape, stride=stride))


def allocate_swizzled(smem: Any, dtype: Any, layout: Any) -> Any:
    """A shared tensor in the layout of a TMA or wgmma operand, whose swizzle permutes byte addresses."""
    if not isinstance(layout, cute.ComposedLayout):
        return smem.allocate_tensor(dtype, layout, 1024)
    return smem.allocate_tensor(dtype, layout.outer, 1024, swizzle=layout.inner)


def swizzled_tensor(memory: Any, dtype: Any, layout: Any) -> Any:
    """The same in ``memory``, aligned to 1024 bytes, that is there already."""
    if not isinstance(layout, cute.ComposedLayout):
        return cute.make_tensor(cute.recast_ptr(memory, dtype=dtype), layout)
    return cute.make_tensor(cute.recast_ptr(memory, layout.inner, dtype), layout.outer)
