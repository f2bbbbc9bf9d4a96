"""Pointers that the host holds, and pointers from addresses."""

from __future__ import annotations

import math
from typing import Any

from tilewright.errors import ArgumentError, ConstraintError, StagingError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.runtime import DevicePointer
from tilewright.ir.types import I64, MemSpace, PtrType, Type
from tilewright.lang.numbers.dtypes import type_text
from tilewright.lang.numbers.numeric import Int32, Int64, Integer, Uint64, class_of, unwrap
from tilewright.lang.numbers.numeric_class import numeric_type
from tilewright.lang.tensors.address_space import SPACES, AddressSpace, element_bits, element_bytes, storage
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.recast import pointer_to, recast_ptr
from tilewright.lang.tensors.tensor_memory import TensorMemory


class HostPointer(Pointer):
    """A pointer that the host holds: a device address with what the caller promises of its alignment."""

    __slots__ = ("_kind", "on_cpu")

    def __init__(
        self, base: DevicePointer, dtype: Any, space: MemSpace, align: int, wide: bool = False, on_cpu: bool = False
    ) -> None:
        super().__init__(base, dtype, wide=wide)
        self._kind = PtrType(storage(dtype), space, align)
        self.on_cpu = on_cpu
        """Whether it points into an array of the CPU."""

    @property
    def _on_cpu(self) -> bool:
        return self.on_cpu

    def _with(self, **changes: Any) -> Pointer:
        made: Any = super()._with(**changes)
        made._kind, made.on_cpu = self._kind, self.on_cpu
        return made

    @property
    def _type(self) -> PtrType:
        return self._kind

    @property
    def __cache_key__(self) -> tuple[object, ...]:
        """Equal, and hashable, for pointers that one compiled function takes."""
        return str(self.dtype), self._kind, self.wide, self.on_cpu

    def with_dtype(self, dtype: Any) -> HostPointer:
        """The same address as a pointer to other elements."""
        return HostPointer(self.device_pointer(), dtype, self._kind.space, self.alignment, self.wide, self.on_cpu)

    def device_pointer(self) -> DevicePointer:
        assert isinstance(self.base, DevicePointer)
        return self.base._replace(address=self.base.address + self._const_bytes())

    def _const_bytes(self) -> int:
        whole, bits = divmod(self.const * element_bits(self.dtype), 8)
        if bits:
            raise ArgumentError(f"element {self.const} of {self.dtype} begins inside a byte: no pointer points there")
        return whole

    @property
    def alignment(self) -> int:
        return math.gcd(self.base_align, self._const_bytes()) if self.const else self.base_align

    max_alignment = alignment

    def toint(self, *, loc: Any = None, ip: Any = None) -> Any:
        assert isinstance(self.base, DevicePointer)
        return self.base.address + self._const_bytes()

    def value(self, extra: int = 0) -> Value:
        raise StagingError("a host pointer has no place in a kernel: pass it (or its tensor) as an argument")

    def __extract_mlir_values__(self) -> list[Value]:
        return [self.value()]

    def __get_mlir_types__(self) -> list[Type]:
        kind, alignment = self._kind, self.alignment
        return [kind if kind.align == alignment else PtrType(kind.elem, kind.space, alignment)]

    def __new_from_mlir_values__(self, values: list[Value]) -> Pointer:
        return pointer_to(self.dtype, values[0], self.wide)

    def __carry_key__(self) -> Any:
        return (self.dtype, self.swizzle, self.wide)

    def __str__(self) -> str:
        return f"ptr<{type_text(self.dtype.ir_type)}, {self.memspace}, align<{self.alignment}>>"

    __repr__ = __str__

    def __c_pointers__(self) -> list[Any]:
        return [self.device_pointer()]


