"""``cutlass._mlir.dialects.nvvm``: the instructions that programs call by these names; ``cute.arch`` has the others.

The type of the result, which some releases take first, is not needed here: both forms are read. Scalars are given as
numbers of the language, which ``Float32(...)`` and ``llvm.inline_asm`` take as they take run-time values.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from tilewright._names import attach
from tilewright.atoms.exit import Exit
from tilewright.errors import ConstraintError
from tilewright.ir.types import ScalarType, Type
from tilewright.lang.device import atomic, barriers, mbarriers, single, threads, warps
from tilewright.lang.device.bulk import cp_async_bulk_commit_group, cp_async_bulk_wait_group
from tilewright.lang.device.bulk_bytes import load_bytes as cp_async_bulk_shared_cluster_global
from tilewright.lang.device.bulk_bytes import store_bytes as cp_async_bulk_global_shared_cta
from tilewright.lang.device.bulk_tensors import TMAReduxKind
from tilewright.lang.device.bulk_tensors import load_tensor as cp_async_bulk_tensor_shared_cluster_global
from tilewright.lang.device.bulk_tensors import prefetch_tensor as cp_async_bulk_tensor_prefetch
from tilewright.lang.device.bulk_tensors import reduce_tensor as cp_async_bulk_tensor_reduce
from tilewright.lang.device.bulk_tensors import store_tensor as cp_async_bulk_tensor_global_shared_cta
from tilewright.lang.device.calls import call, operand
from tilewright.lang.device.packed_floats import CVTPackFloatKind, SaturationModeKind, cvt_packfloat, cvt_packfloat_f32
from tilewright.lang.numbers.numeric import (
    BFloat16,
    Float16,
    Float32,
    Float64,
    Int32,
    Int64,
    Uint32,
    Uint64,
    wrap,
)

__all__ = [
    "AtomicOpKind",
    "CVTPackFloatKind",
    "MemOrderKind",
    "MemScopeKind",
    "ReductionOp",
    "ReductionType",
    "RoundingModeKind",
    "SaturationModeKind",
    "SharedSpace",
    "TMAReduxKind",
    "atomicrmw",
    "barrier_cta_sync",
    "cp_async_bulk_commit_group",
    "cp_async_bulk_global_shared_cta",
    "cp_async_bulk_shared_cluster_global",
    "cp_async_bulk_tensor_global_shared_cta",
    "cp_async_bulk_tensor_prefetch",
    "cp_async_bulk_tensor_reduce",
    "cp_async_bulk_tensor_shared_cluster_global",
    "cp_async_bulk_wait_group",
    "cp_async_mbarrier_arrive_shared",
    "cvt_packfloat",
    "cvt_packfloat_f32",
    "elect_sync",
    "exit",
    "fmax",
    "fmin",
    "red",
]


class AtomicOpKind(Enum):
    """The operation of :func:`atomicrmw` on the old number and the operand.

    >>> AtomicOpKind.ADD.name, AtomicOpKind.FADD.value
    ('ADD', 'fadd')
    """

    AND = "and"
    OR = "or"
    XOR = "xor"
    XCHG = "exch"
    ADD = "add"
    FADD = "fadd"
    MIN = "min"
    MAX = "max"
    UMIN = "umin"
    UMAX = "umax"
    INC = "inc"
    DEC = "dec"
    CAS = "cas"


class ReductionOp(Enum):
    """The operation of :func:`red`; its type says whether an integer has a sign."""

    AND = "and"
    OR = "or"
    XOR = "xor"
    ADD = "add"
    MIN = "min"
    MAX = "max"
    INC = "inc"
    DEC = "dec"


class ReductionType(Enum):
    """How :func:`red` reads the bits of its operand."""

    S32 = Int32
    U32 = Uint32
    B32 = "b32"
    S64 = Int64
    U64 = Uint64
    B64 = "b64"
    F16 = Float16
    BF16 = BFloat16
    F32 = Float32
    F64 = Float64


class SharedSpace(Enum):
    """Whose shared memory a pointer is to."""

    shared_cta = "cta"
    shared_cluster = "cluster"


_UNSIGNED = (AtomicOpKind.UMIN, AtomicOpKind.UMAX, AtomicOpKind.INC, AtomicOpKind.DEC)


class MemOrderKind(Enum):
    """The memory order of an atomic operation."""

    RELAXED = "relaxed"
    ACQUIRE = "acquire"
    RELEASE = "release"
    ACQ_REL = "acq_rel"


class MemScopeKind(Enum):
    """For which threads an operation is ordered."""

    CTA = "cta"
    CLUSTER = "cluster"
    GPU = "gpu"
    SYS = "sys"


class RoundingModeKind(Enum):
    """To which number a result is rounded."""

    RN = "rn"
    RM = "rm"
    RP = "rp"
    RZ = "rz"


def _operands(what: str, args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    """The operands by position or by name; a type in the first position is that of the result."""
    if args and isinstance(args[0], Type):
        args = args[1:]
    if len(args) > len(named):
        raise ConstraintError(f"nvvm.{what}: {len(args)} operands, but it takes {', '.join(named)}")
    for name, value in zip(named, args, strict=False):
        if named[name] is not None:
            raise ConstraintError(f"nvvm.{what}: {name} is given twice")
        named[name] = value
    return list(named.values())


def _number(x: Any) -> Any:
    value = operand(x)
    if not isinstance(value.type, ScalarType):
        raise ConstraintError(f"a number is needed, not {value.type}")
    return wrap(value)


def atomicrmw(
    *args: Any,
    res: Any = None,
    op: Any = None,
    ptr: Any = None,
    a: Any = None,
    b: Any = None,
    mem_order: Any = None,
    syncscope: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """``(op, ptr, a)``: an atomic read-modify-write of ``*ptr``; gives the old value, as a number of the type of ``a``.
    CAS compares ``*ptr`` with ``a`` and writes ``b``.

    >>> from tilewright import Int32
    >>> per_thread(lambda t, p: atomicrmw(AtomicOpKind.INC, p, Int32(2)), 5, memory=[0])  # from 2 back to 0
    ([0, 1, 2, 0, 1], [2])
    """
    op, ptr, a, b = _operands("atomicrmw", args, {"op": op, "ptr": ptr, "a": a, "b": b})
    if not isinstance(op, AtomicOpKind) or ptr is None or a is None or (b is not None) != (op is AtomicOpKind.CAS):
        raise ConstraintError("nvvm.atomicrmw takes an AtomicOpKind, a pointer and one value; CAS a second one")
    kind = op.value[1:] if op in (AtomicOpKind.FADD, AtomicOpKind.UMIN, AtomicOpKind.UMAX) else op.value
    value, other = _number(a), None if b is None else _number(b)
    type_of_value = type(value)
    if op in _UNSIGNED and value.width in (32, 64):
        value = value.bitcast(Uint32 if value.width == 32 else Uint64)
    elif op in (AtomicOpKind.MIN, AtomicOpKind.MAX) and isinstance(value, (Uint32, Uint64)):  # these are of signed ones
        value = value.bitcast(Int32 if value.width == 32 else Int64)
    new, compare = (value, None) if other is None else (other, value)
    old = atomic.update(
        kind,
        ptr,
        new,
        compare,
        sem=mem_order.value if mem_order is not None else None,
        scope=syncscope.value if syncscope is not None else None,
    )
    return old if type(old) is type_of_value else old.bitcast(type_of_value)


def red(
    op: Any,
    type_: Any,
    a: Any,
    b: Any,
    *,
    mem_order: Any = None,
    shared_space: Any = None,
    mem_scope: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """``*a = *a op b`` at once, without the old value; ``type_`` says what the bits of ``b`` are.

    >>> from tilewright import Int32
    >>> def count(t, p):
    ...     red(ReductionOp.ADD, ReductionType.S32, p, Int32(t))
    ...     red(ReductionOp.MAX, ReductionType.S32, p + 1, Int32(t), mem_order=MemOrderKind.RELAXED)
    >>> per_thread(count, 32, memory=[0, 7])[1]
    [496, 31]
    """
    if not isinstance(op, ReductionOp) or not isinstance(type_, ReductionType):
        raise ConstraintError("nvvm.red takes a ReductionOp, a ReductionType, a pointer a and a value b")
    value, dtype = _number(b), type_.value
    width = int(dtype[1:]) if isinstance(dtype, str) else dtype.width
    if value.width != width:
        raise ConstraintError(f"nvvm.red: {type_.name} is of {width} bits, and the value a {type(value)}")
    if shared_space is not None:
        space = SharedSpace(getattr(shared_space, "value", shared_space)).value
        atomic.in_space(atomic.pointer_of(a, "nvvm.red"), space, "nvvm.red")
    atomic.update(
        op.value,
        a,
        value if isinstance(dtype, str) or type(value) is dtype else value.bitcast(dtype),
        sem=mem_order.value if mem_order is not None else None,
        scope=mem_scope.value if mem_scope is not None else None,
    )


def fmax(*args: Any, a: Any = None, b: Any = None, c: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """The greatest of two or three floats; a NaN loses against a number."""
    return _extreme("fmax", single.fmax, args, {"a": a, "b": b, "c": c})


def fmin(*args: Any, a: Any = None, b: Any = None, c: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """The least of two or three floats; a NaN loses against a number."""
    return _extreme("fmin", single.fmin, args, {"a": a, "b": b, "c": c})


def _extreme(what: str, of_two: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    first, second, third = _operands(what, args, named)
    if first is None or second is None:
        raise ConstraintError(f"nvvm.{what} takes two or three floats")
    extreme = of_two(_number(first), _number(second))
    return extreme if third is None else of_two(extreme, _number(third))


def elect_sync(res: Any = None, *, membermask: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """True in one lane of the warp: the condition of ``with cute.arch.elect_one():``."""
    mask = None if membermask is None else _number(membermask)
    if mask is not None and not (mask.is_static and mask.value in (-1, 0xFFFFFFFF)):
        raise ConstraintError("nvvm.elect_sync elects a lane of the whole warp: leave membermask out")
    return warps.elected()


def barrier_cta_sync(
    barrier: Any, *, thread_count: Any = None, aligned: bool = True, loc: Any = None, ip: Any = None
) -> None:
    """``cute.arch.barrier`` by number; ``aligned=False``: threads of a warp may come one after another."""
    barriers.barrier(barrier_id=Int32(barrier), number_of_threads=None if thread_count is None else Int32(thread_count))


def exit(*, loc: Any = None, ip: Any = None) -> None:
    """The warps that are here end. Barriers of all threads of the block, and those of the cluster, wait for them no
    longer. All threads of a warp end together."""
    call(Exit())


def cp_async_mbarrier_arrive_shared(addr: Any, *, noinc: bool = False, loc: Any = None, ip: Any = None) -> None:
    """The mbarrier counts an arrival when this thread's copies by ``cp.async`` are done."""
    if not noinc:
        raise ConstraintError("cp.async.mbarrier.arrive is here with noinc=True only: count its arrivals in the init")
    mbarriers.cp_async_mbarrier_arrive_noinc(addr)


def _special(axis: Callable[[], Any], place: int) -> Callable[..., Any]:
    return lambda res=None, *, loc=None, ip=None: axis()[place]


_AXES = {"tid": threads.thread_idx, "ntid": threads.block_dim, "ctaid": threads.block_idx, "nctaid": threads.grid_dim}
for _name, _axis in _AXES.items():
    for _place, _letter in enumerate("xyz"):
        globals()[f"read_ptx_sreg_{_name}_{_letter}"] = _special(_axis, _place)


def read_ptx_sreg_laneid(res: Any = None, *, loc: Any = None, ip: Any = None) -> Any:
    """``cute.arch.lane_idx``."""
    return threads.lane_idx()


attach(__name__)
