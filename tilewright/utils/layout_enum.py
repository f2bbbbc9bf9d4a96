"""The major order of a matrix."""

from __future__ import annotations

from enum import Enum
from typing import Any

from tilewright.errors import ArgumentError

__all__ = ["LayoutEnum"]


class LayoutEnum(Enum):
    """``ROW_MAJOR``: the second mode has stride 1; ``COL_MAJOR``: the first has.

    >>> from tilewright.cute.runtime import from_dlpack
    >>> LayoutEnum.from_tensor(from_dlpack(np.zeros((8, 4)))), LayoutEnum.ROW_MAJOR.is_k_major_a()
    (<LayoutEnum.ROW_MAJOR: 'row_major'>, True)
    """

    ROW_MAJOR = "row_major"
    COL_MAJOR = "col_major"

    @staticmethod
    def from_tensor(tensor: Any) -> LayoutEnum:
        """The order of a tensor (M, K) or (M, K, batch).

        Raises ArgumentError when neither of the first two modes has the static stride 1.
        """
        strides = tensor.layout.stride
        if isinstance(strides, tuple) and len(strides) >= 2:
            units = [mode for mode in (0, 1) if isinstance(strides[mode], int) and strides[mode] == 1]
            if units:
                shape = tensor.layout.shape
                longer = [mode for mode in units if not (isinstance(shape[mode], int) and shape[mode] == 1)]
                return (LayoutEnum.COL_MAJOR, LayoutEnum.ROW_MAJOR)[(longer or units[::-1])[0]]
        raise ArgumentError(f"LayoutEnum.from_tensor: neither of the first two modes of {tensor.layout} has stride 1")

    def mma_major_mode(self) -> Any:
        """The operand major mode for a matrix whose second mode is K."""
        from tilewright.cute.nvgpu import OperandMajorMode

        return OperandMajorMode.K if self is LayoutEnum.ROW_MAJOR else OperandMajorMode.MN

    sm90_mma_major_mode = mma_major_mode

    def is_k_major_a(self) -> bool:
        return self is LayoutEnum.ROW_MAJOR

    def is_m_major_a(self) -> bool:
        return self is LayoutEnum.COL_MAJOR

    def is_k_major_b(self) -> bool:
        return self is LayoutEnum.ROW_MAJOR

    def is_n_major_b(self) -> bool:
        return self is LayoutEnum.COL_MAJOR

    def is_n_major_c(self) -> bool:
        return self is LayoutEnum.ROW_MAJOR

    def is_m_major_c(self) -> bool:
        return self is LayoutEnum.COL_MAJOR
