"""Atomic read-modify-writes, and loads and stores with a memory order, of one element in global or shared memory."""

from __future__ import annotations

import warnings
from typing import Any

from tilewright.atoms.atomic import Atomic, OrderedLoad, OrderedStore
from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.types import PtrType, VecType
from tilewright.lang.device.calls import call
from tilewright.lang.numbers.numeric import (
    BFloat16,
    Float16,
    Float32,
    Float64,
    Int32,
    Int64,
    Numeric,
    Uint32,
    Uint64,
    class_of,
    wrap,
)
from tilewright.lang.staging.generate import if_generate
from tilewright.lang.staging.ranges import HintWarning
from tilewright.lang.tensors.pointer import Pointer, element_bits
from tilewright.lang.tensors.recast import retyped


def _atomic(
    kind: str, ptr: Any, value: Any, compare: Any = None, sem: str | None = None, scope: str | None = None
) -> Any:
    pointer = pointer_of(ptr, f"atomic_{kind}")
    dtype = pointer.dtype
    operands = [pointer.value(), *([] if compare is None else [dtype(compare).ir_value()]), dtype(value).ir_value()]
    (old,) = call(Atomic(kind, sem or "relaxed", scope or "gpu"), *operands, results=(dtype.ir_type,))
    return wrap(old)


def update(
    kind: str, ptr: Any, value: Any, compare: Any = None, *, sem: str | None = None, scope: str | None = None
) -> Any:
    """The atomic ``kind`` (add, min, inc, cas, ...) on the type of ``value``; ``ptr`` points to one as wide."""
    pointer, dtype = pointer_of(ptr, f"atomic_{kind}"), type(value)
    if pointer.dtype is not dtype:
        if element_bits(pointer.dtype) != dtype.width:
            raise ConstraintError(f"atomic_{kind}: a {dtype} ({dtype.width} bits), but the pointer is {pointer}")
        pointer = retyped(pointer, dtype)
    return _atomic(kind, pointer, value, compare, sem, scope)


_NUMBERS = {
    "s32": Int32,
    "u32": Uint32,
    "b32": Uint32,
    "s64": Int64,
    "u64": Uint64,
    "b64": Uint64,
    "f16": Float16,
    "bf16": BFloat16,
    "f32": Float32,
    "f64": Float64,
}
REDUCTIONS = ("add", "min", "max", "and", "or", "xor", "inc", "dec")


def red(
    ptr: Any,
    val: Any,
    *,
    op: str,
    dtype: Any,
    sem: str = "relaxed",
    scope: str = "gpu",
    loc: Any = None,
    ip: Any = None,
) -> None:
    """``*ptr = *ptr op val`` at once, without the old value. ``val`` may be a vector: its elements go one after
    another, each at once.

    ``op``: add, min, max, and, or, xor, inc, dec. ``dtype``: what the bits are, a numeric class or its name in PTX
    (``"f32"``, ``"s32"``). ``sem``: relaxed, release; ``scope``: cta, cluster, gpu, sys.

    >>> per_thread(lambda t, p: (arch.red(p, t, op="add", dtype="s32"), t)[1], 4, memory=[5])[1]
    [11]
    """
    if op not in REDUCTIONS:
        raise ConstraintError(f"cute.arch.red: op={op!r}; {', '.join(REDUCTIONS)} are")
    kind = dtype if isinstance(dtype, type) else _NUMBERS.get(str(dtype))
    if kind is None:
        raise ConstraintError(f"cute.arch.red: dtype={dtype!r}; a numeric class or {', '.join(_NUMBERS)}")
    place = pointer_of(ptr, "cute.arch.red")
    value: Value = val if isinstance(val, Value) else (val if hasattr(val, "ir_value") else kind(val)).ir_value()
    count = value.type.n if isinstance(value.type, VecType) else 0
    parts = [Builder.current().extract(value, i) for i in range(count)] if count else [value]
    for i, part in enumerate(parts):
        number = wrap(part)
        update(op, place + i, number if type(number) is kind else kind(number), sem=sem, scope=scope)


def atomic_add(
    ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None, loc: Any = None, ip: Any = None
) -> Any:
    """``old = *ptr; *ptr = old + val`` at once; gives ``old``.

    ``sem``: relaxed, acquire, release, acq_rel; ``scope``: cta, cluster, gpu, sys.

    >>> per_thread(lambda t, p: arch.atomic_add(p, 2), 4, memory=[5])
    ([5, 7, 9, 11], [13])
    """
    return _atomic("add", ptr, val, None, sem, scope)


