"""Operands with their modes permuted: what CUTLASS reads by ``PermuteALayout`` and ``PermuteBLayout``, and its
interleaved layouts."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.gemm.epilogue.permute import check_order, modes_of_matrix
from tilewright.gemm.operators.arrays import framework, namespace, view_of


@dataclass(frozen=True)
class PermutedOperand:
    """A matrix as an array of more modes, in another order: an operand ``a`` or ``b`` of ``matmul``.

    The rows of the matrix are cut into the first ``rows`` modes, the slowest first, its columns into the others, and
    mode i of ``array`` is mode ``order[i]`` of these, as the epilogue ``Permuted`` writes a result. Order (0, 2, 1, 3)
    reads heads (batch, H, S, depth) as rows (batch, S) and columns (H, depth), CUTLASS's
    ``Tensor4DPermute0213RowMajor``.

    Kernels read matrices at one stride for each mode. Where the modes of the rows, and those of the columns, are one
    stride together, nothing is moved (:meth:`view`); other arrays are copied before each call, by the array's
    framework, which has the gradient.

    >>> from tilewright.gemm import matmul
    >>> heads = np.arange(2 * 4 * 5 * 8).reshape(2, 4, 5, 8).astype(np.float32)
    >>> tokens = matmul(PermutedOperand(heads), np.eye(32, dtype=np.float32))
    >>> bool((tokens.reshape(2, 5, 4, 8) == heads.transpose(0, 2, 1, 3)).all())
    True
    """

    array: Any
    order: tuple[int, ...] = (0, 2, 1, 3)
    rows: int = 2

    def matrix(self) -> Any:
        """The operand as an array of two modes: of the same memory where its strides allow that, else a copy."""
        modes, shape = self.modes()
        return modes.reshape(shape)

    def view(self) -> Any:
        """The same without a copy, for handles whose operands are read at each launch (``GemmUniversal``).
        ArgumentError where the strides of the array do not allow it.

        >>> ColumnMajorInterleaved(np.zeros((1, 64, 32), np.int8)).view().shape
        (64, 32)
        """
        modes, shape = self.modes()
        view = view_of(modes, shape)
        if view is None:
            raise ArgumentError(
                f"PermutedOperand: an array of shape {tuple(self.array.shape)} in order {self.order} is no matrix with "
                "one stride for its rows and one for its columns: copy it (matrix()), again whenever it changes"
            )
        return view

    def modes(self) -> tuple[Any, tuple[int, int]]:
        """The array with its modes in the matrix's order, and the matrix's extents."""
        framework(self.array, "the array of a PermutedOperand")
        check_order("PermutedOperand", self.order, self.rows)
        shape = tuple(self.array.shape)
        if len(shape) != len(self.order):
            raise ArgumentError(f"PermutedOperand: array has {len(self.order)} modes, as order has, not shape {shape}")
        whole, places = modes_of_matrix(shape, self.order), [self.order.index(mode) for mode in range(len(shape))]
        xp = namespace(self.array)
        modes = xp.permute(self.array, places) if framework(self.array) == "torch" else xp.transpose(self.array, places)
        return modes, (prod(whole[: self.rows]), prod(whole[self.rows :]))


class ColumnMajorInterleaved(PermutedOperand):
    """CUTLASS's ``ColumnMajorInterleaved<k>``: an array (columns / k, rows, k), each k neighbouring columns in the
    order of the rows; k is the last extent. Results are written so by ``Permuted(array, (1, 0, 2), 1)``.

    >>> from tilewright.gemm import matmul
    >>> a = np.arange(16 * 64).reshape(16, 64).astype(np.float32)
    >>> interleaved = np.ascontiguousarray(a.reshape(16, 2, 32).transpose(1, 0, 2))
    >>> bool((matmul(ColumnMajorInterleaved(interleaved), np.eye(64, dtype=np.float32)) == a).all())
    True
    """

    def __init__(self, array: Any) -> None:
        super().__init__(array, (1, 0, 2), 1)


class RowMajorInterleaved(PermutedOperand):
    """CUTLASS's ``RowMajorInterleaved<k>``: an array (rows / k, columns, k), each k neighbouring rows in the order of
    the columns. Results are written so by ``Permuted(array, (0, 2, 1), 2)``.

    >>> RowMajorInterleaved(np.arange(2 * 3 * 4).reshape(2, 3, 4)).matrix()[:, 0].tolist()
    [0, 1, 2, 3, 12, 13, 14, 15]
    """

    def __init__(self, array: Any) -> None:
        super().__init__(array, (0, 2, 1), 2)


def as_arrays(*operands: Any) -> tuple[Any, ...]:
    """The operands, those that are permuted as matrices."""
    return tuple(x.matrix() if isinstance(x, PermutedOperand) else x for x in operands)
