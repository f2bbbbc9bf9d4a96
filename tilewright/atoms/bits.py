"""Bit instructions of one thread: population count and byte permutation (PTX ISA, "popc", "prmt")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tilewright.ir.core import Op
from tilewright.ir.instruction import Emitter, Instruction, Lanes, need
from tilewright.ir.types import I32, U32, U64


@dataclass(frozen=True)
class Popc(Instruction):
    """``popc``: how many bits are set. Operand: u32 or u64; gives i32."""

    name: ClassVar[str] = "popc"
    pure: ClassVar[bool] = True
    quiet: ClassVar[bool] = True
    accesses = ()

    def verify(self, op: Op) -> None:
        need(op, len(op.operands) == 1 and op.operands[0].type in (U32, U64), "popc takes one u32 or u64")
        need(op, [v.type for v in op.results] == [I32], "popc gives i32")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        return (np.bitwise_count(operands[0]).astype(np.int32),)

    def emit(self, out: Emitter, op: Op) -> None:
        wide = op.operands[0].type == U64
        out.line(f"{out.declare(op.result)} = __popc{'ll' if wide else ''}({out.value(op.operands[0])});")


@dataclass(frozen=True)
class Permute(Instruction):
    """``prmt.b32``: byte i of the result is the byte that hexadecimal digit i of the selector names.

    Operands (a, b, selector), all u32: bytes 0-3 are a's, 4-7 are b's; bit 3 of a digit repeats the byte's sign.
    """

    name: ClassVar[str] = "prmt"
    pure: ClassVar[bool] = True
    quiet: ClassVar[bool] = True
    accesses = ()

    def verify(self, op: Op) -> None:
        need(op, [v.type for v in op.operands] == [U32] * 3, "prmt takes three u32")
        need(op, [v.type for v in op.results] == [U32], "prmt gives u32")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        a, b, selector = (np.asarray(v).astype(np.uint64) for v in operands)
        pool = a | b << np.uint64(32)
        result = np.zeros(np.broadcast(a, b, selector).shape, np.uint32)
        for i in range(4):
            digit = selector >> np.uint64(4 * i) & np.uint64(15)
            byte = pool >> (digit & np.uint64(7)) * np.uint64(8) & np.uint64(0xFF)
            signs = np.where(byte >= 0x80, np.uint64(0xFF), np.uint64(0))
            result |= np.where(digit & np.uint64(8), signs, byte).astype(np.uint32) << np.uint32(8 * i)
        return (result if result.ndim else result[()],)

    def emit(self, out: Emitter, op: Op) -> None:
        a, b, selector = (out.value(v) for v in op.operands)
        out.helper(
            "tw_prmt",
            """__device__ __forceinline__ unsigned tw_prmt(unsigned a, unsigned b, unsigned selector) {
  unsigned result;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(selector));
  return result;
}""",
        )
        out.line(f"{out.declare(op.result)} = tw_prmt({a}, {b}, {selector});")


@dataclass(frozen=True)
class Rematerialize(Instruction):
    """``mov`` that the compiler may not look through: a 32-bit integer of unknown origin.

    What is computed from the result stays behind it. So a long loop before it need not keep in registers what is cheap
    to compute again, and a loop around it does not compute it ahead.
    """

    name: ClassVar[str] = "rematerialize"
    quiet: ClassVar[bool] = True
    accesses = ()

    def verify(self, op: Op) -> None:
        kinds = [v.type for v in op.operands]
        need(op, len(kinds) == 1 and kinds[0] in (I32, U32), "rematerialize takes one 32-bit integer")
        need(op, [v.type for v in op.results] == kinds, "rematerialize gives the type of its operand")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        return (operands[0],)

    def emit(self, out: Emitter, op: Op) -> None:
        out.helper(
            "tw_rematerialize",
            """template <class T>
__device__ __forceinline__ T tw_rematerialize(T value) {
  asm volatile("mov.b32 %0, %0;" : "+r"(value));
  return value;
}""",
        )
        out.line(f"{out.declare(op.result)} = tw_rematerialize({out.value(op.operands[0])});")
