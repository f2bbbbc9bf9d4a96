"""Unaligned matrices that are copied to aligned rows for a Hopper kernel."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.gemm.test_gemm import MACHINES
from tilewright import sim
from tilewright.errors import ArgumentError
from tilewright.gemm import Bias, GemmUniversal, gemm
from tilewright.gemm.access import VECTOR, AccessRequirement
from tilewright.gemm.family.accesses import operand_accesses
from tilewright.gemm.host import plan
from tilewright.gemm.host.packing import Packing
from tilewright.gemm.host.problem import Problem


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies count nothing, so that products small enough for a test take them."""
    monkeypatch.setattr(plan, "MUCH_FASTER", 1e9)


@pytest.fixture(autouse=True)
def chosen_as_on_a_gpu() -> Iterator[None]:
    with sim.options(sizes="gpu"):
        yield


def matrix(rows: int, columns: int, order: str, seed: int = 0) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).integers(-3, 4, (rows, columns)), np.float16, order=order)


def exact(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("mnk", "orders", "packed"),
    [
        ((70, 66, 131), "CFC", ("A", "B", "D")),
        ((64, 72, 65), "CFC", ("A", "B")),
        ((96, 33, 72), "CCC", ("B", "D")),
        ((64, 33, 72), "CFC", ("D",)),
        ((35, 64, 72), "CFF", ("D",)),
        ((63, 64, 71), "FCC", ("A",)),
        ((1, 1, 1), "CFC", ("D",)),  # one element is aligned as it lies
    ],
    ids=str,
)
def test_products_are_exact(always, mnk, orders, packed, machine):
    m, n, k = mnk
    a, b = matrix(m, k, orders[0]), matrix(k, n, orders[1], 1)
    out = np.full((m, n), np.nan, np.float16, order=orders[2])
    report = gemm(a, b, out=out, machine=machine)
    assert report.kernel == "hopper_f16"
    assert machine != "cpu" or report.packed == packed
    np.testing.assert_array_equal(out, exact(a, b))


@pytest.mark.parametrize("machine", MACHINES)
def test_c_goes_where_d_goes(always, machine):
    a, b, c = matrix(40, 72, "C"), matrix(72, 50, "F", 1), matrix(40, 50, "C", 2)
    report = gemm(a, b, c, alpha=2, beta=-1, machine=machine)
    assert set(report.packed) == {"C", "D"}
    np.testing.assert_array_equal(report.d, 2 * exact(a, b) - c)


@pytest.mark.parametrize("machine", MACHINES)
def test_batches_and_views(always, machine):
    """Rows in the middle of longer ones, three products at once; what lies beside D stays."""
    a, b = (np.stack([matrix(60, 80, "C", 3 * i + s) for i in range(3)]) for s in (0, 1))
    out = np.full((3, 60, 80), 7, np.float16)
    left, right = a[:, :, 3:70], b[:, :50, 1:68].transpose(0, 2, 1)
    gemm(left, right, out=out[:, :, 5:55], machine=machine)
    np.testing.assert_array_equal(out[:, :, 5:55], left.astype(np.float64) @ right.astype(np.float64))
    assert (out[:, :, :5] == 7).all()
    assert (out[:, :, 55:] == 7).all()


@pytest.mark.parametrize(("unaligned", "copied"), [("", None), ("A", ("A",)), ("C", ("C", "D")), ("D", ("C", "D"))])
def test_c_and_d_are_copied_together(unaligned, copied):
    """A kernel that writes whole vectors of rows has rows of one length in both."""
    shapes = {"A": (16, 64), "B": (64, 24), "C": (16, 24), "D": (16, 24)}
    made = {
        name: np.zeros((m, n + 1), np.float16)[:, :n] if name == unaligned else matrix(m, n, "C")
        for name, (m, n) in shapes.items()
    }
    problem = Problem.of(*made.values())
    whole = AccessRequirement("TMA", step=VECTOR, whole=True, least_stride=1)
    packing = Packing.needed(problem, operand_accesses(problem, whole))
    assert (packing and packing.names) == copied


def test_small_products_are_not_copied():
    assert gemm(matrix(33, 65, "C"), matrix(65, 31, "F")).packed == ()


def test_a_function_of_the_users_sees_the_matrix_as_it_is(always):
    """It may read vectors as long as D's rows, so D is not made longer for it."""
    a, b, bias = matrix(40, 67, "C"), matrix(67, 50, "F", 1), np.arange(50, dtype=np.float16)
    report = gemm(a, b, epilogue=Bias(bias))
    assert report.packed == ()
    np.testing.assert_array_equal(report.d, exact(a, b) + bias)


def test_the_workspace_holds_the_copies(always):
    a, b, d = matrix(40, 67, "C"), matrix(67, 50, "F", 1), np.zeros((40, 50), np.float16)
    handle = GemmUniversal()
    arguments = GemmUniversal.Arguments(A=a, B=b, D=d)
    size = handle.workspace_size(arguments)
    assert size >= 2 * (40 * 128 + 50 * 128 + 40 * 64)
    with pytest.raises(ArgumentError, match="workspace"):
        handle.initialize(arguments, np.zeros(size - 1, np.uint8))
    workspace = np.zeros(size + 64, np.uint8)
    begin = -workspace.ctypes.data % 64
    handle.initialize(arguments, workspace[begin : begin + size])
    for _ in range(2):
        d.fill(0)
        handle.run()
        np.testing.assert_array_equal(d, exact(a, b))
