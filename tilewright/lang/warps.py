"""Exchange inside a warp: shuffles, votes, reductions, and the election of one lane."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Value
from tilewright.lang.barriers import FULL_MASK
from tilewright.lang.calls import call, i32
from tilewright.lang.choose import max as _max
from tilewright.lang.numeric import Float32, Int32, as_numeric, wrap
from tilewright.lang.threads import lane_idx


@contextlib.contextmanager
def elect_one(**_: Any) -> Iterator[None]:
    """``with elect_one():`` one lane of each warp runs the body."""
    builder = Builder.current()
    elected = lane_idx() == 0
    body, rest = Block(), Block()
    with builder.inside(body):
        yield
        builder.emit("yield")
    with builder.inside(rest):
        builder.emit("yield")
    builder.emit("if", (elected.ir_value(),), (), {}, (body, rest))


def make_warp_uniform(value: Any, **_: Any) -> Any:
    """``value`` with the promise that all lanes of a warp agree on it: read from the warp's first lane."""
    number = as_numeric(value)
    if number.is_static:
        return number
    result = shuffle_sync(number.to(Int32), 0)
    return result.learn(number.facts)


def shuffle_sync(value: Any, offset: Any = 0, mask: Any = FULL_MASK, mask_and_clamp: Any = None, **_: Any) -> Any:
    """``value`` of lane ``offset``."""
    return shuffle_sync_op(value, offset, mask, mask_and_clamp, kind="idx")


def shuffle_sync_up(value: Any, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: Any = None, **_: Any) -> Any:
    """``value`` of the lane ``offset`` below."""
    return shuffle_sync_op(value, offset, mask, mask_and_clamp, kind="up")


def shuffle_sync_down(value: Any, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: Any = None, **_: Any) -> Any:
    """``value`` of the lane ``offset`` above."""
    return shuffle_sync_op(value, offset, mask, mask_and_clamp, kind="down")


def shuffle_sync_bfly(value: Any, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: Any = None, **_: Any) -> Any:
    """``value`` of the lane whose index is this one's xor ``offset``."""
    return shuffle_sync_op(value, offset, mask, mask_and_clamp, kind="bfly")


def shuffle_sync_op(
    value: Any, offset: Any, mask: Any = FULL_MASK, mask_and_clamp: Any = None, *, kind: str = "idx", **_: Any
) -> Any:
    """One ``shfl.sync``. ``mask_and_clamp`` is PTX's operand c (31, or 0 for ``up``, unless lanes are subdivided).

    64-bit numbers go as two words, smaller ones widened to 32 bits.
    """
    from tilewright.atoms.warp import Shuffle
    from tilewright.lang.tensor_ssa import TensorSSA

    if isinstance(value, TensorSSA):
        parts = [shuffle_sync_op(value[i], offset, mask, mask_and_clamp, kind=kind) for i in range(value.numel)]
        return TensorSSA(Builder.current().build([p.ir_value() for p in parts]), value.shape, value.dtype)
    number = as_numeric(value)
    clamp = (0 if kind == "up" else 31) if mask_and_clamp is None else mask_and_clamp
    kind = str(getattr(kind, "value", kind))
    if number.width == 64:
        return _wide_shuffle(number, offset, mask, clamp, kind)
    word, restore = _as_word(number)
    (result,) = call(Shuffle(kind), word, i32(offset), i32(_signed(mask)), i32(clamp), results=(word.type,))
    return restore(result)


def _signed(mask: Any) -> Any:
    return mask - (1 << 32) if isinstance(mask, int) and mask >= 1 << 31 else mask


def _as_word(number: Any) -> tuple[Value, Any]:
    """The number as a 32-bit IR value, and what makes the result of that type again."""
    cls = type(number)
    if number.width == 32:
        return number.ir_value(), wrap
    if cls.is_integer:
        return Int32(number).ir_value(), lambda v: cls(Int32(v))
    return Float32(number).ir_value(), lambda v: cls(Float32(v))


def _wide_shuffle(number: Any, offset: Any, mask: Any, clamp: Any, kind: str) -> Any:
    from tilewright.ir.types import I32, VecType

    builder = Builder.current()
    words = builder.bitcast(builder.build([number.ir_value()]), VecType(I32, 2))
    halves = [
        shuffle_sync_op(wrap(builder.extract(words, i)), offset, mask, clamp, kind=kind).ir_value() for i in range(2)
    ]
    whole = builder.bitcast(builder.build(halves), VecType(number.ir_type, 1))
    return wrap(builder.extract(whole, 0))


def warp_reduction(val: Any, op: Any, *, threads_in_group: int = 32, **_: Any) -> Any:
    """``op`` (a function of two) folded over groups of ``threads_in_group`` neighbouring lanes; every lane gets the result."""
    if threads_in_group < 1 or threads_in_group > 32 or threads_in_group & (threads_in_group - 1):
        raise ConstraintError(f"warp_reduction: threads_in_group is a power of two up to 32, not {threads_in_group}")
    offset = threads_in_group // 2
    while offset:
        val = op(val, shuffle_sync_bfly(val, offset))
        offset //= 2
    return val


def warp_reduction_sum(val: Any, *, threads_in_group: int = 32, **_: Any) -> Any:
    """The sum over groups of ``threads_in_group`` lanes, in every lane."""
    return warp_reduction(val, lambda a, b: a + b, threads_in_group=threads_in_group)


def warp_reduction_max(val: Any, *, threads_in_group: int = 32, **_: Any) -> Any:
    """The maximum over groups of ``threads_in_group`` lanes, in every lane."""
    return warp_reduction(val, _max, threads_in_group=threads_in_group)


def _vote(kind: str, predicate: Any, mask: Any) -> Any:
    from tilewright.atoms.warp import Vote
    from tilewright.ir.types import BOOL, I32
    from tilewright.lang.numeric import Boolean

    result = I32 if kind == "ballot" else BOOL
    (value,) = call(Vote(kind), Boolean(predicate), i32(_signed(mask)), results=(result,))
    return wrap(value)


def vote_any_sync(pred: Any, mask: Any = FULL_MASK, **_: Any) -> Any:
    """Whether any lane's ``pred`` is true."""
    return _vote("any", pred, mask)


def vote_all_sync(pred: Any, mask: Any = FULL_MASK, **_: Any) -> Any:
    """Whether every lane's ``pred`` is true."""
    return _vote("all", pred, mask)


def vote_uni_sync(pred: Any, mask: Any = FULL_MASK, **_: Any) -> Any:
    """Whether all lanes have the same ``pred``."""
    return _vote("all", pred, mask) | ~_vote("any", pred, mask)


def vote_ballot_sync(pred: Any, mask: Any = FULL_MASK, **_: Any) -> Any:
    """Bit i of the result is ``pred`` of lane i."""
    return _vote("ballot", pred, mask)
