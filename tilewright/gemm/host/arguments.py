"""The arguments of :class:`GemmUniversal`: operands, scales, mode."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.gemm.epilogue.functions import EpilogueFunction
from tilewright.gemm.schedule.streamk_blocks import positive


class GemmUniversalMode(Enum):
    """The names are CUTLASS's.

    ``kGemm``: one product; ``batch_count`` > 1 splits K into that many parts. ``kGemmSplitKParallel``: the same with an
    output of its own for each part, and a kernel that adds them up. ``kBatched``: a stack of products, (L, M, K) and so
    on. ``kArray``: lists of matrices, anywhere in memory, of one shape and one pair of strides.
    """

    kGemm = "gemm"
    kGemmSplitKParallel = "gemm_split_k_parallel"
    kBatched = "batched"
    kArray = "array"


@dataclass(frozen=True)
class GemmUniversalArguments:
    """D = alpha * A B + beta * C, or what ``epilogue`` makes of the sums.

    A is (M, K), B (K, N), C and D (M, N), in any strides: row-major, column-major, with gaps. In mode ``kBatched`` each
    has a leading mode of L; in mode ``kArray`` each is a list of L matrices.

    Args:
        C: what beta multiplies; may be D itself.
        alpha, beta: numbers; or arrays on the device of one number, or of one for each row of D, which launches read:
            they may change between launches.
        mode: a :class:`GemmUniversalMode`, or its value.
        batch_count: parts of K (``kGemm``, ``kGemmSplitKParallel``), or the number of products (checked against the
            operands'; 1 leaves it to them).
        gather_A_indices, gather_B_indices: Int32 vectors: row m of the product's A is row ``gather_A_indices[m]`` of A,
            column n of its B is column ``gather_B_indices[n]`` of B. M and N are then their lengths.
        scatter_D_indices: an Int32 vector of M different numbers: row m of the result, and of C, is row
            ``scatter_D_indices[m]`` of D and C.
        avail_sms: multiprocessors that Stream-K balances over, at most those of the GPU; -1: all, 1: none, each tile
            has a block. Refused with decompositions that are not Stream-K's ("auto" then is).
    """

    A: Any
    B: Any
    D: Any
    C: Any = None
    alpha: Any = 1.0
    beta: Any = 0.0
    mode: GemmUniversalMode | str = GemmUniversalMode.kGemm
    batch_count: int = 1
    epilogue: EpilogueFunction | None = None
    gather_A_indices: Any = None
    gather_B_indices: Any = None
    scatter_D_indices: Any = None
    avail_sms: int = -1

    def __post_init__(self) -> None:
        """Check the mode and counts, and in mode "array" that the lists are of one length."""
        try:
            mode = GemmUniversalMode(self.mode)
        except ValueError:
            choices = ", ".join(one.value for one in GemmUniversalMode)
            raise ArgumentError(f"mode must be one of {choices}, got {self.mode!r}") from None
        object.__setattr__(self, "mode", mode)
        positive("batch_count", self.batch_count)
        if self.avail_sms != -1:
            positive("avail_sms", self.avail_sms, "-1 stands for all")
        if mode is GemmUniversalMode.kArray:
            lengths = set()
            for name in ("A", "B", "C", "D"):
                value = getattr(self, name)
                if value is None and name == "C":
                    continue
                if not isinstance(value, Sequence) or not value:
                    type_name = type(value).__name__
                    raise ArgumentError(f"{name} must be a list of matrices in mode 'array', got {type_name}")
                lengths.add(len(value))
            if len(lengths) > 1:
                raise ArgumentError(f"the lists have different lengths: {sorted(lengths)}")

    @property
    def indices(self) -> dict[str, Any]:
        """The vectors of indices that are given, by name."""
        names = ("gather_A_indices", "gather_B_indices", "scatter_D_indices")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def transposed_problem(self) -> GemmUniversalArguments:
        """Arguments for D^T = alpha * B^T A^T + beta * C^T, of the same memory."""
        if self.scatter_D_indices is not None:
            raise ArgumentError("the transposed problem would scatter columns of D: scatter_D_indices names rows")
        if self.epilogue is not None:
            raise ArgumentError("an epilogue of your own is written for rows and columns of D: transpose it yourself")
        if any(math.prod(getattr(x, "shape", ())) > 1 for x in (self.alpha, self.beta)):
            raise ArgumentError("alpha and beta for each row of D would be those of its columns: give one number")
        return replace(
            self,
            A=_transposed(self.B),
            B=_transposed(self.A),
            C=_transposed(self.C),
            D=_transposed(self.D),
            gather_A_indices=self.gather_B_indices,
            gather_B_indices=self.gather_A_indices,
        )


def _transposed(operand: Any) -> Any:
    if operand is None:
        return None
    if isinstance(operand, list | tuple):
        return [_transposed(matrix) for matrix in operand]
    return operand.swapaxes(-1, -2)


@dataclass(frozen=True)
class Status:
    """What :meth:`GemmUniversal.can_implement` found: true where the kernel can do it.

    ``code`` is CUTLASS's: ``kSuccess``, ``kErrorMisalignedOperand`` (then ``operand``, and the elements of one access
    that the kernel ``needed`` and that its memory allows, ``found``), or ``kErrorInvalidProblem``.
    """

    code: str
    message: str = ""
    operand: str | None = None
    needed: int | None = None
    found: int | None = None

    def __bool__(self) -> bool:
        return self.code == "kSuccess"


SUCCESS = Status("kSuccess")
