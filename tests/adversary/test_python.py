"""Python in kernels that cannot mean what it says, and Python that can."""

from __future__ import annotations

import contextlib
import sys

import numpy as np
import pytest
import torch

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack

counter = 0


def ones(n=4):
    return np.ones(n, np.float32)


def test_operands_that_do_not_go_together(run, refused):
    @cute.kernel
    def bits(x: cute.Tensor):
        x[0] = x[1] & x[2]

    @cute.kernel
    def text(x: cute.Tensor):
        x[0] = x[1] + "a"

    @cute.kernel
    def tensor(x: cute.Tensor):
        x[0] = x + 1

    @cute.kernel
    def numpy(x: cute.Tensor):
        x[0] = np.exp(x[1])

    refused("'Float32' and 'Float32'", lambda: run(bits, ones()), "x[0] = x[1] & x[2]")
    refused("'Float32' and 'str'", lambda: run(text, ones()), 'x[0] = x[1] + "a"')
    refused("'Tensor' and 'int'", lambda: run(tensor, ones()), "x[0] = x + 1")
    refused("cute.math", lambda: run(numpy, ones()), "x[0] = np.exp(x[1])")


def test_pointers_have_no_end(run, refused):
    @cute.kernel
    def loop(x: cute.Tensor):
        for v in x.iterator:
            x[0] = v

    @cute.kernel
    def largest(x: cute.Tensor):
        x[0] = max(x.iterator)

    @cute.kernel
    def asked(x: cute.Tensor):
        x[0] = 1.0 if 3.0 in x.iterator else 0.0

    refused("pointer has no length", lambda: run(loop, ones()), "for v in x.iterator:")
    refused("pointer has no length", lambda: run(largest, ones()), "x[0] = max(x.iterator)")
    refused("pointer has no length", lambda: run(asked, ones()), "x[0] = 1.0 if 3.0 in x.iterator else 0.0")
    with pytest.raises(TypeError, match="not iterable"):
        list(from_dlpack(ones()).iterator)


def test_all_classes_with_elements_say_whether_they_end():
    """Python iterates over what has ``__getitem__`` alone until an IndexError, which memory never raises."""
    names = ("lang", "layout", "tiled", "pipeline", "utils", "cute", "stand_ins")
    found = set()
    for name, module in list(sys.modules.items()):
        if name.startswith(tuple(f"tilewright.{part}" for part in names)):
            classes = [c for c in vars(module).values() if isinstance(c, type) and c.__module__ == name]
            found |= {c for c in classes if "__getitem__" in vars(c) and not hasattr(c, "__iter__")}
    assert {c.__name__ for c in found} <= {"Compiler", "KernelFunction"}, "they take options, or refuse"


def test_members_of_a_struct_end(run, refused):
    @cute.struct
    class Storage:
        first: cute.struct.MemRange[cutlass.Float32, 4]
        second: cute.struct.MemRange[cutlass.Float32, 4]

    @cute.kernel
    def within(x: cute.Tensor):
        storage = cutlass.utils.SmemAllocator().allocate(Storage)
        for i in cutlass.range_constexpr(4):
            storage.first[i] = x[i]
        x[0] = sum(storage.first)

    @cute.kernel
    def beyond(x: cute.Tensor):
        storage = cutlass.utils.SmemAllocator().allocate(Storage)
        storage.first[4] = x[0]

    assert run(within, ones())[0] == 4
    refused("the index 4 is outside of the range 'first', which has 4", lambda: run(beyond, ones()), "first[4] = x[0]")


def test_arguments_of_another_type_name_the_call(run, refused):
    @cute.kernel
    def group(x: cute.Tensor):
        cute.arch.cp_async_wait_group(x)

    @cute.kernel
    def recast(x: cute.Tensor):
        cute.recast_ptr(x)

    refused(r"cp_async_wait_group\(n=tensor.*; it takes n: int", lambda: run(group, ones()), "wait_group(x)")
    refused(r"recast_ptr\(ptr=tensor.* has no attribute", lambda: run(recast, ones()), "cute.recast_ptr(x)")


