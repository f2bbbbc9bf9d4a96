"""Arithmetic on pairs of Float32. Blackwell has instructions for them; here each number of a pair is computed alone,
with the same result. Rounding is to the nearest even number (``rnd="rn"``, the only mode that is here), and subnormal
numbers are kept (``ftz=False``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.errors import ConstraintError
from tilewright.lang.numbers.numeric import Float32
from tilewright.lang.tensors.math import exp, fma


def _pair(x: Any, what: str) -> tuple[Any, Any]:
    if not isinstance(x, Sequence) or len(x) != 2:
        raise ConstraintError(f"{what}: a pair of Float32 is needed, not {x!r}")
    return Float32(x[0]), Float32(x[1])


def _as_here(what: str, rnd: Any, ftz: bool) -> None:
    """ConstraintError for a mode that is not computed here."""
    mode = getattr(rnd, "value", rnd)  # a text, or a member of nvvm.RoundingModeKind
    if mode not in ("rn", None):
        raise ConstraintError(f"{what}: rnd={rnd!r}; Float32 is rounded to the nearest even number here: rnd='rn'")
    if ftz:
        raise ConstraintError(f"{what}: ftz={ftz!r}; subnormal numbers are kept here: leave ftz out")


def add_packed_f32x2(
    src_a: Any, src_b: Any, *, rnd: Any = "rn", ftz: bool = False, loc: Any = None, ip: Any = None
) -> tuple[Any, Any]:
    """``src_a + src_b``, number by number.

    >>> add_packed_f32x2((1.0, 2.0), (0.5, 4.0))
    (Float32(1.5), Float32(6.0))
    """
    _as_here("add_packed_f32x2", rnd, ftz)
    (a, b), (c, d) = _pair(src_a, "add_packed_f32x2"), _pair(src_b, "add_packed_f32x2")
    return a + c, b + d


def sub_packed_f32x2(
    src_a: Any, src_b: Any, *, rnd: Any = "rn", ftz: bool = False, loc: Any = None, ip: Any = None
) -> tuple[Any, Any]:
    """``src_a - src_b``, number by number.

    >>> sub_packed_f32x2((1.0, 2.0), (0.5, 4.0))
    (Float32(0.5), Float32(-2.0))
    """
    _as_here("sub_packed_f32x2", rnd, ftz)
    (a, b), (c, d) = _pair(src_a, "sub_packed_f32x2"), _pair(src_b, "sub_packed_f32x2")
    return a - c, b - d


def mul_packed_f32x2(
    src_a: Any, src_b: Any, *, rnd: Any = "rn", ftz: bool = False, loc: Any = None, ip: Any = None
) -> tuple[Any, Any]:
    """``src_a * src_b``, number by number.

    >>> mul_packed_f32x2((1.0, 2.0), (0.5, 4.0))
    (Float32(0.5), Float32(8.0))
    """
    _as_here("mul_packed_f32x2", rnd, ftz)
    (a, b), (c, d) = _pair(src_a, "mul_packed_f32x2"), _pair(src_b, "mul_packed_f32x2")
    return a * c, b * d


def fma_packed_f32x2(
    src_a: Any, src_b: Any, src_c: Any, *, rnd: Any = "rn", ftz: bool = False, loc: Any = None, ip: Any = None
) -> tuple[Any, Any]:
    """``src_a * src_b + src_c`` with one rounding, number by number.

    >>> fma_packed_f32x2((2.0, 3.0), (4.0, 5.0), (1.0, -1.0))
    (Float32(9.0), Float32(14.0))
    """
    _as_here("fma_packed_f32x2", rnd, ftz)
    (a, b), (c, d), (e, f) = (_pair(x, "fma_packed_f32x2") for x in (src_a, src_b, src_c))
    return fma(a, c, e), fma(b, d, f)


def exp_packed_f32x2(src_a: Any, *, loc: Any = None, ip: Any = None) -> tuple[Any, Any]:
    """``cute.math.exp`` with ``fastmath``, number by number.

    >>> exp_packed_f32x2((0.0, 1.0))
    (Float32(1.0), Float32(2.7182819843292236))
    """
    a, b = _pair(src_a, "exp_packed_f32x2")
    return exp(a, fastmath=True), exp(b, fastmath=True)


def calc_packed_f32x2_op(
    src_a: Any, src_b: Any, src_c: Any, calc_func: Any, *, rnd: Any = "rn", ftz: bool = False, loc: Any = None,
    ip: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """What the operation ``calc_func`` of ``nvvm`` gives, number by number; ``src_c`` is None but for fma.

    >>> from tilewright._mlir.dialects import nvvm
    >>> calc_packed_f32x2_op((1.0, 2.0), (0.5, 4.0), None, nvvm.sub_packed_f32x2)
    (Float32(0.5), Float32(-2.0))
    """
    name = getattr(calc_func, "__name__", repr(calc_func))
    if name not in OPERATIONS:
        known = ", ".join(f"nvvm.{known}" for known in OPERATIONS)
        raise ConstraintError(f"calc_packed_f32x2_op: calc_func is one of {known}, not {name}")
    sources = (src_a, src_b, src_c) if name == "fma_packed_f32x2" else (src_a, src_b)
    if len(sources) == 2 and src_c is not None:
        raise ConstraintError(f"calc_packed_f32x2_op: {name} has two operands: src_c is None")
    return OPERATIONS[name](*sources, rnd=rnd, ftz=ftz)


OPERATIONS = {f.__name__: f for f in (add_packed_f32x2, sub_packed_f32x2, mul_packed_f32x2, fma_packed_f32x2)}
