"""Python objects that a run-time region changes: as Python does it where that can be carried, refused elsewhere; never
done at once for all paths. Each program runs with -1, for which its branch is not taken, and with 2."""

from __future__ import annotations

import collections
import functools
import math

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.errors import StagingError
from tilewright.pipeline.state import PipelineState

SHARED = [0, 0]


class Counter:
    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 1

    def bump(self) -> None:
        self.count += 1


def element_behind_a_closure(n):
    box = [0]

    def put(x):
        box[0] = x

    if n > 0:
        put(n + 3)
    return box[0]


def element_behind_a_lambda(n):
    box = [0]
    put = lambda x: box.__setitem__(0, x)  # noqa: E731 - a lambda is what is tested
    if n > 0:
        put(5)
    return box[0]


def element_behind_a_partial(n):
    box = [0]
    put = functools.partial(box.__class__.__setitem__, box, 0)
    if n > 0:
        put(5)
    return box[0]


def slot_behind_a_bound_method(n):
    counter = Counter()
    bump = counter.bump
    if n > 0:
        bump()
    return counter.count


def element_of_a_global(n):
    SHARED[0] = 0
    if n > 0:
        SHARED[0] = 7
    return SHARED[0]


def counted_in_a_loop(n):
    total = [0]

    def add(x):
        total[0] += x

    for i in range(n + 3):
        add(i)
    return total[0]


def changed_by_a_condition(n):
    box = [0]

    def following():
        box[0] = box[0] + 1
        return box[0]

    turns = 0
    while following() < n + 3:
        turns += 1
    return turns, box[0]


CARRIED = [
    element_behind_a_closure,
    element_behind_a_lambda,
    element_behind_a_partial,
    slot_behind_a_bound_method,
    element_of_a_global,
    counted_in_a_loop,
    changed_by_a_condition,
]


@pytest.mark.parametrize("program", CARRIED, ids=lambda f: f.__name__)
def test_changes_are_carried(program, both) -> None:
    both(program, -1)
    both(program, 2)


LIST = "changes its length in the run-time if"
REFUSED = [
    (lambda: [1], lambda box: box.append(2), LIST),
    (lambda: [1], lambda box: box.pop(), LIST),
    (lambda: [1], lambda box: box.__iadd__([2]), LIST),
    (dict, lambda box: box.update(a=5), "changes its keys"),
    (set, lambda box: box.add(2), "changes its contents"),
    (lambda: collections.deque([1]), lambda box: box.append(2), "changes its contents"),
    (lambda: np.zeros(2, np.int32), lambda box: box.__setitem__(0, 7), "changes its contents"),
]


@pytest.mark.parametrize(("make", "change", "match"), REFUSED)
def test_containers_changed_under_a_branch_are_refused(make, change, match, staged) -> None:
    def program(n):
        box = make()
        if n > 0:
            change(box)
        return len(box)

    def inside(n):
        found = 0
        if n > 0:
            box = make()
            change(box)
            found = len(box)
        return found

    with pytest.raises(StagingError, match=f"'box' {match}"):
        staged(program, -1)
    assert staged(inside, -1) == (0.0,)


def test_a_list_that_grows_by_an_assignment(staged) -> None:
    def program(n):
        box = [1]
        if n > 0:
            box += [2]
        return len(box)

    with pytest.raises(StagingError, match=f"'box' {LIST}"):
        staged(program, -1)


@pytest.mark.parametrize("word", ["and", "or", "else"])
def test_sides_that_may_not_run_change_nothing(word, staged) -> None:
    def program(n):
        box = [0]

        def put():
            box[0] = 5
            return True

        found = (n > 0 and put()) if word == "and" else (n > 0 or put()) if word == "or" else put() if n > 0 else False
        return box[0], found

    with pytest.raises(StagingError, match=r"'box\[0\]' changes in a side of the run-time .* write an `if` statement"):
        staged(program, -1)


