"""Integers of every width against Python's own: what is claimed of a number (sign, divisor, bound) survives neither a
wrap-around nor a conversion that does not hold it. Random trees of operations, many to a kernel."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.ir.fold import normalise
from tilewright.lang.numbers import promote

pytestmark = pytest.mark.usefixtures("values_unchecked")

TYPES = [getattr(cutlass, name) for name in "Int8 Int16 Int32 Int64 Uint8 Uint16 Uint32 Uint64 Boolean".split()]
OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
}
UNARY = {"neg": lambda a: -a, "abs": abs, "<<": lambda a: a << 3, ">>": lambda a: a >> 2}


def tree(choose: random.Random, depth: int = 0):
    kind = choose.random()
    if depth > 4 or kind < 0.15:
        return ("input", choose.choice((0, 1, 2, 2, 2)))  # of the third, the thread, most is known
    if kind < 0.45:
        return ("cast", choose.choice(TYPES), tree(choose, depth + 1))
    if kind < 0.6:
        return ("unary", choose.choice(list(UNARY)), tree(choose, depth + 1))
    name = choose.choice(list(OPERATORS))
    literal = name in ("//", "%") or choose.random() < 0.6
    right = (
        ("literal", choose.choice([1, 2, 3, 6, 7, 8, 64, 100, 127, 65536, 1103515245]))
        if literal
        else tree(choose, depth + 1)
    )
    return (name, tree(choose, depth + 1), right)


def staged(node, inputs):
    match node:
        case ("input", i):
            return inputs[i]
        case ("literal", number):
            return number
        case ("cast", cls, inner):
            return cls(staged(inner, inputs))
        case ("unary", name, inner):
            return UNARY[name](staged(inner, inputs))
        case (name, left, right):
            return OPERATORS[name](staged(left, inputs), staged(right, inputs))


def expected(node, inputs):
    """The number and its scalar type (None for a literal)."""
    match node:
        case ("input", i):
            return inputs[i], cutlass.Int32.ir_type
        case ("literal", number):
            return number, None
        case ("cast", cls, inner):
            number, _ = expected(inner, inputs)
            return normalise(cls.ir_type, number), cls.ir_type
        case ("unary", name, inner):
            number, kind = expected(inner, inputs)
            kind = promote.arithmetic(kind)
            return normalise(kind, UNARY[name](int(number))), kind
    name, (a, left), (b, right) = node[0], expected(node[1], inputs), expected(node[2], inputs)
    if left is right is cutlass.Boolean.ir_type and name in "&|^==<>=":
        return OPERATORS[name](bool(a), bool(b)), cutlass.Boolean.ir_type
    kind = promote.common(left, right if right is not None else promote.literal(b, left))
    found = OPERATORS[name](normalise(kind, a), normalise(kind, b))
    return (found, cutlass.Boolean.ir_type) if isinstance(found, bool) else (normalise(kind, found), kind)


@pytest.mark.parametrize("seed", range(6))
def test_random_trees_wrap_as_the_types_say(seed) -> None:
    choose = random.Random(seed)
    numbers = [choose.choice([0, 1, 5, 77, 127, 128, 255, 300, 2**31 - 1, -(2**31), 10**9]) for _ in range(2)]
    trees, wanted = [], []
    while len(trees) < 150:
        trees.append(tree(choose))
        number, kind = expected(trees[-1], [*numbers, 31])
        wanted.append(normalise(cutlass.Int64.ir_type, number))

    @cute.kernel
    def kernel(given: cute.Tensor, out: cute.Tensor):
        thread, _, _ = cute.arch.thread_idx()
        for i, node in enumerate(trees):
            found = cutlass.Int64(staged(node, [given[0], given[1], thread]))
            if thread == 31:
                out[i] = found

    @cute.jit
    def run(given: cute.Tensor, out: cute.Tensor):
        kernel(given, out).launch(grid=(1, 1, 1), block=(32, 1, 1))

    out = np.zeros(len(trees), np.int64)
    run(np.array(numbers, np.int32), out)
    wrong = [(node, got, want) for node, got, want in zip(trees, out.tolist(), wanted, strict=True) if got != want]
    assert not wrong, (numbers, wrong[0])


def test_a_boolean_forgets_the_number_it_was_made_of() -> None:
    @cute.kernel
    def kernel(out: cute.Tensor):
        thread, _, _ = cute.arch.thread_idx()
        out[0] = cutlass.Int32(cutlass.Boolean(thread * 4 + 4)) % 4

    @cute.jit
    def run(out: cute.Tensor):
        kernel(out).launch(grid=(1, 1, 1), block=(1, 1, 1))

    out = np.zeros(1, np.int32)
    run(out)
    assert out[0] == 1


def test_hashes_and_shifted_ones_wrap_around() -> None:
    """Numbers of unknown sign: comparisons, ``//`` and ``%`` take them as they are."""

    @cute.kernel
    def kernel(out: cute.Tensor):
        thread, _, _ = cute.arch.thread_idx()
        one = cutlass.Int32(1) << thread
        hashed = thread * 1103515245 + 12345
        numbers = [one < 0, one % 3, one // 3, hashed % 7, hashed // 7, (hashed * 64) // 64, (hashed * 64) % 48, -one]
        for i in cutlass.range_constexpr(len(numbers)):
            out[thread, i] = cutlass.Int32(numbers[i])

    @cute.jit
    def run(out: cute.Tensor):
        kernel(out).launch(grid=(1, 1, 1), block=(32, 1, 1))

    out = np.zeros((32, 8), np.int32)
    run(out)

    def wrap(number: int) -> int:
        return normalise(cutlass.Int32.ir_type, number)

    for thread in range(32):
        one, h = wrap(1 << thread), wrap(thread * 1103515245 + 12345)
        wide = wrap(h * 64)
        assert out[thread].tolist() == [one < 0, one % 3, one // 3, h % 7, h // 7, wide // 64, wide % 48, wrap(-one)]
