"""Vectors of narrow integers and of pairs of floats as wider or narrower floats. Vectors are those of the IR
(``x.load().ir_value()``), and so are the results; ``cute.TensorSSA(vector, shape, dtype)`` gives them a shape."""

from __future__ import annotations

from typing import Any

from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.types import VecType
from tilewright.lang.numbers.numeric import BFloat16, Float32, Int4, Int8
from tilewright.lang.numbers.numeric_base import class_of
from tilewright.lang.tensors.tensor_ssa import TensorSSA


def cvt_i8_bf16_intrinsic(vec_i8: Any, length: int, *, loc: Any = None, ip: Any = None) -> Value:
    """``length`` Int8 as BFloat16, exactly.

    >>> def last(t):
    ...     numbers = cute.make_rmem_tensor(4, Int8)
    ...     for i in range(4):
    ...         numbers[i] = Int8(i - 100)
    ...     wide = cvt_i8_bf16_intrinsic(numbers.load().ir_value(), 4)
    ...     return cute.TensorSSA(wide, 4, BFloat16)[3].to(Float32)
    >>> per_thread(last, 1, dtype=Float32)
    [-97.0]
    """
    return _cast("cvt_i8_bf16_intrinsic", vec_i8, Int8, length, BFloat16)


def cvt_i4_bf16_intrinsic(
    vec_i4: Any, length: int, *, with_shuffle: bool = False, loc: Any = None, ip: Any = None
) -> Value:
    """``length`` Int4 as BFloat16, exactly. ``with_shuffle``: of each 8 numbers 0 to 7 the vector has 0, 2, 1, 3, 4, 6,
    5, 7, of 4 that remain 0, 2, 1, 3, and fewer as they are; the results come in their natural order.

    >>> of = lambda t: cvt_i4_bf16_intrinsic(cute.full(8, -7, Int4).ir_value(), 8, with_shuffle=True)
    >>> per_thread(lambda t: cute.TensorSSA(of(t), 8, BFloat16)[5].to(Float32), 1, dtype=Float32)
    [-7.0]
    """
    wide = _cast("cvt_i4_bf16_intrinsic", vec_i4, Int4, length, BFloat16)
    if not with_shuffle:
        return wide
    swapped = [i ^ 3 if i % 4 in (1, 2) and i // 4 * 4 + 4 <= length else i for i in range(length)]
    return Builder.current().shuffle(wide, swapped)


def cvt_i8_bf16(src_i8: Any, *, loc: Any = None, ip: Any = None) -> BFloat16:
    """One Int8 as BFloat16, exactly.

    >>> per_thread(lambda t: cvt_i8_bf16(Int8(-7)).to(Float32), 1, dtype=Float32)
    [-7.0]
    """
    return Int8(src_i8).to(BFloat16)


def cvt_i8x2_to_bf16x2(src_vec2: Any, *, loc: Any = None, ip: Any = None) -> Value:
    """Two Int8 as BFloat16, exactly.

    >>> of = lambda t: cvt_i8x2_to_bf16x2(cute.full(2, -7, Int8).ir_value())
    >>> per_thread(lambda t: cute.TensorSSA(of(t), 2, BFloat16)[1].to(Float32), 1, dtype=Float32)
    [-7.0]
    """
    return _cast("cvt_i8x2_to_bf16x2", src_vec2, Int8, 2, BFloat16)


def cvt_i8x4_to_bf16x4(src_vec4: Any, *, loc: Any = None, ip: Any = None) -> Value:
    """Four Int8 as BFloat16, exactly.

    >>> of = lambda t: cvt_i8x4_to_bf16x4(cute.full(4, -7, Int8).ir_value())
    >>> per_thread(lambda t: cute.TensorSSA(of(t), 4, BFloat16)[1].to(Float32), 1, dtype=Float32)
    [-7.0]
    """
    return _cast("cvt_i8x4_to_bf16x4", src_vec4, Int8, 4, BFloat16)


def cvt_i8x2_to_f32x2(src_vec2: Any, *, loc: Any = None, ip: Any = None) -> Value:
    """Two Int8 as Float32, exactly.

    >>> of = lambda t: cvt_i8x2_to_f32x2(cute.full(2, -7, Int8).ir_value())
    >>> per_thread(lambda t: cute.TensorSSA(of(t), 2, Float32)[1].to(Float32), 1, dtype=Float32)
    [-7.0]
    """
    return _cast("cvt_i8x2_to_f32x2", src_vec2, Int8, 2, Float32)


def cvt_i8x4_to_f32x4(src_vec4: Any, *, loc: Any = None, ip: Any = None) -> Value:
    """Four Int8 as Float32, exactly.

    >>> of = lambda t: cvt_i8x4_to_f32x4(cute.full(4, -7, Int8).ir_value())
    >>> per_thread(lambda t: cute.TensorSSA(of(t), 4, Float32)[1].to(Float32), 1, dtype=Float32)
    [-7.0]
    """
    return _cast("cvt_i8x4_to_f32x4", src_vec4, Int8, 4, Float32)


def cvt_f32x2_bf16x2(src_vec2: Any, *, loc: Any = None, ip: Any = None) -> Value:
    """Two Float32 as BFloat16, rounded to the nearest even ones.

    >>> of = lambda t: cvt_f32x2_bf16x2(cute.full(2, -7, Float32).ir_value())
    >>> per_thread(lambda t: cute.TensorSSA(of(t), 2, BFloat16)[1].to(Float32), 1, dtype=Float32)
    [-7.0]
    """
    return _cast("cvt_f32x2_bf16x2", src_vec2, Float32, 2, BFloat16)


def _cast(name: str, vector: Any, source: Any, length: Any, target: Any) -> Value:
    value = vector.value if isinstance(vector, TensorSSA) else vector
    kind = getattr(value, "type", None)
    if not isinstance(kind, VecType) or class_of(kind.elem) is not source or kind.n != length:
        raise ConstraintError(
            f"cute.arch.{name}: {vector!r} is not a vector of {length} {source}; give tensor.load().ir_value()"
        )
    return TensorSSA(value, length, source).to(target).ir_value()