def test_a_variable_of_before_after_a_block_for_one_lane(staged) -> None:
    def program(n):
        x = 0
        with cute.arch.elect_one():
            x = 5
        return x

    with pytest.raises(StagingError, match="'x' has no value here: it is assigned inside the run-time elect_one block"):
        staged(program, 1)


# -- ``:=`` where Python evaluates only on demand ----------------------------------------------------------------


def walrus_in_and(n):
    y = 3
    found = n > 0 and (y := n + 4) > 5
    return y, found


def walrus_read_by_the_next(n):
    y = 3
    found = n > 0 and (y := n + 4) > 5 and y < 7
    return y, found


def walrus_in_or(n):
    y = 3
    found = n > 0 or (y := n + 40) > 100
    return y, found


def walrus_in_a_conditional(n):
    y, z = 3, 4
    found = (y := n + 1) if n > 0 else (z := n - 1)
    return y, z, found


def walrus_in_a_chain(n):
    y = 3
    found = 0 < n < (y := n + 5) < 100
    return y, found


def walrus_in_a_loop(n):
    best = 0
    for i in range(5):
        if i > n and (best := i) > 3:
            n += 1
    return best, n


def walrus_in_the_head_of_a_while(n):
    total = 0
    while (left := n - total) > 0:
        total += left
    return total


UNDECIDED = [
    walrus_in_the_head_of_a_while,
    walrus_in_and,
    walrus_read_by_the_next,
    walrus_in_or,
    walrus_in_a_conditional,
    walrus_in_a_chain,
    walrus_in_a_loop,
]


@pytest.mark.parametrize("program", UNDECIDED, ids=lambda f: f.__name__)
def test_a_walrus_that_may_not_run_is_refused(program, staged) -> None:
    with pytest.raises(StagingError, match="`:=` where it may be evaluated at run time only: assign the"):
        staged(program, 2)


# -- literals ----------------------------------------------------------------------------------------------------------


def test_literals_that_do_not_fit_the_variable_are_refused(staged) -> None:
    def branch(n):
        v = n
        if n > 0:
            v = 5_000_000_000
        return v

    def loop(n):
        v = 1
        for _ in range(n):
            v = v + 1
            v = 5_000_000_000
        return v

    for program in branch, loop:
        with pytest.raises(StagingError, match="'v' changes its type"):
            staged(program, 2)


def test_the_sign_of_zero_is_no_detail(both) -> None:
    def signs(n):
        pair = (0.0, 1)
        if n > 0:
            pair = (-0.0, 1)
        return cute.math.copysign(2.0, pair[0]) if not isinstance(n, int) else math.copysign(2.0, pair[0])

    both(signs, -1)
    both(signs, 2)


class Mode:
    def __init__(self) -> None:
        self.width, self.turns = cutlass.Int64(1 << 40), cutlass.Int32(0)

    def again(self) -> None:
        self.width, self.turns = cutlass.Int64(1 << 40), self.turns + 1


def test_attributes_assigned_the_same_value_stay_static(staged) -> None:
    def program(n):
        mode = Mode()
        for _ in range(n):
            mode.again()
            n += cutlass.const_expr(mode.width == 1 << 40)
        return n, mode.turns

    assert staged(program, 3) == (6, 3)


def test_a_loop_is_traced_again_only_for_changes_that_are_not_known_yet(staged, capsys) -> None:
    trace = functools.partial(print, "traced")  # unlike print itself it prints at once, also what is thrown away

    def of_an_object(n):
        mode = Mode()
        for _ in range(n):
            trace()
            print("staged")
            mode.again()
        return mode.turns

    def of_variables(n):
        left, stage = n, n
        for _ in range(n):
            trace()
            print("staged")
            left, stage = left + 1, 0 if stage + 1 == 4 else stage + 1
        return left, stage

    for traces, program in ((2, of_an_object), (1, of_an_object), (1, of_variables)):
        staged(program, 3)
        assert capsys.readouterr().out.split() == ["traced"] * traces + ["staged"]


