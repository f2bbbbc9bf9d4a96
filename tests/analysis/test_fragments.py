"""Fragments and their copies: the second wrong way of building another partition's registers costs registers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.analysis import FragmentReport, analyse_fragments
from tilewright.cute.runtime import from_dlpack
from tilewright.layout import Layout, make_layout
from tilewright.tiled.retile import retile_through

TILE = Layout((16, 16), (16, 1))


class TwoPartitions:
    """Load by one partition, store by another that gives each thread the same elements in another order."""

    def __init__(self, way: str) -> None:
        self.way = way

    @cute.jit
    def __call__(self, mX: cute.Tensor, mY: cute.Tensor):
        self.kernel(mX, mY).launch(grid=(1, 1, 1), block=(32, 1, 1))

    @cute.kernel
    def kernel(self, mX: cute.Tensor, mY: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32, num_bits_per_copy=32)
        by_rows = cute.make_tiled_copy_tv(atom, make_layout((8, 4), stride=(4, 1)), make_layout((2, 4), stride=(4, 1)))
        by_columns = cute.make_tiled_copy_tv(atom, make_layout((8, 4), stride=(4, 1)), make_layout((2, 4)))
        gA, gC = by_rows.get_slice(tidx).partition_S(mX), by_columns.get_slice(tidx).partition_D(mY)
        rA = cute.make_fragment_like(gA)
        cute.copy(by_rows, gA, rA)
        tile = make_layout(mX.shape)
        parts = [copy.get_slice(0).partition_S(tile)[0] for copy in (by_rows, by_columns)]
        retiled = retile_through(rA, *parts)
        if cutlass.const_expr(self.way == "retile"):
            rC = retiled
        else:
            rC = cute.make_fragment_like(gC)
            if cutlass.const_expr(self.way == "elements"):
                for i in cutlass.range_constexpr(cute.size(rC)):
                    rC[i] = retiled[i]
            elif cutlass.const_expr(self.way == "vector"):
                rC.store(retiled.load())
            elif cutlass.const_expr(self.way == "snapshot"):
                rC.store(retiled.load())
                rA.fill(0)
                cute.copy(by_rows, rA, gA)
            elif cutlass.const_expr(self.way == "scaled"):
                rC.store(retiled.load() * 2.0)
            elif cutlass.const_expr(self.way == "changed"):
                rC.store(retiled.load())
                rC[0] = cutlass.Float32(0)
            elif cutlass.const_expr(self.way == "same order"):
                rC.store(rA.load())
            elif cutlass.const_expr(self.way == "carried"):
                rC.fill(0)
                for _ in cutlass.range(3):
                    cute.copy(by_columns, rC, gC)
                    rC.store(retiled.load())
            elif cutlass.const_expr(self.way == "read before"):
                cute.copy(by_columns, rC, gC)
                rC.store(retiled.load())
        cute.copy(by_columns, rC, gC)


def report(way: str) -> FragmentReport:
    x = [from_dlpack(np.zeros((16, 16), np.float32)) for _ in range(2)]
    return analyse_fragments(cute.compile(TwoPartitions(way), *x).kernels[0])


@pytest.mark.parametrize("way", ["elements", "vector"])
def test_a_fresh_fragment_where_a_retile_would_do(way: str) -> None:
    found = report(way)
    (copy,) = found.copies
    assert (copy.source.name, copy.target.name, copy.extra_registers) == ("rA", "rC", 8)
    assert found.registers == 16 and found.extra_registers == 8
    assert "8 extra registers: rC is a copy of rA" in str(found) and "thr_copy.retile" in str(found)


def test_a_retile_has_no_extra_registers() -> None:
    found = report("retile")
    assert [(f.name, f.registers) for f in found.fragments] == [("rA", 8)]
    assert found.copies == () and "extra" not in str(found)


@pytest.mark.parametrize("way", ["snapshot", "scaled", "changed", "carried", "read before"])
def test_fragments_that_a_retile_could_not_replace(way: str) -> None:
    found = report(way)
    assert len(found.fragments) == 2 and found.copies == ()


def test_a_copy_in_the_same_order_needs_no_retile() -> None:
    (copy,) = report("same order").copies
    assert not copy.reordered and "use the first itself" in str(copy)


@pytest.mark.parametrize("dtype,registers", [(np.float16, 4), (np.float32, 8), (np.float64, 16), (np.int8, 2)])
def test_registers_of_a_fragment(dtype: Any, registers: int) -> None:
    @cute.kernel
    def kernel(mX: cute.Tensor):
        frag = cute.make_rmem_tensor(8, mX.element_type)
        frag.fill(1)
        mX.store(frag.load())

    @cute.jit
    def host(mX: cute.Tensor):
        kernel(mX).launch(grid=1, block=1)

    compiled = cute.compile(host, from_dlpack(np.zeros(8, dtype)))
    (fragment,) = analyse_fragments(compiled.kernels[0]).fragments
    assert fragment.registers == registers and fragment.where is not None and fragment.where.file == __file__
