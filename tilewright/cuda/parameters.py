"""Packing a kernel's arguments into the memory that a launch copies them from."""

from __future__ import annotations

import copy
import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.cuda.tensormaps import encoded
from tilewright.errors import ArgumentError
from tilewright.ir.core import Value
from tilewright.ir.tensormap import TENSOR_MAP
from tilewright.ir.types import WIDE, PtrType, ScalarType, Type, VecType

VECTOR_ALIGNMENT = 64


class Parameters:
    """One kernel's arguments in memory: a buffer that holds them one after another, and ``pointers`` to each.

    The driver copies every argument from where its pointer says to where the kernel expects it. A ready-made block
    would have to imitate the compiler's own offsets, which are not those of a C struct once a parameter is aligned to
    more than the constant bank's base is. ``pack(values)`` takes a Python number for a scalar, an address for a pointer
    and bytes for a vector parameter.
    """

    def __init__(self, name: str, params: Sequence[Value]) -> None:
        self.name = name
        self.params = list(params)
        self.converters: list[tuple[int, Callable[[Any], Any]]] = []
        layout, offsets, size = "<", [], 0
        for position, param in enumerate(params):
            code, width = _place(param.type)
            # The driver reads each argument at its own address: it has to be aligned there, to 8 bytes at most.
            pad = -size % min(width, 8)
            layout += f"{pad}x{code}" if pad else code
            offsets.append(size + pad)
            size += pad + width
            if (convert := _converter(param.type)) is not None:
                self.converters.append((position, convert))
        self.struct = struct.Struct(layout)
        self.offsets, self.size = offsets, size
        self.only_addresses = bool(params) and all(isinstance(param.type, PtrType) for param in params)
        self._allocate()

    def _allocate(self) -> None:
        self.buffer = ctypes.create_string_buffer(max(self.size, 1))
        # Addresses of the buffer: a copy needs pointers of its own, so they are made again.
        start = ctypes.addressof(self.buffer)
        self._array = (ctypes.c_void_p * max(len(self.offsets), 1))(*(start + offset for offset in self.offsets))
        self.pointers = ctypes.c_void_p(ctypes.addressof(self._array))
        self._addresses = (ctypes.c_uint64 * len(self.params)).from_buffer(self.buffer) if self.only_addresses else None

    def copy(self) -> Parameters:
        """The same parameters with memory of their own."""
        other = copy.copy(self)
        other._allocate()
        return other

    def pack(self, values: Sequence[Any]) -> None:
        """Write the arguments; ArgumentError names the one that does not fit its parameter."""
        if self._addresses is not None:  # the common case, in half the time
            self._addresses[:] = values  # type: ignore[call-overload]  # ctypes arrays take tuples
            return
        if self.converters:
            values = list(values)
            for position, convert in self.converters:
                values[position] = convert(values[position])
        try:
            self.struct.pack_into(self.buffer, 0, *values)
        except (struct.error, OverflowError, TypeError) as error:
            raise self._misfit(values, error) from error

    def _misfit(self, values: Sequence[Any], error: Exception) -> ArgumentError:
        # Packed one by one only to find the argument that does not fit.
        for param, value in zip(self.params, values, strict=True):
            try:
                struct.pack("<" + _place(param.type)[0], value)
            except (struct.error, OverflowError, TypeError) as reason:
                return ArgumentError(
                    f"{self.name}: {value!r} does not fit parameter {param.hint} of type {param.type}: {reason}"
                )
        return ArgumentError(f"{self.name}: {error}")


def _place(kind: Type) -> tuple[str, int]:
    """Format code and size of one parameter."""
    if isinstance(kind, PtrType):
        return "Q", 8
    if kind in WIDE:
        return "16s", 16
    if isinstance(kind, ScalarType):
        return kind.packing, kind.bytes
    if isinstance(kind, VecType):
        size = -(-kind.n * kind.elem.bytes // VECTOR_ALIGNMENT) * VECTOR_ALIGNMENT
        return f"{size}s", size
    raise ArgumentError(f"a kernel cannot take a parameter of type {kind}")


def _converter(kind: Type) -> Callable[[Any], Any] | None:
    """The conversion of a Python number to what ``struct`` takes, where that is not the number itself."""
    if isinstance(kind, ScalarType) and kind.has_struct and kind.packing != "e":  # struct has no code for its numbers
        import numpy as np

        dtype, bits = kind.dtype, f"uint{8 * kind.bytes}"
        return lambda value: int(np.asarray(value).astype(dtype).view(bits))
    if kind in WIDE:
        return lambda value: (int(value) % (1 << 128)).to_bytes(16, "little")
    if isinstance(kind, VecType):
        return encoded if kind == TENSOR_MAP else bytes
    return None
