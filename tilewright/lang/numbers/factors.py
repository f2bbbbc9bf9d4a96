"""Quotients that need no division: the multiplications that made a number are read back.

``(m*64) // 64`` is ``m`` and ``(m*n*8) // (n*2)`` is ``m*4``. Signed numbers of 32 and 64 bits only: they do not
overflow by contract, whereas unsigned and narrower ones wrap around.
"""

from __future__ import annotations

from tilewright.ir.builder import Builder
from tilewright.ir.core import Constant, Value
from tilewright.ir.types import ScalarType

PURE = ("add", "sub", "mul", "div", "rem", "floordiv", "floormod", "cast", "min", "max", "sreg")


def quotient(a: Value, b: Value | int) -> Value | int | None:
    """``a / b`` as a product of factors of ``a``; None where the factors do not show that it is whole.

    Of two numbers computed alike, each is the quotient of the other times 1, whether or not they are one value.
    """
    kind = a.type
    if not isinstance(kind, ScalarType) or kind.kind != "int" or kind.width < 32:
        return None
    number, rest = _factors(a)
    divisor, others = (b, []) if isinstance(b, int) else _factors(b)
    for other in others:
        match = next((i for i, value in enumerate(rest) if same(value, other)), None)
        if match is None:
            return None
        del rest[match]
    if divisor == 0 or number % divisor:
        return None
    if not rest:
        return number // divisor
    builder = Builder.current()
    result = rest[0]
    for value in rest[1:]:
        result = builder.binary("mul", result, value)
    return builder.binary("mul", result, builder.constant(kind, number // divisor))


def same(a: Value, b: Value, depth: int = 8) -> bool:
    """Whether two values are provably one number: computed by the same few operations from the same values."""
    if a is b:
        return True
    if isinstance(a, Constant) or isinstance(b, Constant):
        return isinstance(a, Constant) and isinstance(b, Constant) and a.type == b.type and a.value == b.value
    x, y = a.op, b.op
    if x is None or y is None or x.opcode != y.opcode or x.opcode not in PURE or a.type != b.type or not depth:
        return False
    if x.attrs != y.attrs or x.attrs.get("name") == "clock":
        return False
    return all(same(v, w, depth - 1) for v, w in zip(x.operands, y.operands, strict=True))


def _factors(value: Value) -> tuple[int, list[Value]]:
    """A literal factor and the other factors of a number."""
    if isinstance(value, Constant):
        return int(value.value), []
    if value.op is None or value.op.opcode != "mul":
        return 1, [value]
    (m, left), (n, right) = map(_factors, value.op.operands)
    return m * n, left + right
