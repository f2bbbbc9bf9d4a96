"""What a region reaches and changes, through whichever object: Python's answer, or a refusal at the user's line.

Each program runs with numbers for which its branch is taken, and with others.
"""

from __future__ import annotations

import array
import collections
import contextvars
import copy
import dataclasses
import functools
import random
import types
import weakref
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright.errors import StagingError, TilewrightError

VARIABLE = contextvars.ContextVar("VARIABLE", default=0)
GENERATOR = np.random.default_rng(0)


@dataclasses.dataclass(frozen=True)
class Frozen:
    v: Any


class Box:
    shared = [0]
    pair = (0, 0)


class Other(Box):
    pass


class Listed(list):
    pass


def replaced_by_the_other_side(n):
    box = [n]
    if n > 2:
        pass
    else:
        box[0] = 7
        box = [n + 100]
    return box[0]


def replaced_by_the_first_side(n):
    box = [n]
    if n > 2:
        box[0] = 7
        box = [n + 100]
    return box[0]


def identity(n):
    v = None
    if n > 2:
        v = n
    return 1 if v is None else 0


def identity_of_an_attribute(n):
    box = Box()
    box.v = None
    if n > 2:
        box.v = n
    return 1 if box.v is None else 0


def identity_of_an_item(n):
    box = [None]
    if n > 2:
        box[0] = n
    return 1 if box[0] is None else 0


def identity_of_a_value(n):
    box = {"v": None}
    if n > 2:
        box["v"] = n
    return 1 if box.get("v") is None else 0


def class_of_a_variable(n):
    v = "text"
    if n > 2:
        v = n
    return 1 if isinstance(v, str) else 0


def type_of_a_variable(n):
    v = "text"
    if n > 2:
        v = n
    return 1 if type(v) is str else 0


def in_a_lambda(n):
    v = None
    if n > 2:
        v = n
    return (lambda: 1 if v is None else 0)()


def in_a_comprehension(n):
    v = None
    if n > 2:
        v = n
    return sum([1 for _ in range(2) if v is None])


def passed_to_a_plain_function(n):
    v = None
    if n > 2:
        v = n
    return plain(v)


def plain(v):
    return 1 if v is None else 0


def element_of_a_default(n):
    def add(k, box=[0]):  # noqa: B006 - what is tested
        box[0] = box[0] + k
        return box[0]

    if n > 2:
        add(n)
    return add(n)


def attribute_that_a_branch_adds(n):
    box = Box()
    if n > 2:
        box.z = 3
    return getattr(box, "z", 9)


def another_name(n):
    box = [n]
    alias = box
    if n > 2:
        box = [n + 5]
    alias[0] += 10
    return box[0]


def another_name_of_the_caller(n):
    def replaced(box):
        if n > 2:
            box = [n + 5]
        box[0] += 10
        return box[0]

    mine = [n]
    return replaced(mine), mine[0]


def two_names_of_a_new_one(n):
    first, second = [n], [n]
    if n > 2:
        first = second = [7]
    first[0] += 1
    return second[0]


def another_name_in_a_loop(n):
    box = [n]
    alias = box
    for i in range(n):
        box = [box[0] + i]
    alias[0] += 10
    return box[0]


def any_of_a_generator(n):
    count = [0]

    def test(k):
        count[0] = count[0] + 1
        return n > k

    found = any(test(k) for k in range(4))
    return count[0], found


def all_of_a_generator(n):
    found = all(n > k for k in range(3))
    return found, any([n, n - 1])


def list_of_a_class(n):
    Box.shared[0] = 0
    if n > 2:
        Box.shared[0] = n
    return Box.shared[0]


def attribute_of_a_class(n):
    Box.pair = (0, 0)
    if n > 2:
        Box.pair = (n, n)
    return Box.pair[0]


def attribute_of_a_function(n):
    def function():
        function.calls = function.calls + 1
        return function.calls

    function.calls = 0
    if n > 2:
        function()
    return function()


def attribute_of_a_list(n):
    box = Listed([1])
    box.total = 0
    if n > 2:
        box.total = n
        box[0] = n
    return box.total, box[0]


def through_a_view(n):
    held = {"a": [0]}
    values = held.values()
    if n > 2:
        for box in values:
            box[0] = n
    return held["a"][0]


def through_a_cache(n):
    count = [0]

    @functools.lru_cache
    def once(k):
        count[0] = count[0] + 1
        return k

    if n > 2:
        once(3)
    once(3)
    return count[0]


def array_of_objects(n):
    held = np.array([0, 0], object)
    if n > 2:
        held[0] = n
    return held[0]


def array_of_numbers(n):
    held = array.array("i", [0])
    if n > 2:
        held[0] = 5
    return held[0]


def behind_a_weak_reference(n):
    box = Box()
    box.v = 0
    reference = weakref.ref(box)
    if n > 2:
        reference().v = n
    return box.v


def gone_behind_a_weak_reference(n):
    box = Box()
    reference = weakref.ref(box)
    if n > 2:
        box = None
    return reference() is None


def replaced_frozen_object(n):
    first = Frozen(n)
    other = first
    for _ in range(n):
        first, other = Frozen(3), Frozen(n)
    object.__setattr__(other, "v", n + 1)
    return first.v, other.v


