"""TensorSSA: promotion, broadcasting, reductions, choices; run in the simulator against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError
from tilewright.lang.numbers.numeric import BFloat16, Boolean, Float16, Float32, Int8, Int32
from tilewright.testing import per_thread

RNG = np.random.default_rng(0)


def run(function, *shapes, out, dtype=np.float32):
    """``function`` of TensorSSAs (loaded from random arrays) in a kernel of one thread; (inputs, what it stored)."""
    inputs = [RNG.integers(-8, 8, shape).astype(dtype) for shape in shapes]
    result = np.zeros(out[0], out[1])

    @cute.kernel
    def kernel(tensors: list, target: cute.Tensor):
        target.store(function(*[t.load() for t in tensors]))

    @cute.jit
    def host(tensors: list, target: cute.Tensor):
        kernel(tensors, target).launch(grid=(1, 1, 1), block=(1, 1, 1))

    host([from_dlpack(x) for x in inputs], from_dlpack(result))
    return (*inputs, result)


def test_arithmetic_with_scalars() -> None:
    a, b, c = run(lambda a, b: (a + b) * 2 - 1.5, (4, 6), (4, 6), out=((4, 6), np.float32))
    np.testing.assert_array_equal(c, (a + b) * 2 - 1.5)


def test_broadcast_and_compare() -> None:
    a, b, c = run(lambda a, b: cute.where(a > b, a, b * 0.5), (4, 6), (4, 1), out=((4, 6), np.float32))
    np.testing.assert_array_equal(c, np.where(a > b, a, b * np.float32(0.5)))


def test_broadcast_of_two_sides() -> None:
    a, b, c = run(lambda a, b: a - b, (1, 3), (4, 1), out=((4, 3), np.float32))
    np.testing.assert_array_equal(c, a - b)


@pytest.mark.parametrize("a, b", [((6,), 6), (((6,),), (6,)), (((2, 3),), (6,)), ((((1, 3), 2), 4), (6, (2, 2)))])
def test_one_number_counts_a_mode_of_several(a, b) -> None:
    """What ``local_tile`` with a tiler in a tuple gives, ((6)), and a register tensor of an int, 6: one shape."""

    def both_ways(x):
        at_b = cute.make_rmem_tensor(b, Float32)
        at_b.store(x)
        at_a = cute.make_rmem_tensor(a, Float32)
        at_a.store(x)
        left, right = at_a.load() - 2.0 * at_b.load(), at_b.load() - 2.0 * at_a.load()
        return cute.where(left == right, left, -100.0)

    n = 24 if len(str(a)) > 12 else 6
    x, c = run(both_ways, (n,), out=((n,), np.float32))
    np.testing.assert_array_equal(c, -x)


def test_elements_one_after_another() -> None:
    x, c = run(lambda x: cute.full((1,), sum(x) + len([v for v in x]), Float32), (2, 3), out=((1,), np.float32))
    assert c[0] == x.sum() + 6


@pytest.mark.parametrize("op", ["ADD", "MUL", "MAX", "MIN"])
def test_reduce_rows(op) -> None:
    kind = getattr(cute.ReductionOp, op)
    start = {"ADD": 0.0, "MUL": 1.0, "MAX": float("-inf"), "MIN": float("inf")}[op]
    a, c = run(lambda a: a.reduce(kind, start, (None, 1)), (3, 5), out=((3,), np.float32))
    want = {"ADD": a.sum, "MUL": a.prod, "MAX": a.max, "MIN": a.min}[op](axis=1)
    np.testing.assert_array_equal(c, want)


def test_reduce_everything_with_a_start() -> None:
    a, c = run(
        lambda a: cute.full((1,), a.reduce(cute.ReductionOp.ADD, 10.0, 0), cutlass.Float32),
        (3, 5),
        out=((1,), np.float32),
    )
    assert c[0] == a.sum() + 10


def test_integers_and_bits() -> None:
    a, b, c = run(lambda a, b: (a // 3) ^ (b & 5), (8,), (8,), out=((8,), np.int32), dtype=np.int32)
    np.testing.assert_array_equal(c, (a // 3) ^ (b & 5))


def test_conversion_and_reshape() -> None:
    a, c = run(lambda a: a.to(cutlass.Int32).reshape((6, 4)), (4, 6), out=((6, 4), np.int32))
    want = a.astype(np.int32).reshape(-1, order="F").reshape((6, 4), order="F")
    np.testing.assert_array_equal(c, want)


def test_slices_and_elements() -> None:
    a, c = run(lambda a: a[None, 2] + a[0, 0], (3, 5), out=((3,), np.float32))
    np.testing.assert_array_equal(c, a[:, 2] + a[0, 0])


@pytest.mark.parametrize("kind", [Float32, Int8, cutlass.Float4E2M1FN, Boolean])
def test_slices_and_elements_at_run_time(kind) -> None:
    """A run-time index chooses elements and slices, as of a tensor."""
    numbers = np.array([0, 3, 1, 2, 2, 0, 1, 3, 3, 1, 0, 2]).reshape(3, 4).T  # of all four types, or true or false
    numbers = numbers != 0 if kind is Boolean else numbers

    def program(t, p):
        tensor = cute.make_rmem_tensor((4, 3), kind)
        for i in cutlass.range_constexpr(12):
            tensor[i] = kind(float(numbers.T.flat[i]) if kind.is_float else int(numbers.T.flat[i]))
        whole = tensor.load()
        column, row = whole[None, t % 3], whole[t % 4, None]
        digits = [*(column[i] for i in range(4)), *(row[j] for j in range(3)), whole[t % 4, t % 3]]
        total = Int32(0)
        for digit in digits:
            total = 10 * total + digit.to(Int32)
        return total

    rows = [[*numbers[:, t % 3], *numbers[t % 4], numbers[t % 4, t % 3]] for t in range(12)]
    assert per_thread(program, 12, memory=[0])[0] == [int("".join(str(int(n)) for n in row)) for row in rows]


def test_slices_stay_inside() -> None:
    for coord in ((None, 3), (4, None), (None, -1)):
        with pytest.raises(ConstraintError, match="outside the shape"):
            run(lambda a, at=coord: a[at], (4, 3), out=((4, 3), np.float32))


def test_any_and_all() -> None:
    def both(a):
        return cute.full((2,), cute.any_(a > 100).to(cutlass.Int32) * 10 + cute.all_(a < 100).to(cutlass.Int32))

    _, c = run(both, (4, 4), out=((2,), np.int32))
    assert c.tolist() == [1, 1]


def test_bitcast() -> None:
    a, c = run(lambda a: a.bitcast(cutlass.Int32), (8,), out=((8,), np.int32))
    np.testing.assert_array_equal(c, a.view(np.int32))


def test_types(stage) -> None:
    h = cute.full((4,), 1.0, Float16)
    assert (h * 2.0).dtype is Float16 and (h + cute.full((4,), 1.0, BFloat16)).dtype is Float32
    assert (h > 0).dtype is Boolean and (~(h > 0)).dtype is Boolean and ((h > 0) & (h < 2)).dtype is Boolean
    assert (cute.full((4,), 1, Int8) + Int32(1)).dtype is Int32 and (cute.full((4,), 3, Int32) / 2).dtype is Float32
    assert (2 - h).shape == (4,) and cute.zeros_like(h).dtype is Float16


def test_shapes_that_do_not_fit(stage) -> None:
    with pytest.raises(ConstraintError, match=r"\(3\) and \(4\) do not broadcast"):
        cute.full((3,), 1.0) + cute.full((4,), 1.0)
    with pytest.raises(ConstraintError, match="number of elements"):
        cute.full((3, 2), 1.0).reshape((4,))
    with pytest.raises(ConstraintError, match="any_"):
        bool(cute.full((3,), 1.0) > 0)
    with pytest.raises(ConstraintError, match="profile"):
        cute.full((3, 2), 1.0).reduce(cute.ReductionOp.ADD, 0.0, (None, 1, 1))


@pytest.mark.parametrize("first", [1000, 0.5, float("inf")])
def test_a_fold_begins_with_a_number_of_its_type(first: float) -> None:
    """1000 wrapped, and 0.5 was 0."""
    with pytest.raises(ConstraintError, match=f"reduce: Int8 does not hold the first operand {first}"):
        per_thread(lambda t: cute.full(4, t, cutlass.Int8).reduce(cute.ReductionOp.ADD, first), 1)
