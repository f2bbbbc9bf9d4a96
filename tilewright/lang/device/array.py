"""``cutlass.Array``: elements in registers or in memory by their index, and views of tensors and pointers as such."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.types import PtrType
from tilewright.lang.device.smem import SmemAllocator
from tilewright.lang.numbers.numeric import Int32, Int64, class_of, unwrap, wrap
from tilewright.lang.tensors.address_space import SPACES, AddressSpace
from tilewright.lang.tensors.algebra import make_rmem_tensor
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.recast import recast_ptr
from tilewright.lang.tensors.registers import Registers
from tilewright.lang.tensors.tensor import Tensor, make_tensor
from tilewright.lang.tensors.tensor_memory import TensorMemory
from tilewright.lang.tensors.tensor_ssa import TensorSSA
from tilewright.lang.tensors.vector import Vector
from tilewright.layout import Layout, make_layout, product

NUMBERS = {0: AddressSpace.generic, 1: AddressSpace.gmem, 3: AddressSpace.smem, 6: AddressSpace.tmem}
"""LLVM's numbers of the address spaces of NVIDIA's GPUs; 7 is the shared memory of the cluster."""


class Array:
    """``shape`` elements of ``dtype``, the last mode contiguous: fresh ones in registers (the default) or in shared
    memory (``space``), or those at ``base``, a pointer or another array.

    ``array[i]``, ``array[i, j]`` are elements; ``array[first:count]`` are ``count`` of them as a Vector, as
    ``load(first, count)`` gives. ``subview(i)`` is the array from element i on, ``data_ptr(i)`` a pointer to it. An
    array stands where a pointer does.

    >>> from tilewright import Float32, Vector
    >>> def sums(t):
    ...     x = Array(Float32, 4)
    ...     x.store((1.0, 2.0, 3.0, 4.0))
    ...     x[0] = t
    ...     pair = x[2:2] + x.load(0, 2)
    ...     return pair[0] + pair[1]
    >>> per_thread(sums, 2, dtype=Float32)
    [9.0, 10.0]
    """

    def __init__(
        self,
        dtype_or_base: Any = None,
        shape: Any = None,
        *,
        dtype: Any = None,
        base: Any = None,
        space: AddressSpace | None = None,
        alignment: int | None = None,
        addrspace: int | None = None,
        loc: Any = None,
        ip: Any = None,
    ) -> None:
        fresh = isinstance(dtype_or_base, type)
        if fresh:
            dtype = dtype_or_base
        base = dtype_or_base if base is None and not fresh else base
        extents = _extents(shape)
        self.tensor: Tensor
        if base is not None:
            self.place = _place(base, dtype, addrspace)
            self.dtype = self.place.dtype
        else:
            self.dtype = dtype
            self.place = _fresh(dtype, math.prod(extents), space or AddressSpace.rmem, alignment)
        self.shape = extents
        strides = [math.prod(extents[i + 1 :]) for i in range(len(extents))]
        self.layout = Layout(tuple(extents), tuple(strides)) if len(extents) > 1 else make_layout(extents[0])

    @classmethod
    def _of(cls, place: Any, layout: Any) -> Array:
        made = cls.__new__(cls)
        made.place, made.dtype, made.layout = place, place.dtype, layout
        made.shape = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
        return made

    element_type = property(lambda self: self.dtype)
    iterator = property(lambda self: self.place)

    @property
    def space(self) -> AddressSpace:
        """Where it is."""
        space: AddressSpace = self.place.memspace
        return space

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self.load(*_stretch(index))
        return self._elements()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            first, count = _stretch(index)
            self.store(_vector(value, count, self.dtype), first)
        else:
            self._elements()[index] = self.dtype(value)

    __iter__ = None  # as a pointer

    def _elements(self) -> Tensor:
        return make_tensor(self.place, self.layout)

    def load(
        self,
        idx: Any = 0,
        vector_size: int = 1,
        *,
        count: int | None = None,
        alignment: int | None = None,
        loc: Any = None,
        ip: Any = None,
    ) -> Any:
        """The element ``idx`` elements on, or ``vector_size`` of them as a Vector (``count``: as a pointer has it);
        ``alignment``: of its address, in bytes."""
        part = make_tensor(_aligned(self.place + idx, alignment), make_layout(vector_size if count is None else count))
        return part[0] if count is None and vector_size == 1 else part.load()

    def store(self, value: Any, idx: Any = 0, *, alignment: int | None = None, loc: Any = None, ip: Any = None) -> None:
        """Store a number, a Vector or a tuple of numbers from element ``idx`` on."""
        if not isinstance(value, (TensorSSA, tuple, list)):
            make_tensor(self.place + idx, make_layout(1))[0] = self.dtype(value)
            return
        vector = _vector(value, None, self.dtype)
        make_tensor(_aligned(self.place + idx, alignment), make_layout(vector.numel)).store(vector)

    def subview(self, offset: Any, *, loc: Any = None, ip: Any = None) -> Array:
        """The array from the element ``offset`` on."""
        place = self.place + offset
        start = unwrap(offset)
        rest = self.layout if len(self.shape) > 1 or not isinstance(start, int) else make_layout(self._rest(start))
        return Array._of(place, rest)

    def _rest(self, offset: int) -> int:
        return max(1, int(product(self.shape)) - offset)

    def data_ptr(self, offset: Any = 0, *, loc: Any = None, ip: Any = None) -> Any:
        """A pointer to the element ``offset``; of registers the array from there on, which loads and stores as one."""
        return self.subview(offset) if self.space is AddressSpace.rmem else self.place + offset

    def value(self, extra: int = 0) -> Value:
        """Its address, as an operand of the IR."""
        address: Value = self.place.value(extra)
        return address

    def toint(self, *, dtype: Any = None, loc: Any = None, ip: Any = None) -> Any:
        """Its address as a number."""
        number = self.place.toint()
        return number if dtype is None else dtype(number)

    def to(self, dtype: Any, *, loc: Any = None, ip: Any = None) -> TensorSSA:
        """All elements as a Vector of another type."""
        return self.load(0, int(product(self.shape))).to(dtype)

    # -- the protocol --------------------------------------------------------------------------------------------

    def __extract_mlir_values__(self) -> list[Value]:
        return list(self._elements().__extract_mlir_values__())

    def __new_from_mlir_values__(self, values: list[Value]) -> Array:
        return Array._of(self._elements().__new_from_mlir_values__(values).engine, self.layout)

    def __carry_key__(self) -> Any:
        return (self.dtype, str(self.layout), self._elements().__carry_key__())


class GridConstant:
    """``GridConstant[TensorMap]`` annotates a parameter of a kernel: parameters are grid constants by themselves, so
    it is the type alone.

    >>> GridConstant[int] is int
    True
    """

    def __class_getitem__(cls, item: Any) -> Any:
        return item


def make_array_view(tensor: Any, *, loc: Any = None, ip: Any = None) -> Array:
    """The elements of a tensor as an array: ``view[i, j]`` is the tensor's element at that coordinate.

    >>> from tilewright import Int32
    >>> @cute.jit
    ... def second(t):
    ...     x = cute.make_rmem_tensor((2, 2), Int32)
    ...     x[0, 1] = t
    ...     return make_array_view(x)[0, 1]
    >>> per_thread(second, 3)
    [0, 1, 2]
    """
    if isinstance(tensor, Array):
        return tensor
    if not isinstance(tensor, Tensor):
        raise ConstraintError(f"make_array_view takes a tensor, not {tensor!r}")
    return Array._of(tensor.engine, tensor.linear)


def inttoptr(
    address: Any, mem_space: Any = None, dtype: Any = None, *, loc: Any = None, ip: Any = None
) -> Pointer | TensorMemory:
    """A pointer to the number ``address``. ``mem_space`` is an AddressSpace, or LLVM's number of one (1 global, 3
    shared, 6 tensor memory).

    >>> from tilewright import Float32
    >>> per_thread(lambda t: inttoptr(t, 6, Float32).toint() + 1, 2)
    [1, 2]
    """
    space = NUMBERS.get(mem_space, mem_space) if mem_space is not None else AddressSpace.generic
    kind = dtype or Int32
    if space is AddressSpace.tmem:
        return TensorMemory(Int32(address), kind)
    if space not in SPACES:
        raise ConstraintError(f"inttoptr: mem_space is an AddressSpace, or 0, 1, 3 or 6, not {mem_space!r}")
    number = Int64(address)
    made = Builder.current().emit(
        "ptr.fromint", (number.ir_value(),), (PtrType(kind.ir_type, SPACES[space], kind.ir_type.bytes),)
    )
    return Pointer(made.result, kind)


def _fresh(dtype: Any, count: int, space: AddressSpace, alignment: int | None) -> Any:
    if space is AddressSpace.rmem:
        return make_rmem_tensor(count, dtype).engine
    if space is AddressSpace.smem:
        return SmemAllocator().allocate_array(dtype, count, alignment)
    raise ConstraintError(f"Array: fresh elements are in registers (rmem) or shared memory (smem), not in {space}")


def _place(base: Any, dtype: Any, addrspace: int | None) -> Any:
    """The iterator at ``base``, as one of ``dtype``."""
    base = getattr(base, "iterator", base)
    if isinstance(base, Value) and isinstance(base.type, PtrType):
        base = Pointer(base, class_of(base.type.elem))
    if isinstance(base, Value):
        base = wrap(base)
    if not isinstance(base, (Pointer, Registers, TensorMemory)):
        base = inttoptr(base, addrspace, dtype)
    return base if dtype is None or dtype is base.dtype else recast_ptr(base, dtype=dtype)


def _aligned(place: Any, alignment: int | None) -> Any:
    """The pointer, known to be aligned: a run is checked."""
    return place.known_aligned(alignment) if isinstance(place, Pointer) else place


def _extents(shape: Any) -> tuple[int, ...]:
    dims = shape if isinstance(shape, Sequence) else (1 if shape is None else shape,)
    extents = tuple(unwrap(n) for n in dims)
    if not extents or not all(isinstance(n, int) and n > 0 for n in extents):
        raise ConstraintError(f"Array: the extents are Python ints of at least 1, not {shape!r}")
    return extents


def _stretch(index: slice) -> tuple[Any, int]:
    """``first:count``."""
    count = unwrap(index.stop)
    if index.step is not None or not isinstance(count, int) or count < 1:
        raise ConstraintError(f"Array: a slice is first:count, with a count known while staging, not {index}")
    return (0 if index.start is None else index.start), count


def _vector(value: Any, count: int | None, dtype: Any) -> TensorSSA:
    if not isinstance(value, TensorSSA):
        items = list(value) if isinstance(value, (tuple, list)) else [value] * (count or 1)
        value = Vector.from_elements(items, dtype)
    if count is not None and value.numel != count:
        raise ConstraintError(f"Array: {value.numel} elements for a slice of {count}")
    return value if value.dtype is dtype else value.to(dtype)