def test_names_that_do_not_exist(run, refused):
    @cute.kernel
    def attribute(x: cute.Tensor):
        return x.shap

    @cute.kernel
    def function(x: cute.Tensor):
        cute.make_layot((3, 4))

    refused("no attribute 'shap'; did you mean 'shape'", lambda: run(attribute, ones()), "return x.shap")
    refused("did you mean 'make_layout'", lambda: run(function, ones()), "cute.make_layot((3, 4))")


def test_errors_of_the_user_stay_what_they_are(run):
    @cute.kernel
    def body(x: cute.Tensor):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        run(body, ones())


def test_a_variable_of_one_branch(run, refused):
    @cute.kernel
    def body(x: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        if tidx < 3:
            v = x[tidx]
        x[tidx] = v

    refused(
        "'v' has no value here: it is assigned in only one branch", lambda: run(body, ones(), block=4), "x[tidx] = v"
    )


@pytest.mark.parametrize("array", [np.ones(4), torch.ones(4)], ids=["numpy", "torch"])
def test_arrays_from_outside_at_run_time_indices(run, refused, array):
    @cute.kernel
    def body(x: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        x[0] = array[tidx]

    refused("pass it to the kernel as an argument", lambda: run(body, ones(), block=4), "x[0] = array[tidx]")


def test_tensors_from_outside(run, refused):
    array = ones()
    outside = from_dlpack(array)

    @cute.kernel
    def read(x: cute.Tensor):
        x[0] = outside[1]

    @cute.kernel
    def write(x: cute.Tensor):
        outside[0] = 7.0

    @cute.kernel
    def fill(x: cute.Tensor):
        outside.fill(7.0)

    @cute.kernel
    def copy(x: cute.Tensor):
        x.store(outside.load())

    for kernel, line in (
        (read, "x[0] = outside[1]"),
        (write, "outside[0] = 7.0"),
        (fill, "outside.fill(7.0)"),
        (copy, "x.store(outside.load())"),
    ):
        refused("argument", lambda kernel=kernel: run(kernel, from_dlpack(ones())), line)
    assert (array == 1).all() and outside[1] == 1


def test_globals_and_outer_variables_in_loops(run, refused):
    @cute.kernel
    def count(x: cute.Tensor):
        global counter
        for _ in range(4):
            counter += 1
        x[0] = counter

    @cute.kernel
    def total(x: cute.Tensor):
        sum_ = 0

        def add(n):
            nonlocal sum_
            if n > 0:
                sum_ = sum_ + 1

        add(x[1])
        x[0] = sum_

    refused("a variable of an outer scope", lambda: run(count, ones()), "global counter")
    refused("a variable of an outer scope", lambda: run(total, ones()), "nonlocal sum_")
    assert counter == 0


def test_lists_of_an_outer_function(run):
    @cute.kernel
    def body(x: cute.Tensor):
        sum_ = [cutlass.Float32(0)]

        def add(v):
            sum_[0] = sum_[0] + v

        for i in range(4):
            add(x[i])
        x[0] = sum_[0]

    assert run(body, ones())[0] == 4


def test_recursion(run, refused):
    @cute.jit
    def endless(n):
        if n <= 1:
            r = n
        else:
            r = n * endless(n - 1)
        return r

    @cute.jit
    def power(x, n: cutlass.Constexpr):
        if cutlass.const_expr(n == 0):
            return 1.0
        return x * power(x, n - 1)

    @cute.kernel
    def bad(x: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        x[0] = endless(tidx)

    @cute.kernel
    def good(x: cute.Tensor):
        x[0] = power(x[1] + 1, 5)

    refused("calls itself without end", lambda: run(bad, ones(), block=8))
    assert run(good, ones())[0] == 32


def test_run_time_conditions_where_python_decides(run, refused):
    @cute.kernel
    def comprehension(x: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        x[0] = sum([x[i] for i in range(4) if tidx == i])

    @cute.kernel
    def function(x: cute.Tensor):
        absolute = lambda v: v if v > 0 else -v  # noqa: E731 - a lambda is what is tested
        x[0] = absolute(x[1])

    @cute.kernel
    def pattern(x: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        match tidx:
            case 0:
                x[0] = 5.0

    refused("no truth value", lambda: run(comprehension, ones(), block=2), "for i in range(4) if tidx == i]")
    refused("no truth value", lambda: run(function, ones()), "absolute = lambda v: v if v > 0 else -v")
    refused("`match` has no meaning", lambda: run(pattern, ones(), block=2), "match tidx:")


def test_generators_and_returns_in_kernels_are_refused(run, refused):
    @cute.kernel
    def generator(x: cute.Tensor):
        yield x

    @cute.kernel
    def returns(x: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        if tidx > 2:
            return
        x[tidx] = 0.0

    @cute.kernel
    def breaks(x: cute.Tensor):
        while x[0] < 5:
            x[0] = x[0] + 1
            if x[0] > 3:
                break

    @cute.kernel
    def key(x: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        x[0] = [1.0, 2.0][tidx]

    refused("`yield` has no meaning", lambda: run(generator, ones()), "yield x")
    refused("`return` inside a run-time if", lambda: run(returns, ones(), block=4))
    refused("`break` inside a run-time if", lambda: run(breaks, ones()))
    refused("Python index", lambda: run(key, ones(), block=2), "x[0] = [1.0, 2.0][tidx]")


def test_ranges(run, refused):
    @cute.kernel
    def of_floats(x: cute.Tensor):
        for _ in range(x[0]):
            x[1] = x[1] + 1

    @cute.kernel
    def standing_still(x: cute.Tensor):
        for _ in range(0, 4, 0):
            x[1] = x[1] + 1

    @cute.kernel
    def by(x: cute.Tensor, step: cutlass.Int32):
        for _ in range(0, 4, step):
            x[1] = x[1] + 1

    refused("range needs integers", lambda: run(of_floats, ones()), "for _ in range(x[0]):")
    refused("step must not be zero", lambda: run(standing_still, ones()), "for _ in range(0, 4, 0):")
    refused("zero", lambda: run(by, ones(), cutlass.Int32(0)), "for _ in range(0, 4, step):")


def test_python_that_just_works(run):
    @cute.kernel
    def body(x: cute.Tensor, *rest, scale=2.0):
        def bigger(a, b):
            if a > b:
                r = a
            else:
                r = b
            return r

        double = lambda v: v * scale  # noqa: E731 - a lambda is what is tested
        with contextlib.nullcontext():
            total = sum(v for v in (x[i] for i in range(4)))
        total = double(total)
        if (largest := bigger(total, rest[0])) > 0:
            x[0] = largest

    assert run(body, ones(), cutlass.Float32(3))[0] == 8
    assert run(body, ones(), cutlass.Float32(9))[0] == 9


def test_parameters_of_every_kind():
    @cute.jit
    def host(x: cute.Tensor, n: cutlass.Int32 = 3, *more, m: cutlass.Constexpr = 2, **named):
        x[0] = n * m + len(more) * 100 + named.get("z", 0)

    x = ones(1)
    for args, kwargs, expected in (
        ((), {}, 6),
        ((4,), {}, 8),
        ((), {"m": 5}, 15),
        ((), {"n": 1, "m": 7}, 7),
        ((1, 2, 3), {"z": 9}, 211),
        ((1, 2, 3), {"z": 10}, 212),
    ):
        host(x, *args, **kwargs)
        assert x[0] == expected


def test_printing_while_staging(run, capsys):
    @cute.kernel
    def body(x: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        print("tidx", tidx, f"{tidx} {x[0]:.2f} {tidx:>4} {tidx!r}", x)
        print(f"{cutlass.Float32(1.5):.3f} {cutlass.Int32(7):04d} {1.5:.3f}")

    run(body, ones(), block=2)
    assert capsys.readouterr().out.split("\n")[:2] == [
        "tidx ? ? ? ? ? tensor<ptr<f32, gmem, align<4>> o (?):(1)>",
        "? ? 1.500",
    ]


def test_printf_counts_its_values(run, refused):
    @cute.kernel
    def body(x: cute.Tensor):
        cute.printf("%d %d", x[0])

    refused("has 2 fields for 1 values", lambda: run(body, ones()), 'cute.printf("%d %d", x[0])')
