"""Instructions by the names of ``cutlass.experimental.primitives``."""

from __future__ import annotations

import enum
from typing import Any

from tilewright.atoms.reductions import reduction_element
from tilewright.errors import ConstraintError
from tilewright.lang.device import single, warps
from tilewright.lang.device.inline_ptx import inline_ptx
from tilewright.lang.device.registers import griddepcontrol_launch_dependents, griddepcontrol_wait
from tilewright.lang.numbers.numeric import Float32, Int32, Uint32
from tilewright.lang.numbers.numeric_base import as_numeric
from tilewright.lang.tensors.select import max as select_max
from tilewright.lang.tensors.select import min as select_min

__all__ = [
    "CpReduceOp",
    "CpReduceType",
    "GridDepAction",
    "PermuteMode",
    "ReductionKind",
    "convert_and_pack_integer",
    "cp_async_bulk_global_shared_cta",
    "cp_reduce_async_bulk_global_shared_cta",
    "griddepcontrol",
    "mov_b32",
    "prmt",
    "redux_sync",
]


class GridDepAction(enum.Enum):
    """What ``griddepcontrol`` does.

    >>> [kind.name for kind in GridDepAction]
    ['WAIT', 'LAUNCH_DEPENDENTS']
    """

    WAIT = "wait"
    LAUNCH_DEPENDENTS = "launch_dependents"


class CpReduceOp(enum.Enum):
    """How a bulk reduction joins what it finds in memory with what it brings."""

    ADD = "add"
    AND = "and"
    DEC = "dec"
    INC = "inc"
    MAX = "max"
    MIN = "min"
    OR = "or"
    XOR = "xor"


class CpReduceType(enum.Enum):
    """The type of the elements of a bulk reduction."""

    B32 = "b32"
    B64 = "b64"
    BF16 = "bf16"
    F16 = "f16"
    F32 = "f32"
    F64 = "f64"
    S32 = "s32"
    S64 = "s64"
    U32 = "u32"
    U64 = "u64"


def griddepcontrol(kind: GridDepAction, *, loc: Any = None, ip: Any = None) -> None:
    """``cute.arch.griddepcontrol_wait`` or ``cute.arch.griddepcontrol_launch_dependents``.

    >>> per_thread(lambda t: (griddepcontrol(GridDepAction.WAIT), t)[1], 3)
    [0, 1, 2]
    """
    if not isinstance(kind, GridDepAction):
        raise ConstraintError(f"griddepcontrol: a member of GridDepAction is needed, not {kind!r}")
    (griddepcontrol_wait if kind is GridDepAction.WAIT else griddepcontrol_launch_dependents)()


def cp_async_bulk_global_shared_cta(dst: Any, src: Any, size: Any, *, loc: Any = None, ip: Any = None) -> None:
    """Copy ``size`` bytes from shared memory to global memory, as part of this thread's next bulk group.

    Both addresses and ``size`` are multiples of 16 bytes.

    >>> from tilewright import Int32
    >>> @cute.kernel
    ... def kernel(out: cute.Tensor):
    ...     t, _, _ = cute.arch.thread_idx()
    ...     part = cute.make_tensor(cute.arch.alloc_smem(Int32, 32, 16), cute.make_layout(32))
    ...     part[t] = t
    ...     cute.arch.fence_proxy("async.shared", space="cta")
    ...     cute.arch.sync_threads()
    ...     if t == 0:
    ...         to, other, held = [p.to_llvm_ptr() for p in (out.iterator, out.iterator + 16, part.iterator)]
    ...         cp_async_bulk_global_shared_cta(to, held, 64)
    ...         cp_reduce_async_bulk_global_shared_cta(other, held, 64, op=CpReduceOp.ADD, type=CpReduceType.S32)
    ...         cute.arch.cp_async_bulk_commit_group()
    ...         cute.arch.cp_async_bulk_wait_group(0)
    >>> @cute.jit
    ... def host(out: cute.Tensor):
    ...     kernel(out).launch(grid=(1, 1, 1), block=(32, 1, 1))
    >>> out = np.full(36, 3, np.int32)
    >>> out = out[-out.ctypes.data % 16 // 4 :][:32]  # which begins at a multiple of 16 bytes
    >>> host(out)
    >>> out[:4].tolist(), out[16:20].tolist()  # 64 bytes copied, and 64 added to the 3 that was there
    ([0, 1, 2, 3], [3, 4, 5, 6])
    """
    _bulk("cp.async.bulk.global.shared::cta.bulk_group", dst, src, size)


