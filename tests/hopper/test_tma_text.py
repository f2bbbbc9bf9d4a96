"""What TMA programs compile to, without a GPU."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.hopper.test_tma import smem
from tests.hopper.tma_programs import Bulk, Grouped, Multicast, Reduce, Through
from tilewright import cute, utils
from tilewright.cuda import compile as compile_cuda
from tilewright.cuda import emit
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError


def kernel(program: Any, *arrays: np.ndarray) -> Any:
    views = [from_dlpack(x, assumed_align=16).mark_layout_dynamic() for x in arrays]
    return cute.compile(program, *views).kernels[0]


def compiled(program: Any, *arrays: np.ndarray) -> tuple[str, str]:
    artifact = compile_cuda(kernel(program, *arrays), "sm_90a")
    assert artifact.spills == 0
    return artifact.cuda, artifact.ptx


def test_load_and_store() -> None:
    a = np.zeros((128, 256), np.float16)
    cuda, ptx = compiled(Through((64, 128), smem("K", "SW128", "f16", (64, 128))), a, a.copy())
    assert cuda.count("tma_load_2d(&") == cuda.count("tma_store_2d(&") == 2  # the tile is two atoms wide
    assert ptx.count("bulk.tensor.2d.shared::cluster") == ptx.count("bulk.tensor.2d.global.shared::cta") == 2
    assert "const __grid_constant__ tw::tensor_map load" in cuda


def test_multicast_prefetch_and_descriptor_prefetch() -> None:
    a, out = np.zeros((64, 64), np.float16), np.zeros((4, 2048), np.float16)
    cuda, ptx = compiled(Multicast((32, 64), smem("K", "SW128", "f16", (32, 64)), 2), a, out)
    assert ".multicast::cluster" in cuda
    assert re.search(r"bulk\.tensor\.2d\.shared::cluster\S*\.multicast::cluster", ptx)
    assert "cp.async.bulk.prefetch.tensor.2d.L2" in ptx and "prefetch.tensormap" in ptx


@pytest.mark.parametrize("kind", ["ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR"])
def test_reductions(kind: str) -> None:
    op = cpasync.CopyReduceBulkTensorTileS2GOp(cute.ReductionOp[kind])
    arrays = np.zeros((6, 16), np.uint32), np.zeros((5, 128), np.uint32)
    artifact = compile_cuda(kernel(Reduce((8, 16), op), *arrays), "sm_90a")
    assert f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.{kind.lower()}." in artifact.ptx
    assert artifact.spills == 0


@pytest.mark.parametrize("mode", list(utils.TensorMapUpdateMode), ids=lambda mode: mode.name)
def test_tensor_maps_changed_on_the_device(mode: utils.TensorMapUpdateMode) -> None:
    matrices = [from_dlpack(np.zeros((64, 64), np.float16)).mark_layout_dynamic(leading_dim=1) for _ in range(4)]
    space = cute.runtime.make_fake_compact_tensor(cute.Int64, (8, 16), stride_order=(1, 0), assumed_align=128)
    program = cute.compile(Grouped((16, 64), mode), matrices[:2], matrices[2:], space)
    artifact = compile_cuda(program.kernels[0], "sm_90a")
    where = "shared::cta" if mode is utils.TensorMapUpdateMode.SMEM else "global"
    for field in ("global_address", "global_dim", "global_stride"):
        assert f"tensormap.replace.tile.{field}.{where}.b1024" in artifact.cuda
    assert artifact.spills == 0


def test_older_gpus_have_no_tma() -> None:
    a = np.zeros((128, 256), np.float16)
    with pytest.raises(ConstraintError, match="needs sm_90"):
        compile_cuda(kernel(Through((64, 128), smem("K", "SW128", "f16", (64, 128))), a, a.copy()), "sm_80")


@pytest.mark.parametrize(
    ("store", "text"),
    [
        (None, "cp.async.bulk.global.shared::cta.bulk_group ["),
        (cpasync.CopyReduceBulkS2GOp(), "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16"),
        (cpasync.CopyReduceBulkS2GOp("MAX"), "bulk_group.max.f16"),
    ],
)
def test_bulk_copies(store: Any, text: str) -> None:
    a = np.zeros((4, 256), np.float16)
    artifact = compile_cuda(cute.compile(Bulk(store), *(from_dlpack(x, assumed_align=16) for x in (a, a))).kernels[0])
    assert text in artifact.ptx and "cp.async.bulk.shared::cluster.global" in artifact.ptx


def test_cache_policies() -> None:
    """EVICT_FIRST and its like, by name or as the 64 bits of createpolicy."""
    a = np.zeros((64, 64), np.float16)
    layout = smem("K", "SW128", "f16", (64, 64))

    @cute.kernel
    def hinted(atom: cute.CopyAtom, tensor: cute.Tensor):
        allocator = utils.SmemAllocator()
        full, tile = allocator.allocate_array(cute.Int64, 1), allocator.allocate_tensor(cute.Float16, layout, 1024)
        target, source = cpasync.tma_partition(
            atom,
            0,
            cute.make_layout(1),
            cute.group_modes(tile, 0, 2),
            cute.group_modes(cute.local_tile(tensor, (64, 64), (0, 0)), 0, 2),
        )
        cute.copy(atom, source, target, tma_bar_ptr=full, cache_policy=cute.nvgpu.CacheEvictionPriority.EVICT_FIRST)
        cute.copy(atom, source, target, tma_bar_ptr=full, cache_policy=0x14F0000000000000)

    @cute.jit
    def run(a: cute.Tensor):
        hinted(*cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, layout, (64, 64))).launch(
            grid=(1, 1, 1), block=(32, 1, 1)
        )

    artifact = compile_cuda(cute.compile(run, from_dlpack(a)).kernels[0], "sm_90a")
    assert artifact.cuda.count(".L2::cache_hint [") == 1  # one device function
    assert f"{0x12F0000000000000}" in artifact.cuda and f"{0x14F0000000000000}" in artifact.cuda


@cute.jit
def waits(alone: cutlass.Constexpr):
    @cute.kernel
    def kernel():
        if cute.arch.thread_idx()[0] == 0:
            if cutlass.const_expr(not alone):
                cute.arch.cp_async_bulk_commit_group()
            cute.arch.cp_async_bulk_wait_group(0, read=True)

    kernel().launch(grid=(1, 1, 1), block=(32, 1, 1))


def test_a_wait_alone_behind_a_branch_is_predicated() -> None:
    predicated, branched = (emit(cute.compile(waits, alone).kernels[0], "sm_90a").text for alone in (True, False))
    assert "@p cp.async.bulk.wait_group.read 0;" in predicated and "if (" not in predicated
    assert "@p" not in branched and "if (" in branched
    assert "cp.async.bulk.commit_group;" in branched and "cp.async.bulk.wait_group.read 0;" in branched
