"""Tensors: indexing, slicing, tiles, wide accesses, coordinates, fragments, swizzles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.lang.evaluate import evaluate
from tilewright import cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError, StagingError
from tilewright.ir.core import Value
from tilewright.ir.types import F16, MemSpace, PtrType
from tilewright.lang.device.smem import SmemAllocator
from tilewright.lang.numbers.facts import Facts
from tilewright.lang.numbers.numeric import Boolean, Float16, Float32, Int32, Int64, Uint32, wrap
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.tensor import Tensor, make_tensor
from tilewright.layout import Layout
from tilewright.testing import per_thread


def gmem(stage, layout: Layout) -> Tensor:
    return make_tensor(Pointer(stage.p, Float16), layout)


def smem(stage, layout) -> Tensor:
    return make_tensor(Pointer(stage.builder.smem_alloc(0, 1 << 14, 1024, F16), Float16), layout)


def thread(stage, bound: int = 128) -> Int32:
    return wrap(stage.builder.sreg("tid.x"), Facts(True, 1, bound))


def address(stage, pointer: Pointer, **inputs: int) -> int:
    """The byte address of a pointer whose base is 0, for given special registers."""
    value = pointer.value()
    known: dict[Value, int] = {stage.p: 0, stage.n: inputs.pop("n", 0)}
    for op in stage.block.ops:
        if op.opcode == "sreg":
            known[op.result] = inputs[op.attrs["name"].replace(".", "_")]
    return evaluate(stage.block, known)[value] if value is not stage.p else 0


def test_text_and_attributes(stage) -> None:
    t = gmem(stage, Layout((8, 4), (4, 1)))
    assert str(t) == "tensor<ptr<f16, gmem, align<16>> o (8,4):(4,1)>"
    assert (t.shape, t.stride, t.element_type, str(t.memspace), t.leading_dim) == ((8, 4), (4, 1), Float16, "gmem", 1)


def test_element_access_is_one_address_and_one_access(stage) -> None:
    t = gmem(stage, Layout((8, 4), (4, 1)))
    t[2, 1] = t[1, 3] + 1
    assert stage.opcodes() == ["ptr.add", "load", "add", "ptr.add", "store"]
    assert [op.operands[1].value for op in stage.block.ops if op.opcode == "ptr.add"] == [7, 9]


def test_slices_keep_alignment_and_split_static_offsets(stage) -> None:
    t = gmem(stage, Layout((Int32(stage.n).assume_nonneg(), 64), (64, 1)))
    row = t[thread(stage), None]
    assert str(row) == "tensor<ptr<f16, gmem, align<16>> o (64):(1)>"
    vector = cute.zipped_divide(row, (8,))[None, 3]
    assert vector.iterator.const == 24 and vector.iterator.alignment == 16
    assert address(stage, vector.iterator, tid_x=5) == 2 * (5 * 64 + 24)


def test_load_is_as_wide_as_proven(stage) -> None:
    gmem(stage, Layout((4, 8), (64, 1))).load()
    loads = [op.result.type.n for op in stage.block.ops if op.opcode == "load"]
    assert loads == [8, 8, 8, 8]
    make_tensor(Pointer(stage.p, Float16) + 2, Layout(6)).load()
    assert [str(op.result.type) for op in stage.block.ops if op.opcode == "load"][4:] == ["vec<f16, 2>", "vec<f16, 4>"]


def test_store_needs_the_element_type(stage) -> None:
    t = gmem(stage, Layout(8))
    with pytest.raises(ConstraintError, match=r"convert it with .to\(Float16\)"):
        t.store(t.load().to(Float32))
    t.store(t.load().to(Float32).to(Float16))
    with pytest.raises(ConstraintError, match="takes a number"):
        t[0] = "1"


def test_dynamic_strides_share_run_time_parts(stage) -> None:
    n = Int32(stage.n).assume_nonneg()
    gmem(stage, Layout((2, 4), (n, 1))).load()
    assert stage.count("mul") == 0 and stage.count("ptr.add") <= 6


def test_load_needs_a_static_shape(stage) -> None:
    with pytest.raises(StagingError, match="static shape"):
        gmem(stage, Layout((Int32(stage.n), 4), (4, 1))).load()


def test_python_slices_are_explained(stage) -> None:
    t = gmem(stage, Layout((4, 8)))
    assert t[:, 3].shape == (4,)
    with pytest.raises(StagingError, match="local_tile"):
        t[0:2, 3]


def test_local_tile_with_projection(stage) -> None:
    a = gmem(stage, Layout((256, 64), (64, 1)))
    block = wrap(stage.builder.sreg("ctaid.x"), Facts(True))
    tile = cute.local_tile(a, (128, 32, 16), (block, 1, None), proj=(1, None, 1))
    assert str(tile.layout) == "(128,16,4):(64,1,16)"
    assert tile.iterator.alignment == 16
    assert address(stage, tile.iterator, ctaid_x=1) == 2 * 128 * 64


def test_local_partition_of_a_run_time_thread(stage) -> None:
    part = cute.local_partition(gmem(stage, Layout((8, 16), (16, 1))), Layout((4, 8), (8, 1)), thread(stage, 32))
    assert str(part.layout) == "(2,2):(64,8)"
    for t in (0, 7, 8, 31):
        assert address(stage, part.iterator, tid_x=t) == 2 * (t // 8 * 16 + t % 8)


def test_coordinate_tensors(stage) -> None:
    c = cute.make_identity_tensor((32, 16))
    tile = cute.local_tile(c, (8, 8), (thread(stage), 1))
    coord = tile[3, 2]
    assert coord[1] == 10 and isinstance(coord[0], Int32)
    assert str(c[None, 2]) == "tensor<(0,2) o (32):(1@0)>"
    with pytest.raises(ConstraintError, match="coordinate tensor"):
        c.load()


def test_identity_tensor_predicates(stage) -> None:
    n = Int32(stage.n).assume_nonneg()
    c = cute.make_identity_tensor((n, 16))
    inside = cute.elem_less(c[3, 5], (n, 16))
    assert isinstance(inside, Boolean) and stage.opcodes() == ["gt"]  # n > 3; 5 < 16 is known


def test_fragments(stage) -> None:
    r = cute.make_rmem_tensor((2, 3), Float32)
    r.fill(0)
    r[1, 2] = 5
    x = r[thread(stage, 2), 1]
    assert type(x) is Float32
    assert [op.attrs["offsets"] for op in stage.block.ops if op.opcode.startswith("frag.") and op.attrs] == [
        (0, 1, 2, 3, 4, 5),
        (5,),
        (2,),
    ]
    for coord in (6, (2, 0), (0, -1)):
        with pytest.raises(ConstraintError, match="is outside"):
            r[coord] = 1.0


def test_fragments_like(stage) -> None:
    t = gmem(stage, Layout((8, (4, 4), 3), (48, (12, 3), 1)))
    assert str(cute.make_fragment_like(t).layout) == "(8,(4,4),3):(1,(96,24),8)"
    assert cute.make_fragment_like(t[None, (None, None), 0]).shape == (8, 4, 4)
    assert str(cute.make_rmem_tensor_like(t, Float32).layout) == "(8,(4,4),3):(1,(8,32),128)"
    assert cute.make_fragment_like(cute.make_identity_tensor((4, 2)), Boolean).element_type is Boolean
    with pytest.raises(ConstraintError, match="static layout"):
        cute.make_rmem_tensor((Int32(stage.n), 2), Float32)


def test_recast_of_registers(stage) -> None:
    half = cute.make_rmem_tensor((8, 2), Float16)
    words = cute.recast_tensor(half, Uint32)
    assert str(words.layout) == "(4,2):(1,4)"
    words[1, 0] = 7
    words.store(words.load() + 1)
    back = cute.recast_tensor(words, Float16)
    assert back.shape == (8, 2)
    back[0] = 1.0
    assert stage.count("bitcast") == 3


def test_recast_of_memory(stage) -> None:
    t = cute.recast_tensor(gmem(stage, Layout((8, 4), (4, 1))), Uint32)
    assert str(t) == "tensor<ptr<i32, gmem, align<16>> o (8,2):(2,1)>"
    odd = gmem(stage, Layout((8, 4), (4, 1)))[None, None]
    with pytest.raises(ConstraintError, match="aligned"):
        cute.recast_ptr(odd.iterator + 1, dtype=Uint32)


def test_swizzled_shared_memory(stage) -> None:
    layout = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, Layout((64, 64), (64, 1)))
    t = smem(stage, layout)
    assert str(t) == "tensor<ptr<f16, smem, align<1024>> o Sw<3,3,3> o 0 o (64,64):(64,1)>"
    lane = thread(stage, 32)
    part = t[lane, None]
    for row in (0, 5, 31):
        for column in (0, 8, 13, 56):
            assert address(stage, part.engine + column, tid_x=row) == 2 * layout(row, column)


def test_swizzled_loads_use_the_chunk(stage) -> None:
    t = smem(stage, cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1))))
    t[thread(stage, 8), None].load()
    assert [op.result.type.n for op in stage.block.ops if op.opcode == "load"] == [8] * 8


def test_swizzle_needs_alignment(stage) -> None:
    pointer = Pointer(stage.builder.smem_alloc(128, 1024, 128, F16), Float16)
    with pytest.raises(ConstraintError, match="byte_alignment=1024"):
        cute.recast_ptr(pointer, cute.make_swizzle(3, 4, 3))


def test_domain_offset(stage) -> None:
    t = cute.domain_offset((thread(stage), 8), gmem(stage, Layout((64, 64), (64, 1))))
    assert t.shape == (64, 64) and t.iterator.const == 8
    assert address(stage, t.iterator, tid_x=3) == 2 * (3 * 64 + 8)


def test_wide_layouts_use_64_bit_offsets(stage) -> None:
    t = gmem(stage, Layout((1 << 17, 1 << 17), (1 << 17, 1)))
    _ = t[thread(stage), 0]
    assert "i64" in {str(v.type) for op in stage.block.ops for v in op.results}


def test_big_arrays_with_dynamic_rows_use_64_bit_offsets(stage) -> None:
    n = Int32(stage.n).assume_nonneg()
    big = make_tensor(Pointer(stage.p, Float16, wide=True), Layout((n, 1 << 16), (1 << 16, 1)))
    small = gmem(stage, Layout((n, 1 << 16), (1 << 16, 1)))
    block = wrap(stage.builder.sreg("ctaid.x"), Facts(True))
    tile = cute.local_tile(big, (128, 64), (block, 3))
    assert [str(op.operands[1].type) for op in stage.block.ops if op.opcode == "ptr.add"] == ["i64"]
    cute.local_tile(small, (128, 64), (block, 3))
    tile[thread(stage), 5]
    assert [str(op.operands[1].type) for op in stage.block.ops if op.opcode == "ptr.add"][1:3] == ["i32", "i32"]


def test_protocol_round_trip(stage) -> None:
    n = Int32(stage.n).assume_nonneg().with_divisibility(8)
    t = gmem(stage, Layout((n, 4), (4, 1)))
    values = t.__extract_mlir_values__()
    assert [v.type for v in values] == t.__get_mlir_types__()
    other = [Value(v.type) for v in values]
    again = t.__new_from_mlir_values__(other)
    assert again.iterator.base is other[0] and again.shape[0].value is other[1]
    assert again.shape[0].divisibility == 8 and again.shape[0].nonneg
    assert again.__carry_key__() == t.__carry_key__()


def test_pointer_alignment(stage) -> None:
    p = Pointer(stage.p, Float16)
    assert [(p + k).alignment for k in (0, 1, 2, 4, 8)] == [16, 2, 4, 8, 16]
    t = thread(stage)
    assert (p + t * 4).alignment == 8 and (p + t * 4 + 8).alignment == 8 and (p + t + 8 - 8).alignment == 2
    with pytest.raises(ConstraintError, match="whole elements"):
        p + Float32(1.0)


def test_pointer_align_and_toint(stage) -> None:
    p = Pointer(Value(PtrType(F16, MemSpace.SMEM, 4)), Float16)
    assert type(Pointer(stage.p, Float16).toint()) is Int64
    assert Pointer(stage.p, Float16).align(8).alignment == 16
    assert p.alignment == 4


def run(body, *arrays, block=32):
    @cute.kernel
    def kernel(given: list):
        body(*given)

    @cute.jit
    def host(given: list):
        kernel(given).launch(grid=(1, 1, 1), block=(block, 1, 1))

    host([from_dlpack(a) for a in arrays])


def test_swizzled_tensors_move_in_loops() -> None:
    """A slice that a loop advances: by chunks inside a row, and by whole stages of a ring."""

    @cute.jit
    def body(out):
        t, _, _ = cute.arch.thread_idx()
        stages = cute.tile_to_shape(cute.make_layout((8, 32), stride=(32, 1)), (8, 32, 3), order=(0, 1, 2))
        ring = SmemAllocator().allocate_tensor(Float16, stages, 16, swizzle=cute.make_swizzle(2, 4, 3))
        for stage in cutlass.range_constexpr(3):
            for i in cutlass.range_constexpr(4):
                cute.zipped_divide(ring[t, None, stage], (8,))[None, i].fill(Float16(stage * 10 + i) + t)
        cute.arch.sync_threads()
        stage = 0
        row = ring[t, None, stage]
        total = Float32(0)
        for _ in range(6):
            chunk = row.iterator
            for _ in range(4):
                total += make_tensor(chunk, cute.make_layout(8)).load().to(Float32).reduce(cute.ReductionOp.ADD, 0.0, 0)
                chunk = chunk + 8
            stage = 0 if stage == 2 else stage + 1
            row = ring[t, None, stage]
        out[t] = total

    out = np.zeros(8, np.float32)
    run(body, out, block=8)
    one = np.array([sum(8 * (stage * 10 + i + t) for stage in range(3) for i in range(4)) for t in range(8)])
    np.testing.assert_array_equal(out, 2 * one)


def test_composed_with_a_function() -> None:
    def body(x):
        t, _, _ = cute.arch.thread_idx()
        y = make_tensor(x.iterator, cute.make_composed_layout(lambda c: c * 2 + 1, 0, cute.make_layout((2, 3))))
        y[t] = t + 1
        cute.arch.sync_threads()
        y[None, 2][0] = 50

    x = np.zeros(12, np.int32)
    run(body, x, block=6)
    assert x.tolist() == [0, 1, 0, 2, 0, 3, 0, 4, 0, 50, 0, 6]


@pytest.mark.parametrize(
    ("own", "seen", "each"), [("Float32", "Float16", 4), ("Int8", "Int32", 2), ("Int4", "Int8", 2)]
)
def test_recast_registers_in_a_run_time_loop_are_those_of_the_unrolled_one(own: str, seen: str, each: int) -> None:
    """Written and read by columns, whose index is a multiple of the elements in a register."""
    kind, narrow = getattr(cutlass, own), getattr(cutlass, seen)

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, steps: Any):
        held = cute.make_rmem_tensor(4 * each * narrow.width // kind.width, kind)
        view = cute.make_tensor(cute.recast_ptr(held.iterator, dtype=narrow), cute.make_layout((each, 4)))
        for j in steps(4):
            view[None, j].store(x[None, j].load().to(narrow))
        for j in steps(4):
            y[None, 3 - j].store(view[None, 3 - j].load().to(cutlass.Int32))

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, steps: cutlass.Constexpr):
        kernel(x, y, steps).launch(grid=(1, 1, 1), block=(1, 1, 1))

    x = np.arange(-2 * each, 2 * each, dtype=np.int32).reshape(each, 4)
    for steps in (cutlass.range, cutlass.range_constexpr):
        y = np.zeros_like(x)
        host(from_dlpack(x), from_dlpack(y), steps)
        np.testing.assert_array_equal(y, x)


def test_recast_registers_are_not_indexed_by_any_run_time_number() -> None:
    @cute.jit
    def program(t: Any) -> Any:
        view = cute.make_tensor(
            cute.recast_ptr(cute.make_rmem_tensor(4, cutlass.Float32).iterator, dtype=cutlass.Float16),
            cute.make_layout(8),
        )
        return view[t]

    with pytest.raises(ConstraintError, match=r"not known to be a multiple of 2 is indexed at run time, by 'tidx'"):
        per_thread(program, 8)
