"""Instructions among the lanes of a warp: shuffles, votes, redux, elect (PTX ISA, "shfl.sync", "vote.sync",
...).

The member mask is an i32 operand whose bit ``i`` stands for lane ``i``; -1 is the whole warp. A lane that executes such
an instruction must be in its own mask, and all threads that the mask names must execute it together. What a lane reads
from one that takes no part is undefined: the simulator gives a NaN, or 0xCD in every byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tilewright.errors import ConstraintError
from tilewright.ir.core import Op
from tilewright.ir.instruction import Emitter, Instruction, Lanes, need
from tilewright.ir.target import WARP
from tilewright.ir.types import BOOL, F32, I32, U32, ScalarType

Array = np.ndarray[Any, Any]


def members(lanes: Lanes, mask: Any, name: str) -> np.ndarray[Any, Any]:
    """bool ``[W, 32]``: the lanes that take part (active, and in the mask)."""
    active = lanes.active()
    named = lanes.spread(mask).astype(np.int64) & 0xFFFFFFFF
    if lanes.mask is None and (named == 0xFFFFFFFF).all():
        return active.reshape(-1, WARP)
    lane = lanes.lane()
    outside = active & ((named >> lane) & 1 == 0)
    if outside.any():
        raise lanes.fault(
            f"{name}: lane {int(lane[int(np.argmax(outside))])} executes it but is not in its member mask", outside
        )
    there = _bits(active)
    absent = active & (named & _bits(_threads(lanes)) & ~there != 0)
    if absent.any():
        first = int(np.argmax(absent))
        missing = int(named[first] & ~there[first])
        other = (missing & -missing).bit_length() - 1
        raise lanes.fault(
            f"{name}: its member mask {int(named[first]):#010x} names lane {other}, which does not execute it together "
            "with this one",
            absent,
            fix="move it out of the branch or loop that divides the warp, or give the mask of the lanes that go there",
        )
    return active.reshape(-1, WARP)


def _bits(lanes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """For each lane the mask of the lanes of its warp in ``lanes`` (bool ``[L]``)."""
    return np.repeat((lanes.reshape(-1, WARP).astype(np.int64) << np.arange(WARP)).sum(1), WARP)


def _threads(lanes: Lanes) -> np.ndarray[Any, Any]:
    """bool ``[L]``: the lanes that are threads of the block."""
    x, y, z = (lanes.sreg(f"ntid.{axis}").astype(np.int64) for axis in "xyz")
    return lanes.sreg("warpid").astype(np.int64) * WARP + lanes.lane() < x * y * z


def _nothing(dtype: np.dtype[Any]) -> Any:
    """The value that a lane that takes no part seems to hold."""
    if dtype.kind == "b":
        return np.True_
    return np.frombuffer((b"\xcd" if dtype.kind in "iu" else b"\xff") * dtype.itemsize, dtype)[0]


@dataclass(frozen=True)
class Shuffle(Instruction):
    """``shfl.sync``: each lane reads ``value`` of another. ``kind``: idx, up, down, bfly.

    Operands (value, offset: i32, mask: i32, mask_and_clamp: i32); the result has the value's type (any scalar up to 64
    bits). ``mask_and_clamp`` is PTX's operand c: the clamp in bits 0-4, the segment mask in bits 8-12 (31 for idx, down
    and bfly, 0 for up, in a whole warp). A lane whose source is out of range gets its own value.
    """

    kind: str
    name: ClassVar[str] = "shfl.sync"
    shuffles: ClassVar[bool] = True
    quiet: ClassVar[bool] = True
    accesses = ()

    def __post_init__(self) -> None:
        if self.kind not in ("idx", "up", "down", "bfly"):
            raise ConstraintError(f"no shfl.sync.{self.kind}; the kinds are idx, up, down, bfly")

    def mnemonic(self) -> str:
        return f"shfl.sync.{self.kind}"

    def count(self, op: Op) -> int:
        kind = op.operands[0].type
        return 2 if isinstance(kind, ScalarType) and kind.width == 64 else 1

    def verify(self, op: Op) -> None:
        need(
            op,
            len(op.operands) == 4 and len(op.results) == 1,
            f"{self.mnemonic()} takes (value, offset, mask, mask_and_clamp)",
        )
        value, *rest = op.operands
        need(op, isinstance(value.type, ScalarType) and value.type == op.result.type, "a shuffle moves one scalar")
        need(op, all(v.type == I32 for v in rest), "offset, mask and mask_and_clamp are i32")

    def source(self, lane: np.ndarray[Any, Any], offset: Any, control: Any) -> np.ndarray[Any, Any]:
        """The lane that each lane reads (PTX ISA, pseudocode of shfl.sync)."""
        b, clamp, segment = offset & 31, control & 31, (control >> 8) & 31
        highest = (lane & segment) | (clamp & ~segment)
        if self.kind == "up":
            source = lane - b
            valid = source >= highest
        else:
            source = {"down": lane + b, "bfly": lane ^ b, "idx": (lane & segment) | (b & ~segment)}[self.kind]
            valid = source <= highest
        return np.where(valid, source, lane)

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        value, offset, mask, control = (lanes.spread(v) for v in operands)
        there = members(lanes, mask, self.mnemonic())
        source = self.source(lanes.lane(), offset, control).reshape(-1, WARP)
        values = np.where(there, value.reshape(-1, WARP), _nothing(value.dtype))
        return (np.take_along_axis(values, source, 1).reshape(-1),)

    def emit(self, out: Emitter, op: Op) -> None:
        value, offset, mask, control = (out.value(v) for v in op.operands)
        name = f"tw_shfl_{self.kind}"
        out.helper(
            name,
            f"""template <class T>
