"""After the documentation's API pages of ``cute`` (cute_dsl_api/cute): numbers, tensors, TensorSSA, the layout algebra
and the element-wise kernels of the quick start, in programs of our own."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack

# -- numbers ---------------------------------------------------------------------------------------------------------


def test_arithmetic_of_typed_numbers():
    @cute.jit
    def compute(a: cutlass.Int32, x: cutlass.Float32):
        b = a + 5
        half = b.to(cutlass.Float32) / 2
        bits = (a << 3) | 1
        small = cutlass.Int8(300 + a)
        return b, half * x, bits & 0xF, -a % 7, a // -2, small, a > 3, cutlass.Uint8(a) - 8

    assert compute(7, 0.5) == (12, 3.0, 9, 0, -4, 51, True, 255)


def test_comparisons_and_conversions():
    @cute.jit
    def compare(a: cutlass.Int32, b: cutlass.Float32):
        return a < b, a == 4, b != 4.5, cutlass.Boolean(a), cutlass.Int32(b), cutlass.Float16(b)

    assert compare(4, 4.5) == (True, True, False, True, 4, 4.5)
    assert compare(0, -2.75) == (False, False, True, False, -2, -2.75)


# -- tensors ---------------------------------------------------------------------------------------------------------


def test_a_tensor_of_a_pointer_and_a_layout(capfd):
    @cute.jit
    def from_pointer(ptr: cute.Pointer):
        tensor = cute.make_tensor(ptr, cute.make_layout((8, 5), stride=(5, 1)))
        tensor.fill(1)
        tensor[3, 2] = tensor[0, 0] + 6
        cute.print_tensor(tensor)

    a = np.zeros((8, 5), np.float32)
    from_pointer(from_dlpack(a).iterator)
    assert a[3, 2] == 7 and a.sum() == 46
    out = capfd.readouterr().out
    assert "(8,5):(5,1)" in out and out.count("1.000000") == 39 and "7.000000" in out


def test_coordinates_of_every_form():
    @cute.jit
    def read(x: cute.Tensor, out: cute.Tensor):
        out[0] = x[0]
        out[1] = x[4, 5]
        out[2] = x[(4, 5)]
        out[3] = x[10]

    x, out = np.arange(48, dtype=np.float32).reshape(8, 6), np.zeros(4, np.float32)
    read(from_dlpack(x), from_dlpack(out))
    assert out.tolist() == [x[0, 0], x[4, 5], x[4, 5], x[10 % 8, 10 // 8]]


def test_coordinate_tensors():
    @cute.jit
    def mark(x: cute.Tensor):
        coords = cute.make_identity_tensor(x.layout.shape)
        for i in range(cute.size(x)):
            row, column = coords[i]
            x[row, column] = row * 10 + column

    x = np.zeros((3, 4), np.int32)
    mark(from_dlpack(x))
    assert (x == np.fromfunction(lambda r, c: r * 10 + c, x.shape)).all()


def test_slices_and_nested_shapes():
    @cute.jit
    def copy(src: cute.Tensor, dst: cute.Tensor):
        part = cute.logical_divide(src, (2, 2))
        dst.store(part[(None, 1), (None, 0)].load())

    src, dst = np.arange(24, dtype=np.float32).reshape(4, 6), np.zeros((2, 2), np.float32)
    copy(from_dlpack(src), from_dlpack(dst))
    assert (dst == src[2:4, 0:2]).all()


# -- TensorSSA -------------------------------------------------------------------------------------------------------


def test_the_text_of_a_vector(capsys):
    @cute.jit
    def show(a: cute.Tensor):
        print(a.load())

    show(from_dlpack(np.ones((3, 4), np.float32)))
    assert capsys.readouterr().out == "tensor_value<vector<3x4xf32> o (3,4)>\n"


BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.mod, operator.floordiv, operator.pow]
COMPARE = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.__name__)
def test_binary_operators(op):
    @cute.jit
    def apply(res: cute.Tensor, a: cute.Tensor, b: cute.Tensor):
        res.store(op(a.load(), b.load()))
        res[0, 0] = op(a.load(), 2.0)[0, 0]

    a = np.array([[9, 3.5, 4], [1, 2.5, 6]], np.float32)
    b, res = np.array([[2, 2, 0.5], [4, 1, 2]], np.float32), np.zeros((2, 3), np.float32)
    apply(from_dlpack(res), from_dlpack(a), from_dlpack(b))
    expected = op(a, b)
    expected[0, 0] = op(a[0, 0], 2)
    np.testing.assert_allclose(res, expected, rtol=1e-6)


@pytest.mark.parametrize("op", COMPARE, ids=lambda op: op.__name__)
def test_comparisons(op):
    @cute.jit
    def apply(res: cute.Tensor, a: cute.Tensor, b: cute.Tensor):
        res.store(op(a.load(), b.load()).to(cutlass.Int32))

    a, b = np.array([1, 2, 3, 4], np.float32), np.array([2, 2, 2, 4], np.float32)
    res = np.full(4, -1, np.int32)
    apply(from_dlpack(res), from_dlpack(a), from_dlpack(b))
    assert (res == op(a, b)).all()


def test_bitwise_and_unary_operators():
    @cute.jit
    def apply(res: cute.Tensor, a: cute.Tensor, b: cute.Tensor):
        x, y = a.load(), b.load()
        res.store(((x & y) | (x ^ y)) + (~x) * 0 + (-y) * 0)

    a, b, res = np.array([5, 9], np.int32), np.array([3, 6], np.int32), np.zeros(2, np.int32)
    apply(from_dlpack(res), from_dlpack(a), from_dlpack(b))
    assert (res == (a | b)).all()


def test_unary_math_functions():
    @cute.jit
    def apply(res: cute.Tensor, a: cute.Tensor):
        x = a.load()
        res.store(cute.math.sqrt(x) + cute.math.sin(x) * cute.math.exp2(x) - cute.math.rsqrt(x, fastmath=True))

    a, res = np.array([4.0, 1.0, 2.25], np.float32), np.zeros(3, np.float32)
    apply(from_dlpack(res), from_dlpack(a))
    np.testing.assert_allclose(res, np.sqrt(a) + np.sin(a) * np.exp2(a) - 1 / np.sqrt(a), rtol=1e-5)


def test_reductions():
    @cute.jit
    def reduce(out: cute.Tensor, rows: cute.Tensor, a: cute.Tensor):
        x = a.load()
        out[0] = x.reduce(cute.ReductionOp.ADD, 0.0, reduction_profile=0)
        out[1] = x.reduce(cute.ReductionOp.MAX, float("-inf"), reduction_profile=0)
        rows.store(x.reduce(cute.ReductionOp.ADD, 1.0, reduction_profile=(None, 1)))

    a = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    out, rows = np.zeros(2, np.float32), np.zeros(2, np.float32)
    reduce(from_dlpack(out), from_dlpack(rows), from_dlpack(a))
    assert out.tolist() == [21, 6] and rows.tolist() == [7, 16]


def test_broadcasts():
    @cute.jit
    def broadcast(out: cute.Tensor, row: cute.Tensor, column: cute.Tensor):
        out.store(row.load() + column.load())
        out[0, 0] = row.load().broadcast_to((4, 3))[2, 1] + cute.full((2,), 10.0, cutlass.Float32)[1]

    row, column = np.array([[1, 2, 3]], np.float32), np.array([[10], [20], [30], [40]], np.float32)
    out = np.zeros((4, 3), np.float32)
    broadcast(from_dlpack(out), from_dlpack(row), from_dlpack(column))
    expected = row + column
    expected[0, 0] = 12
    assert (out == expected).all()


# -- layouts ---------------------------------------------------------------------------------------------------------


def test_the_layout_algebra_in_a_jit_function(capsys):
    @cute.jit
    def algebra():
        layout = cute.make_layout((2, (1, 6)), stride=(1, (6, 2)))
        print(cute.coalesce(layout))
        print(cute.coalesce(layout, target_profile=(1, 1)))
        print(cute.composition(cute.make_layout((6, 2), stride=(8, 2)), cute.make_layout((4, 3), stride=(3, 1))))
        print(cute.composition(cute.make_layout((10, 2), stride=(16, 4)), cute.make_layout((5, 4), stride=(1, 5))))
        a = cute.make_layout((4, 2, 3), stride=(2, 1, 8))
        print(cute.logical_divide(a, tiler=cute.make_layout(4, stride=2)))
        b = cute.make_layout((9, (4, 8)), stride=(59, (13, 1)))
        tiler = (cute.make_layout(3, stride=3), cute.make_layout((2, 4), stride=(1, 8)))
        print(cute.logical_divide(b, tiler=tiler))
        print(cute.zipped_divide(b, tiler=tiler))
        print(cute.tiled_divide(b, tiler=tiler))
        print(cute.flat_divide(b, tiler=tiler))
        c = cute.make_layout((2, 2), stride=(4, 1))
        print(cute.logical_product(c, tiler=cute.make_layout(6, stride=1)))
        d = cute.make_layout((2, 5), stride=(5, 1))
        print(cute.blocked_product(d, tiler=cute.make_layout((3, 4), stride=(1, 3))))
        print(cute.raked_product(d, tiler=cute.make_layout((3, 4), stride=(1, 3))))

    algebra()
    assert capsys.readouterr().out.split("\n")[:-1] == [
        "12:1",
        "(2,6):(1,2)",
        "((2,2),3):((24,2),8)",
        "(5,(2,2)):(16,(80,4))",
        "((2,2),(2,3)):((4,1),(2,8))",
        "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))",
        "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))",
        "((3,(2,4)),3,(2,2)):((177,(13,2)),59,(26,1))",
        "(3,(2,4),3,(2,2)):(177,(13,2),59,(26,1))",
        "((2,2),(2,3)):((4,1),(2,8))",
        "((2,3),(5,4)):((5,10),(1,30))",
        "((3,2),(4,5)):((10,5),(30,1))",
    ]


def test_run_time_layouts():
    @cute.jit
    def sizes(m: cutlass.Int32, n: cutlass.Int32):
        layout = cute.make_layout((m, n), stride=(n, 1))
        return cute.size(layout), layout((1, 2)), cute.cosize(layout), cute.size(layout, mode=[0])

    assert sizes(4, 6) == (24, 8, 24, 4)


# -- the element-wise kernels ----------------------------------------------------------------------------------------


@cute.kernel
def naive_kernel(gA: cute.Tensor, gB: cute.Tensor, gC: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    bdim, _, _ = cute.arch.block_dim()
    thread = bidx * bdim + tidx
    m, n = gA.shape
    ni, mi = thread % n, thread // n
    gC[mi, ni] = gA[mi, ni] + gB[mi, ni]


@cute.jit
def naive(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor):
    naive_kernel(mA, mB, mC).launch(grid=(cute.size(mA) // 64, 1, 1), block=(64, 1, 1))


@cute.kernel
def vector_kernel(gA: cute.Tensor, gB: cute.Tensor, gC: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    bdim, _, _ = cute.arch.block_dim()
    thread = bidx * bdim + tidx
    m, n = gA.shape[1]
    coord = (None, (thread // n, thread % n))
    gC[coord] = gA[coord].load() + gB[coord].load()


@cute.jit
def vectorised(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor):
    gA, gB, gC = (cute.zipped_divide(t, (1, 4)) for t in (mA, mB, mC))
    vector_kernel(gA, gB, gC).launch(grid=(cute.size(gC, mode=[1]) // 64, 1, 1), block=(64, 1, 1))


@cute.kernel
def tv_kernel(
    op: cutlass.Constexpr,
    gA: cute.Tensor,
    gB: cute.Tensor,
    gC: cute.Tensor,
    cC: cute.Tensor,
    shape: cute.Shape,
    tv_layout: cute.Layout,
):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    block = ((None, None), bidx)
    thrA, thrB, thrC, thrCrd = (cute.composition(t[block], tv_layout)[tidx, None] for t in (gA, gB, gC, cC))
    pred = cute.make_rmem_tensor(thrCrd.shape, cutlass.Boolean)
    for i in cutlass.range_constexpr(cute.size(pred)):
        pred[i] = cute.elem_less(thrCrd[i], shape)
    for i in cutlass.range_constexpr(cute.size(pred)):
        if pred[i]:
            thrC[i] = op(thrA[i], thrB[i])


@cute.jit
def elementwise(op: cutlass.Constexpr, mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor):
    thr_layout = cute.make_ordered_layout((4, 16), order=(1, 0))
    val_layout = cute.make_ordered_layout((2, 4), order=(1, 0))
    tiler_mn, tv_layout = cute.make_layout_tv(thr_layout, val_layout)
    gA, gB, gC = (cute.zipped_divide(t, tiler_mn) for t in (mA, mB, mC))
    cC = cute.zipped_divide(cute.make_identity_tensor(mC.shape), tiler=tiler_mn)
    tv_kernel(op, gA, gB, gC, cC, mC.shape, tv_layout).launch(
        grid=[cute.size(gC, mode=[1]), 1, 1], block=[cute.size(tv_layout, mode=[0]), 1, 1]
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int32], ids=lambda d: d.__name__)
@pytest.mark.parametrize("way", ["naive", "vectorised", "add", "mul"])
def test_elementwise(way, dtype):
    rng = np.random.default_rng(5)
    shape = (32, 128) if way in ("naive", "vectorised") else (19, 70)
    a, b = (rng.integers(-9, 9, shape).astype(dtype) for _ in range(2))
    c = np.zeros(shape, dtype)
    tensors = [from_dlpack(x, assumed_align=16) for x in (a, b, c)]
    if way in ("naive", "vectorised"):
        compiled = cute.compile({"naive": naive, "vectorised": vectorised}[way], *tensors)
        compiled(*tensors)
        assert (c == a + b).all()
    else:
        elementwise(getattr(operator, way), *tensors)
        assert (c == getattr(operator, way)(a, b)).all()
