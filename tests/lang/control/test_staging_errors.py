"""What has no meaning on the machine is refused with the user's line and the variable's name."""

from __future__ import annotations

import inspect
from functools import partial

import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.errors import ArgumentError, StagingError


def refuse(program, staged, *args, match, marker=None):
    """The program raises a StagingError that matches, and names the line that bears ``# here``."""
    with pytest.raises(StagingError, match=match) as caught:
        staged(program, *args)
    lines, first = inspect.getsourcelines(program)
    wanted = [first + i for i, line in enumerate(lines) if line.rstrip().endswith("# here")]
    assert [f"{__file__}:{line}:" in str(caught.value) for line in wanted] == [True] * len(wanted), str(caught.value)


def test_break_in_run_time_loop(staged):
    def program(n):
        for i in range(n):
            if i == 5:
                break  # here
        return n

    refuse(program, staged, 3, match="`break` inside a run-time if at line")


def test_continue_in_run_time_loop(staged):
    def program(n):
        for _ in range(n):
            continue  # here
        return n

    refuse(program, staged, 3, match="`continue` inside a run-time for loop")


def test_break_from_python_loop_under_run_time_condition(staged):
    def program(n):
        for i in cutlass.range_constexpr(4):
            if n == i:
                break  # here
        return n

    refuse(program, staged, 3, match="`break` inside a run-time if")


def test_return_under_run_time_condition(staged):
    def program(n):
        if n > 3:
            return n  # here
        return 0

    refuse(program, staged, 3, match="`return` inside a run-time if .* assign the result to a variable")


def test_raise_under_run_time_condition(staged):
    def program(n):
        if n > 3:
            raise ValueError("n")  # here
        return n

    refuse(program, staged, 3, match="`raise` inside a run-time if .* use `assert`")


def test_type_changes_in_branch(staged):
    def program(n):
        x = 10
        if n > 3:
            x = 10.0
        return x

    refuse(program, staged, 3, match="the variable 'x' changes its type in the run-time if at line")


def test_type_changes_in_loop(staged):
    def program(n):
        a = cutlass.Int32(1)
        for _ in range(n):
            a = a * cutlass.Float32(2)
        return a

    refuse(program, staged, 3, match="'a' changes its type in the run-time for loop at line .*: Int32 against Float32")


def test_python_int_that_becomes_a_float_in_a_loop(staged):
    def program(n):
        total = 0
        for _ in range(n):
            total += 0.5
        return total

    refuse(program, staged, 3, match=r"'total' changes its type .* Int32 \(from a Python number\) against Float32")


def test_structure_changes_in_loop(staged):
    def program(n):
        items = (n, n)
        for _ in range(n):
            items = (*items, n)
        return items[0]

    refuse(program, staged, 3, match="'items' changes .* tuple of 2 against tuple of 3")


def test_static_object_changes_in_loop(staged):
    def program(n):
        mode = "first"
        total = n
        for _ in range(n):
            total += 1 if mode == "first" else 2  # here
            mode = "other"
        return total

    why = "'mode' has no value here: the run-time for loop at line .* leaves it as 'other', before it was 'first'"
    refuse(program, staged, 3, match=why)


def test_static_object_that_each_iteration_assigns_first(staged):
    def program(n):
        i, total, more, flag = 0, n, True, True
        while more:  # known in the first iteration, run-time in the others
            if cutlass.const_expr(flag):
                step = partial(lambda a, b, c: a + b + c, i, n)
            if cutlass.const_expr(flag):
                total = step(total)
            i += 1
            more = i < n
        return total

    for n in range(5):
        assert staged(program, n) == (program(n),)


def test_use_of_a_variable_of_one_branch(staged):
    def program(n):
        if n > 3:
            x = n
        return x + 1  # here

    refuse(
        program, staged, 3, match="'x' has no value here: it is assigned in only one branch of the run-time if at line"
    )


def test_use_of_a_variable_of_a_loop_body(staged):
    def program(n):
        for i in range(n):
            x = i
        return x + 1  # here

    refuse(program, staged, 3, match="'x' has no value here")


def test_use_before_assignment(staged):
    def program(n):
        if n > 3:
            y = y + 1  # noqa: F821 - no such name: what is tested # here
        y = n
        return y

    refuse(program, staged, 3, match="'y' has no value here: it is read before anything was assigned to it")


def test_static_objects_changed_under_a_branch_are_refused(staged):
    class Mode:
        def __init__(self):
            self.name = "a"

        def switch(self):
            self.name = "b"

    def program(n):
        mode = Mode()
        for _ in range(n):
            mode.switch()
        return n

    refuse(program, staged, 3, match="'mode.name' changes in the run-time for loop .* from 'a' to 'b'")