# -- objects behind functions and classes, and under several names ------------------------------------------------


class Total:
    count = 0

    def bump(self) -> None:
        type(self).count += 1

    def bump_the_global_one(self) -> None:
        SHARED[1] = SHARED[1] + 1


def bump_shared() -> None:
    SHARED[0] = SHARED[0] + 1


def bump_twice() -> None:
    bump_shared()
    bump_shared()


def global_behind_functions(n):
    SHARED[0] = 0
    if n > 0:
        bump_twice()
    return SHARED[0]


def global_behind_a_method(n):
    SHARED[1] = 0
    total = Total()
    for _ in range(n + 2):
        total.bump_the_global_one()
    return SHARED[1]


def bumped(counter):
    counter.bump()
    return counter


def the_same_object_assigned_again_in_a_loop(n):
    counter = Counter()
    alias = counter
    for _ in range(n + 2):
        counter = bumped(counter)
    return counter.count, alias.count


def the_same_object_in_a_new_tuple(n):
    counter = Counter()
    pair = (counter, 0)
    while pair[1] < n + 2:
        pair[0].bump()
        pair = (pair[0], pair[1] + 1)
    return counter.count, pair[0].count, pair[1]


def the_same_list_in_a_loop(n):
    box = [0, 0]
    alias = box
    for i in range(n + 2):
        box[0] += i
        box = alias
    return box[0], alias[0]


def a_new_list_in_one_branch(n):
    box = [1, 2]
    if n > 0:
        box[0] = 7
    else:
        box = [3, 4]
    return box[0], box[1]


def a_new_list_in_each_turn(n):
    box = [1, 2]
    for i in range(n + 2):
        box = [box[1] + i, box[0]]
    return box[0], box[1]


@pytest.mark.parametrize(
    "program",
    [
        global_behind_functions,
        global_behind_a_method,
        the_same_object_assigned_again_in_a_loop,
        the_same_object_in_a_new_tuple,
        the_same_list_in_a_loop,
        a_new_list_in_one_branch,
        a_new_list_in_each_turn,
    ],
    ids=lambda f: f.__name__,
)
def test_changes_under_several_names_are_carried(program, both) -> None:
    both(program, -1)
    both(program, 2)


def test_a_jit_function_that_changes_what_it_closes_over(staged) -> None:
    def program(n):
        box = [0]

        @cute.jit
        def put(x):
            box[0] = x

        if n > 0:
            put(5)
        return box[0]

    assert staged(program, -1) == (0,)
    assert staged(program, 2) == (5,)


def one_of_two_in_a_branch(n):
    first, second = [1], [2]
    chosen = first
    if n > 0:
        chosen = second
    chosen[0] += 1
    return first[0]


def one_of_two_in_both_branches(n):
    first, second = [1], [2]
    if n > 0:
        chosen = (first, 0)
    else:
        chosen = (second, 0)
    chosen[0][0] += 1
    return first[0]


def one_of_two_in_an_expression(n):
    first, second = [1], [2]
    chosen = first if n > 0 else second
    chosen[0] += 1
    return first[0]


def one_of_two_by_and(n):
    first = [1]
    chosen = n > 0 and first
    chosen[0] += 1
    return first[0]


def swapped_in_a_loop(n):
    first, second = [1], [2]
    for _ in range(n):
        first[0] += 1
        first, second = second, first
    return first[0]


def moved_in_a_list(n):
    boxes = [[1], [2]]
    for _ in range(n):
        boxes[1] = boxes[0]
    return boxes[1][0]


def replaced_beside_an_alias(n):
    box = [0]
    alias = box
    if n > 0:
        box[0] = 5
        box = [9]
    return alias[0], box[0]


