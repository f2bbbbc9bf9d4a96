"""Sparse wgmma on both machines: exact against NumPy for integers, its layouts, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.hopper.warpgroup_programs import swizzled_layout
from tests.tiled.test_machines import MACHINES, NUMPY, Arrays
from tilewright import Float16, Float32, TFloat32, cute
from tilewright.atoms.names import mma_by_name
from tilewright.atoms.sparsity import bit_places, instruction_metadata_layout, metadata_layout
from tilewright.atoms.wgmma import WgmmaAtom, check_known
from tilewright.atoms.wgmma_sparse import SparseWgmmaAtom
from tilewright.cute.nvgpu import warpgroup
from tilewright.errors import ConstraintError, SimulationError
from tilewright.ir.types import F32, TF32
from tilewright.layout import offsets


class OneSparseGemm:
    """C (M, N) = A (M, K) B (N, K)^T + C in one block; A (M, K / 2) as stored, metadata (128, K / 64, M / 64)."""

    def __init__(self, atom: Any, warpgroups: int = 1, kinds: tuple[str, str] = ("SW64", "SW128")) -> None:
        self.atom, self.warpgroups, self.kinds = atom, warpgroups, kinds

    @cute.jit
    def __call__(self, mA: cute.Tensor, mE: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor):
        tiled_mma = cute.make_tiled_mma(self.atom, (self.warpgroups, 1, 1))
        self.kernel(mA, mE, mB, mC, tiled_mma).launch(grid=(1, 1, 1), block=(128 * self.warpgroups, 1, 1))

    @cute.kernel
    def kernel(self, mA: cute.Tensor, mE: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, tiled_mma: cute.TiledMma):
        tidx, _, _ = cute.arch.thread_idx()
        smem = cutlass.utils.SmemAllocator()
        shared = []
        for x, major, kind in zip((mA, mB), self.atom.majors, self.kinds, strict=True):
            layout = swizzled_layout(major, kind, x.element_type.width, x.shape, (0, 1))
            sX = smem.allocate_tensor(x.element_type, layout, 1024)
            for i in range(tidx, cute.size(x), 128 * self.warpgroups):
                sX[i] = x[i]
            shared.append(sX)
        cute.arch.fence_view_async_shared()
        cute.arch.sync_threads()
        thr_mma = tiled_mma.get_slice(tidx)
        tCsA, tCsB, tCgC = thr_mma.partition_A(shared[0]), thr_mma.partition_B(shared[1]), thr_mma.partition_C(mC)
        tCrA, tCrB = tiled_mma.make_fragment_A(tCsA), tiled_mma.make_fragment_B(tCsB)
        if cutlass.const_expr(self.atom.source == "RS"):
            cute.autovec_copy(tCsA, tCrA)
        tCrE = cute.make_rmem_tensor((1, 1, cute.size(mE, mode=[1])), cutlass.Int32)  # (1, MMA_M, K / 64)
        cute.autovec_copy(mE[tidx % 128, None, tidx // 128], tCrE[0, 0, None])
        acc = tiled_mma.make_fragment_C(tCgC)
        cute.autovec_copy(tCgC, acc)
        warpgroup.fence()
        cute.gemm(tiled_mma, acc, (tCrA, tCrE), tCrB, acc)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        cute.autovec_copy(acc, tCgC)


def sparse_matrix(rng: Any, m: int, k: int, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which elements are stored (m, k / 2), the dense matrix of integers, and the words (128, k / 64, m / 64), bit by
    bit by the layout of the metadata."""
    pairs = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
    chosen = pairs[rng.integers(0, 6, (m, k // 4))]  # (m, k / 4, 2)
    stored = (4 * np.arange(k // 4)[None, :, None] + chosen).reshape(m, k // 2)
    dense = np.zeros((m, k))
    np.put_along_axis(dense, stored, rng.integers(-3, 4, (m, k // 2)).astype(np.float64), 1)
    bits = np.stack([chosen >> bit & 1 for bit in (0, 1)], -1).reshape(m, k)  # of (m, k): place 0, then place 1
    words = np.zeros((128, k // 64, m // 64), np.uint32)
    layout = metadata_layout(width)
    for bit in range(32):
        for thread in range(128):
            row, column = layout((thread, bit)) % 64, layout((thread, bit)) // 64
            words[thread] |= (bits[row::64, column::64].T << bit).astype(np.uint32)
    return stored, dense, words.view(np.int32)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("name", "kinds", "warpgroups"),
    [
        ("64x32x32_F32F16F16_SS<K,K>", ("SW64", "SW128"), 2),
        ("64x256x32_F32BF16BF16_SS<K,MN>", ("SW32", "SW64"), 1),
        ("64x16x32_F16F16F16_SS<MN,K>", ("SW128", "SW128"), 1),
        ("64x24x32_F32F16F16_RS<K,K>", ("SW64", "SW128"), 2),
        ("64x40x64_F32E4M3E5M2_SS_TN", ("SW32", "SW128"), 2),
        ("64x32x64_S32S8U8_RS_TN", ("SW64", "SW128"), 1),
    ],
)
def test_sparse_products_are_exact(machine: str, name: str, kinds: tuple[str, str], warpgroups: int) -> None:
    atom = mma_by_name(f"SM90_SPARSE_{name}")
    rng, m, n, k = np.random.default_rng(5), 64 * warpgroups, atom.shape_mnk[1], 128
    stored, dense, words = sparse_matrix(rng, m, k, atom.type_a.width)
    low = 0 if atom.type_b.name == "u8" else -3
    b, c = rng.integers(low, 4, (n, k)), rng.integers(-3, 4, (m, n))
    values = np.take_along_axis(dense, stored, 1).astype(NUMPY[atom.type_a.name])
    arrays = Arrays(machine, values, words, b.astype(NUMPY[atom.type_b.name]), c.astype(NUMPY[atom.type_d.name]))
    OneSparseGemm(atom, warpgroups, kinds)(*arrays.tensors())
    np.testing.assert_array_equal(arrays.back(3).astype(np.float64), dense @ b.T + c)


@pytest.mark.parametrize("width", [16, 8])
def test_the_words_of_128_threads_are_all_bits_once(width: int) -> None:
    """Those of one instruction are those of the block that the selector chooses."""
    assert sorted(bit_places(metadata_layout(width)).reshape(-1)) == list(range(4096))
    one, block = (offsets(f(width)).reshape(32, 128) for f in (instruction_metadata_layout, metadata_layout))
    if width == 8:
        np.testing.assert_array_equal(one, block)
        return
    for selector in (0, 1):
        threads = [t for t in range(128) if t % 4 // 2 == selector]
        np.testing.assert_array_equal(one[:, threads], block[:, threads] - 64 * 32 * selector)


def test_the_text_names_metadata_and_selector() -> None:
    from tilewright.atoms.wgmma_text import helper_source

    atom = SparseWgmmaAtom((64, 8, 32), F32, Float16.ir_type, Float16.ir_type)
    assert "%4, %5, %7, 1, p, 1, 1, 0, 0;" in helper_source(atom, "f", 1)
    assert "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {" in helper_source(atom, "f")


def test_metadata_that_fall_are_refused() -> None:
    rng = np.random.default_rng(0)
    atom = mma_by_name("SM90_SPARSE_64x8x32_F32F16F16_SS<K,K>")
    _, _, words = sparse_matrix(rng, 64, 64, 16)
    words[3, 0, 0] &= ~0xF  # places 0 and 0
    arrays = Arrays(
        "cpu", np.ones((64, 32), np.float16), words, np.ones((8, 64), np.float16), np.zeros((64, 8), np.float32)
    )
    with pytest.raises(
        SimulationError, match=r"row 0, elements 48 to 51 of A name the places 0 and 0, which must rise"
    ):
        OneSparseGemm(atom)(*arrays.tensors())


K, SMEM = warpgroup.OperandMajorMode.K, warpgroup.OperandSource.SMEM


def test_sparse_wgmma_refuses_unknown_shapes_and_types() -> None:
    with pytest.raises(ConstraintError, match=r"no wgmma.sp of shape 64x64x16.*its shape is 64xNx32"):
        warpgroup.MmaF16BF16Op(Float16, Float32, (64, 64, 16), SMEM, K, K, sparse=True)
    assert check_known(SparseWgmmaAtom((64, 64, 16), F32, TF32, TF32)).word_k == 32
    with pytest.raises(ConstraintError, match="its shape is 64xNx16 for"):
        check_known(SparseWgmmaAtom((64, 64, 32), F32, TF32, TF32))
    atom = SparseWgmmaAtom((64, 64, 32), F32, Float16.ir_type, Float16.ir_type)
    with pytest.raises(ConstraintError, match="K of SM90_SPARSE.*is an extent or None"):
        cute.make_tiled_mma(atom, (1, 1, 1), (64, 64, cute.make_layout((2, 16), stride=(16, 1))))
    assert WgmmaAtom((64, 64, 16), F32, Float16.ir_type, Float16.ir_type).sparsity == 1
    assert TFloat32.width == 32


class Wrong(OneSparseGemm):
    """A gemm whose A is not the pair that it should be, or whose metadata are too few."""

    def __init__(self, what: str, atom: Any) -> None:
        super().__init__(atom)
        self.what = what

    @cute.kernel
    def kernel(self, mA: cute.Tensor, mE: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, tiled_mma: cute.TiledMma):
        smem = cutlass.utils.SmemAllocator()
        sA, sB = (
            smem.allocate_tensor(x.element_type, swizzled_layout("K", "SW64", 16, x.shape, (0, 1)), 1024)
            for x in (mA, mB)
        )
        thr_mma = tiled_mma.get_slice(0)
        tCrA = tiled_mma.make_fragment_A(thr_mma.partition_A(sA))
        tCrB = tiled_mma.make_fragment_B(thr_mma.partition_B(sB))
        acc = tiled_mma.make_fragment_C(thr_mma.partition_C(mC))
        tCrE = cute.make_rmem_tensor((1, 1, 2), cutlass.Int32)
        A = {"alone": tCrA, "long": (tCrA, tCrE), "values": (tCrA, tCrA)}[self.what]
        cute.gemm(tiled_mma, acc, A, tCrB, acc)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("alone", r"A is a pair, \(stored elements, metadata\)"),
        ("long", r"so they are \(1,1,1\) for whole registers"),
        ("values", "E .* must be in registers"),
    ],
)
def test_operands_that_do_not_fit(what: str, message: str) -> None:
    atom = SparseWgmmaAtom((64, 8, 32), F32, Float16.ir_type, Float16.ir_type)
    arrays = Arrays(
        "cpu",
        np.ones((64, 32), np.float16),
        np.zeros((128, 1, 1), np.int32),
        np.ones((8, 64), np.float16),
        np.zeros((64, 8), np.float32),
    )
    with pytest.raises(ConstraintError, match=message):
        Wrong(what, atom)(*arrays.tensors())