__device__ __forceinline__ T {name}(T value, int offset, unsigned mask, int control) {{
  unsigned words[(sizeof(T) + 3) / 4] = {{}};
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (unsigned& word : words)
    asm volatile("{self.mnemonic()}.b32 %0, %0, %1, %2, %3;" : "+r"(word) : "r"(offset), "r"(control), "r"(mask));
  memcpy(&value, words, sizeof(T));
  return value;
}}""",
        )
        out.line(f"{out.declare(op.result)} = {name}({value}, {offset}, {mask}, {control});")


@dataclass(frozen=True)
class Vote(Instruction):
    """``vote.sync``: operands (predicate: i1, mask: i32). ``kind``: any, all, uni give i1; ballot gives i32 of bits."""

    kind: str
    name: ClassVar[str] = "vote.sync"
    quiet: ClassVar[bool] = True
    accesses = ()

    def __post_init__(self) -> None:
        if self.kind not in ("any", "all", "uni", "ballot"):
            raise ConstraintError(f"no vote.sync.{self.kind}; the kinds are any, all, uni, ballot")

    def mnemonic(self) -> str:
        return f"vote.sync.{self.kind}"

    def verify(self, op: Op) -> None:
        need(op, [v.type for v in op.operands] == [BOOL, I32], f"{self.mnemonic()} takes (predicate: i1, mask: i32)")
        want = (I32, U32) if self.kind == "ballot" else (BOOL,)
        need(op, len(op.results) == 1 and op.result.type in want, f"{self.mnemonic()} gives {want[0]}")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        there = members(lanes, operands[1], self.mnemonic())
        yes = lanes.spread(operands[0]).reshape(-1, WARP) & there
        if self.kind == "ballot":
            bits = (yes.astype(np.int64) << np.arange(WARP)).sum(1).astype(np.uint32)
            return (np.repeat(bits, WARP).view(np.int32 if op.result.type == I32 else np.uint32),)
        some, every = yes.any(1), (yes | ~there).all(1)
        return (np.repeat({"any": some, "all": every, "uni": every | ~some}[self.kind], WARP),)

    def emit(self, out: Emitter, op: Op) -> None:
        predicate, mask = (out.value(v) for v in op.operands)
        result = out.declare(op.result)
        if self.kind == "ballot":
            out.line(f"{result} = __ballot_sync({mask}, {predicate});")
        elif self.kind == "uni":
            out.line(f"{result} = __uni_sync({mask}, {predicate});")
        else:
            out.line(f"{result} = __{self.kind}_sync({mask}, {predicate});")


def _folded(lanes: Lanes, there: Array, mask: Any, fold: np.ufunc, value: Array, idle: Any) -> Array:
    """``[L]``: for each lane ``value`` (``[W, 32]``) folded over the active lanes of its own mask."""
    masks = (lanes.spread(mask).astype(np.int64) & 0xFFFFFFFF).reshape(-1, WARP)
    if (np.where(there, masks, 0).max(1) == np.where(there, masks, 0xFFFFFFFF).min(1)).all():
        return np.repeat(fold.reduce(np.where(there, value, idle), axis=1, dtype=value.dtype), WARP)
    own = there[:, None, :] & ((masks[:, :, None] >> np.arange(WARP)) & 1 != 0)
    folded = fold.reduce(np.where(own, value[:, None, :], idle), axis=2, dtype=value.dtype)
    return np.asarray(folded).reshape(-1)


_REDUX: dict[str, Any] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@dataclass(frozen=True)
class Redux(Instruction):
    """``redux.sync``: one 32-bit integer from all lanes. ``kind``: add min max and or xor. Operands (value, mask:
    i32)."""

    kind: str
    name: ClassVar[str] = "redux.sync"
    quiet: ClassVar[bool] = True
    accesses = ()

    def __post_init__(self) -> None:
        if self.kind not in _REDUX:
            raise ConstraintError(f"no redux.sync.{self.kind}; the kinds are {', '.join(_REDUX)}")

    def mnemonic(self) -> str:
        return f"redux.sync.{self.kind}"

    def verify(self, op: Op) -> None:
        need(op, len(op.operands) == 2 and op.operands[1].type == I32, "redux.sync takes (value, mask: i32)")
        need(op, op.operands[0].type in (I32, U32), "redux.sync takes i32 or u32; reduce floats with shuffles")
        need(op, [v.type for v in op.results] == [op.operands[0].type], "redux.sync gives the value's type")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        there = members(lanes, operands[1], self.mnemonic())
        value = lanes.spread(operands[0]).reshape(-1, WARP)
        info = np.iinfo(value.dtype)
        idle = {"min": info.max, "max": info.min, "and": value.dtype.type(0) - value.dtype.type(1)}.get(self.kind, 0)
        return (_folded(lanes, there, operands[1], _REDUX[self.kind], value, value.dtype.type(idle)),)

    def emit(self, out: Emitter, op: Op) -> None:
        value, mask = (out.value(v) for v in op.operands)
        if self.kind in ("and", "or", "xor"):
            value = f"static_cast<unsigned>({value})"
        out.line(f"{out.declare(op.result)} = __reduce_{self.kind}_sync({mask}, {value});")


@dataclass(frozen=True)
class ReduxFloat(Instruction):
    """``redux.sync.f32``: the least or greatest float of all lanes (``kind``: min max); -0.0 is less than 0.0. Operands
    (value: f32, mask: i32).

    A NaN counts only with ``nan``, and then it is the result; without, the result is NaN where all are. One instruction
    on sm_100 and sm_103, shuffles elsewhere (PTX ISA, "redux.sync").
    """

    kind: str
    absolute: bool = False
    nan: bool = False
    name: ClassVar[str] = "redux.sync.f32"
    quiet: ClassVar[bool] = True
    accesses = ()

    def __post_init__(self) -> None:
        if self.kind not in ("min", "max"):
            raise ConstraintError(f"no redux.sync.{self.kind} of floats; the kinds are min, max")

    def mnemonic(self) -> str:
        return f"redux.sync.{self.kind}{'.abs' * self.absolute}{'.NaN' * self.nan}.f32"

    def verify(self, op: Op) -> None:
        types = [v.type for v in op.operands]
        need(op, types == [F32, I32], f"{self.mnemonic()} takes (value: f32, mask: i32)")
        need(op, [v.type for v in op.results] == [F32], f"{self.mnemonic()} gives f32")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        there = members(lanes, operands[1], self.mnemonic())
        value = lanes.spread(operands[0]).astype(np.float32).reshape(-1, WARP)
        bits = np.abs(value).view(np.int32) if self.absolute else value.view(np.int32)
        ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # integers in the order of the floats
        number = ~np.isnan(value)
        info, mask = np.iinfo(np.int32), operands[1]
        idle = np.int32(info.max if self.kind == "min" else info.min)
        folded = _folded(lanes, there, mask, _REDUX[self.kind], np.where(number, ordered, idle), idle)
        folded = folded ^ ((folded >> 31) & 0x7FFFFFFF)
        if self.nan:
            no_number = _folded(lanes, there, mask, np.logical_or, np.isnan(value), False)
        else:
            no_number = ~_folded(lanes, there, mask, np.logical_or, number, False)
        nan = np.full(folded.shape, 0x7FFFFFFF, np.int32)
        return (np.where(no_number, nan, folded).astype(np.int32).view(np.float32),)

    def emit(self, out: Emitter, op: Op) -> None:
        value, mask = (out.value(v) for v in op.operands)
        name = f"tw_redux_{self.kind}{'_abs' * self.absolute}{'_nan' * self.nan}"
        head = f"__device__ __forceinline__ float {name}(float x, unsigned mask) {{\n"
        if 100 <= out.arch < 110:
            body = f'''  float y;
  asm volatile("{self.mnemonic()} %0, %1, %2;" : "=f"(y) : "f"(x), "r"(mask));
'''
        else:
            fold = f'asm("{self.kind}{".NaN" * self.nan}.f32 %0, %0, %1;" : "+f"(y) : "f"('
            start = {"min": "0x7f800000", "max": "0xff800000"}[self.kind] if self.nan else "0x7fffffff"
            body = f"""{"  x = fabsf(x);" if self.absolute else ""}
  mask = __ballot_sync(mask, true);
  float y = x;
  if (mask == 0xffffffffu) {{
    #pragma unroll
    for (int i = 16; i; i /= 2) {fold}__shfl_xor_sync(mask, y, i)));
  }} else {{
    y = __uint_as_float({start}u);
    for (unsigned left = mask; left; left &= left - 1) {fold}__shfl_sync(mask, x, __ffs(left) - 1)));
  }}
