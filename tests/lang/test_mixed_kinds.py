"""Programs that mix kinds as Python allows: numbers in logic, None in offsets, empty shapes, static fields."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute, pipeline
from tilewright._mlir.dialects import llvm
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.layout import Layout, make_composed_layout, parse


def logic(t: Any, done: Any) -> Any:
    """Plain Python, and the kernel's body."""
    v = 0
    if (t & 4) and not done:
        v += 1
    if (t & 4) or done:
        v += 2
    if not (t & 4):
        v += 4
    v += 8 * ((t & 3) or done)
    v += 64 * (done and (t & 3))
    return v


@cute.kernel
def logic_kernel(out: cute.Tensor, n: cutlass.Int32):
    t, _, _ = cute.arch.thread_idx()
    done = t + n > 20
    v = cutlass.Int32(0)
    if (t & 4) and not done:
        v += 1
    if (t & 4) or done:
        v += 2
    if not (t & 4):
        v += 4
    v += 8 * ((t & 3) or done)
    v += 64 * (done and (t & 3))
    out[t] = v


@cute.jit
def run_logic(out: cute.Tensor, n: cutlass.Int32):
    logic_kernel(out, n).launch(grid=(1, 1, 1), block=(32, 1, 1))


@pytest.mark.parametrize("n", [-40, 3, 10, 40])
def test_numbers_and_booleans_in_logic(n: int) -> None:
    out = np.zeros(32, np.int32)
    run_logic(from_dlpack(out), n)
    assert out.tolist() == [logic(t, t + n > 20) for t in range(32)]


@cute.kernel
def offset_kernel(x: cute.Tensor, out: cute.Tensor, n: cutlass.Int32):
    out[0] = cute.domain_offset((n, None), x)[0, 1]
    out[1] = cute.domain_offset((None, n), x)[0, 1]
    out[2] = cute.domain_offset((None, (n, 1)), cute.logical_divide(x, (None, 4)))[0, (0, 0)]


@cute.jit
def run_offsets(x: cute.Tensor, out: cute.Tensor, n: cutlass.Int32):
    offset_kernel(x, out, n).launch(grid=(1, 1, 1), block=(1, 1, 1))


def test_none_does_not_move_a_mode() -> None:
    x, out = np.arange(64, dtype=np.float32).reshape(8, 8), np.zeros(3, np.float32)
    run_offsets(from_dlpack(x), from_dlpack(out), 3)
    assert out.tolist() == [25, 4, 7]
    swizzled = make_composed_layout(cute.make_swizzle(2, 0, 3), 0, Layout((8, 8), (8, 1)))
    assert cute.domain_offset((3, None), swizzled)[0].offset == 24


def test_an_empty_shape_is_the_layout_of_a_scalar() -> None:
    layout = cute.make_layout(())
    assert (str(layout), cute.size(layout), layout(())) == ("():()", 1, 0)


def test_a_whole_number_of_agents_may_be_a_float() -> None:
    group = pipeline.CooperativeGroup(pipeline.Agent.Thread, 128 / 32)
    assert (group.size, type(group.size)) == (4, int)
    with pytest.raises(ConstraintError, match=r"a size of 1\.5; it is a whole number"):
        pipeline.CooperativeGroup(pipeline.Agent.Thread, 1.5)


class Pair(NamedTuple):
    value: cutlass.Int32
    tag: cutlass.Constexpr


@dataclasses.dataclass
class Record:
    value: cutlass.Int32
    count: cutlass.Constexpr[int]
    rest: cutlass.Constexpr = None


@cute.kernel
def fields_kernel(out: cute.Tensor, pair, record):
    if cutlass.const_expr(pair.tag == 7):
        out[0] = pair.value
    for i in cutlass.range_constexpr(record.count):
        out[i + 1] = record.value + i


@cute.jit
def run_fields(out: cute.Tensor, pair: Pair, record: Record):
    fields_kernel(out, pair, record).launch(grid=(1, 1, 1), block=(1, 1, 1))


def test_constexpr_fields_stay_static() -> None:
    """With annotations that are strings, as in this file."""
    out = np.zeros(5, np.int32)
    run_fields(from_dlpack(out), Pair(5, 7), Record(2, 3))
    assert out.tolist() == [5, 2, 3, 4, 0]
    compiled = cute.compile(run_fields, from_dlpack(out), Pair(5, 7), Record(2, 3))
    compiled(from_dlpack(out), Pair(6, 7), Record(4, 3))
    assert out.tolist() == [6, 4, 5, 6, 0]
    with pytest.raises(ArgumentError, match=r"argument 'pair\.tag': expected Python int 7"):
        compiled(from_dlpack(out), Pair(6, 8), Record(4, 3))


def test_stride_of_zero_is_named_in_the_error() -> None:
    @cute.jit
    def take(x: cute.Tensor):
        pass

    compiled = cute.compile(take, cute.runtime.make_fake_tensor(cutlass.Float32, (cute.sym_int(),), stride=(1,)))
    with pytest.raises(ArgumentError, match=r"got ndarray of float32, shape \(4,\), stride 0 in mode 0"):
        compiled(np.broadcast_to(np.zeros(1, np.float32), (4,)))


@pytest.mark.parametrize("rows", [4, None])
def test_strides_that_do_not_fit_are_said(rows: int | None) -> None:
    @cute.jit
    def take(x: cute.Tensor):
        pass

    shape = (rows or cute.sym_int(), 8)
    compiled = cute.compile(take, cute.runtime.make_fake_tensor(cutlass.Float32, shape, stride=(8, 1)))
    with pytest.raises(ArgumentError, match=r"shape \(4, 8\), strides \(1, 4\);"):
        compiled(np.zeros((8, 4), np.float32).T)
    with pytest.raises(ArgumentError, match=r"shape \(4, 9\);"):
        compiled(np.zeros((4, 9), np.float32))
    still = cute.compile(take, cute.runtime.make_fake_tensor(cutlass.Float32, (4,), stride=(0,)))
    with pytest.raises(ArgumentError, match=r"\(4\):\(0\)>, got ndarray of float32, shape \(4,\), strides \(1,\);"):
        still(np.zeros(4, np.float32))


@pytest.mark.parametrize(("tiler", "every", "one"), [(16, None, 1), ((16,), (None,), (1,))])
def test_tiles_of_one_mode_have_no_nested_mode(tiler: Any, every: Any, one: Any) -> None:
    layout = Layout(64)
    assert cute.local_tile(layout, tiler, every) == parse("(16,4):(1,16)")
    assert cute.local_tile(layout, tiler, one) == parse("(16):(1)")


@cute.kernel
def immediate_kernel(out: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    given = [cutlass.Int32(t).ir_value(), cutlass.Int32(5).ir_value(), cutlass.Int32(2).ir_value()]
    out[t] = cutlass.Int32(
        llvm.inline_asm(cutlass.Int32, given, "mad.lo.s32 $0, $1, $2, $3;", "=r,r,i,n", has_side_effects=False)
    )


def test_immediate_constraints_of_inline_ptx() -> None:
    @cute.jit
    def run(out: cute.Tensor):
        immediate_kernel(out).launch(grid=(1, 1, 1), block=(32, 1, 1))

    out = np.zeros(32, np.int32)
    run(from_dlpack(out))
    assert out.tolist() == [5 * t + 2 for t in range(32)]
