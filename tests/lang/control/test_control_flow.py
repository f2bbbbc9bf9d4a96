"""Control flow on run-time values does what Python does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute


def branch(n, c):
    x = 0
    if n > c:
        x = n
    return x


def chain(n, c):
    if n < c:
        x = 1
    elif n == c:
        x = n * 2
    else:
        x = n - c
    return x, n


def nested(n, c):
    x, y = 1, 2
    if n > 0:
        if c > 0:
            x = n + c
        else:
            y = n - c
        x += 1
    elif c > 3:
        y = x
    return x, y


def counted(n, c):
    total = 0
    for i in range(n):
        total += i * c
    return total


def stepped(n, c):
    total = 0
    for i in range(n, c, 3):
        total = total * 2 + i
    for i in range(c, n, -2):
        total -= i
    return total


def loop_in_branch(n, c):
    total = c
    if n > 2:
        for i in range(n):
            if i % 2 == 0:
                total += i
            else:
                total -= 1
    return total


def branch_in_loops(n, c):
    best, where = -1, -1
    for i in range(n):
        for j in range(c):
            value = (i * 7 + j * 5) % 11
            if value > best:
                best, where = value, i * 100 + j
    return best, where


def collatz(n, c):
    steps = 0
    while n != 1 and steps < c:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return n, steps


def gcd(n, c):
    while c:
        n, c = c, n % c
    return n


def nested_while(n, c):
    total = 0
    i = 0
    while i < n:
        j = 0
        while j < c:
            j += 1 + (i & 1)
            total += j
        i += 1
    return total, i


def swap(n, c):
    for _ in range(3):
        n, c = c, n + c
    return n, c


def floats(n, c):
    x = 1.0
    for i in range(n):
        x = x * 0.5 + i
    return x if c > 0 else -x


def tuples(n, c):
    pair = (0, 1)
    for _ in range(n):
        pair = (pair[1], pair[0] + pair[1])
    nest = {"a": [n, c], "b": pair}
    if c > 2:
        nest = {"a": [c, n], "b": pair}
    return pair[0], nest["a"][0], nest["b"][1]


def lists(n, c):
    counts = [0, 0, 0]
    for i in range(n):
        counts[0] += 1
        if i % 3 == 1:
            counts[1] = counts[1] + c
        counts[2] = i
    return counts[0], counts[1], counts[2]


def flags(n, c):
    found = False
    for i in range(n):
        found = found or i == c
    return found


def temporaries(n, c):
    total = 0
    for i in range(n):
        square = i * i
        if square > c:
            excess = square - c
            total += excess
    return total


def unrolled(n, c):
    total = 0
    for i in cutlass.range_constexpr(4):
        if i == 2:
            continue
        if i == 3:
            break
        if n > i:
            total += c + i
    return total


def while_static(n, c):
    i = 0
    while i < 3:
        n += c
        i += 1
    return n, i


def for_else(n, c):
    total = 0
    for i in range(n):
        total += i
    else:
        total += c
    for k in [1, 2, 3]:
        if k == 2:
            break
    else:
        total = -1
    return total, k


def early_return_static(n, c):
    flag = 3
    if flag == 3:
        return n + c
    return n


def comprehension(n, c):
    xs = [n if n > i else c for i in range(3)]
    return sum(xs), max(x * 2 for x in xs)


def walrus(n, c):
    total = 0
    if (left := n - c) > 0:
        total += 1 if left > c else 2
    return total, left


def same_value_both_arms(n, c):
    kind = 5
    if n > c:
        kind = 5
        n = n + 1
    return kind, n


def late_names(n, c):
    if n > c:
        larger = n
    else:
        larger = c
    return larger


PROGRAMS = [
    branch, chain, nested, counted, stepped, loop_in_branch, branch_in_loops, collatz, gcd, nested_while, swap,
    floats, tuples,
    lists, flags, temporaries, unrolled, while_static, for_else, early_return_static, comprehension, walrus,
    same_value_both_arms, late_names,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("args", [(0, 0), (1, 5), (7, 3), (5, 5), (12, 40)])
def test_program(both, program, args):
    both(program, *args)


def logic(a, b, c):
    return (
        a < b and b < c,
        a < b or c < a,
        not a < b,
        a < b < c,
        0 <= a <= c != 2,
        a if a > b else b if b > c else c,
        a in (1, b),
        a not in (1, b),
        bool(a),
        min(a, b, c),
        max(a, 7),
        any([a == 1, b == 1]),
        all([a < 9, b < 9]),
    )


@pytest.mark.parametrize("args", [(1, 2, 3), (3, 2, 1), (0, 0, 0), (5, 1, 5), (9, 1, 12)])
def test_expressions(both, args):
    both(logic, *args)


def values_of_and(a, b):
    return (a and b), (a or b), (a and 7), (0 or b)


@pytest.mark.parametrize("args", [(0, 4), (3, 4), (3, 0)])
def test_and_gives_its_operand(both, args):
    both(values_of_and, *args)


def test_short_circuit_guards_a_division(both):
    def guarded(a, b):
        return b != 0 and a // b > 1, b == 0 or a % b == 0

    both(guarded, 7, 0)
    both(guarded, 7, 2)


class Counter:
    """A plain class: its attributes are carried like variables."""

    def __init__(self, start: Any) -> None:
        self.count = start
        self.label = "static"

    def advance(self, by: Any) -> None:
        self.count = self.count + by


@dataclass
class State:
    index: Any
    phase: Any

    def step(self, stages: int) -> None:
        self.index += 1
        if self.index == stages:
            self.index = 0
            self.phase ^= 1


State.step = cute.jit(State.step)  # a method that branches on run-time values is staged itself


class Pair(NamedTuple):
    first: Any
    second: Any


class Protocol:
    """The documented protocol for run-time parts."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def bump(self) -> None:
        self.value = self.value + 3

    def __extract_mlir_values__(self) -> list[Any]:
        return self.value.__extract_mlir_values__()

    def __new_from_mlir_values__(self, values: list[Any]) -> Protocol:
        return Protocol(self.value.__new_from_mlir_values__(values))