def test_run_time_bound_of_range_constexpr(staged):
    def program(n):
        for _ in cutlass.range_constexpr(n):
            pass
        return n

    refuse(program, staged, 3, match="range_constexpr.*use `range`")


def test_const_expr_of_a_run_time_value(staged):
    def program(n):
        if cutlass.const_expr(n == 10):
            n = n + 1
        return n

    refuse(program, staged, 3, match="const_expr: the Boolean is known only when the kernel runs")


def test_truth_value_in_a_plain_function(staged):
    from tests.lang.control.plain_helper import is_positive

    def program(n):
        return 1 if is_positive(n) else 0

    refuse(program, staged, 3, match="marked @cute.jit")


def test_sides_of_a_conditional_expression(staged):
    def program(n):
        return n if n > 2 else 1.5

    refuse(program, staged, 3, match="the two sides of the run-time conditional expression at line .* do not agree")


def test_yield(staged):
    def program(n):
        yield n  # here

    refuse(program, staged, 3, match="`yield` has no meaning in a staged function")


def test_iterating_over_a_run_time_number(staged):
    def program(n):
        for _ in n:  # here
            pass
        return n

    refuse(program, staged, 3, match="a run-time Int32 cannot be iterated over; write range")


def test_value_of_a_region_that_escaped_through_a_list(staged):
    def program(n):
        seen = []
        for i in range(n):
            seen.append(i * 2)
        return seen[0]

    refuse(program, staged, 3, match="'seen' changes its length in the run-time for loop at line")


def test_endless_python_while(staged, monkeypatch):
    monkeypatch.setattr("tilewright.lang.staging.while_loop.ENDLESS", 100)

    def program(n):
        i = 0
        while i < 3:
            n = n + 1
        return n

    refuse(program, staged, 3, match="has run 100 iterations while staging")


def test_errors_of_the_user_point_at_the_user(staged):
    def program(n):
        table = {}
        return table[n.width + 1]

    with pytest.raises(KeyError) as caught:
        staged(program, 3)
    last = caught.traceback[-1]
    assert str(last.path) == __file__
    assert "table[n.width + 1]" in str(last.statement)


def test_lambda_and_missing_source():
    with pytest.raises(StagingError, match="a lambda cannot be marked"):
        cute.jit(lambda x: x)(1)
    scope = {}
    exec("def generated(x):\n    return x", scope)
    with pytest.raises(StagingError, match="the source of generated .* is not to be found"):
        cute.jit(scope["generated"])(1)
    assert cute.jit(scope["generated"], preprocessor=False)(41) == 41


def test_kernel_called_from_python():
    @cute.kernel
    def body():
        pass

    with pytest.raises(StagingError, match="can only be launched from a @cute.jit function"):
        body()


def test_kernel_called_from_kernel():
    @cute.kernel
    def inner():
        pass

    @cute.kernel
    def outer():
        inner().launch(grid=1, block=1)

    @cute.jit
    def host():
        outer().launch(grid=1, block=1)

    with pytest.raises(StagingError, match="inner can only be launched from a @cute.jit function on the host"):
        host()


@pytest.mark.parametrize(
    "shape, match",
    [
        ({"grid": (1, 1, 1, 1)}, "grid takes one to three numbers, got 4"),
        ({"grid": (2.5,)}, "2.5 is not an integer"),
        ({"block": (0, 1, 1)}, "an extent of 0"),
        ({"block": (1025, 1, 1)}, "has 1025 threads; a block holds 1024 at most"),
        ({"smem": 300000}, "300000 bytes of shared memory"),
        ({"gird": (2, 1, 1)}, "gird=.2, 1, 1. is not known; there are grid, block"),
        ({"async_deps": True}, "async_deps=True is not known"),
    ],
)
def test_launch_shapes(shape, match):
    @cute.kernel
    def body():
        pass

    @cute.jit
    def host():
        body().launch(**shape)

    with pytest.raises(StagingError, match=match):
        host()


def test_host_value_inside_a_kernel():
    @cute.kernel
    def body(out: cute.Tensor, count):
        out[0] = leaked[0] + 1

    leaked = []

    @cute.jit
    def host(out: cute.Tensor, n: cutlass.Int32):
        leaked.append(n * 2)
        body(out, n).launch(grid=1, block=1)

    import numpy as np

    with pytest.raises(StagingError, match="values of the host reach a kernel only as its arguments"):
        host(np.zeros(1, np.int32), 4)


def test_values_stay_inside_elect_one(staged):
    def program(n):
        x = n
        with cute.arch.elect_one():
            label = "known while staging"
            x = n * 2
        n = n + len(label)
        return x + n  # here

    refuse(program, staged, 3, match="'x' has no value here: it is assigned inside the run-time elect_one")


