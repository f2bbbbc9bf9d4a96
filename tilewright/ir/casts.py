"""Conversions between element types, as CUDA does them (see also :func:`tilewright.ir.arithmetic.convert`).

Float to integer truncates and saturates (``cvt.rzi``; a NaN gives 0, or 2**(bits-1) when f64 or a 64-bit integer is
involved; 8 and 16 bits are the nearest to what a signed 32-bit integer would hold); float to float rounds to nearest
even, saturating for floats of up to 8 bits (``satfinite``); f32 to tf32 keeps 10 fraction bits, ties away from zero
(``cvt.rna``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.ir import types
from tilewright.ir.types import I128, U128, ScalarType

Function = Callable[[Any], Any]
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
WIDE = frozenset((I128, U128))


@functools.cache
def cast(src: ScalarType, dst: ScalarType) -> Function:
    """The function that converts numbers of type ``src`` to type ``dst``."""
    if src == dst:
        return lambda a: a
    if WIDE.intersection((src, dst)):
        return _exact(src, dst)
    if dst.kind == "bool":
        return lambda a: a != src.dtype.type(0)
    if dst.name == "tf32":
        widen = cast_to_f32(src)
        return lambda a: round_to_tf32(widen(a))
    if dst.largest is not None:
        return _saturating(dst, dst.largest)
    if src.is_float and dst.is_integer:
        return _float_to_integer(src, dst)
    if dst.name == "e8m0":
        widen = cast_to_f32(src)
        return lambda a: round_up_to_power(widen(a)).view(dst.dtype)
    return _by_astype(dst.dtype, through=F32 if dst.name == "bf16" else None)


def _exact(src: ScalarType, dst: ScalarType) -> Function:
    """From or to integers of 128 bits, which are Python's, number by number."""
    if dst.is_float:
        return _from_wide_to_float(dst)
    if src.is_float:
        function = np.frompyfunc(lambda a: dst.clamped(float(a)), 1, 1)
    else:
        function = np.frompyfunc(lambda a: int(a) != 0 if dst.kind == "bool" else dst.wrapped(int(a)), 1, 1)
    if dst in WIDE:
        return lambda a: np.asarray(function(a), object)
    return lambda a: np.asarray(function(a)).astype(dst.dtype)[()]


def _from_wide_to_float(dst: ScalarType) -> Function:
    as_float, narrow = np.frompyfunc(float, 1, 1), cast(types.F64, dst)

    def convert(a: Any) -> Any:
        with np.errstate(all="ignore"):
            return narrow(np.asarray(as_float(a)).astype(F64))[()]

    return convert


def cast_to_f32(src: ScalarType) -> Function:
    return _by_astype(F32, None)


def _by_astype(dtype: np.dtype, through: np.dtype | None) -> Function:
    if through is None:
        return lambda a: a.astype(dtype)
    return lambda a: a.astype(through).astype(dtype)


def round_to_tf32(a: Any) -> Any:
    """f32 values rounded to 10 fraction bits; infinities and NaNs stay."""
    array = np.asarray(a, F32)
    bits = array.view(np.uint32)
    rounded = ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(F32)
    return np.where(np.isfinite(array), rounded, array)[()]


def round_up_to_power(a: Any) -> Any:
    """f32 values as the biased exponents of the least powers of two from 2^-127 to 2^127 that are not below them: as
    ``cvt.rp.satfinite.ue8m0x2.f32`` and CUTLASS's ``float_ue8m0_t`` convert. 255 for NaNs and numbers below zero.

    >>> round_up_to_power(np.array([0.0, 1.0, 1.1, np.inf, -1.0], np.float32)) - np.uint8(127)
    array([129,   0,   1, 127, 128], dtype=uint8)
    """
    array = np.asarray(a, F32)
    bits = array.view(np.uint32) & np.uint32(0x7FFFFFFF)
    # A fraction carries into the exponent; of the subnormal numbers those up to 2^-127 have the exponent 0.
    exponents = np.minimum((bits + np.uint32(0x7FFFFF)) >> np.uint32(23), np.uint32(254))
    exponents = np.where(bits <= 0x400000, np.uint32(0), exponents)
    return np.where(array >= 0, exponents, np.uint32(255)).astype(np.uint8)[()]


def _saturating(dst: ScalarType, largest: float) -> Function:
    limit, dtype = F32.type(largest), dst.dtype
    if "nan" not in dst.specials:  # the largest number stands for it, as PTX has it
        return lambda a: np.nan_to_num(np.clip(a.astype(F32), -limit, limit), nan=float(limit)).astype(dtype)
    return lambda a: np.clip(a.astype(F32), -limit, limit).astype(dtype)


def _float_to_integer(src: ScalarType, dst: ScalarType) -> Function:
    low = -(1 << (dst.width - 1)) if dst.kind == "int" else 0
    high = low + (1 << dst.width) - 1
    of_nan = 1 << (dst.width - 1) if src.width == 64 or dst.width == 64 else 0
    of_nan = low if dst.width < 32 and src.width == 64 or of_nan and dst.kind == "int" else of_nan
    dtype = dst.dtype
    work = F64 if src.width == 64 or dst.width > 16 else F32
    below, above = work.type(low), work.type(float(high) + (0.0 if dst.width < 64 else 1.0))

    def convert(a: Any) -> Any:
        wide = np.trunc(a.astype(work))
        inside = (wide >= below) & (wide <= above if dst.width < 64 else wide < above)
        if np.all(inside):
            return wide.astype(dtype)
        plain = np.where(inside, wide, work.type(0)).astype(dtype)
        edge = np.where(np.isnan(wide), dtype.type(of_nan), np.where(wide < 0, dtype.type(low), dtype.type(high)))
        return np.where(inside, plain, edge).astype(dtype)[()]

    return convert


def bytes_of(codes: Any, width: int) -> Any:
    """Numbers of ``width`` bits, a byte each (``[..., n]``, in its low bits), without gaps: the first in the lowest
    bits."""
    bits = np.unpackbits(codes[..., None], axis=-1, count=width, bitorder="little")
    return np.packbits(bits.reshape(*codes.shape[:-1], -1), axis=-1, bitorder="little")


def codes_of(packed: Any, width: int) -> Any:
    """The inverse of :func:`bytes_of`.

    >>> codes_of(np.array([0x21, 0x43], np.uint8), 4), bytes_of(np.array([1, 2, 3, 4], np.uint8), 4)
    (array([1, 2, 3, 4], dtype=uint8), array([33, 67], dtype=uint8))
    """
    bits = np.unpackbits(packed, axis=-1, bitorder="little")
    return np.packbits(bits.reshape(*packed.shape[:-1], -1, width), axis=-1, bitorder="little")[..., 0]