@pytest.mark.parametrize(
    "program",
    [
        replaced_beside_an_alias,
        one_of_two_in_a_branch,
        one_of_two_in_both_branches,
        one_of_two_in_an_expression,
        one_of_two_by_and,
        swapped_in_a_loop,
        moved_in_a_list,
    ],
    ids=lambda f: f.__name__,
)
def test_one_of_two_objects_is_refused(program, staged) -> None:
    with pytest.raises(StagingError, match=r"one of two objects that can change.*take a copy of each"):
        staged(program, 2)


def test_copies_of_two_objects_may_be_chosen(both) -> None:
    def program(n):
        first, second = [1], [2]
        chosen = list(first) if n > 0 else list(second)
        chosen[0] += 1
        return first[0], second[0], chosen[0]

    both(program, -1)
    both(program, 2)


def test_attributes_of_classes_may_not_change(staged) -> None:
    def program(n):
        total = Total()
        if n > 0:
            total.bump()
        return total.count

    with pytest.raises(StagingError, match="'Total' changes its attributes in the run-time if"):
        staged(program, -1)
    Total.count = 0


def test_iterators_from_outside_are_refused(staged) -> None:
    def program(n):
        items = iter([Counter(), Counter()])
        found = 0
        if n > 0:
            found = next(items).count
        return found

    with pytest.raises(
        StagingError,
        match="'items' changes its position in the run-time if .* take a list of its items",
    ):
        staged(program, -1)


def test_a_property_that_changes_its_object(staged) -> None:
    class Numbered(Counter):
        __slots__ = ()

        @property
        def following(self):
            self.bump()
            return self.count

    def program(n):
        numbered = Numbered()
        found = numbered.following if n > 0 else 0
        return numbered.count, found

    with pytest.raises(StagingError, match=r"'numbered.count' changes in a side of the run-time conditional expr"):
        staged(program, -1)


def test_a_state_that_changes_and_is_replaced_in_one_turn(staged) -> None:
    """What is carried of it at the begin is what it held before the loop."""

    def program(n):
        pair = (PipelineState(4, 0, 0, 0), PipelineState(4, 0, 0, 0))
        pair[0].advance()
        for _ in range(n):
            first, second = pair
            first.advance()
            second.advance()
            pair = (PipelineState(4, first.count + 1, first.index, first.phase), second)
        return pair[0].count, pair[1].count

    assert staged(program, 0) == (1, 0)
    assert staged(program, 3) == (7, 3)


def test_the_memory_of_arrays_is_not_read_to_find_the_names_of_objects(staged) -> None:
    """An array of a terabyte on one byte of memory: a copy of what it shows would be an error, or end the process."""
    vast = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), (1 << 20, 1 << 20), (1 << 20, 1))

    def program(n):
        box = [n]
        if n > 0:
            box = [n + 100]
        return box[0]

    assert staged(program, 2) == (102,)
    assert staged(program, -1) == (-1,)
    assert vast.shape == (1 << 20, 1 << 20)  # the variable is live during the calls


def test_variables_of_the_callers_are_not_searched(staged) -> None:
    """A script may have a model and its data in them; a view without memory cannot be looked into at all."""
    views = [memoryview(b"released")]
    views[0].release()

    def program(n):
        box = [n]
        if n > 0:
            box = [n + 100]
        return box[0]

    assert staged(program, 2) == (102,)
    assert len(views) == 1  # the variable is live during the call


class WithCounts:
    """A program whose object has a list, which no variable of the kernel holds when its branch ends."""

    def __init__(self) -> None:
        self.counts = [0]

    @cute.jit
    def __call__(self, out: cute.Tensor, n: cutlass.Int32):
        self.kernel(out, n).launch(grid=1, block=1)

    @cute.kernel
    def kernel(self, out: cute.Tensor, n: cutlass.Int32):
        chosen = self.counts
        self = None
        if n > 0:
            chosen = [n]
        chosen[0] = n + 1
        out[0] = chosen[0]


def test_refusals_name_objects_passed_as_arguments() -> None:
    program = WithCounts()
    with pytest.raises(StagingError, match="one of two objects that can change"):
        program(np.zeros(1, np.int32), 3)