def test_return_inside_elect_one(staged):
    def program(n):
        with cute.arch.elect_one():
            return n  # here
        return 0

    refuse(program, staged, 3, match="`return` inside a run-time elect_one block")


def test_while_true(staged, monkeypatch):
    monkeypatch.setattr("tilewright.lang.staging.while_loop.ENDLESS", 100)

    def endless(n):
        while True:  # here
            n = n + 1
        return n

    def by_a_run_time_value(n):
        while True:
            n = n + 1
            if n > 10:
                break  # here
        return n

    def by_python(n):
        turns = 0
        while True:
            turns += 1
            n = n + turns
            if turns == 3:
                break
        while True:
            for _ in [1, 2]:
                pass
            else:
                break
        while True:
            return n

    refuse(endless, staged, 3, match="has run 100 iterations while staging: .* `while n < limit:`")
    refuse(by_a_run_time_value, staged, 3, match="`break` inside a run-time if .* a `while` with the condition in its")
    assert staged(by_python, 3) == (9,)


@cute.jit
def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


@cute.jit
def power(x, n: cutlass.Constexpr):
    return x * power(x, n - 1) if n > 0 else 1


@cute.kernel
def calls_itself(x: cute.Tensor):
    calls_itself(x).launch(grid=1, block=1)


def test_recursion_of_global_functions(staged):
    def endless(n):
        return factorial(n)

    def ends(n):
        return power(n, 3)

    refuse(endless, staged, 3, match="the function calls itself without end while staging")
    assert staged(ends, 3) == (27,)


def test_kernel_that_calls_itself():
    import numpy as np

    @cute.jit
    def host(x: cute.Tensor):
        calls_itself(x).launch(grid=1, block=1)

    with pytest.raises(StagingError, match=r"calls_itself can only be launched from a @cute.jit .*\n  at .*py:"):
        host(np.zeros(1))


def test_truth_of_a_tensor(staged):
    def program(n):
        tensor = cute.make_rmem_tensor(4, cutlass.Int32)
        if tensor:  # here
            n = n + 1
        return n

    refuse(program, staged, 3, match="a tensor has no truth value .* `if x is not None:`")


counted = 0


def test_variables_that_outlive_the_program(staged):
    outside = 0

    def of_the_module(n):
        global counted  # here
        counted += 1
        return n

    def of_the_module_in_a_function(n):
        def count():
            global counted  # here
            for counted in range(3):  # noqa: B007 - a global target is what is tested
                pass

        count()
        return n

    def of_a_function_around(n):
        nonlocal outside  # here
        outside = 1
        return n

    def of_itself(n):
        inside = 0

        def count():
            nonlocal inside  # here
            inside += 1

        count()
        return n + inside

    for program in (of_the_module, of_the_module_in_a_function, of_a_function_around, of_itself):
        refuse(program, staged, 3, match="(global|nonlocal)` has no meaning .* a variable of an outer scope would be")
    assert counted == outside == 0


def test_texts_that_are_made_while_staging(staged, capfd):
    """printf prints the run-time values of an f-string; what else Python would do with the text it does too early."""

    def of_another_length(n):
        label = f"n = {n}"
        cute.printf(label.rjust(10))  # here
        return n

    def counted(n):
        return len(str(n))  # here

    def compared(n):
        return n if repr((n, 1)) == "(3, 1)" else 0  # here

    def searched(n):
        return 1 if "3" in format(n, "03d") else 0  # here

    def of_percent(n):
        return len("%s" % n)  # noqa: UP031 - what is tested # here

    def of_an_augmented_percent(n):
        label = "%03d"
        label %= n
        return len(label)  # here

    def of_format(n):
        return len("{} {x[0]}".format(1, x=(n, 2)))  # noqa: UP032 - what is tested # here

    def of_a_list(n):
        return len(", ".join(map(str, [n, 2])))  # here

    def too_many_fields(n):
        cute.printf(f"n = {n} {{}}")  # here
        return n

    def printed(n):
        width, half = 8, n / 2
        label = f"n = {n:3d} {{}} of {width!r}"
        cute.printf(label, n + 1)
        cute.printf(f"{label}; " + f"{half:.2f}" + " {{of}}" + f" {n=} {(n, 2)}", n + 2)
        label = f"{n}"
        if n > 0:
            label = f"{n + 5}"
            cute.printf(label)
        print(f"{n} is not known")
        cute.printf("str gives " + str(n) + " and " + format(n + 1, "03d") + str(2) + repr("x"))
        percent, fields = "%d%% of %-4s|%5.1f", "{1:>3}, {0!r}; "  # as variables: ruff would have f-strings
        cute.printf(percent % (n, 7, half) + fields.format("x", n) + "/".join(map(str, [1, n])))
        percent, fields = "%(a)03d %(b)s", "{}"
        cute.printf(percent % {"a": n, "b": "y"})
        assert percent % {"a": 3, "b": 4} + fields.format(4) + "-".join("ab") == "003 44a-b" and n % 2 == 1
        return n

    def of_an_unbound_format(n):
        return len(str.format("{}", n))  # here

    def of_a_mapping(n):
        return len("{n}".format_map({"n": n}))  # here

    def of_ascii(n):
        return len(ascii(n))  # here

    def of_a_dict(n):
        return len(str({"n": [n]}))  # here

    def of_an_exception(n):
        return len("%s" % (ValueError(n),))  # noqa: UP031 - what is tested # here

    def as_a_key(n):
        return {f"{n}": 1}.get("3", 2)  # here

    def as_a_number(n):
        return int(f"{n}") + ord(str(n % 10))  # here

    texts = of_percent, of_an_augmented_percent, of_format, of_a_list, of_an_unbound_format, of_a_mapping
    texts += of_ascii, of_a_dict, of_an_exception, as_a_key, as_a_number
    for program in (of_another_length, counted, compared, searched, *texts):
        refuse(program, staged, 3, match="a text with run-time numbers in it can only be printed, or added to")
    with pytest.raises(ArgumentError, match=r"has more fields than its 1 values\n  at .*# here"):
        staged(too_many_fields, 3)

    def one_of_two(n):
        label = f"{n}"
        if n > 0:
            label = f"{n + 5}"
        cute.printf(label)  # here
        return n

    refuse(one_of_two, staged, 3, match="'label' has no value here: the branches of the run-time if at .* leave it")
    staged(printed, 3)
    assert capfd.readouterr().out.splitlines() == [
        "? is not known",
        "n =   3 4 of 8",
        "n =   3 5 of 8; 1.50 {of} n=3 (3,2)",
        "8",
        "str gives 3 and 0042'x'",
        "3% of 7   |  1.5  3, 'x'; 1/3",
        "003 y",
    ]


