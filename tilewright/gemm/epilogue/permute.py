"""An epilogue function that writes D with its modes permuted: heads of attention, from a projection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tilewright import Constexpr, cute
from tilewright.errors import ArgumentError
from tilewright.gemm.epilogue.functions import OfWholeSums
from tilewright.gemm.epilogue.tile import EpilogueTile
from tilewright.lang.arguments.arrays import array_behind


@dataclass(frozen=True)
class Permuted(OfWholeSums):
    """D as an array of more modes, in another order: the rows of D are cut into the first ``rows`` modes, the slowest
    first, its columns into the others, and mode i of ``matrix`` is mode ``order[i]`` of these. D itself is not written:
    ``matmul`` gives ``matrix``, takes no ``out``, and the function is the last one.

    CUTLASS's ``Tensor4DPermute0213RowMajor<S, H>`` is order (0, 2, 1, 3): rows (batch, S) and columns (H, depth) become
    (batch, H, S, depth). ``Tensor5DPermute20314RowMajor`` is (2, 0, 3, 1, 4). A permutation is a layout, so nothing is
    moved: elements are stored where they belong.

    >>> from tilewright.gemm import matmul
    >>> tokens, weight = np.ones((2 * 5, 16), np.float16), np.repeat(np.eye(4, 16, dtype=np.float16), 8, 0).T
    >>> heads = matmul(tokens, weight, epilogue=Permuted(np.empty((2, 4, 5, 8), np.float16), (0, 2, 1, 3)))
    >>> heads.shape, heads[1, 3, 2].tolist()
    ((2, 4, 5, 8), [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    """

    matrix: Any = None  # of any type and strides, a cute.Tensor or an array; refused where it is missing
    order: Constexpr = (0, 2, 1, 3)
    rows: Constexpr = 2

    stores_result = False
    keeps_modes = True
    """The array is not one of rows and columns."""

    @property
    def targets(self) -> list[Any]:
        return [self.matrix]

    def check(self, m: int, n: int) -> None:
        """ArgumentError for an array that D's elements do not fill, and for what is no order of its modes."""
        array = array_behind(self.matrix)
        check_order("Permuted", self.order, self.rows)
        if self.matrix is None:
            raise ArgumentError("Permuted: matrix, the array that is written, is missing")
        if array is None:
            return
        modes = len(self.order)
        if len(array.shape) != modes:
            raise ArgumentError(f"Permuted: matrix has {modes} modes, as order has, not the shape {tuple(array.shape)}")
        whole = modes_of_matrix(array.shape, self.order)
        if (prod(whole[: self.rows]), prod(whole[self.rows :])) != (m, n):
            raise ArgumentError(
                f"Permuted: D is {m} x {n}, and matrix of shape {tuple(array.shape)} in order {self.order} stands for "
                f"{tuple(whole[: self.rows])} rows and {tuple(whole[self.rows :])} columns"
            )

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> None:
        tile.write(self.of_rows_and_columns(), acc.load())

    def of_rows_and_columns(self) -> Any:
        """``matrix`` as (M, N): modes of modes, the fastest first."""
        shape, stride = self.matrix.shape, self.matrix.stride
        places = [self.order.index(mode) for mode in range(len(self.order))]
        modes = places[: self.rows][::-1], places[self.rows :][::-1]
        nested_shape, nested_stride = (
            tuple(tuple(x[place] for place in mode) for mode in modes) for x in (shape, stride)
        )
        return cute.make_tensor(self.matrix.iterator, cute.make_layout(nested_shape, stride=nested_stride))


def check_order(name: str, order: Any, rows: Any) -> None:
    """ArgumentError for what is no order of the modes of a matrix's rows and columns."""
    modes = len(order) if isinstance(order, tuple) else 0
    if not modes or sorted(order) != list(range(modes)) or rows not in range(1, modes):
        raise ArgumentError(
            f"{name}: order is a tuple of the modes 0, 1, ... in another order, the first `rows` of which the matrix's "
            f"rows are cut into; not order {order!r} with rows {rows!r}"
        )


def modes_of_matrix(shape: Sequence[int], order: tuple[int, ...]) -> list[int]:
    """The extents of an array of permuted modes in the order of the matrix's.

    >>> modes_of_matrix((2, 4, 5, 8), (0, 2, 1, 3))
    [2, 5, 4, 8]
    """
    return [shape[order.index(mode)] for mode in range(len(order))]