def atomic_max(
    ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None, loc: Any = None, ip: Any = None
) -> Any:
    """``*ptr = max(*ptr, val)`` at once; gives the old value.

    >>> per_thread(lambda t, p: arch.atomic_max(p, t), 4, memory=[1])
    ([1, 1, 1, 2], [3])
    """
    return _atomic("max", ptr, val, None, sem, scope)


def atomic_min(
    ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None, loc: Any = None, ip: Any = None
) -> Any:
    """``*ptr = min(*ptr, val)`` at once; gives the old value.

    >>> per_thread(lambda t, p: arch.atomic_min(p, -t), 4, memory=[-1])
    ([-1, -1, -1, -2], [-3])
    """
    return _atomic("min", ptr, val, None, sem, scope)


def atomic_fmax(
    ptr: Any,
    val: Any,
    *,
    sign_bit: Any = None,
    sem: str | None = None,
    scope: str | None = None,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """``*ptr = max(*ptr, val)`` of Float32 at once; gives the old value. Neither may be a NaN.
    ``sign_bit``: the sign of ``val``. It is ignored: ``val`` has it.

    The bits of floats that are not negative are in the order of integers, and those of the others in the opposite one.

    >>> from tilewright import Float32
    >>> per_thread(lambda t, p: arch.atomic_fmax(p, t - 1.5), 3, dtype=Float32, memory=[-1.0])[1]
    [0.5]
    """
    return _of_floats("max", ptr, val, sem, scope)


def atomic_fmin(
    ptr: Any,
    val: Any,
    *,
    sign_bit: Any = None,
    sem: str | None = None,
    scope: str | None = None,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """``*ptr = min(*ptr, val)`` of Float32 at once; gives the old value. See :func:`atomic_fmax`.

    >>> from tilewright import Float32
    >>> per_thread(lambda t, p: arch.atomic_fmin(p, 0.5 - t), 3, dtype=Float32, memory=[0.0])[1]
    [-1.5]
    """
    return _of_floats("min", ptr, val, sem, scope)


def _of_floats(kind: str, ptr: Any, val: Any, sem: str | None, scope: str | None) -> Any:
    pointer = pointer_of(ptr, f"atomic_f{kind}")
    if pointer.dtype is not Float32:
        raise ConstraintError(f"atomic_f{kind} takes a pointer to Float32, not {pointer}; integers by atomic_{kind}")
    number = Float32(val) + 0.0  # -0.0 becomes 0.0, whose bits are in order
    opposite = {"max": "min", "min": "max"}[kind]

    def not_negative() -> Any:
        bits = number.bitcast(Int32)
        return _atomic(kind, retyped(pointer, Int32), bits, None, sem, scope).bitcast(Float32)

    def negative() -> Any:
        bits = number.bitcast(Uint32)
        return _atomic(opposite, retyped(pointer, Uint32), bits, None, sem, scope).bitcast(Float32)

    return if_generate(number >= 0.0, not_negative, negative)


def atomic_and(
    ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None, loc: Any = None, ip: Any = None
) -> Any:
    """``*ptr &= val`` at once; gives the old value.

    >>> per_thread(lambda t, p: arch.atomic_and(p, 7 - (1 << t)), 3, memory=[7])
    ([7, 6, 4], [0])
    """
    return _atomic("and", ptr, val, None, sem, scope)


def atomic_or(
    ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None, loc: Any = None, ip: Any = None
) -> Any:
    """``*ptr |= val`` at once; gives the old value.

    >>> per_thread(lambda t, p: arch.atomic_or(p, 1 << t), 3, memory=[0])
    ([0, 1, 3], [7])
    """
    return _atomic("or", ptr, val, None, sem, scope)


def atomic_xor(
    ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None, loc: Any = None, ip: Any = None
) -> Any:
    """``*ptr ^= val`` at once; gives the old value.

    >>> per_thread(lambda t, p: arch.atomic_xor(p, 1 << t), 3, memory=[5])
    ([5, 4, 6], [2])
    """
    return _atomic("xor", ptr, val, None, sem, scope)


def atomic_exch(
    ptr: Any, val: Any, *, sem: str | None = None, scope: str | None = None, loc: Any = None, ip: Any = None
) -> Any:
    """``*ptr = val`` at once; gives the old value.

    >>> per_thread(lambda t, p: arch.atomic_exch(p, t), 3, memory=[9])
    ([9, 0, 1], [2])
    """
    return _atomic("exch", ptr, val, None, sem, scope)


def atomic_cas(
    ptr: Any, *, cmp: Any, val: Any, sem: str | None = None, scope: str | None = None, loc: Any = None, ip: Any = None
) -> Any:
    """``*ptr = val if *ptr == cmp`` at once; gives the old value.

    >>> per_thread(lambda t, p: arch.atomic_cas(p, cmp=t, val=t + 1), 3, memory=[0])
    ([0, 1, 2], [3])
    """
    return _atomic("cas", ptr, val, cmp, sem, scope)


def load(
    ptr: Any,
    dtype: Any = None,
    *,
    sem: str | None = None,
    scope: str | None = None,
    level1_eviction_priority: str | None = None,
    cop: str | None = None,
    ss: str | None = None,
    level_prefetch_size: str | None = None,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """One element that others may write at any time, as ``dtype``.

    Args:
        ptr: the address, aligned to the element.
        dtype: the type of the result; by default the pointer's own.
        sem: relaxed (the default) or acquire.
        scope: cta, cluster, gpu (the default) or sys.
        ss: "cta" or "cluster": the pointer is one to shared memory, of the block or of the cluster.
        level1_eviction_priority: a hint, which is not followed; a ``HintWarning`` says so.
        cop: a hint, as the one above.
        level_prefetch_size: a hint, as the one above.

    >>> per_thread(lambda t, p: arch.load(p + t, sem="acquire"), 3, memory=[7, 8, 9])
    ([7, 8, 9], [7, 8, 9])
    """
    not_followed("cute.arch.load", level1_eviction_priority, cop, level_prefetch_size)
    pointer = in_space(pointer_of(ptr, "load"), ss, "cute.arch.load")
    if dtype is not None and dtype is not pointer.dtype:
        pointer = retyped(pointer, dtype)
    instruction = OrderedLoad(sem or "relaxed", scope or "gpu")
    (value,) = call(instruction, pointer.value(), results=(pointer.dtype.ir_type,))
    return wrap(value)


def store(
    ptr: Any,
    val: Any,
    *,
    level1_eviction_priority: str | None = None,
    cop: str | None = None,
    ss: str | None = None,
    sem: str | None = None,
    scope: str | None = None,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """Write one element that other threads may read at any time.

    Args:
        ptr: the address, aligned to the element.
        val: the number, converted to the pointer's type.
        sem: relaxed (the default) or release.
        scope: cta, cluster, gpu (the default) or sys.
        ss: "cta" or "cluster": the pointer is one to shared memory, of the block or of the cluster.
        level1_eviction_priority: a hint, which is not followed; a ``HintWarning`` says so.
        cop: a hint, as the one above.

    >>> per_thread(lambda t, p: arch.store(p + t, t * t, sem="release"), 3, memory=[0, 0, 0])
    ([0, 0, 0], [0, 1, 4])
    """
    not_followed("cute.arch.store", level1_eviction_priority, cop)
    pointer = in_space(pointer_of(ptr, "store"), ss, "cute.arch.store")
    call(OrderedStore(sem or "relaxed", scope or "gpu"), pointer.value(), pointer.dtype(val).ir_value())


def not_followed(what: str, *hints: str | None) -> None:
    """Warn of hints that are given."""
    if ignored := [h for h in hints if h is not None]:
        warnings.warn(
            f"{what}: the cache hints {', '.join(ignored)} are not followed; the program means the same",
            HintWarning,
            stacklevel=3,
        )


def in_space(pointer: Pointer, ss: str | None, what: str) -> Pointer:
    """The pointer, which is one to shared memory if ``ss`` says so."""
    space = {None: None, "cta": "smem", "cluster": "dsmem"}.get(ss, ss)
    if space is not None and str(pointer.memspace) not in (space, "smem"):
        raise ConstraintError(f"{what}: ss={ss!r}, but {pointer} is not a pointer to shared memory")
    return pointer


def pointer_of(ptr: Any, what: str) -> Pointer:
    """What an operation takes as its place: a pointer, a tensor (its first element), or what ``llvm_ptr`` gives."""
    pointer = getattr(ptr, "iterator", ptr)
    if isinstance(pointer, Value) and isinstance(pointer.type, PtrType):  # what ``Pointer.llvm_ptr`` gives
        pointer = Pointer(pointer, class_of(pointer.type.elem))
    if not isinstance(pointer, Pointer):
        shown = f"a number ({type(ptr).__name__})" if isinstance(ptr, Numeric) else repr(ptr)
        raise ConstraintError(
            f"{what}: a pointer (or a tensor, for its first element) is needed, not {shown}: tensor.iterator + i "
            "points to the element at offset i"
        )
    return pointer
