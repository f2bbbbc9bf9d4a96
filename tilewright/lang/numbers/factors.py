"""Quotients that need no division: the multiplications that made a number are read back.

``(m*64) // 64`` is ``m`` and ``(m*n*8) // (n*2)`` is ``m*4`` where the products do not overflow: this is proven,
or layouts ask, which assume it of their index arithmetic in signed numbers of 32 and 64 bits.
"""

from __future__ import annotations

from tilewright.ir.builder import Builder
from tilewright.ir.core import Constant, Value
from tilewright.ir.types import ScalarType

PURE = ("add", "sub", "mul", "div", "rem", "floordiv", "floormod", "cast", "min", "max", "sreg")


def quotient(a: Value, b: Value | int, proven: bool = False) -> Value | int | None:
    """``a / b`` as a product of factors of ``a``; None where the factors do not show that it is whole. ``proven``: only
    products that are known not to overflow are read back.

    Of two numbers that are computed in the same way, each is the quotient of the other times 1, whether or not they are
    one value.
    """
    kind = a.type
    if not isinstance(kind, ScalarType) or kind.kind != "int" or kind.width < 32:
        return None
    number, rest = _factors(a, proven)
    divisor, others = (b, []) if isinstance(b, int) else _factors(b, proven)
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
        result = builder.binary("mul", result, value, fits=True)
    return builder.binary("mul", result, builder.constant(kind, number // divisor), fits=True)


def same(a: Value, b: Value, depth: int = 8) -> bool:
    """Whether two values are provably one number: computed by the same few operations from the same values."""
    if a is b:
        return True
    if isinstance(a, Constant) or isinstance(b, Constant):
        return isinstance(a, Constant) and isinstance(b, Constant) and a.type == b.type and a.value == b.value
    x, y = a.op, b.op
    if x is None or y is None or x.opcode != y.opcode or x.opcode not in PURE or a.type != b.type or not depth:
        return False
    if any(x.attrs.get(k) != y.attrs.get(k) for k in (x.attrs.keys() | y.attrs.keys()) - {"wraps"}):
        return False
    if x.attrs.get("name") == "clock":
        return False
    return all(same(v, w, depth - 1) for v, w in zip(x.operands, y.operands, strict=True))


def _factors(value: Value, proven: bool) -> tuple[int, list[Value]]:
    """A literal factor and the other factors of a number."""
    if isinstance(value, Constant):
        return int(value.value), []
    if value.op is None or value.op.opcode != "mul" or (proven and value.op.attrs.get("wraps")):
        return 1, [value]
    (m, factors_m), (n, right) = (_factors(v, proven) for v in value.op.operands)
    return m * n, factors_m + right