def test_methods_change_objects_in_loops(staged):
    def program(n, c):
        counter = Counter(n)
        alias = counter
        for i in range(c):
            counter.advance(i)
            if i > 1:
                alias.count += 100
        return counter.count, alias.count

    assert staged(program, 5, 4) == (5 + 0 + 1 + 2 + 3 + 200,) * 2


def test_plain_python_numbers_in_objects(staged):
    def program(n):
        counter = Counter(0)
        for _ in range(n):
            counter.advance(2)
        return counter.count

    assert staged(program, 6) == (12,)


def test_dataclass_state(staged):
    def program(n):
        state = State(cutlass.Int32(0), cutlass.Int32(0))
        for _ in range(n):
            state.step(3)
        return state.index, state.phase

    assert staged(program, 7) == (1, 0)
    assert staged(program, 4) == (1, 1)


def test_protocol_object_in_branch_and_while(staged):
    def program(n):
        thing = Protocol(n)
        if n > 2:
            thing.bump()
        while thing.value < 20:
            thing.bump()
        return thing.value

    assert staged(program, 5) == (20,)
    assert staged(program, 1) == (22,)


def test_named_tuple(staged):
    def program(n):
        pair = Pair(n, 0)
        for i in range(n):
            pair = Pair(pair.first - 1, pair.second + i)
        return pair.first, pair.second

    assert staged(program, 4) == (0, 6)


def test_object_attribute_assigned_in_branch(staged):
    def program(n):
        counter = Counter(cutlass.Int32(1))
        if n > 3:
            counter.count = n
        else:
            counter.count = counter.count - n
        return counter.count

    assert staged(program, 9) == (9,)
    assert staged(program, 2) == (-1,)


