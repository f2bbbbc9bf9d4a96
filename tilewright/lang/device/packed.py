"""Arithmetic on pairs of Float32: one instruction on sm_100 and sm_103, two elsewhere. ``rnd`` tells the rounding: to
the nearest even number (``"rn"``), towards 0 (``"rz"``), down (``"rm"``), up (``"rp"``). With ``ftz`` a subnormal
number is a 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.atoms.packed import ROUNDING, PairArithmetic, rounded
from tilewright.errors import ConstraintError
from tilewright.ir.core import Value
from tilewright.ir.types import F32
from tilewright.lang.device.calls import call
from tilewright.lang.numbers.numeric import Float32, wrap
from tilewright.lang.tensors.math import exp


def _pair(x: Any, what: str) -> tuple[Any, Any]:
    if not isinstance(x, Sequence) or len(x) != 2:
        raise ConstraintError(f"{what}: a pair of Float32 is needed, not {x!r}")
    return Float32(x[0]), Float32(x[1])


def _arithmetic(operation: str, sources: tuple[Any, ...], rnd: Any, ftz: bool) -> tuple[Any, Any]:
    name = f"{operation}_packed_f32x2"
    mode = getattr(rnd, "value", rnd) or "rn"  # a text, or a member of nvvm.RoundingModeKind
    if mode not in ROUNDING:
        raise ConstraintError(f"{name}: rnd={rnd!r} is not one of {', '.join(ROUNDING)}")
    atom = PairArithmetic(operation, mode, bool(ftz))
    numbers = [x for pair in sources for x in _pair(pair, name)]
    if any(isinstance(x.value, Value) for x in numbers):
        first, second = call(atom, *numbers, results=(F32, F32))
        return wrap(first), wrap(second)
    values = [np.array([x.value], np.float32) for x in numbers]
    x, y = (float(rounded(operation, mode, bool(ftz), values[i::2])[0]) for i in (0, 1))
    return Float32(x), Float32(y)


def add_packed_f32x2(
    src_a: Any, src_b: Any, *, rnd: Any = "rn", ftz: bool = False, loc: Any = None, ip: Any = None
) -> tuple[Any, Any]:
    """``src_a + src_b``, number by number.

    >>> add_packed_f32x2((1.0, 2.0), (0.5, 4.0))
    (Float32(1.5), Float32(6.0))
    """
    return _arithmetic("add", (src_a, src_b), rnd, ftz)


def sub_packed_f32x2(
    src_a: Any, src_b: Any, *, rnd: Any = "rn", ftz: bool = False, loc: Any = None, ip: Any = None
) -> tuple[Any, Any]:
    """``src_a - src_b``, number by number.

    >>> sub_packed_f32x2((1.0, 2.0), (0.5, 4.0))
    (Float32(0.5), Float32(-2.0))
    """
    return _arithmetic("sub", (src_a, src_b), rnd, ftz)


def mul_packed_f32x2(
    src_a: Any, src_b: Any, *, rnd: Any = "rn", ftz: bool = False, loc: Any = None, ip: Any = None
) -> tuple[Any, Any]:
    """``src_a * src_b``, number by number.

    >>> mul_packed_f32x2((1.0, 2.0), (0.5, 4.0))
    (Float32(0.5), Float32(8.0))
    """
    return _arithmetic("mul", (src_a, src_b), rnd, ftz)


def fma_packed_f32x2(
    src_a: Any, src_b: Any, src_c: Any, *, rnd: Any = "rn", ftz: bool = False, loc: Any = None, ip: Any = None
) -> tuple[Any, Any]:
    """``src_a * src_b + src_c`` with one rounding, number by number.

    >>> fma_packed_f32x2((2.0, 3.0), (4.0, 5.0), (1.0, -1.0))
    (Float32(9.0), Float32(14.0))
    """
    return _arithmetic("fma", (src_a, src_b, src_c), rnd, ftz)


def exp_packed_f32x2(src_a: Any, *, loc: Any = None, ip: Any = None) -> tuple[Any, Any]:
    """``cute.math.exp`` with ``fastmath``, number by number.

    >>> exp_packed_f32x2((0.0, 1.0))
    (Float32(1.0), Float32(2.7182819843292236))
    """
    a, b = _pair(src_a, "exp_packed_f32x2")
    return exp(a, fastmath=True), exp(b, fastmath=True)


def calc_packed_f32x2_op(
    src_a: Any,
    src_b: Any,
    src_c: Any,
    calc_func: Any,
    *,
    rnd: Any = "rn",
    ftz: bool = False,
    loc: Any = None,
    ip: Any = None,
) -> tuple[Any, Any]:
    """What the operation ``calc_func`` of ``nvvm`` gives, number by number; ``src_c`` is None but for fma.

    >>> from tilewright._mlir.dialects import nvvm
    >>> calc_packed_f32x2_op((1.0, 2.0), (0.5, 4.0), None, nvvm.sub_packed_f32x2)
    (Float32(0.5), Float32(-2.0))
    """
    name = getattr(calc_func, "__name__", repr(calc_func))
    if name not in OPERATIONS:
        choices = ", ".join(f"nvvm.{choices}" for choices in OPERATIONS)
        raise ConstraintError(f"calc_packed_f32x2_op: calc_func is one of {choices}, not {name}")
    sources = (src_a, src_b, src_c) if name == "fma_packed_f32x2" else (src_a, src_b)
    if len(sources) == 2 and src_c is not None:
        raise ConstraintError(f"calc_packed_f32x2_op: {name} has two operands: src_c is None")
    return OPERATIONS[name](*sources, rnd=rnd, ftz=ftz)


OPERATIONS = {f.__name__: f for f in (add_packed_f32x2, sub_packed_f32x2, mul_packed_f32x2, fma_packed_f32x2)}
