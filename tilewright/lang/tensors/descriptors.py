"""Matrix descriptors as an iterator: what tensors of wgmma operands in shared memory are made of.

A tensor of descriptors has one element for each tile that an instruction reads; its layout counts units of 16 bytes,
which are added to the descriptor's low word. Its elements cannot be loaded: they are operands of ``cute.gemm``.
"""

from __future__ import annotations

from typing import Any

from tilewright.errors import ConstraintError
from tilewright.ir.core import Value
from tilewright.ir.types import Type
from tilewright.lang.numbers.numeric import Int32, unwrap, wrap
from tilewright.lang.tensors import bounds
from tilewright.lang.tensors.pointer import AddressSpace


class Descriptors:
    """The iterator: ``low`` is the run-time low word (Int32) of the first descriptor, ``offset`` a static number of
    units to be added; ``high`` is the high word, which all share. ``dtype`` is the type of the operand's elements.
    ``tile``: the major and the rows of what one descriptor names, where it was made without an instruction to fit
    (``make_umma_smem_desc``); None where it was made for one."""

    __slots__ = ("dtype", "high", "low", "offset", "tile")
    memspace = AddressSpace.smem
    swizzle = None
    alignment = 16

    def __init__(self, low: Any, high: int, dtype: Any, offset: int = 0, tile: tuple[str, int] | None = None) -> None:
        self.low, self.high, self.dtype, self.offset, self.tile = low, high, dtype, offset, tile

    value_type = element_type = property(lambda self: self.dtype)

    def __add__(self, units: Any) -> Descriptors:
        units = unwrap(units)
        if isinstance(units, int):
            return Descriptors(self.low, self.high, self.dtype, self.offset + units, self.tile) if units else self
        return Descriptors(self.low + Int32(units), self.high, self.dtype, self.offset, self.tile)

    @property
    def run_time_part(self) -> Value | None:
        """The low word that the last run-time offset made."""
        return bounds.run_time_value(self.low)

    def value(self, extra: int = 0) -> Value:
        raise ConstraintError(
            f"{self} names tiles for an MMA and has no elements to load, store or copy: use the partition that "
            "make_fragment_A or make_fragment_B was given"
        )

    # -- the protocol --------------------------------------------------------------------------------------------

    def __extract_mlir_values__(self) -> list[Value]:
        return [Int32(self.low + self.offset).ir_value()]

    def __new_from_mlir_values__(self, values: list[Value]) -> Descriptors:
        return Descriptors(wrap(values[0]), self.high, self.dtype, tile=self.tile)

    def __get_mlir_types__(self) -> list[Type]:
        return [v.type for v in self.__extract_mlir_values__()]

    def __carry_key__(self) -> Any:
        return (self.dtype, self.high, self.tile)

    def __str__(self) -> str:
        return f"descriptor<{self.dtype.ir_type}, smem, {self.high:#x}>"

    __repr__ = __str__
