"""The arrays of one call of :func:`tilewright.gemm.matmul`, as kernels take them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tilewright.gemm.epilogue.functions import EpilogueFunction
from tilewright.gemm.family.entry import KernelEntry
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.operators.arrays import Operands

if TYPE_CHECKING:
    from tilewright.gemm.operators.matmul import Request


class CallArrays(NamedTuple):
    """The arrays of a call as kernels take them. ``D`` is where a kernel writes: the ``result``, or a copy of it."""

    operands: Operands
    problem: Problem
    result: Any
    D: Any
    copied: bool
    c_copied: bool
    vectors: tuple[Any, ...]
    entries: list[KernelEntry]
    function: EpilogueFunction

    def may_be_repeated(self, call: Request) -> bool:
        """Whether a kernel was given the arrays of the call themselves."""
        if self.copied or self.c_copied:
            return False
        vectors = zip(call.given_vectors, self.vectors, strict=True)
        return same_addresses((call.a, self.operands.a), (call.b, self.operands.b), *vectors)


def same_addresses(*pairs: tuple[Any, Any]) -> bool:
    """Whether each second tensor begins where the first does."""
    return all(passed.data_ptr() == taken.data_ptr() for passed, taken in pairs)