def test_registers_change_in_loops(staged):
    def program(n):
        frag = cute.make_rmem_tensor(4, cutlass.Float32)
        frag.fill(1.0)
        for i in range(n):
            frag[i % 4] = frag[i % 4] * 2.0
        acc = frag.load()
        for _ in range(2):
            acc = acc + 1.0
        return acc[0], acc[3], acc.reduce(cute.ReductionOp.ADD, 0.0, 0)

    assert staged(program, 5) == (6.0, 4.0, 6.0 + 4.0 * 3)


def test_tensors_move_in_loops(staged):
    def program(n):
        frag = cute.make_rmem_tensor((2, 4), cutlass.Float32)
        for i in cutlass.range_constexpr(8):
            frag[i] = cutlass.Float32(i)
        part = frag[0, None]
        total = part[0]
        if n > 3:
            part = frag[0, None]
            total = part[1]
        return total

    assert staged(program, 5) == (2.0,)


def test_closures_and_nested_functions(staged):
    offset = 10

    def program(n):
        def helper(x, by=2):
            if x > 3:
                return_value = x + offset
            else:
                return_value = x * by
            return return_value

        return helper(n), helper(2, by=5)

    assert staged(program, 5) == (15, 10)
    assert staged(program, 1) == (2, 10)


def test_unroll_full_gives_python_ints(staged):
    seen = []

    def program(n):
        total = n
        for i in cutlass.range(3, unroll_full=True):
            seen.append(i)
            total += i
        return total

    assert staged(program, 1) == (4,)
    assert seen == [0, 1, 2]


def test_loop_index_after_loop_is_explained(staged):
    def program(n):
        for i in range(n):
            n += i
        return i + 1

    with pytest.raises(
        cutlass.errors.StagingError, match="'i' has no value here: it is the index of the run-time for loop"
    ):
        staged(program, 3)


def test_if_generate(staged):
    from tilewright.cutlass_dsl import if_generate, not_

    @cute.jit(preprocessor=False)
    def program(n):
        frag = cute.make_rmem_tensor(1, cutlass.Int32)
        frag.fill(1)

        def mark():
            frag[0] = 5

        if_generate(n > 3, mark)
        more = if_generate(not_(n == 2), lambda x: x + 1, lambda x: 0, input_args=[n], return_types=[cutlass.Int32])
        return frag[0], more

    assert staged(program.function, 7) == (5, 8)
    assert staged(program.function, 2) == (1, 0)


@pytest.mark.parametrize("kind", ["Uint8", "Uint16", "Uint32", "Uint64"])
def test_unsigned_numbers_counted_downwards(kind, staged):
    cls = getattr(cutlass, kind)

    def program(n):
        found = 0
        for i in range(cls(n), 0, -1):
            found = found * 10 + cutlass.Int32(i)
        for i in range(cls(n), -1, -2):
            found = found * 10 + cutlass.Int32(i)
        return found

    assert staged(program, 3) == (32131.0,)
    assert staged(program, 0) == (0.0,)


def float_floor_division(x, y):
    return x // y, 1e10 // y, y // x, -x % y


@pytest.mark.parametrize("args", [(1e10, 0.1), (math.inf, 3.0), (-7.5, 2.5), (1.0, -0.1), (3.0, math.inf)])
def test_floor_division_of_floats_is_pythons(args):
    def program(out: cute.Tensor, x: cutlass.Float64, y: cutlass.Float64):
        results = float_floor_division(x, y)
        for i in cutlass.range_constexpr(4):
            out[i] = results[i]

    body = cute.kernel(program)

    @cute.jit
    def host(out: cute.Tensor, x: cutlass.Float64, y: cutlass.Float64):
        body(out, x, y).launch(grid=1, block=1)

    out = np.zeros(4)
    host(out, *args)
    np.testing.assert_array_equal(out, float_floor_division(*args))
