"""Exchange inside a warp: shuffles, votes, reductions, and the election of one lane."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, TypeVar

from tilewright.atoms.warp import ElectOne, Redux, ReduxFloat, Shuffle, Vote
from tilewright.errors import ConstraintError, StagingError
from tilewright.ir.builder import Builder
from tilewright.ir.types import BOOL, F32, I32
from tilewright.lang.device.barriers import FULL_MASK
from tilewright.lang.device.calls import call, i32
from tilewright.lang.device.threads import WARP_SIZE
from tilewright.lang.numbers.numeric import Boolean, Float32, Int32, Numeric, Uint32, as_numeric, wrap
from tilewright.lang.staging.with_block import only_if
from tilewright.lang.tensors.select import max as _max
from tilewright.lang.tensors.tensor_ssa import TensorSSA

N = TypeVar("N", bound=Numeric | TensorSSA | float)


@contextlib.contextmanager
def elect_one(*, loc: Any = None, ip: Any = None) -> Iterator[None]:
    """``with elect_one():`` one lane of each warp runs the body.

    >>> def mark(t, p):
    ...     with arch.elect_one():
    ...         arch.store(p + arch.warp_idx(), t + 1)
    >>> per_thread(mark, 64, memory=[0, 0])[1]
    [1, 33]
    """
    with only_if(elected().ir_value(), "elect_one block"):
        yield


def elected() -> Any:
    """A Boolean that is true in one lane of each warp."""
    (chosen,) = call(ElectOne(), results=(BOOL,))
    return wrap(chosen)


def make_warp_uniform(value: Any, *, loc: Any = None, ip: Any = None) -> Int32:
    """``value`` with the promise that all lanes of a warp agree on it: read from the warp's first lane.

    >>> per_thread(lambda t: arch.make_warp_uniform(t), 64)[::16]
    [0, 0, 32, 32]
    """
    number = as_numeric(value)
    if number.is_static:
        return number
    if type(number).is_float:
        raise StagingError(f"make_warp_uniform takes an integer, got a run-time {type(number).__name__}")
    word = number.to(Int32)
    return shuffle_sync(word, 0).learn(word.facts)


def shuffle_sync(
    value: N, offset: Any = 0, mask: Any = FULL_MASK, mask_and_clamp: Any = None, *, loc: Any = None, ip: Any = None
) -> N:
    """``value`` of lane ``offset``.

    Args:
        value: a number, or a vector (TensorSSA).
        offset: the lane, 0 to 31.
        mask: a bit for each lane that takes part.
        mask_and_clamp: PTX's operand c: 31 unless lanes are subdivided.

    >>> per_thread(lambda t: arch.shuffle_sync(t * 10, 3))[:4]
    [30, 30, 30, 30]
    """
    return shuffle_sync_op(value, offset, mask, mask_and_clamp, kind="idx")


def shuffle_sync_up(
    value: N, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: Any = None, *, loc: Any = None, ip: Any = None
) -> N:
    """``value`` of the lane ``offset`` below.

    Args:
        value: a number, or a vector (TensorSSA).
        offset: how many lanes below; a lane without one there keeps its own value.
        mask: a bit for each lane that takes part.
        mask_and_clamp: PTX's operand c: 0 unless lanes are subdivided.

    >>> per_thread(lambda t: arch.shuffle_sync_up(t, 1))[:4]
    [0, 0, 1, 2]
    """
    return shuffle_sync_op(value, offset, mask, mask_and_clamp, kind="up")


def shuffle_sync_down(
    value: N, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: Any = None, *, loc: Any = None, ip: Any = None
) -> N:
    """``value`` of the lane ``offset`` above.

    Args:
        value: a number, or a vector (TensorSSA).
        offset: how many lanes above; a lane without one there keeps its own value.
        mask: a bit for each lane that takes part.
        mask_and_clamp: PTX's operand c: 31 unless lanes are subdivided.

    >>> per_thread(lambda t: arch.shuffle_sync_down(t, 1))[28:]
    [29, 30, 31, 31]
    """
    return shuffle_sync_op(value, offset, mask, mask_and_clamp, kind="down")


def shuffle_sync_bfly(
    value: N, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: Any = None, *, loc: Any = None, ip: Any = None
) -> N:
    """``value`` of the lane whose index is this one's xor ``offset``.

    Args:
        value: a number, or a vector (TensorSSA).
        offset: the bits of the lane's index that differ.
        mask: a bit for each lane that takes part.
        mask_and_clamp: PTX's operand c: 31 unless lanes are subdivided.

    >>> per_thread(lambda t: arch.shuffle_sync_bfly(t, 2))[:4]
    [2, 3, 0, 1]
    """
    return shuffle_sync_op(value, offset, mask, mask_and_clamp, kind="bfly")


def shuffle_sync_op(
    value: Any,
    offset: Any,
    mask: Any = FULL_MASK,
    mask_and_clamp: Any = None,
    *,
    kind: str = "idx",
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """One ``shfl.sync``. The elements of a TensorSSA go one after another.

    Args:
        value: a number, or a vector (TensorSSA).
        offset: PTX's operand b: the lane, or how far away it is.
        mask: a bit for each lane that takes part.
        mask_and_clamp: PTX's operand c: 31 (0 of ``up``) unless lanes are subdivided.
        kind: idx, up, down or bfly.

    >>> per_thread(lambda t: arch.shuffle_sync_op(t, 0, mask_and_clamp=0x181F, kind="idx"))[::8]
    [0, 8, 16, 24]
    """
    if isinstance(value, TensorSSA):
        parts = [shuffle_sync_op(value[i], offset, mask, mask_and_clamp, kind=kind) for i in range(value.numel)]
        return TensorSSA(Builder.current().build([p.ir_value() for p in parts]), value.shape, value.dtype)
    number = as_numeric(value)
    kind = str(getattr(kind, "value", kind))
    distance = as_numeric(offset)
    if distance.is_static and not 0 <= distance.value < WARP_SIZE:  # the hardware reads five bits of it
        what = "the lane" if kind == "idx" else "the offset"
        raise ConstraintError(f"shuffle_sync ({kind}): {what} {distance.value} is outside a warp: take 0 to 31")
    clamp = (0 if kind == "up" else 31) if mask_and_clamp is None else mask_and_clamp
    operands = (number, i32(offset), i32(_signed(mask)), i32(clamp))
    (result,) = call(Shuffle(kind), *operands, results=(number.ir_type,))
    return wrap(result)


def _signed(mask: Any) -> Any:
    return mask - (1 << 32) if isinstance(mask, int) and mask >= 1 << 31 else mask


def warp_reduction(val: N, op: Any, *, threads_in_group: int = 32, loc: Any = None, ip: Any = None) -> N:
    """``op`` (a function of two) folded over groups of ``threads_in_group`` lanes; every lane gets the result.

    >>> per_thread(lambda t: arch.warp_reduction(t, lambda a, b: a + b, threads_in_group=8))[::8]
    [28, 92, 156, 220]
    """
    if threads_in_group < 1 or threads_in_group > 32 or threads_in_group & (threads_in_group - 1):
        raise ConstraintError(f"warp_reduction: threads_in_group is a power of two up to 32, not {threads_in_group}")
    offset = threads_in_group // 2
    while offset:
        val = op(val, shuffle_sync_bfly(val, offset))
        offset //= 2
    return val


def warp_reduction_sum(val: N, *, threads_in_group: int = 32, loc: Any = None, ip: Any = None) -> N:
    """The sum over groups of ``threads_in_group`` lanes, in every lane.

    >>> per_thread(lambda t: arch.warp_reduction_sum(t))[:2]
    [496, 496]
    """
    return warp_reduction(val, lambda a, b: a + b, threads_in_group=threads_in_group)


def warp_reduction_max(val: N, *, threads_in_group: int = 32, loc: Any = None, ip: Any = None) -> N:
    """The maximum over groups of ``threads_in_group`` lanes, in every lane.

    >>> per_thread(lambda t: arch.warp_reduction_max(t, threads_in_group=8))[::8]
    [7, 15, 23, 31]
    """
    return warp_reduction(val, _max, threads_in_group=threads_in_group)


def warp_redux_sync(
    value: Any,
    kind: str,
    mask_and_clamp: Any = FULL_MASK,
    abs: bool | None = None,
    nan: bool | None = None,
    *,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """One number from the lanes of a mask, in each of them, by one instruction (``redux.sync``): of Int32 and Uint32,
    with ``kind`` add, min, max, and, or, xor; of Float32 with fmin and fmax (one instruction on sm_100 and sm_103,
    shuffles elsewhere; max and min mean the same), of absolute values with ``abs``. A NaN counts only with ``nan``.

    >>> per_thread(lambda t: arch.warp_redux_sync(t, "add"))[:2]
    [496, 496]
    """
    number = as_numeric(value)
    mask = i32(_signed(mask_and_clamp))
    if kind in ("min", "max") and type(number) is Float32:
        kind = f"f{kind}"
    elif kind in ("umin", "umax") and type(number) is Uint32:
        kind = kind[1:]
    if kind in ("fmin", "fmax"):
        if type(number) is not Float32:
            raise ConstraintError(f"warp_redux_sync: {kind} takes Float32, not {type(number).__name__}")
        (result,) = call(ReduxFloat(kind[1:], bool(abs), bool(nan)), number, mask, results=(F32,))
        return wrap(result)
    if abs or nan:
        raise ConstraintError(f"warp_redux_sync: abs and nan belong to fmin and fmax, not to {kind}")
    if type(number) not in (Int32, Uint32):
        raise ConstraintError(
            f"warp_redux_sync: {kind} takes Int32 or Uint32, not {type(number).__name__}; others by warp_reduction"
        )
    (result,) = call(Redux(kind), number, mask, results=(type(number).ir_type,))
    return wrap(result)


def _vote(kind: str, predicate: Any, mask: Any) -> Any:
    result = I32 if kind == "ballot" else BOOL
    (value,) = call(Vote(kind), Boolean(predicate), i32(_signed(mask)), results=(result,))
    return wrap(value)


def vote_any_sync(pred: Any, mask: Any = FULL_MASK, *, loc: Any = None, ip: Any = None) -> Boolean:
    """Whether any lane's ``pred`` is true.

    >>> per_thread(lambda t: arch.vote_any_sync(t == 3))[:2]
    [1, 1]
    """
    return _vote("any", pred, mask)


def vote_all_sync(pred: Any, mask: Any = FULL_MASK, *, loc: Any = None, ip: Any = None) -> Boolean:
    """Whether every lane's ``pred`` is true.

    >>> per_thread(lambda t: arch.vote_all_sync(t == 3))[:2]
    [0, 0]
    """
    return _vote("all", pred, mask)


def vote_uni_sync(pred: Any, mask: Any = FULL_MASK, *, loc: Any = None, ip: Any = None) -> Boolean:
    """Whether all lanes have the same ``pred``.

    >>> per_thread(lambda t: arch.vote_uni_sync(t < 32))[:2]
    [1, 1]
    """
    return _vote("uni", pred, mask)


def vote_ballot_sync(pred: Any, mask: Any = FULL_MASK, *, loc: Any = None, ip: Any = None) -> Int32:
    """Bit i of the result is ``pred`` of lane i.

    >>> per_thread(lambda t: arch.vote_ballot_sync(t % 8 < 2))[:1] == [0x03030303]
    True
    """
    return _vote("ballot", pred, mask)
