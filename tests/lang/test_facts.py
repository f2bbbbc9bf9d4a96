"""Facts are never wrong: random expressions are evaluated on numbers and compared with what was claimed of them."""

from __future__ import annotations

import math
import operator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lang.evaluate import evaluate
from tilewright.errors import StagingError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Value
from tilewright.ir.types import I32
from tilewright.lang.numbers.facts import Facts, combine, join, of_number, possible_bits
from tilewright.lang.numbers.numeric import Int32, Integer, wrap
from tilewright.lang.tensors.swizzled import SwizzleBits, split

LITERALS = st.integers(1, 70) | st.integers(1, 1 << 20)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "min", "max"]), LITERALS, st.booleans()
    ),
    max_size=5,
)


def apply(x: Integer, name: str, literal: int, with_t: bool, t: Integer):
    from tilewright.lang.tensors import select

    other = t if with_t and name in "+-*&|^" else literal
    if name in ("<<", ">>"):
        literal %= 5
        return x << literal if name == "<<" else x >> literal
    actions = {
        "+": lambda: x + other,
        "-": lambda: x - other,
        "*": lambda: x * other,
        "//": lambda: x // literal,
        "%": lambda: x % literal,
        "&": lambda: x & other,
        "|": lambda: x | other,
        "^": lambda: x ^ other,
        "min": lambda: select.min(x, literal),
        "max": lambda: select.max(x, literal),
    }
    return actions[name]()


@given(STEPS, st.integers(0, 127))
def test_claims_hold(steps, t_value) -> None:
    value = Value(I32, "t")
    builder = Builder(Block([value]))
    with builder.activate():
        t = wrap(value, Facts(True, 1, 128))
        x = t
        for name, literal, with_t in steps:
            x = apply(x, name, literal, with_t, t)
            number = evaluate(builder.block, {value: t_value})[x.value] if isinstance(x.value, Value) else x.value
            known = x.facts
            assert number % known.divisibility == 0
            assert not known.nonneg or number >= 0
            assert known.bound is None or number < known.bound
            bits = possible_bits(known)
            assert bits is None or (number >= 0 and number & ~bits == 0)


OPERATIONS = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "min": min,
    "max": max,
    "shl": operator.lshift,
    "shr": operator.rshift,
    "floordiv": operator.floordiv,
    "floormod": operator.mod,
    "div": lambda x, y: math.trunc(Fraction(x, y)),
    "rem": lambda x, y: x - y * math.trunc(Fraction(x, y)),
}
NUMBERS = st.lists(st.integers(-20, 200) | st.sampled_from([0, 8, 64, 96]), min_size=1, max_size=4)


def known_of(numbers: list[int], bounded: bool) -> Facts:
    """The strongest facts that hold of all the numbers; without a bound if it is not ``bounded``."""
    if len(numbers) == 1 and bounded:
        return of_number(numbers[0])
    return Facts(min(numbers) >= 0, math.gcd(*numbers) or 1, max(numbers) + 1 if bounded else None)


def holds(known: Facts, number: int) -> bool:
    bits = possible_bits(known)
    return (
        number % known.divisibility == 0
        and (number >= 0 or not known.nonneg)
        and (known.bound is None or number < known.bound)
        and (known.exact is None or number == known.exact)
        and (bits is None or (number >= 0 and number & ~bits == 0))
    )


@pytest.mark.parametrize("opcode", [*OPERATIONS, "join"])
@given(NUMBERS, NUMBERS, st.booleans(), st.booleans())
def test_every_rule_holds_of_numbers_of_either_sign(opcode, left, right, left_bounded, right_bounded) -> None:
    a, b = known_of(left, left_bounded), known_of(right, right_bounded)
    if opcode == "join":
        assert all(holds(join(a, b), x) for x in left + right)
        return
    claimed = combine(opcode, a, b)
    for x in left:
        for y in right:
            if (opcode in ("shl", "shr") and not 0 <= y < 32) or (y == 0 and opcode[-3:] in ("div", "rem", "mod")):
                continue  # nothing is promised of what is undefined
            assert holds(claimed, OPERATIONS[opcode](x, y)), (x, y, a, b, claimed)


@given(
    st.integers(1, 3),
    st.integers(0, 4),
    st.integers(0, 3),
    st.booleans(),
    st.integers(0, 5000),
    st.sampled_from([(1, 16), (8, 64), (64, 16), (64, 64), (1024, 4)]),
    st.integers(0, 63),
    st.integers(0, 1),
)
def test_split_swizzle_is_the_swizzle(b, m, extra, negative, static, scale, t_value, offset) -> None:
    swizzle = SwizzleBits(b, m, -(b + extra) if negative else b + extra)
    step, bound = scale
    value = Value(I32, "t")
    builder = Builder(Block([value]))
    with builder.activate():
        dynamic = wrap(value, Facts(True, 1, bound)) * step + offset
        moving, fixed = split(swizzle, dynamic, static)
        t_value %= bound
        result = moving if isinstance(moving, int) else evaluate(builder.block, {value: t_value})[moving.value]
        assert result + fixed == swizzle.of(t_value * step + offset + static)


def test_static_parts_share_one_swizzle() -> None:
    """Offsets of one thread whose bits do not meet its own differ by an xor or an addition only."""
    value = Value(I32, "t")
    builder = Builder(Block([value]))
    with builder.activate():
        row = Int32(value).assume_nonneg(8) * 64
        swizzle = SwizzleBits(3, 3, 3)
        images = [split(swizzle, row, k) for k in (0, 16, 4, 512)]
    assert [fixed for _, fixed in images] == [0, 0, 4, 512]
    assert [op.opcode for op in builder.block.ops].count("xor") == 2  # sw(row) once for all four, and once ^ 16


@pytest.mark.parametrize("amount", (-1, 32, 40))
@pytest.mark.parametrize("shift", (operator.lshift, operator.rshift))
def test_shifts_past_the_width_are_refused(shift, amount: int) -> None:
    run_time = Value(I32, "t")
    with Builder(Block([run_time])).activate():
        for number in (wrap(run_time), Int32(5)):
            with pytest.raises(StagingError, match=f"a shift of Int32 by {amount}: it can be shifted by 0 to 31 bits"):
                shift(number, amount)
    with pytest.raises(StagingError, match="a shift of Int32"):
        shift(Int32(5), amount)
