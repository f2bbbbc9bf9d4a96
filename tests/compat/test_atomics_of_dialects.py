"""What programs call of MLIR's dialects in ``@dsl_user_op``: atomics of ``nvvm``, bits of ``llvm`` and ``arith``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright._mlir.dialects import arith, llvm, nvvm
from tilewright.cutlass_dsl import T, dsl_user_op
from tilewright.errors import ConstraintError
from tilewright.testing import per_thread

KINDS = nvvm.AtomicOpKind


@dsl_user_op
def update(kind: Any, ptr: Any, a: Any, b: Any = None, *, loc: Any = None, ip: Any = None) -> Any:
    second = {} if b is None else {"b": b.ir_value(loc=loc, ip=ip)}
    return nvvm.atomicrmw(op=kind, ptr=ptr.llvm_ptr, a=a.ir_value(loc=loc, ip=ip), **second, loc=loc, ip=ip)


INTEGERS: list[tuple[Any, list[int], int, int]] = [  # operation, operands of three threads, memory before and after
    (KINDS.ADD, [3, -5, 7], -2, 3),
    (KINDS.MAX, [-7, -3, -5], -6, -3),
    (KINDS.MIN, [4, -3, 5], 1, -3),
    (KINDS.UMAX, [7, -1, 5], 6, -1),
    (KINDS.UMIN, [-7, 4, -1], -3, 4),
    (KINDS.AND, [0b1110, 0b1011, -1], 0b1111, 0b1010),
    (KINDS.OR, [1, 4, 8], 2, 15),
    (KINDS.XOR, [1, 4, 8], 5, 8),
    (KINDS.XCHG, [1, 2, 3], 9, 3),
    (KINDS.INC, [2, 2, 2], 1, 1),  # 1 -> 2 -> 0 -> 1
    (KINDS.DEC, [2, 2, 2], 1, 1),  # 1 -> 0 -> 2 -> 1
]


@pytest.mark.parametrize(("kind", "operands", "before", "after"), INTEGERS, ids=lambda x: getattr(x, "name", ""))
def test_integer_operations(kind: Any, operands: list[int], before: int, after: int) -> None:
    @cute.jit
    def each(t: Any, p: Any) -> Any:
        value = cutlass.Int32(operands[2])
        if t == 0:
            value = cutlass.Int32(operands[0])
        if t == 1:
            value = cutlass.Int32(operands[1])
        return cutlass.Int32(update(kind, p, value))

    old, memory = per_thread(each, 3, memory=[before])
    assert old[0] == before
    assert memory == [after]


def test_a_maximum_of_floats_by_the_bits_of_integers() -> None:
    """The pointer is one to Float32, and the operation of Int32: floats that are not negative are in their order."""

    def each(t: Any, p: Any) -> Any:
        bits = llvm.bitcast(T.i32(), (cutlass.Float32(t) * 0.75).ir_value())
        return cutlass.Float32(llvm.bitcast(T.f32(), nvvm.atomicrmw(op=KINDS.MAX, ptr=p.llvm_ptr, a=bits)))

    old, memory = per_thread(each, 4, dtype=cutlass.Float32, memory=[1.0])
    assert (old, memory) == ([1.0, 1.0, 1.0, 1.5], [2.25])


@pytest.mark.parametrize(
    ("kind", "type_", "before", "expected"),
    [("ADD", "S32", -1, 5), ("MAX", "S32", -1, 3), ("MAX", "U32", -1, -1), ("MIN", "U32", -1, 0), ("XOR", "B32", 8, 8)],
)
def test_reductions(kind: str, type_: str, before: int, expected: int) -> None:
    def each(t: Any, p: Any) -> Any:
        nvvm.red(
            op=nvvm.ReductionOp[kind],
            type_=nvvm.ReductionType[type_],
            a=p.llvm_ptr,
            b=t.ir_value(),
            mem_order=nvvm.MemOrderKind.RELAXED,
            mem_scope=nvvm.MemScopeKind.GPU,
        )
        return t

    assert per_thread(each, 4, memory=[before])[1] == [expected]


def test_widths_of_integers() -> None:
    values = [0, 1, -1, 127, -128, 0x1234, -0x1234, 2**31 - 1]

    def each(dialect: Any, names: tuple[str, str, str]) -> Any:
        zext, sext, trunc = (getattr(dialect, name) for name in names)

        def of(t: Any, p: Any) -> Any:
            byte = trunc(T.i8(), p[t].ir_value())
            high = trunc(T.i32(), sext(T.i64(), byte))
            return cutlass.Int32(high) * 1000 + cutlass.Int32(zext(T.i32(), byte))

        return of

    low = np.array(values).astype(np.int8).astype(np.int64)
    expected = (low * 1000 + low % 256).tolist()
    for dialect, names in ((llvm, ("zext", "sext", "trunc")), (arith, ("extui", "extsi", "trunci"))):
        assert per_thread(each(dialect, names), len(values), memory=values)[0] == expected


BAD: list[tuple[Any, str]] = [
    (lambda t, p: nvvm.red(op="add", type_=nvvm.ReductionType.S32, a=p, b=t), "takes a ReductionOp"),
    (lambda t, p: nvvm.red(op=nvvm.ReductionOp.ADD, type_=nvvm.ReductionType.S64, a=p, b=t), "S64 is of 64 bits"),
]


@pytest.mark.parametrize(("program", "words"), BAD, ids=[words for _, words in BAD])
def test_bad_use_is_an_error(program: Any, words: str) -> None:
    with pytest.raises(ConstraintError, match=words):
        per_thread(program, 2, memory=[0])


def test_signed_extremes_of_unsigned_numbers() -> None:
    """MLIR's integers have no sign: MAX takes their bits as signed, whatever the number was before."""

    def each(t: Any, p: Any) -> Any:
        return update(KINDS.MAX, p, cutlass.Uint32(0xFFFFFFFF))

    assert per_thread(each, 1, memory=[3])[1] == [3]


def test_shared_space_is_checked() -> None:
    def each(t: Any, p: Any) -> Any:
        nvvm.red(
            op=nvvm.ReductionOp.ADD,
            type_=nvvm.ReductionType.S32,
            a=p.llvm_ptr,
            b=t.ir_value(),
            shared_space=nvvm.SharedSpace.shared_cluster,
        )
        return t

    with pytest.raises(ConstraintError, match="shared memory"):
        per_thread(each, 2, memory=[0])


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_dialect_atomics_compile(arch: str) -> None:
    from tilewright import cuda

    @cute.kernel
    def kernel(count: cute.Tensor, total: cute.Tensor) -> None:
        t = cute.arch.thread_idx()[0]
        update(KINDS.UMIN, count.iterator, t)
        update(KINDS.FADD, total.iterator, cutlass.Float32(t))
        bits = llvm.bitcast(T.i32(), cutlass.Float32(t).ir_value())
        count[1] = cutlass.Int32(nvvm.atomicrmw(op=KINDS.MAX, ptr=total.iterator.llvm_ptr, a=bits))

    @cute.jit
    def host(count: cute.Tensor, total: cute.Tensor) -> None:
        kernel(count, total).launch(grid=[1, 1, 1], block=[32, 1, 1])

    arrays = np.zeros(2, np.int32), np.zeros(1, np.float32)
    compiled = cute.compile(host, *(cute.runtime.from_dlpack(a) for a in arrays))
    text = cuda.compile(compiled.kernels[0], arch).ptx
    assert [f for f in ("min.u32", "add.f32", "max.s32") if f not in text] == [], text