def test_match(staged):
    def program(n):
        match n:  # here
            case 0:
                n = n + 1
        return n

    refuse(program, staged, 3, match="`match` has no meaning .* write `if n == 0:`, `elif")


def test_del(staged):
    def program(n):
        m = n + 1
        del m
        return m + 1  # noqa: F821 - what is tested  # here

    refuse(program, staged, 3, match="'m' has no value here: `del` took it away")

    def element(n):
        both = [n, n]
        del both[0]  # here
        return both[0]

    refuse(element, staged, 3, match="`del` has no meaning in a staged function: a program cannot remove")

    def fine(n):
        total = n
        for i in range(4):
            m = i + n
            k, j = m, i
            if m > 4:
                total = total + k - j
                del k
            del m, j
        return total

    assert staged(fine, 3) == (fine(3),)


def test_try(staged):
    def program(n):
        try:  # here
            n = 12 // n
        except ZeroDivisionError:
            n = 0
        return n

    refuse(program, staged, 3, match="`try` has no meaning .* test for the case with `if` before it arises")


def test_run_time_conditions_in_a_lambda_or_a_comprehension(staged):
    def in_a_lambda(n):
        positive = lambda x: x if x > 0 else -x  # noqa: E731 - a lambda is what is tested # here
        return positive(n)

    def in_a_comprehension(n):
        return sum([i for i in [1, 2] if n > i])  # here

    refuse(in_a_lambda, staged, 3, match="no truth value .*inside a lambda: write a `def`")
    refuse(in_a_comprehension, staged, 3, match="no truth value .*a comprehension .*: write a `for` loop")


def test_loop_variables_without_one_type_are_refused_in_the_next_iteration(staged):
    def loop(n):
        x, total = n, n - n
        for i in range(3):
            total += x  # here
            if i > n:
                x = (1, 2)
            else:
                x = 5
        return total

    def assigned_anew(n):
        x, total = n, n - n
        for i in range(3):
            if i > n:
                x = (1, 2)
            else:
                x = 5
            x = i
            total += x
        return total

    refuse(loop, staged, 7, match="'x' has no value here: the branches of the run-time if .* different kinds")
    assert staged(assigned_anew, 7) == (3,)


def test_identity_of_numbers(staged):
    """``is`` would be False for every number that a kernel computes, whatever its value."""

    def of_a_literal(n):
        return 1 if (n > 3) is True else 0  # here

    def of_two(n):
        m = n + 0 * n
        if n is not m:  # here
            m = m + 1
        return m

    def allowed(n):
        nothing, kind = None, type(n)
        return n + 1 if nothing is None and n is not None and kind is cutlass.Int32 else n

    refuse(of_a_literal, staged, 7, match="`is` compares objects, not numbers: write `==`, or leave `is True` out")
    refuse(of_two, staged, 7, match="`is` compares objects, not numbers: write `==`")
    assert staged(allowed, 7) == (8,)