def cp_reduce_async_bulk_global_shared_cta(
    dst: Any,
    src: Any,
    size: Any,
    *,
    op: CpReduceOp,
    type: CpReduceType,
    noftz: bool = False,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """Join ``size`` bytes of shared memory, elements of ``type``, with those of global memory, as part of this thread's
    next bulk group; a program is in :func:`cp_async_bulk_global_shared_cta`. Sums of 16-bit floats need ``noftz``: PTX
    has no other.

    >>> cp_reduce_async_bulk_global_shared_cta(None, None, 16, op=CpReduceOp.AND, type=CpReduceType.F32)
    Traceback (most recent call last):
        ...
    tilewright.errors.ConstraintError: cp_reduce_async_bulk_global_shared_cta: PTX has no cp.reduce.async.bulk.and.f32; floats have add, those of 16 bits min and max too, and noftz=True is for their add
    """  # noqa: E501 - doctest compares the whole line
    if not isinstance(op, CpReduceOp) or not isinstance(type, CpReduceType):
        raise ConstraintError(
            f"cp_reduce_async_bulk_global_shared_cta: op= is a member of CpReduceOp and type= of "
            f"CpReduceType, not {op!r} and {type!r}"
        )
    how = f"noftz.{type.value}" if noftz else type.value
    if reduction_element(op.value, how) is None:
        raise ConstraintError(
            f"cp_reduce_async_bulk_global_shared_cta: PTX has no cp.reduce.async.bulk.{op.value}.{how}; floats have "
            "add, those of 16 bits min and max too, and noftz=True is for their add"
        )
    _bulk(f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{op.value}.{how}", dst, src, size)


def _bulk(instruction: str, dst: Any, src: Any, size: Any) -> None:
    inline_ptx(f"{instruction} [{{$r0}}], [{{$r1}}], {{$r2}};", read_only_args=[dst, src, Int32(size)])


def mov_b32(src: Any, *, target_type: Any, loc: Any = None, ip: Any = None) -> Any:
    """The same 32 bits as a number of another type.

    >>> from tilewright import Float32, Uint32
    >>> [hex(x) for x in per_thread(lambda t: mov_b32(Float32(t), target_type=Uint32), 2, dtype=Uint32)]
    ['0x0', '0x3f800000']
    """
    number = as_numeric(src)
    for kind in (number.__class__, target_type):
        if kind not in (Float32, Int32, Uint32):
            raise ConstraintError(f"mov_b32: Float32, Int32 or Uint32 is needed, not {kind}")
    return number.bitcast(target_type)


class PermuteMode(enum.Enum):
    """How the selector of :func:`prmt` is read; the special modes are not here."""

    DEFAULT = "default"


def prmt(
    lo: Any, selector: Any, mode: PermuteMode = PermuteMode.DEFAULT, *, hi: Any = None, loc: Any = None, ip: Any = None
) -> Any:
    """``cute.arch.prmt``: four bytes picked from the eight of ``lo`` (0 to 3) and ``hi`` (4 to 7).

    >>> [hex(x) for x in per_thread(lambda t: prmt(0x33221100 + t, 0x0123, hi=0x77665544), 2)]
    ['0x112233', '0x1112233']
    """
    if mode is not PermuteMode.DEFAULT or hi is None:
        raise ConstraintError(f"prmt: the mode DEFAULT with lo, selector and hi is here, not {mode!r} with hi={hi!r}")
    return single.prmt(lo, hi, selector)


class ReductionKind(enum.Enum):
    """What :func:`redux_sync` makes of the numbers of a warp."""

    ADD = "add"
    AND = "and"
    FMAX = "fmax"
    FMIN = "fmin"
    MAX = "max"
    MIN = "min"
    OR = "or"
    UMAX = "umax"
    UMIN = "umin"
    XOR = "xor"


def redux_sync(
    val: Any,
    kind: ReductionKind,
    mask: Any = warps.FULL_MASK,
    *,
    abs: bool = False,
    nan: bool = False,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """``cute.arch.warp_redux_sync``; UMIN and UMAX read the bits as unsigned.

    >>> per_thread(lambda t: redux_sync(t - 16, ReductionKind.MAX))[:2], per_thread(
    ...     lambda t: redux_sync(t - 16, ReductionKind.UMAX))[:2]
    ([15, 15], [-1, -1])
    """
    if not isinstance(kind, ReductionKind) or abs or nan:
        arguments = f"{kind!r}, abs={abs}, nan={nan}"
        raise ConstraintError(f"redux_sync: a member of ReductionKind, without abs and nan, is needed, not {arguments}")
    if kind in (ReductionKind.UMAX, ReductionKind.UMIN):
        number = as_numeric(val)
        return type(number)(warps.warp_redux_sync(Uint32(number), kind.value[1:], mask))
    return warps.warp_redux_sync(val, kind.value, mask)


def convert_and_pack_integer(
    a: Any, b: Any, dtype: Any, *, is_signed: bool = True, loc: Any = None, ip: Any = None
) -> Any:
    """``cvt.pack.sat``: ``a`` (upper half) and ``b`` as integers of 16 bits, where they do not fit the nearest ones.

    >>> from tilewright.cutlass_dsl import T
    >>> pack = lambda t: convert_and_pack_integer(Int32(-70000), t + 32766, T.i16(), is_signed=True)
    >>> [hex(x & 0xFFFFFFFF) for x in per_thread(pack, 3)]
    ['0x80007ffe', '0x80007fff', '0x80007fff']
    """
    if getattr(dtype, "width", 0) != 16 or dtype.is_float:
        raise ConstraintError(f"convert_and_pack_integer packs integers of 16 bits, T.i16(), not {dtype}")
    least, most = (-(1 << 15), (1 << 15) - 1) if is_signed else (0, (1 << 16) - 1)
    high, low = (
        Uint32(select_max(select_min(Int32(as_numeric(x)), Int32(most)), Int32(least))) & 0xFFFF for x in (a, b)
    )
    return Int32(high << 16 | low)
