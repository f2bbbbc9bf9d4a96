"""Notes about speed: what a slow access gets, a good one does not, and none is an error."""

from __future__ import annotations

from functools import partial

import numpy as np

import tilewright as cutlass
from tests.check.pairs import launch, numbers
from tilewright import Float32, cute, sim, utils
from tilewright.cute.nvgpu import cpasync
from tilewright.layout import Swizzle, design_swizzle
from tilewright.sim.checks.collect import collecting


def rules(pad: int) -> list[str]:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        layout = cute.make_layout((32, 32), stride=(32 + pad, 1))
        s = cute.make_tensor(cute.arch.alloc_smem(Float32, 32 * (32 + pad)), layout)
        for row in range(32):
            s[row, t] = x[row, t]
        cute.arch.sync_threads()
        if pad == 0:
            cute.arch.sync_threads()
        for column in range(32):
            if pad == 0:
                y[t, column] = s[t, column]
            else:
                y[column, t] = s[t, column]

    x = numbers(1024).reshape(32, 32)
    with collecting() as report, sim.options(check="performance"):
        launch(kernel, x, np.zeros_like(x), block=32)
    assert not report.errors
    return report.rules


def test_a_slow_transpose() -> None:
    assert set(rules(0)) == {"bank-conflict", "uncoalesced", "redundant-barrier"}


def test_a_good_one() -> None:
    assert rules(1) == []


def test_a_nearly_empty_wave() -> None:
    @cute.kernel
    def kernel(y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        y[t + 1024 * cute.arch.block_idx()[0]] = 1.0

    with collecting() as report, sim.options(check="performance", sms=8):
        launch(kernel, numbers(17 * 1024), grid=17, block=1024)
    assert report.rules == ["partial-wave"]


def test_each_block_of_a_cluster_has_banks_of_its_own() -> None:
    """Lane i writes one word of block i: words that lie in different blocks, not in one bank."""

    @cute.kernel
    def kernel(y: cute.Tensor, apart: cutlass.Constexpr[int]):
        t, rank = cute.arch.thread_idx()[0], cute.arch.block_idx_in_cluster()
        s = cute.make_tensor(cute.arch.alloc_smem(Float32, 32 * 32), cute.make_layout(32 * 32))
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        if t < 4:
            to = cute.arch.mapa(s.iterator + rank * 128 + t * apart, t if cutlass.const_expr(apart == 0) else rank ^ 1)
            cute.arch.store(to, Float32(t))
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        y[rank, t] = s[t] if t < 4 else Float32(0)

    for apart, expected in ((0, []), (32, ["bank-conflict"])):
        with collecting() as report, sim.options(check="performance"):
            launch(partial(kernel, apart=apart), np.zeros((4, 32), np.float32), grid=4, block=32, cluster=4)
        assert report.rules == expected


def conflicts(by_tma: bool) -> str:
    """The note for a tile of 32 x 32 floats whose columns are read."""
    layout = cute.make_layout((32, 32), stride=(32, 1))

    @cute.kernel
    def kernel(load: cute.CopyAtom, tensor: cute.Tensor, x: cute.Tensor, y: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        smem = utils.SmemAllocator()
        full = smem.allocate_array(cutlass.Int64, 1)
        tile = smem.allocate_tensor(Float32, layout, 1024)
        if cutlass.const_expr(by_tma):
            if t == 0:
                cute.arch.mbarrier_init(full, 1)
                cute.arch.mbarrier_init_fence()
            cute.arch.sync_threads()
            box = cute.group_modes(cute.local_tile(tensor, (32, 32), (0, 0)), 0, 2)
            to, of = cpasync.tma_partition(load, 0, cute.make_layout(1), cute.group_modes(tile, 0, 2), box)
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(full, 4096)
            cute.copy(load, of, to, tma_bar_ptr=full)
            cute.arch.mbarrier_wait(full, 0)
        else:
            for row in cutlass.range(32):
                tile[row, t] = x[row, t]
            cute.arch.sync_threads()
        for column in cutlass.range(32):
            y[column, t] = tile[t, column]

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor):
        atom, tensor = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, layout, (32, 32))
        kernel(atom, tensor, x, y).launch(grid=(1, 1, 1), block=(32, 1, 1))

    x = numbers(1024).reshape(32, 32)
    with collecting() as report, sim.options(check="performance"):
        host(x, np.zeros_like(x))
    (finding,) = (finding for finding in report if finding.rule == "bank-conflict")
    return str(finding)


def test_the_advice_on_bank_conflicts_is_padding_or_a_swizzle_and_a_swizzle_alone_for_what_tma_fills() -> None:
    advice = conflicts(by_tma=False)
    assert "4 bytes of padding, or swizzle the layout: tilewright.layout.solve_swizzle(layout, acc" in advice
    assert "memory: tile[0, 0] " in advice
    advice = conflicts(by_tma=True)
    assert "swizzle the tile" in advice and "no padding" in advice
    assert "tilewright.layout.design_swizzle(element_bytes, 16 // element_bytes, row)" in advice
    assert design_swizzle(2, 16 // 2, 64) == Swizzle(3, 3, 3)  # 128 bytes, in elements