"""
        function = out.helper(name, f"{head}{body}  return y;\n}}\n")
        out.line(f"{out.declare(op.result)} = {function}({value}, {mask});")


@dataclass(frozen=True)
class ElectOne(Instruction):
    """``elect.sync`` over the whole warp: i1 that is true in one active lane (the lowest). No operands."""

    name: ClassVar[str] = "elect.sync"
    quiet: ClassVar[bool] = True
    accesses = ()

    def verify(self, op: Op) -> None:
        need(op, not op.operands and [v.type for v in op.results] == [BOOL], "elect_one takes nothing and gives i1")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        active = members(lanes, -1, self.name)
        chosen = active & (np.cumsum(active, axis=1) == 1)
        return (chosen.reshape(-1),)

    def emit(self, out: Emitter, op: Op) -> None:
        out.line(f"{out.declare(op.result)} = {elect(out)}();")


def elect(out: Emitter) -> str:
    """The device function that is true in one lane of the warp."""
    if out.arch < 90:
        body = """  unsigned lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane == __ffs(__activemask()) - 1;
"""
    else:
        body = """  unsigned chosen;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(chosen));
  return chosen;
"""
    return out.helper("tw_elect_one", f"__device__ __forceinline__ bool tw_elect_one() {{\n{body}}}")
