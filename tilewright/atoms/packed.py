"""Arithmetic on two Float32 at once in all rounding modes: one instruction on sm_100 and sm_103, two elsewhere (PTX
ISA, "add", "sub", "mul", "fma" of ``.f32x2``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tilewright.errors import ConstraintError
from tilewright.ir.core import Op
from tilewright.ir.instruction import Emitter, Instruction, Lanes, need
from tilewright.ir.types import F32

Array = np.ndarray[Any, Any]

OPERANDS = {"add": 2, "sub": 2, "mul": 2, "fma": 3}
ROUNDING = ("rn", "rz", "rm", "rp")
_LEAST_NORMAL = np.float32(2.0**-126)


def rounded(operation: str, rounding: str, flush: bool, numbers: list[Array]) -> Array:
    """What the GPU computes from float32 numbers, rounded once: to the nearest even number (``rn``), towards 0
    (``rz``), down (``rm``), up (``rp``). ``flush`` makes a subnormal operand or result a 0 of its sign.

    >>> a, b = np.float32([1.0]), np.float32([2.0**-30])
    >>> [float(rounded("add", mode, False, [a, b])[0]) for mode in ROUNDING]
    [1.0, 1.0, 1.0, 1.0000001192092896]
    """
    with np.errstate(all="ignore"):
        if flush:
            numbers = [_flushed(x) for x in numbers]
        first, second, *rest = (x.astype(np.float64) for x in numbers)
        if operation in ("add", "sub"):
            total = _sum(first, second if operation == "add" else -second, rounding)
        else:
            product = first * second  # exact: twice 24 bits
            total = _sum(product, rest[0], rounding) if rest else product
        result = total.astype(np.float32)
        if rounding in ("rz", "rm"):
            above = (result > total) & ((rounding == "rm") | (total > 0))
            result = np.where(above, np.nextafter(result, np.float32(-np.inf)), result)
        if rounding in ("rz", "rp"):
            below = (result < total) & ((rounding == "rp") | (total < 0))
            result = np.where(below, np.nextafter(result, np.float32(np.inf)), result)
        return _flushed(result) if flush else result


def _sum(a: Array, b: Array, rounding: str) -> Array:
    """``a + b``; where float64 is too short for it, the last bit is set, so that it rounds to float32 as the sum does
    (rounding to odd)."""
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    even = total.view(np.int64) & 1 == 0
    inexact = np.isfinite(total) & (error != 0) & even
    total = np.where(inexact, np.nextafter(total, np.where(error > 0, np.inf, -np.inf)), total)
    if rounding == "rm":  # a difference of 0 is -0
        total = np.where((total == 0) & (np.signbit(a) != np.signbit(b)), -0.0, total)
    return total


def _flushed(x: Array) -> Array:
    return np.where(np.abs(x) < _LEAST_NORMAL, np.copysign(np.float32(0), x), x)


@dataclass(frozen=True)
class PairArithmetic(Instruction):
    """``operation`` (add, sub, mul, fma) on pairs of f32, number by number. Operands: the pairs one after another;
    results: the two numbers."""

    operation: str
    rounding: str = "rn"
    flush: bool = False
    name: ClassVar[str] = "packed.f32x2"
    quiet: ClassVar[bool] = True
    accesses = ()

    def __post_init__(self) -> None:
        if self.operation not in OPERANDS or self.rounding not in ROUNDING:
            raise ConstraintError(
                f"no {self.mnemonic()}: operations {', '.join(OPERANDS)}; rounding {', '.join(ROUNDING)}"
            )

    def mnemonic(self) -> str:
        return self._of("f32x2")

    def _of(self, kind: str) -> str:
        return f"{self.operation}.{self.rounding}{'.ftz' * self.flush}.{kind}"

    def verify(self, op: Op) -> None:
        required = [F32] * (2 * OPERANDS[self.operation])
        need(op, [v.type for v in op.operands] == required, f"{self.mnemonic()} takes {len(required)} f32")
        need(op, [v.type for v in op.results] == [F32, F32], f"{self.mnemonic()} gives two f32")

    def simulate(self, lanes: Lanes, op: Op, operands: list[Any]) -> tuple[Any, ...]:
        numbers = [np.asarray(lanes.spread(x), np.float32) for x in operands]
        return tuple(rounded(self.operation, self.rounding, self.flush, numbers[i::2]) for i in (0, 1))

    def emit(self, out: Emitter, op: Op) -> None:
        count = OPERANDS[self.operation]
        name = f"tw_{self.operation}x2_{self.rounding}{'_ftz' * self.flush}"
        numbers = [f"{pair}{i}" for pair in "abc"[:count] for i in (0, 1)]
        inputs = ", ".join(f'"f"({x})' for x in numbers)
        if out.arch >= 100:
            registers = [f"p{i}" for i in range(count)]
            moves = "".join(f"mov.b64 p{i}, {{%{2 * i + 2}, %{2 * i + 3}}}; " for i in range(count))
            text = f"{{.reg .b64 {', '.join(registers)}, d; {moves}{self.mnemonic()} d, {', '.join(registers)}; "
            body = f'  asm("{text}mov.b64 {{%0, %1}}, d;}}" : "=f"(x), "=f"(y) : {inputs});\n'
        else:
            lines = []
            for i, target in enumerate("xy"):
                places = ", ".join(f"%{j + 1}" for j in range(count))
                own = ", ".join(f'"f"({x})' for x in numbers[i::2])
                lines.append(f'  asm("{self._of("f32")} %0, {places};" : "=f"({target}) : {own});\n')
            body = "".join(lines)
        parameters = ", ".join(f"float {x}" for x in numbers)
        head = f"__device__ __forceinline__ void {name}(float& x, float& y, {parameters}) {{\n"
        function = out.helper(name, f"{head}{body}}}\n")
        x, y = (out.declare(v) for v in op.results)
        out.line(f"{function}({x}, {y}, {', '.join(out.value(v) for v in op.operands)});")
