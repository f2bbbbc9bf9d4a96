"""Pointers to elements of another type, and under another swizzle."""

from __future__ import annotations

from typing import Any

from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.types import U8, PtrType
from tilewright.lang.numbers.numeric import class_of, unwrap
from tilewright.lang.tensors.address_space import element_bytes, is_packed
from tilewright.lang.tensors.packed import PackedPointer
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.swizzled import SwizzleBits, bits_of


def pointer_to(dtype: Any, base: Value, wide: bool = False) -> Pointer:
    """A pointer to elements of ``dtype`` from an address of the IR, a ``ptr<storage(dtype)>``."""
    if not is_packed(dtype):
        return Pointer(base, dtype, wide=wide)
    return PackedPointer(Pointer(base, class_of(U8), wide=wide), dtype)


def recast_ptr(ptr: Any, swizzle_: Any = None, dtype: Any = None, *, loc: Any = None, ip: Any = None) -> Any:
    """``ptr`` as a pointer to ``dtype``, and under ``swizzle_``, a Swizzle of *byte* addresses.

    ``swizzle_`` takes the place of the one that ``ptr`` has, so that memory which one tensor needs no longer can serve
    another; with None the pointer has none. ``Sw<3,4,3>`` permutes the 16-byte chunks of 128-byte rows for every
    element type, as TMA and wgmma do. The swizzle of a composed *layout* counts elements: for Float16 the same
    permutation is ``Sw<3,3,3>`` there.

    Raises ConstraintError when the base is not aligned to the swizzle's span (the permutation of address bits would
    not be one of offsets), and when the swizzle parts the bytes of an element.

    >>> from tilewright import Float16, Int32
    >>> p = cute.make_ptr(Int32, 0x1000, cute.AddressSpace.gmem, assumed_align=16)
    >>> cute.recast_ptr(p, dtype=Float16)
    ptr<f16, gmem, align<16>>
    >>> cute.recast_ptr(p, cute.make_swizzle(3, 4, 3))
    Traceback (most recent call last):
        ...
    tilewright.errors.ConstraintError: recast_ptr: S<3,4,3> permutes blocks of 1024 bytes, but ...
    """
    if dtype is not None:
        ptr = retyped(ptr, dtype)
    if is_packed(ptr.dtype):
        return PackedPointer(recast_ptr(_recast(ptr, class_of(U8)), swizzle_), ptr.dtype)
    swizzle = bits_of(swizzle_) if swizzle_ is not None else SwizzleBits(0, 4, 3)
    if swizzle.bits == 0 and ptr.swizzle is None:
        return ptr
    if swizzle.bits:
        swizzle.in_units(element_bytes(ptr.dtype))  # refuses a swizzle that parts the bytes of an element
    if ptr.swizzle == swizzle:
        return ptr._with(of_layout=False)
    if ptr.swizzle is not None:
        plain, offset = ptr.unswizzled()
        ptr = plain + offset
    if swizzle.bits == 0:
        return ptr
    if ptr.alignment % swizzle.span:
        raise ConstraintError(
            f"recast_ptr: {swizzle} permutes blocks of {swizzle.span} bytes, but {ptr} is aligned to {ptr.alignment}; "
            f"allocate it with byte_alignment={swizzle.span}"
        )
    return with_swizzle(ptr, swizzle)


def retyped(ptr: Any, dtype: Any) -> Any:
    """``ptr`` as a pointer to ``dtype``, under the swizzle that it has."""
    if dtype is ptr.dtype:
        return ptr
    return ptr.with_dtype(dtype) if hasattr(ptr, "with_dtype") else _recast(ptr, dtype)


def with_swizzle(ptr: Pointer, swizzle: SwizzleBits, of_layout: bool = False) -> Pointer:
    """``ptr`` permuted by ``swizzle`` (bytes), counted from where it points to now."""
    if is_packed(ptr.dtype):
        return PackedPointer(with_swizzle(_recast(ptr, class_of(U8)), swizzle, of_layout), ptr.dtype)
    return Pointer(ptr.value(), ptr.dtype, swizzle=swizzle, of_layout=of_layout)


def _recast(ptr: Any, dtype: Any) -> Pointer:
    if is_packed(dtype) and not is_packed(ptr.dtype):
        return PackedPointer(_recast(ptr, class_of(U8)), dtype)
    if is_packed(ptr.dtype):
        under: Pointer = ptr.bytes()
        return PackedPointer(under, dtype) if is_packed(dtype) else _recast(under, dtype)
    if dtype is ptr.dtype:
        return ptr
    old, new = element_bytes(ptr.dtype), element_bytes(dtype)
    const_bytes = ptr.const * old
    pending = unwrap(ptr.pending)
    if not isinstance(pending, int):
        pending = pending * old // new if old >= new or pending.divisibility * old % new == 0 else None
    if const_bytes % new or pending is None or ptr.alignment % new:
        raise ConstraintError(f"recast_ptr: {ptr} is not known to be aligned to {dtype} ({new} bytes)")
    kind = ptr._type
    # The base of a pointer in a kernel is a value.
    base = Builder.current().ptr_cast(ptr.base, PtrType(dtype.ir_type, kind.space, kind.align))
    return Pointer(base, dtype, const_bytes // new, pending, ptr.swizzle, ptr.wide, ptr.of_layout, ptr.notes)
