"""A function is staged again when what it was staged from has changed, one level deep; and only then."""

from __future__ import annotations

import dataclasses
import types

import pytest

import tilewright as cutlass
import tilewright.cute as cute


class Thing:
    kind = 1

    def __init__(self, value) -> None:
        self.value = value


@dataclasses.dataclass
class Record:
    value: int = 1
    inner: list = dataclasses.field(default_factory=lambda: [1])


number = 1
items = [1]
table = {"a": 1}
thing = Thing(1)
record = Record()
module = types.ModuleType("settings")
module.value = 1


def helper():
    return number


def helper_with_default(x=(1,)):
    return x[0]


def set_number(x):
    global number
    number = x


def set_default(x):
    helper_with_default.__defaults__ = ((x,),)


CASES = {
    "a global": (lambda: number, set_number),
    "a global of a plain function": (lambda: helper(), set_number),
    "a default": (lambda: helper_with_default(), set_default),
    "an element": (lambda: items[0], lambda x: items.__setitem__(0, x)),
    "a dict": (lambda: table["a"], lambda x: table.__setitem__("a", x)),
    "an attribute": (lambda: thing.value, lambda x: setattr(thing, "value", x)),
    "a field": (lambda: record.inner[0] + record.value, lambda x: setattr(record, "value", x)),
    "a class": (lambda: Thing.kind, lambda x: setattr(Thing, "kind", x)),
    "a module": (lambda: module.value, lambda x: setattr(module, "value", x)),
}


@pytest.mark.parametrize("case", CASES)
def test_a_change_is_seen(case) -> None:
    read, change = CASES[case]
    staged = []

    @cute.jit
    def f(x: cutlass.Int32):
        staged.append(case)
        return x * 0 + read()

    found = []
    for value in (1, 5, 5, 1):
        change(value)
        found.append((f(1), f(2)))
        assert found[-1] == (read(), read())
    assert len(staged) <= 3


class Program:
    factor = 1

    def __init__(self) -> None:
        self.offset, self.options = 1, {"scale": 1}

    @cute.jit
    def __call__(self, x: cutlass.Int32):
        return x * self.factor * self.options["scale"] + self.offset


def test_a_change_of_the_object_of_a_method_is_seen() -> None:
    program = Program()
    assert program(2) == 3
    program.offset = 2.5
    assert program(2) == 4.5
    program.options = {"scale": 10}
    assert program(2) == 22.5
    Program.factor = 2
    assert program(2) == 42.5


def test_equal_numbers_of_other_types_are_changes() -> None:
    program = Program()
    assert [type(program(2)), program(2)] == [int, 2 * Program.factor + 1]
    program.offset = 1.0
    assert type(program(2)) is float


def test_constants_that_python_calls_equal_make_programs_of_their_own() -> None:
    @cute.jit
    def f(x: cutlass.Float32, c: cutlass.Constexpr):
        return x / c[0] if isinstance(c[0], float) and c[0] else cute.math.copysign(x, c[0]) if c[0] == 0 else c[0]

    assert [f(1.0, c) for c in [(2,), (2.0,), (0.0,), (-0.0,), (0.0,)]] == [2, 0.5, 1, -1, 1]
    assert [type(f(1.0, c)) for c in [(1,), (True,)]] == [int, bool]


def test_writes_of_the_staged_function_itself_are_no_outside_change() -> None:
    log = []

    @cute.jit
    def f(x: cutlass.Constexpr):
        log.append(x)
        return x

    assert [f(1), f(2), f(1), f(2)] == [1, 2, 1, 2] and log == [1, 2]
