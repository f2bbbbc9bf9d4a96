"""Rows by index (gather, scatter) and batches by pointer (mode "array")."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.covering import covering
from tests.gemm.test_hopper import product
from tests.gemm.test_reductions import AMPERE, plan
from tests.gemm.test_universal import memory
from tilewright.errors import ArgumentError
from tilewright.gemm import GemmUniversal, SplitK
from tilewright.gemm.host.indirect import IndirectOperands
from tilewright.lang.arguments.arrays import array_of

M, N, K = 72, 104, 320
ROWS, COLUMNS, RESULTS = 90, 70, 100
Arguments = GemmUniversal.Arguments
SEPARATE = plan((M, N, K), AMPERE, multiprocessors=40, occupancy=3, split=3, fragments=2)


def numbers(*shape: int, dtype: Any = np.float16, order: Any = "C", seed: int = 0) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).integers(-3, 4, shape), dtype, order=order)


def indices(below: int, count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, below, count).astype(np.int32)


def permuted(below: int, count: int) -> np.ndarray:
    return np.random.default_rng(5).permutation(below)[:count].astype(np.int32)


def by_index(dtype: Any = np.float16, orders: str = "CCC", **more: Any) -> Any:
    """Arguments whose rows are all told by index, and D as it must become."""
    a, b = numbers(ROWS, K, dtype=dtype, order=orders[0]), numbers(K, COLUMNS, dtype=dtype, order=orders[1], seed=1)
    c = numbers(RESULTS, N, dtype=dtype, order=orders[2], seed=2)
    d = np.full((RESULTS, N), 77, dtype, order=orders[2])
    ga, gb, sd = indices(ROWS, M), indices(COLUMNS, N, 1), permuted(RESULTS, M)
    given = {
        "A": a,
        "B": b,
        "C": c,
        "D": d,
        "beta": 2.0,
        "gather_A_indices": ga,
        "gather_B_indices": gb,
        "scatter_D_indices": sd,
    }
    expected = np.full((RESULTS, N), 77.0)
    expected[sd] = product(a[ga], b[:, gb]) + 2 * c[sd].astype(np.float64)
    return Arguments(**(given | more)), expected


def run(handle: GemmUniversal, arguments: Any) -> None:
    handle(arguments, memory(handle.workspace_size(arguments)))


ORDERS = ("CCC", "FFC", "CFF", "FCF")
WAYS = {
    "tensor cores": (AMPERE, "data_parallel"),
    "simt": ("simt_f32", "data_parallel"),
    "serial": (AMPERE, SplitK(3)),
    "parallel": (AMPERE, SplitK(3, "parallel")),
    "reduction blocks": (AMPERE, SEPARATE),
}


@pytest.mark.parametrize(
    ("way", "orders"),
    [
        *(("tensor cores", orders) for orders in ORDERS),
        *covering([*WAYS][1:], ORDERS, strength=1),
        *covering([*WAYS][1:], ORDERS[::-1], strength=1),
    ],
)
def test_gather_and_scatter(way: str, orders: str) -> None:
    kernel, how = WAYS[way]
    arguments, expected = by_index(np.float32 if kernel == "simt_f32" else np.float16, orders)
    run(GemmUniversal(kernel, how), arguments)
    np.testing.assert_array_equal(arguments.D.astype(np.float64), expected)


@pytest.mark.parametrize("left", ["gather_A_indices", "gather_B_indices", "scatter_D_indices"])
def test_matmul_of_rows_by_index(left: str) -> None:
    """All but one vector of indices."""
    a, b, d = numbers(ROWS, K), numbers(K, COLUMNS, seed=1), np.full((RESULTS, N), 77, np.float16)
    ga, gb, sd = indices(ROWS, M), indices(COLUMNS, N, 1), permuted(RESULTS, M)
    if left == "gather_A_indices":
        a, ga = a[:M], np.arange(M)
    elif left == "gather_B_indices":
        b = numbers(K, N, seed=1)
        gb = np.arange(N)
    else:
        d, sd = d[:M], np.arange(M)
    given = {"gather_A_indices": ga, "gather_B_indices": gb, "scatter_D_indices": sd}
    given.pop(left)
    GemmUniversal(decomposition="data_parallel")(Arguments(A=a, B=b, D=d, **given))
    np.testing.assert_array_equal(d[sd], product(a[ga], b[:, gb]).astype(np.float16))
    rest = np.setdiff1d(np.arange(len(d)), sd)
    assert (d[rest] == 77).all()


def test_gathered_problems_can_be_transposed_and_updated() -> None:
    a, b, d = numbers(ROWS, K), numbers(K, COLUMNS, seed=1), np.zeros((M, N), np.float16)
    ga, gb = indices(ROWS, M), indices(COLUMNS, N, 1)
    arguments = Arguments(A=a, B=b, D=d, gather_A_indices=ga, gather_B_indices=gb)
    handle = GemmUniversal(decomposition="data_parallel")
    handle(arguments.transposed_problem())
    np.testing.assert_array_equal(d, product(a[ga], b[:, gb]).astype(np.float16))
    handle.initialize(arguments)
    other = indices(ROWS, M, 9)
    handle.update(Arguments(A=a, B=b, D=d, gather_A_indices=other, gather_B_indices=gb))
    handle()
    np.testing.assert_array_equal(d, product(a[other], b[:, gb]).astype(np.float16))


def wrong(below: int, count: int, at: int, value: int) -> np.ndarray:
    found = np.arange(count, dtype=np.int32) % below
    found[at] = value
    return found


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gather_A_indices": wrong(ROWS, M, 3, ROWS)}, r"gather_A_indices names row 90; there are 90 \(0 to 89\)"),
        ({"gather_B_indices": wrong(COLUMNS, N, 3, -1)}, "gather_B_indices names row -1; there are 70"),
        ({"scatter_D_indices": wrong(RESULTS, M, 3, 4)}, "scatter_D_indices names row 4 twice"),
        ({"scatter_D_indices": np.arange(M - 1, dtype=np.int32)}, "scatter_D_indices names of out must be 72 x 104"),
        ({"gather_A_indices": np.arange(M)}, "gather_A_indices must be a vector of Int32, got Int64"),
        ({"gather_A_indices": np.zeros((M, 1), np.int32)}, "must be a vector of Int32"),
        ({"C": np.zeros((M, N), np.float16)}, "c must be 100 x 104 as out is, got 72 x 104"),
        ({"mode": "batched"}, "indices are for single products, not for mode 'batched'"),
    ],
)
def test_bad_indices_end_before_the_launch(changes: dict[str, Any], message: str) -> None:
    arguments, _ = by_index(**changes)
    handle = GemmUniversal("tensorop_f16", "data_parallel")
    assert not handle.can_implement(arguments)
    with pytest.raises(ArgumentError, match=message):
        handle(arguments)
    assert (arguments.D == 77).all()


def test_tma_reads_by_strides() -> None:
    arguments, _ = by_index()
    with pytest.raises(ArgumentError, match="not by index or pointer"):
        GemmUniversal("hopper_f16")(arguments)


@pytest.mark.parametrize("orders", ["CCC", "FFF"])
def test_lists_of_matrices(orders: str) -> None:
    batches = range(3)
    A = [numbers(M, K, order=orders[0], seed=i) for i in batches]
    B = [numbers(K, N, order=orders[1], seed=10 + i) for i in batches]
    C = [numbers(M, N, order=orders[2], seed=20 + i) for i in batches]
    D = [np.zeros((M, N), np.float16, order=orders[2]) for _ in batches]
    GemmUniversal()(Arguments(A=A, B=B, C=C, D=D, beta=3.0, mode="array", batch_count=3))
    for a, b, c, d in zip(A, B, C, D, strict=True):
        np.testing.assert_array_equal(d, (product(a, b) + 3 * c).astype(np.float16))


def test_lists_with_the_narrowest_alignment_of_all() -> None:
    """One matrix that begins at 2 bytes more makes all accesses narrow."""
    buffer = np.zeros(M * K + 1, np.float16)
    buffer[1:] = numbers(M * K)
    A, B = [numbers(M, K), buffer[1:].reshape(M, K)], [numbers(K, N, seed=1)] * 2
    D = [np.zeros((M, N), np.float16) for _ in A]
    GemmUniversal()(Arguments(A=A, B=B, D=D, mode="array"))
    for a, b, d in zip(A, B, D, strict=True):
        np.testing.assert_array_equal(d, product(a, b).astype(np.float16))


def test_bad_lists() -> None:
    a, b, d = numbers(M, K), numbers(K, N), np.zeros((M, N), np.float16)
    for given, message in (
        ({"A": a, "B": [b], "D": [d]}, "A must be a list of matrices in mode 'array', got ndarray"),
        ({"A": [a, a], "B": [b], "D": [d]}, r"the lists have different lengths: \[1, 2\]"),
        ({"A": [a], "B": [b], "C": [d, d], "D": [d]}, r"the lists have different lengths: \[1, 2\]"),
        ({"A": None, "B": [b], "D": [d]}, "A must be a list of matrices in mode 'array', got NoneType"),
        ({"A": [a, a[:, :64]], "B": [b, b], "D": [d, d.copy()]}, r"A\[1\] is \(72, 64\) with strides \(320, 1\)"),
        ({"A": [a, a], "B": [b, b], "D": [d, d]}, r"D\[1\] overlaps D\[0\]: each result wants memory of its own"),
        ({"A": [a], "B": [b], "D": [a[:, :N]]}, r"overlaps"),
        ({"A": [a], "B": [b], "D": [d], "batch_count": 2}, "batch_count is 2; the lists have 1 matrices each"),
    ):
        with pytest.raises(ArgumentError, match=message):
            GemmUniversal()(Arguments(**given, mode="array"))
    assert not d.any()


def test_rows_of_a_product_are_those_of_either_index() -> None:
    """Fewer rows than D has, whether A's rows are told by index or D's alone."""
    rows = array_of(indices(10, 3))
    for given in ({"gather_A": rows}, {"scatter_D": rows}):
        assert IndirectOperands(**given).extents(10, 7, 2) == (3, 7, 2)


@pytest.mark.gpu
@pytest.mark.parametrize("orders", ["CCC", "FCF"])
@pytest.mark.parametrize("how", ["data_parallel", SplitK(3), SplitK(3, "parallel")], ids=str)
def test_gather_and_scatter_on_a_gpu(how: Any, orders: str) -> None:
    torch = pytest.importorskip("torch")
    arguments, expected = by_index(np.float16, orders)

    def there(x: Any) -> Any:
        return torch.from_numpy(x.T).cuda().T if x.flags.f_contiguous and x.ndim == 2 else torch.from_numpy(x).cuda()

    names = ("A", "B", "C", "D", "gather_A_indices", "gather_B_indices", "scatter_D_indices")
    moved = Arguments(**{name: there(getattr(arguments, name)) for name in names}, beta=2.0)
    handle = GemmUniversal("tensorop_f16", how)
    handle(moved, torch.empty(handle.workspace_size(moved) + 16, dtype=torch.uint8, device="cuda"))
    np.testing.assert_array_equal(moved.D.cpu().numpy().astype(np.float64), expected)


@pytest.mark.gpu
def test_lists_of_matrices_on_a_gpu() -> None:
    torch = pytest.importorskip("torch")
    A, B = ([torch.from_numpy(numbers(*s, seed=i)).cuda() for i in range(5)] for s in ((M, K), (K, N)))
    D = [torch.zeros((M, N), dtype=torch.float16, device="cuda") for _ in A]
    GemmUniversal()(Arguments(A=A, B=B, D=D, mode="array"))
    for a, b, d in zip(A, B, D, strict=True):
        assert torch.equal(d.double(), a.double() @ b.double())