def variable_of_a_context(n):
    VARIABLE.set(0)
    if n > 2:
        VARIABLE.set(5)
    return VARIABLE.get()


def random_numbers(n):
    source = random.Random(3)
    if n > 2:
        source.random()
    return int(1000 * source.random())


def random_numbers_of_the_module(n):
    random.seed(3)
    if n > 2:
        random.random()
    return int(1000 * random.random())


def random_numbers_of_numpy(n):
    GENERATOR.bit_generator.state = np.random.default_rng(0).bit_generator.state
    if n > 2:
        GENERATOR.random()
    return int(1000 * GENERATOR.random())


def class_of_an_object(n):
    box = Box()
    if n > 2:
        box.__class__ = Other
    return 1 if isinstance(box, Other) else 0


def order_of_keys(n):
    held = collections.OrderedDict(a=1, b=2)
    if n > 2:
        held.move_to_end("a")
    return next(iter(held.values()))


def long_list(n):
    held = [0] * 3000
    if n > 2:
        held[2500] = n
    return held[2500]


def namespace(n):
    held = types.SimpleNamespace(a=0)
    if n > 2:
        held.a = n
    return held.a


def variable_of_a_plain_function(n):
    bump, read = counter()
    if n > 2:
        bump()
    return read()


def counter():
    count = 0

    def bump():
        nonlocal count
        count = count + 1

    return bump, lambda: count


PROGRAMS = [
    value
    for value in list(globals().values())
    if isinstance(value, types.FunctionType) and value.__code__.co_varnames[:1] == ("n",)
]
RIGHT = {
    "replaced_by_the_other_side",
    "replaced_by_the_first_side",
    "element_of_a_default",
    "all_of_a_generator",
    "list_of_a_class",
    "attribute_of_a_function",
    "attribute_of_a_list",
    "through_a_view",
    "behind_a_weak_reference",
    "long_list",
    "namespace",
}
"""What is carried, not refused."""


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_pythons_answer_or_a_refusal(program: Any, staged: Any) -> None:
    for n in (1, 2, 3, 4):
        expected = program(n)
        expected = expected if isinstance(expected, tuple) else (expected,)
        try:
            found = staged(program, n)
        except StagingError as refused:
            assert program.__name__ not in RIGHT, str(refused)
            assert str(refused).startswith(__file__) or f"  at {__file__}" in str(refused), str(refused)
        else:
            assert program.__name__ in RIGHT
            assert found == tuple(map(float, expected)), n


def test_classes_may_be_assigned_in_a_branch(both: Any) -> None:
    """Python refers weakly to each class, as to `Int32` here; that tells the program nothing."""

    def program(n):
        out = n
        if n > 2:
            kind = cutlass.Int32
            out = kind(5)
        else:
            kind = None
        return out

    both(program, 1)
    both(program, 3)


def test_copies_hold_the_same_run_time_values(both: Any) -> None:
    def program(n):
        box = copy.deepcopy([n, [n + 1]])
        if n > 2:
            box[1][0] = copy.copy(n)
        return box[0], box[1][0]

    both(program, 1)
    both(program, 3)


def test_messages_name_what_cannot_be_done(staged: Any) -> None:
    class Strange:
        def __getattr__(self, name):
            return {}[name]

    def asked(n):
        strange = Strange()
        if n > 2:
            strange.x = 1
        return n

    def by_key(n):
        return {1: 2}[n]

    def length(n):
        return len(f"{n}")

    with pytest.raises(StagingError, match="'strange' changes its attributes"):
        staged(asked, 3)
    with pytest.raises(StagingError, match="a run-time number cannot be a key of a dict"):
        staged(by_key, 3)
    with pytest.raises(StagingError, match="a text with run-time numbers in it can only be printed"):
        staged(length, 3)


def test_a_thread_index_is_three_numbers(staged: Any) -> None:
    import tilewright.cute as cute

    def program(n):
        tensor = cute.make_rmem_tensor(4, cutlass.Int32)
        return tensor[cute.arch.thread_idx()]

    with pytest.raises(TilewrightError, match="has 1 mode.* take one of the three"):
        staged(program, 3)


class Noting:
    """Notes in itself how its values are divided, as classes of libraries do, in a new list each time."""

    def __init__(self, step: Any, limit: Any) -> None:
        self.step, self.limit = step, limit

    def __extract_mlir_values__(self) -> list[Any]:
        values, self.divided = [], []
        for part in (self.step, self.limit):
            values += part.__extract_mlir_values__()
            self.divided.append(1)
        return values

    def __new_from_mlir_values__(self, values: list[Any]) -> Noting:
        parts = zip((self.step, self.limit), values, self.divided, strict=True)
        return Noting(*(part.__new_from_mlir_values__([value]) for part, value, _ in parts))


def test_attribute_set_to_an_equal_value_is_no_change(staged):
    """Of conditional expressions in others, and in a loop that carries the object."""

    def program(n):
        held = Noting(n, n + 4)
        total = n * 0
        for i in range(3):
            total += 16 if i * held.step > held.limit else (8 if i > 1 else (4 if held.limit - i > 6 else 2))
        return total

    def plain(n):
        return sum(16 if i * n > n + 4 else (8 if i > 1 else (4 if n + 4 - i > 6 else 2)) for i in range(3))

    for n in (1, 3, 5):
        assert staged(program, n) == (plain(n),)
