"""What the guide to warpgroup MMAs shows: operations, the shapes of partitions and fragments, permutations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import Float8E4M3FN, Float8E5M2, Float16, Float32, Int8, Int32, Uint8, cute, utils
from tilewright.cute.nvgpu import OperandMajorMode, warpgroup
from tilewright.cute.runtime import from_dlpack

K_MAJOR = OperandMajorMode.K


def f16(n: int) -> Any:
    return warpgroup.MmaF16BF16Op(Float16, Float32, (64, n, 16), warpgroup.OperandSource.SMEM, K_MAJOR, K_MAJOR)


@pytest.mark.parametrize(
    ("op", "shape"),
    [
        (f16(128), (64, 128, 16)),
        (
            warpgroup.MmaF8Op(
                Float8E4M3FN, Float8E5M2, Float32, (64, 128, 32), warpgroup.OperandSource.SMEM, K_MAJOR, K_MAJOR
            ),
            (64, 128, 32),
        ),
        (
            warpgroup.MmaI8Op(Int8, Uint8, Int32, (64, 64, 32), warpgroup.OperandSource.RMEM, K_MAJOR, K_MAJOR),
            (64, 64, 32),
        ),
    ],
)
def test_the_operations(op: Any, shape: tuple[int, int, int]) -> None:
    assert cute.make_mma_atom(op).shape_mnk == shape
    assert cute.make_tiled_mma(op).shape_mnk == cute.make_tiled_mma(cute.make_mma_atom(op)).shape_mnk == shape


@pytest.mark.parametrize(
    ("tile", "atoms", "n", "shapes"),
    [
        ((128, 256, 64), (2, 1, 1), 256, ["(1,4,4)", "(1,4,4)", "(1,1)"]),
        ((128, 128, 64), (1, 1, 1), 128, ["(2,4,4)", "(1,4,4)", "(2,1)"]),
    ],
)
def test_partitions_and_fragments(tile: Any, atoms: Any, n: int, shapes: list[str]) -> None:
    """(MMA_M, MMA_K, PIPE), (MMA_N, MMA_K, PIPE) and (MMA_M, MMA_N), of partitions and of fragments alike."""
    found: list[list[str]] = []
    tiled_mma = cute.make_tiled_mma(cute.make_mma_atom(f16(n)), atom_layout_mnk=atoms)
    swizzled = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, Float16)
    layouts = [cute.tile_to_shape(swizzled, (rows, tile[2], 4), (0, 1, 2)) for rows in tile[:2]]

    def text(*tensors: Any) -> list[str]:
        return [f"({','.join(str(cute.size(t, mode=[i])) for i in range(1, cute.rank(t)))})" for t in tensors]

    @cute.kernel
    def kernel(c: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        group = cute.arch.make_warp_uniform(t // 128)
        thread_layout = cute.make_layout(atoms[0], stride=128)
        thr_mma = tiled_mma.get_slice(thread_layout(group))
        smem = utils.SmemAllocator()
        a, b = [smem.allocate_tensor(Float16, layout.outer, 1024, layout.inner) for layout in layouts]
        views = thr_mma.partition_A(a), thr_mma.partition_B(b), thr_mma.partition_C(c)
        found.append(text(*views))
        fragments = tiled_mma.make_fragment_A(views[0]), tiled_mma.make_fragment_B(views[1])
        acc = cute.make_rmem_tensor(views[2].shape, Float32)
        found.append(text(*fragments, acc))
        found.append([str(cute.size(acc, mode=[0]))])

    @cute.jit
    def host(c: cute.Tensor) -> None:
        kernel(c).launch(grid=(1, 1, 1), block=(128 * atoms[0], 1, 1))

    cute.compile(host, from_dlpack(np.zeros(tile[:2], np.float32)))
    assert found == [shapes, shapes, [str(64 * n // 128)]]


def test_a_permutation_gives_each_warpgroup_more_values() -> None:
    plain = cute.make_tiled_mma(cute.make_mma_atom(f16(128)), atom_layout_mnk=(2, 1, 1))
    wider = cute.make_tiled_mma(f16(128), atom_layout_mnk=(2, 1, 1), permutation_mnk=(128, 256, 16))
    assert [plain.get_tile_size(i) for i in range(3)] == [128, 128, 16]
    assert [wider.get_tile_size(i) for i in range(3)] == [128, 256, 16]
    assert plain.size == wider.size == 256
    assert (
        cutlass.utils.hopper_helpers.make_trivial_tiled_mma(
            Float16, Float16, K_MAJOR, K_MAJOR, Float32, atom_layout_mnk=(2, 1, 1), tiler_mn=(64, 128)
        ).size
        == 256
    )
