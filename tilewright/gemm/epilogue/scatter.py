"""An epilogue function that adds rows of the sums to rows of a matrix by index: what experts give to the tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import Constexpr, Int32, Int64, cute, range_constexpr
from tilewright.errors import ArgumentError
from tilewright.gemm.epilogue.functions import OfWholeSums
from tilewright.gemm.epilogue.tile import EpilogueTile
from tilewright.lang.arguments.arrays import array_behind
from tilewright.lang.numbers.numeric import Float32


@dataclass(frozen=True)
class ScatterAdd(OfWholeSums):
    """matrix[rows[m], n] += scales[m] * acc[m, n], by atomic additions in any order: the last bits of the sums may
    differ from launch to launch. ``combine_rows`` adds in a fixed order. Rows whose index is not one of ``matrix`` are
    left out; acc stays. Without ``store_result`` the sums themselves are not written: ``matmul`` and ``grouped_matmul``
    give ``matrix``, take no ``out``, and the function is the last one.

    >>> from tilewright.gemm import matmul
    >>> a, matrix = np.ones((4, 16), np.float16), np.zeros((3, 16), np.float32)
    >>> rows, scales = np.array([2, 0, 2, -1], np.int32), np.array([1, 2, 3, 4], np.float32)
    >>> _ = matmul(a, np.ones((16, 16), np.float16), epilogue=ScatterAdd(matrix, rows, scales))
    >>> matrix[:, 0].tolist()  # 2 * 16; nothing; (1 + 3) * 16
    [32.0, 0.0, 64.0]
    """

    matrix: Any  # (T, N) of Float32, rows contiguous: a cute.Tensor or an array
    rows: Any  # (M,) of Int32
    scales: Any  # (M,) of Float32
    store_result: Constexpr = True

    @property
    def stores_result(self) -> bool:
        return bool(self.store_result)

    @property
    def vectors(self) -> list[tuple[Any, int]]:
        return [(self.rows, 0), (self.scales, 0)]

    @property
    def targets(self) -> list[Any]:
        """Matrices that are written, whose rows are not D's."""
        return [self.matrix]

    def check(self, m: int, n: int) -> None:
        """ArgumentError for arrays of another type, or a matrix with other columns than D."""
        for name, kind in (("matrix", Float32), ("rows", Int32), ("scales", Float32)):
            array = array_behind(getattr(self, name))
            if array is not None and array.dtype is not kind:
                raise ArgumentError(f"ScatterAdd: {name} is of {kind.__name__}, not of {array.dtype.__name__}")
        array = array_behind(self.matrix)
        if array is not None and (len(array.shape) != 2 or array.shape[1] != n):
            raise ArgumentError(f"ScatterAdd: matrix has {n} columns, as D has, not the shape {tuple(array.shape)}")

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> None:
        numbers, scales = (cute.make_rmem_tensor(acc.shape, x.element_type) for x in (self.rows, self.scales))
        numbers.store(tile.column(self.rows))
        scales.store(tile.column(self.scales))
        last = cute.size(self.matrix, mode=[0])
        for i in range_constexpr(cute.size(acc)):
            row = numbers[i]
            if cute.elem_less(tile.coordinates[i], tile.extent) & (row >= 0) & (row < last):
                _, n = tile.of_user(tile.coordinates[i])
                place = self.matrix.iterator + (row.to(Int64) * self.matrix.stride[0] + n * self.matrix.stride[1])
                cute.arch.atomic_add(place, acc[i].to(Float32) * scales[i], sem="relaxed", scope="gpu")
