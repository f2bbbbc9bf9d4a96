"""Tensor memory as an iterator: what tensors of accumulators are made of, whose layouts count elements.

An address is a number of 32 bits, lane << 16 | column; elements are loaded and stored by ``tcgen05.ld`` and ``st``.
"""

from __future__ import annotations

from typing import Any

from tilewright.atoms.tensor_memory import elements_per_column
from tilewright.errors import ConstraintError
from tilewright.ir.core import Value
from tilewright.ir.types import Type
from tilewright.lang.numbers.numeric import Int32, Uint32, unwrap, wrap
from tilewright.lang.tensors import bounds
from tilewright.lang.tensors.address_space import AddressSpace


class TensorMemory:
    """The iterator: ``address`` is the run-time address (Int32), ``offset`` a static number of elements to be added."""

    __slots__ = ("address", "alignment", "dtype", "offset")
    memspace = AddressSpace.tmem
    swizzle = None

    def __init__(self, address: Any, dtype: Any, offset: int = 0, alignment: int = 16) -> None:
        elements_per_column(dtype.width)
        self.address, self.dtype, self.offset, self.alignment = address, dtype, offset, alignment

    value_type = element_type = property(lambda self: self.dtype)

    def __add__(self, offset: Any) -> TensorMemory:
        offset = unwrap(offset)
        if isinstance(offset, int):
            return TensorMemory(self.address, self.dtype, self.offset + offset, self.alignment) if offset else self
        return TensorMemory(self._moved(offset), self.dtype, self.offset, self.alignment)

    __radd__ = __add__

    def subview(self, offset: Any, *, loc: Any = None, ip: Any = None) -> TensorMemory:
        """The address ``offset`` columns on. Of elements of 8 bits: a pointer to bytes counts addresses, each of which
        is a column; for other types add columns to the address."""
        if self.dtype.width != 8:
            raise ConstraintError(
                f"{self}.subview: a pointer to bytes moves by columns, one to {self.dtype} does not: add them to "
                "the address, make_tmem_ptr(address + columns, dtype)"
            )
        return TensorMemory(self.address + offset, self.dtype, self.offset, self.alignment)

    def _moved(self, offset: Any) -> Any:
        """The address ``offset`` elements on: elements in a column count in its top bits."""
        shift = elements_per_column(self.dtype.width).bit_length() - 1
        if not shift:
            return self.address + Int32(offset)
        address = Uint32(self.address)
        element = ((address << shift) | (address >> (32 - shift))) + Uint32(offset)
        return Int32((element >> shift) | (element << (32 - shift)))

    @property
    def run_time_part(self) -> Value | None:
        """The address that the last run-time offset made."""
        return bounds.run_time_value(self.address)

    def value(self, extra: int = 0) -> Value:
        """The address ``extra`` elements on, as an operand of the IR."""
        offset = self.offset + extra
        return Int32(self._moved(offset) if offset else self.address).ir_value()

    ir_value = value

    def toint(self, *, loc: Any = None, ip: Any = None) -> Any:
        """The address (Int32)."""
        return wrap(self.value())

    def with_dtype(self, dtype: Any) -> TensorMemory:
        """The same address as one of other elements."""
        return TensorMemory(wrap(self.value()), dtype, 0, self.alignment)

    def load_place(self, place: Any) -> Value:
        raise ConstraintError(
            f"{self}: elements of tensor memory have no loads and stores of their own: copy them to registers with "
            "tcgen05.make_tmem_copy"
        )

    def store_place(self, place: Any, value: Any) -> None:
        self.load_place(place)

    # -- the protocol --------------------------------------------------------------------------------------------

    def __extract_mlir_values__(self) -> list[Value]:
        return [self.value()]

    def __new_from_mlir_values__(self, values: list[Value]) -> TensorMemory:
        return TensorMemory(wrap(values[0]), self.dtype, 0, self.alignment)

    def __get_mlir_types__(self) -> list[Type]:
        return [v.type for v in self.__extract_mlir_values__()]

    def __carry_key__(self) -> Any:
        return (self.dtype, self.alignment)

    def __str__(self) -> str:
        return f"ptr<{self.dtype.ir_type}, tmem, align<{self.alignment}>>"

    __repr__ = __str__