def make_ptr(
    dtype: Any,
    value: Any,
    mem_space: AddressSpace = AddressSpace.generic,
    assumed_align: int | None = None,
    *,
    swizzle_: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """A pointer from an address. In tensor memory that is ``lane << 16 | column``.

    On the host ``value`` is a Python int (or a ctypes pointer) and the result is an argument for a jit function; in a
    kernel it is an integer numeric, or the ``llvm_ptr`` of a pointer. ``assumed_align`` (bytes) defaults to the
    element's size. ``swizzle_``: in a kernel, the Swizzle of byte addresses that the pointer has, as in
    :func:`~tilewright.lang.tensors.pointer.recast_ptr`.

    >>> from tilewright import Int32
    >>> make_ptr(Int32, 0x1000, AddressSpace.gmem, assumed_align=16)
    ptr<i32, gmem, align<16>>
    """
    if swizzle_ is not None:
        if mem_space is AddressSpace.tmem or not (isinstance(value, Value) or isinstance(unwrap(value), Integer)):
            raise ConstraintError(
                "make_ptr: a swizzle permutes addresses of shared memory: leave swizzle_ out here, and give it in the "
                "kernel (make_ptr or recast_ptr)"
            )
        return recast_ptr(make_ptr(dtype, value, mem_space, assumed_align), swizzle_)
    numeric_type("make_ptr", dtype)
    if hasattr(value, "__dlpack__") or hasattr(value, "data_ptr"):
        raise ArgumentError(f"make_ptr: give the address of the {type(value).__name__} (data_ptr()), not itself")
    if dtype.width == 128 and mem_space is AddressSpace.smem:  # answers of cluster launch control: a place, no elements
        return make_ptr(Uint64, value, mem_space, assumed_align or 16)
    if isinstance(value, Pointer):
        value = value.llvm_ptr
    if mem_space is AddressSpace.tmem:
        return TensorMemory(Int32(value), dtype, 0, assumed_align or 16)
    align = assumed_align or element_bytes(dtype)
    if align & (align - 1):
        raise ArgumentError(f"make_ptr: an alignment is a power of two, not {align}")
    space = SPACES.get(mem_space)
    if space is None:
        raise ConstraintError(
            f"make_ptr: mem_space={mem_space!r}: pointers point to {', '.join(map(str, SPACES))} and tmem"
        )
    if isinstance(value, Value) and isinstance(value.type, PtrType):
        if value.type.space is not space:
            raise ConstraintError(f"make_ptr: a pointer to {value.type.space.value} memory, but mem_space={mem_space}")
        return pointer_to(dtype, Builder.current().ptr_cast(value, PtrType(storage(dtype), space, align)))
    if isinstance(value, int) and space is MemSpace.SMEM and Builder.active():  # shared memory: only kernels have it
        value = Int64(value)
    if isinstance(value, Int64) or isinstance(unwrap(value), Integer):
        kind = PtrType(storage(dtype), space, align)
        number = value.to(class_of(I64)).ir_value()
        return pointer_to(dtype, Builder.current().emit("ptr.fromint", (number,), (kind,)).result)
    address = int(getattr(value, "value", value) or 0)
    if address % align:
        raise ArgumentError(f"make_ptr: the address {address:#x} is not a multiple of {align} bytes")
    device = "cuda:0" if mem_space is AddressSpace.gmem and _looks_like_device(address) else "cpu"
    return HostPointer(DevicePointer(address, device, address, 1 << 63, None), dtype, space, align)


def _looks_like_device(address: int) -> bool:
    """Whether the CUDA driver, if the program already uses it, knows the address as device memory."""
    import sys

    if not any(name.startswith(("torch", "cuda", "tilewright.cuda.libcuda")) for name in sys.modules):
        return False
    try:
        from cuda.bindings import driver

        error, kind = driver.cuPointerGetAttribute(
            driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, driver.CUdeviceptr(address)
        )
        return int(error) == 0 and int(kind) == int(driver.CUmemorytype.CU_MEMORYTYPE_DEVICE)
    except Exception:  # no driver, no device: the address is the host's
        return False


def nullptr(dtype: Any, mem_space: AddressSpace = AddressSpace.generic, assumed_align: int | None = None) -> Any:
    """A pointer to address 0, with which a function is compiled for pointers to come.

    >>> from tilewright import Float32
    >>> nullptr(Float32, AddressSpace.gmem, 16)
    ptr<f32, gmem, align<16>>
    """
    return make_ptr(dtype, 0, mem_space, assumed_align)
