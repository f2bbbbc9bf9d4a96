"""``mma.sp``: 2:4 sparse matrix instructions of a warp against NumPy, in the simulator and, where there is one, on a
GPU; metadata by the PTX ISA's words, bit by bit."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
from tests.atoms.fake import FakeLanes, call
from tilewright import BFloat16, Float8E4M3FN, Float16, Float32, Int8, Int32, TFloat32, Uint8, cute
from tilewright.atoms.mma_sync_sparse import SparseMmaSync
from tilewright.atoms.mma_sync_table import SPARSE_MMA_SYNC
from tilewright.cute.nvgpu import warp
from tilewright.errors import ConstraintError, SimulationError
from tilewright.ir.types import F16, F32, I32, FragType
from tilewright.layout import Layout

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
M, N, K = 32, 16, 128
OPS = {
    "f16 k16": (warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16), sparse=True), Float16, Float32),
    "f16 k32": (warp.MmaF16BF16Op(Float16, Float32, (16, 8, 32), sparse=True), Float16, Float32),
    "f16 k32 into f16": (warp.MmaF16BF16Op(Float16, Float16, (16, 8, 32), sparse=True), Float16, Float16),
    "bf16 k32": (warp.MmaF16BF16Op(BFloat16, Float32, (16, 8, 32), sparse=True), BFloat16, Float32),
    "tf32 k8": (warp.MmaTF32Op((16, 8, 8), sparse=True), TFloat32, Float32),
    "tf32 k16": (warp.MmaTF32Op((16, 8, 16), sparse=True), TFloat32, Float32),
    "s8 k32": (warp.MmaI8Op(Int8, Int8, (16, 8, 32), sparse=True), Int8, Int32),
    "s8 k64": (warp.MmaI8Op(Int8, Int8, (16, 8, 64), sparse=True), Int8, Int32),
}
HELD = {Float16: np.float16, BFloat16: ml_dtypes.bfloat16, TFloat32: np.float32, Int8: np.int8}


def drawn(width: int, tf32: bool, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A (M, K) of integers, of whose neighbours half are stored; the stored ones; and the metadata (M / 16, K / 64,
    32): lane l of a word has what the PTX ISA's figures say."""
    rng = np.random.default_rng(seed)
    group = 2 if tf32 else 4
    places = np.sort(rng.permuted(np.tile(np.arange(group), (M, K // group, 1)), axis=-1)[..., : group // 2], -1)
    stored = rng.integers(1, 5, places.shape)
    a = np.zeros((M, K // group, group))
    np.put_along_axis(a, places, stored, -1)
    codes = np.where(places[..., 0] == 0, 0b0100, 0b1110) if tf32 else places[..., 0] | places[..., 1] << 2
    blocks = codes.reshape(M // 16, 16, -1, 16)  # 16 codes of a row are 64 bits: those of 64 elements, or 32 of tf32
    words = np.zeros((*blocks.shape[0::2][:2], 32), np.uint32)
    for lane in range(32):
        row, quarter = lane // 4, lane % 4
        if width == 8:  # 32 elements of one row
            eight = blocks[:, row + 8 * (quarter % 2), :, 8 * (quarter // 2) :][..., :8]
        else:  # 16 elements of two rows
            eight = np.concatenate([blocks[:, row + 8 * i, :, 4 * quarter :][..., :4] for i in (0, 1)], -1)
        words[..., lane] = (eight.astype(np.uint32) << np.arange(0, 32, 4, dtype=np.uint32)).sum(-1, dtype=np.uint32)
    return a.reshape(M, K), stored.reshape(M, K // 2), words.view(np.int32)


@cute.kernel
def product(op: cutlass.Constexpr, a: cute.Tensor, e: cute.Tensor, b: cute.Tensor, d: cute.Tensor) -> None:
    lane, _, _ = cute.arch.thread_idx()
    mma = cute.make_tiled_mma(op)
    mine = mma.get_slice(lane)
    held = [mma.make_fragment_A(mine.partition_A(a)), mma.make_fragment_B(mine.partition_B(b))]
    for fragment, source in zip(held, (mine.partition_A(a), mine.partition_B(b)), strict=True):
        cute.autovec_copy(source, fragment)
    acc = mma.make_fragment_C(mine.partition_C(d))
    acc.fill(0)
    rows, words = cute.size(e, mode=[0]), cute.size(e, mode=[1])
    metadata = cute.make_rmem_tensor((1, rows, words), Int32)
    for i in cutlass.range_constexpr(rows):
        for k in cutlass.range_constexpr(words):
            metadata[0, i, k] = e[i, k, lane]
    cute.gemm(mma, acc, (held[0], metadata), held[1], acc)
    cute.autovec_copy(acc, mine.partition_C(d))


@cute.jit
def launch(op: cutlass.Constexpr, a: cute.Tensor, e: cute.Tensor, b: cute.Tensor, d: cute.Tensor) -> None:
    product(op, a, e, b, d).launch(grid=(1, 1, 1), block=(32, 1, 1))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", OPS)
def test_products(name: str, device: str) -> None:
    """Several rows, columns and instructions along K, each with its selector."""
    op, dtype, acc = OPS[name]
    a, stored, words = drawn(dtype.width, dtype is TFloat32)
    b = np.random.default_rng(1).integers(-3, 4, (N, K))
    kind = HELD[dtype]
    arrays = [stored.astype(kind), words, b.astype(kind), np.zeros((M, N), acc.ir_type.dtype)]
    if device == "cuda":
        torch = pytest.importorskip("torch")
        moved = [torch.from_numpy(x.view(np.int16) if x.dtype == ml_dtypes.bfloat16 else x).to(device) for x in arrays]
        moved = [
            x.view(torch.bfloat16) if kind is ml_dtypes.bfloat16 and i in (0, 2) else x for i, x in enumerate(moved)
        ]
    else:
        moved = arrays
    tensors = [cute.runtime.from_dlpack(x) for x in moved]
    if dtype is TFloat32:
        for i in (0, 2):
            tensors[i].element_type = TFloat32
    launch(op, *tensors)
    result = moved[3].cpu().numpy() if device == "cuda" else moved[3]
    np.testing.assert_array_equal(result.astype(np.float64), a @ b.T)


@pytest.mark.parametrize("name", sorted(SPARSE_MMA_SYNC))
def test_text(name: str) -> None:
    """Of every instruction of the table, with each selector."""
    from tilewright.atoms.mma_sync_text import helper_source

    atom = SPARSE_MMA_SYNC[name]
    assert isinstance(atom, SparseMmaSync)
    for selector in range(atom.instructions_a_word):
        source = helper_source(atom, "f", selector)
        assert f"mma.sp::ordered_metadata.sync.aligned.m16n8k{atom.shape_mnk[2]}.row.col" in source
        assert f", {selector:#x};" in source


def test_metadata_that_fall_are_an_error() -> None:
    atom = SparseMmaSync(80, (16, 8, 32), F32, F16, F16)
    d, a, b, e = (Layout((x.shape, 1, k)) for x, k in ((atom.layout_c[1], 1), (atom.layout_a[1], 2),
                                                     (atom.layout_b[1], 2), (Layout(1), 1)))  # fmt: skip
    types = [FragType(t, n) for t, n in ((F32, 4), (F16, 16), (F16, 16), (I32, 1))]
    op = call(
        atom, types, d_layout=d, a_layout=a, b_layout=b, e_layout=e, d_offset=0, a_offset=0, b_offset=0, e_offset=0
    )
    atom.verify(op)
    operands: list[Any] = [np.zeros((32, 4), np.float32), *(np.ones((32, 16), np.float16) for _ in "ab")]
    with pytest.raises(SimulationError, match="the metadata of row 0, elements 0 to 3 of A name the places 0 and 0"):
        atom.simulate(FakeLanes(1), op, [*operands, np.zeros((32, 1), np.int32)])


def test_other_shapes_are_refused() -> None:
    with pytest.raises(ConstraintError, match="16x8x16 with f32 accumulators"):
        warp.MmaF16BF16Op(Float16, Float32, (16, 8, 64), sparse=True)
    with pytest.raises(ConstraintError, match="no mma.sp of shape"):
        warp.MmaI8Op(Int8, Uint8, (16, 8, 16), sparse=True)
    with pytest.raises(ConstraintError):
        warp.MmaFP8Op(Float8E4M3FN, Float16, (16, 8, 64), sparse=True)
