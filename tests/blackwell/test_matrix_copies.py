"""``ldmatrix.m16n16`` and ``stmatrix.m16n8``: matrices of 8-bit cells, transposed."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute, sim, utils
from tilewright.cute.nvgpu import warp
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError


def through(op: Any, rows: int, count: int = 0) -> Any:
    """A host function: lane l points to row l of 16 bytes; x is what is loaded from, or what lanes store. ``count``:
    the bytes of a lane, half as many as there are rows if it is not said."""
    stores, count = isinstance(op, warp.StMatrix16x8x8bOp), count or rows // 2

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        shared = utils.SmemAllocator().allocate_tensor(
            cutlass.Uint8, cute.make_layout((16, 32), stride=(1, 16)), byte_alignment=128
        )
        registers = cute.make_rmem_tensor(count, cutlass.Uint8)
        atom = cute.make_copy_atom(op, cutlass.Uint8)
        if cutlass.const_expr(stores):
            for i in cutlass.range_constexpr(count):
                registers[i] = x[t, i]
            cute.copy_atom_call(atom, registers, shared[None, t])
            cute.arch.sync_warp()
            if t < rows:
                for i in cutlass.range_constexpr(16):
                    y[t, i] = shared[i, t]
        else:
            if t < rows:
                for i in cutlass.range_constexpr(16):
                    shared[i, t] = x[t, i]
            cute.arch.sync_warp()
            cute.copy_atom_call(atom, shared[None, t], registers)
            for i in cutlass.range_constexpr(count):
                y[t, i] = registers[i]

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor) -> None:
        kernel(x, y).launch(grid=(1, 1, 1), block=(32, 1, 1))

    return host


def given(rows: int, stores: bool) -> tuple[Any, Any]:
    lanes, table = (32, rows // 2), (rows, 16)
    x = np.arange(16 * rows).astype(np.uint8).reshape(lanes if stores else table)
    return x, np.zeros(table if stores else lanes, np.uint8)


def cells(rows: int, stores: bool) -> tuple[Any, Any]:
    """Row and column of each byte of each lane's registers."""
    lane, byte = np.arange(32)[:, None], np.arange(rows // 2)
    if stores:
        return 8 * (byte // 4) + 2 * (lane % 4) + byte % 2, lane // 4 + 8 * (byte // 2 % 2)
    return 16 * (byte // 8) + 4 * (lane % 4) + byte % 2 + 2 * (byte // 4 % 2), lane // 4 + 8 * (byte // 2 % 2)


@pytest.mark.parametrize("matrices", [1, 2])
def test_lanes_load_two_neighbouring_rows_of_two_columns(matrices: int) -> None:
    x, y = given(16 * matrices, False)
    with sim.options(check="all", arch="sm_100a"):
        through(warp.LdMatrix16x16x8bOp(matrices), 16 * matrices)(from_dlpack(x), from_dlpack(y))
    np.testing.assert_array_equal(y, x[cells(16 * matrices, False)])


@pytest.mark.parametrize("matrices", [1, 2, 4])
def test_lanes_store_two_neighbouring_rows_of_two_columns(matrices: int) -> None:
    x, y = given(8 * matrices, True)
    with sim.options(check="all", arch="sm_120a"):
        through(warp.StMatrix16x8x8bOp(matrices), 8 * matrices)(from_dlpack(x), from_dlpack(y))
    np.testing.assert_array_equal(y[cells(8 * matrices, True)], x)


@pytest.mark.parametrize("matrices", [1, 2, 4])
@pytest.mark.parametrize("width", [4, 6])
def test_rows_of_numbers_are_unpacked(width: int, matrices: int) -> None:
    rows = 8 * matrices
    numbers = np.random.default_rng(0).integers(0, 1 << width, (rows, 16)).astype(np.uint8)
    bits = np.unpackbits(numbers[..., None], axis=-1, bitorder="little")[..., :width]
    x = np.full((rows, 16), 0xCD, np.uint8)  # what the other bytes of a row hold does not matter
    x[:, : 2 * width] = np.packbits(bits.reshape(rows, -1), axis=-1, bitorder="little")
    y = np.zeros((32, 4 * matrices), np.uint8)
    with sim.options(check="all", arch="sm_120a"):
        op = warp.LdMatrix8x16x8bOp(num_matrices=matrices, unpack_bits=width)
        through(op, rows, 4 * matrices)(from_dlpack(x), from_dlpack(y))
    expected = numbers.reshape(matrices, 32, 4).swapaxes(0, 1)  # lane l: of row l / 4 numbers 4 (l % 4) and on
    np.testing.assert_array_equal(y.reshape(32, matrices, 4), expected)


def test_accumulators_of_8_bits_are_stored_along_m() -> None:
    """The tiled copy finds the registers of each matrix among the accumulators."""
    kind = cutlass.Float8E4M3FN

    @cute.kernel
    def kernel(mma: cute.TiledMma, d: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        shared = utils.SmemAllocator().allocate_tensor(kind, cute.make_layout((16, 32), stride=(1, 16)), 128)
        part = mma.get_slice(t)
        sums = cute.make_rmem_tensor(part.partition_shape_C((16, 32)), cutlass.Float32)
        where = part.partition_C(cute.make_identity_tensor((16, 32)))
        for i in cutlass.range_constexpr(cute.size(sums)):
            sums[i] = cutlass.Float32(where[i][0] - where[i][1])
        held = cute.make_rmem_tensor(sums.shape, kind)
        held.store(sums.load().to(kind))
        copy = cute.make_tiled_copy_C(cute.make_copy_atom(warp.StMatrix16x8x8bOp(4), kind), mma)
        mine = copy.get_slice(t)
        cute.copy(copy, mine.retile(held), mine.partition_D(shared))
        cute.arch.sync_warp()
        for n in cutlass.range_constexpr(32):
            if t < 16:
                d[t, n] = shared[t, n].to(cutlass.Float32)

    @cute.jit
    def host(d: cute.Tensor) -> None:
        op = warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
        mma = cute.make_tiled_mma(op, (1, 1, 1), (16, 32, 16))
        kernel(mma, d).launch(grid=(1, 1, 1), block=(32, 1, 1))

    d = np.zeros((16, 32), np.float32)
    with sim.options(check="all", arch="sm_100a"):
        host(from_dlpack(d))
    exact = (np.arange(16)[:, None] - np.arange(32)).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    np.testing.assert_array_equal(d, exact)


@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a", "sm_120a"])
@pytest.mark.parametrize(
    ("op", "rows", "name"),
    [
        (warp.LdMatrix16x16x8bOp(2), 32, "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8 "),
        (warp.LdMatrix16x16x8bOp(1), 16, "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 "),
        (
            warp.LdMatrix8x16x8bOp(num_matrices=4, unpack_bits=4),
            32,
            "ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b4x16_p64 ",
        ),
        (
            warp.LdMatrix8x16x8bOp(num_matrices=4, unpack_bits=6),
            32,
            "ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b6x16_p32 ",
        ),
        (warp.StMatrix16x8x8bOp(4), 32, "stmatrix.sync.aligned.m16n8.x4.trans.shared.b8 "),
        (warp.StMatrix16x8x8bOp(1), 8, "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 "),
    ],
)
def test_the_text_is_assembled(arch: str, op: Any, rows: int, name: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    from tilewright.cuda import compile as build

    kernel = cute.compile(through(op, rows), *map(from_dlpack, given(rows, name.startswith("st")))).kernels[0]
    assert name in build(kernel, arch).ptx
    with pytest.raises(ConstraintError, match="needs sm_100a, sm_103a, sm_110a, sm_120a or sm_121a"):
        build(kernel, "sm_90a")


def test_matrices_that_there_are_not() -> None:
    with pytest.raises(ConstraintError, match="ldmatrix.m16n16 moves 1 or 2 matrices, not num_matrices=4"):
        warp.LdMatrix16x16x8bOp(4)
    with pytest.raises(ConstraintError, match="stmatrix.m16n8 moves 1, 2 or 4 matrices, not num_matrices=3"):
        warp.StMatrix16x8x8bOp(3)
    for kind in (warp.LdMatrix16x16x8bOp, warp.StMatrix16x8x8bOp):
        assert kind(2) == kind(True, 2) == kind(transpose=True, num_matrices=2) == kind(num_matrices=2) != kind(1)
        with pytest.raises(ConstraintError, match=r"transpose=False\): PTX moves these matrices transposed"):
            kind(transpose=False, num_matrices=1)
    for op in (warp.LdMatrix16x16x8bOp(1), warp.StMatrix16x8x8bOp(1)):
        with pytest.raises(ConstraintError, match="s cells of 8 bits, not f16: use"):
            cute.make_copy_atom(op, cutlass.Float16)
