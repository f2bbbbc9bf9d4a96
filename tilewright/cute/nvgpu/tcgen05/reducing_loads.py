"""``tcgen05.ld.red``: loads from tensor memory that also give the greatest or least of what a thread loads."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from tilewright.atoms.tensor_memory_move import TmemLoad
from tilewright.errors import ConstraintError
from tilewright.lang.device import single
from tilewright.lang.numbers.numeric import Float32, Int32, Uint32
from tilewright.lang.tensors.select import max as greatest
from tilewright.lang.tensors.select import min as least
from tilewright.lang.tensors.tensor import Tensor
from tilewright.lang.tensors.tensor_ssa import where
from tilewright.layout import make_layout, size
from tilewright.tiled.staged_copy import copy, split_modes


class TmemLoadRedOp(Enum):
    """What is made of the numbers that a thread loads: the greatest, the least, or that of their magnitudes."""

    MAX = "max"
    MIN = "min"
    MAXABS = "max.abs"
    MINABS = "min.abs"


@dataclass(frozen=True)
class _LdRed:
    """The common part. ``cute.copy(atom, source, (registers, reduced))``: ``reduced`` has one number for each
    instruction, in the order of their repetitions. Of Float32, NaN counts only with ``nan``; also of Int32 and Uint32.

    It is ``tcgen05.ld`` and operations on the registers, so it runs wherever that does; the instruction itself is
    one of sm_103 and sm_110."""

    repeat: Any
    red_op: TmemLoadRedOp = TmemLoadRedOp.MAX
    nan: bool = False

    _shape: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.red_op, TmemLoadRedOp):
            raise ConstraintError(f"{type(self).__name__}: red_op is a TmemLoadRedOp, not {self.red_op!r}")
        if self.repeat.value == 1:
            raise ConstraintError(f"{type(self).__name__}: x2 to x128; one number has nothing to be compared with")
        self.copy_instruction(None)

    def copy_instruction(self, value_type: Any, num_bits: int = 0) -> TmemLoad:
        return TmemLoad(self._shape, self.repeat.value)

    def stage_reduction(self, atom: Any, src: Tensor, dst: Sequence[Tensor]) -> None:
        """The copy, then the number of each instruction."""
        loaded, reduced = dst
        _, rest_source, values, rest = split_modes(atom, src, loaded)
        if size(reduced.linear) != size(rest_source):
            raise ConstraintError(
                f"{type(self).__name__}: {reduced.linear} has not one number for each of {size(rest_source)} loads"
            )
        kind = loaded.element_type
        if kind not in (Float32, Int32, Uint32) or reduced.element_type is not kind:
            raise ConstraintError(
                f"{type(self).__name__}: both tensors are of Float32, Int32 or Uint32, not {kind} and "
                f"{reduced.element_type}"
            )
        copy(atom, src, loaded)
        parts = loaded.with_layout(make_layout(values, rest))
        for i in range(int(size(rest))):
            numbers: list[Any] = [parts[v, i] for v in range(int(size(values)))]
            reduced[i] = functools.reduce(self._joined, map(self._magnitude, numbers))

    def _magnitude(self, x: Any) -> Any:
        return where(x < 0, -x, x) if self.red_op.value.endswith("abs") else x

    def _joined(self, x: Any, y: Any) -> Any:
        most = self.red_op.value.startswith("max")
        if not isinstance(x, Float32):
            return (greatest if most else least)(x, y)
        extreme = single.fmax(x, y) if most else -single.fmax(-x, -y)
        return where((x != x) | (y != y), x + y, extreme) if self.nan else extreme


@dataclass(frozen=True)
class LdRed32x32bOp(_LdRed):
    """``tcgen05.ld.red`` of shape .32x32b: x2 to x128.

    >>> from tilewright.cute.nvgpu.tcgen05 import Repetition
    >>> LdRed32x32bOp(Repetition.x8).copy_instruction(None)
    SM100_TMEM_LOAD_32x32b8x
    """

    _shape = "32x32b"


@dataclass(frozen=True)
class LdRed16x32bx2Op(_LdRed):
    """``tcgen05.ld.red`` of shape .16x32bx2: x2 to x128.

    >>> from tilewright.cute.nvgpu.tcgen05 import Repetition
    >>> LdRed16x32bx2Op(Repetition.x4, TmemLoadRedOp.MIN).red_op.value
    'min'
    """

    _shape = "16x32bx2"
