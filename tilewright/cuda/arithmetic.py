"""The elementwise operations of :data:`tilewright.ir.arithmetic.TABLE` as C++ expressions of one element.

``elementwise`` serves scalars and, element by element, vectors. Where C++ leaves a choice:

- C++ leaves overflow of signed integers undefined (which lets addresses become immediate offsets) and shifts by the
  width or more: where :mod:`tilewright.cuda.overflow` says so, the table's defined form is printed;
- f16 and bf16 round after every operation; 8-bit floats compute in f32 and round (saturating) once;
- f32 and f64 products and sums may contract to one fused operation (NVRTC's ``--fmad=true``).
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.cuda.expressions import PRECEDENCE, Expr, call, infix, literal, prefix, ternary
from tilewright.errors import CompileError
from tilewright.ir.arithmetic import Action, action
from tilewright.ir.core import Constant, Op, Value
from tilewright.ir.types import BOOL, F32, F64, I32, TF32, ScalarType, element_of


def elementwise(op: Op, args: Sequence[Expr], operands: Sequence[Value], wraps: bool) -> Expr:
    """One element of the result of ``op`` from one element of each operand; ``wraps``: printed so that it wraps."""
    if op.opcode == "select":
        return ternary(*args)
    source, result = element_of(operands[0].type), element_of(op.results[0].type)
    if op.opcode == "cast":
        return cast(args[0], source, result)
    try:
        forms = action(op.opcode, source)
    except TypeError as wrong:
        raise CompileError(f"{wrong}: cast the operand first{f' at {op.loc}' if op.loc else ''}") from None
    if source == BOOL:
        return _apply(forms.cuda, args)
    if source.is_integer:
        return _integer(op, forms, args, source, operands, wraps)
    return _float(op, forms, args, source, result)


def as_float(a: Expr) -> Expr:
    return call("float", a)


def cast(a: Expr, source: ScalarType, to: ScalarType) -> Expr:
    """``a`` converted from ``source`` to ``to``."""
    if to == BOOL:
        return infix("!=", as_float(a), literal(F32, 0.0)) if source.has_struct else infix("!=", a, literal(source, 0))
    if source.width > 64 and to.is_float and to != F64:  # through f64, as the table has it
        return cast(call("double", a), F64, to)
    if to.is_integer:
        return _cast_to_integer(a, source, to)
    if to.has_struct:
        return call(f"tw::to<{to.cuda}>", a if source in (F32, TF32, F64) else as_float(a))
    if source.has_struct:
        return as_float(a) if to in (F32, TF32) else call(to.cuda, as_float(a))
    if to == TF32 and source != TF32:
        return call("tw::to_tf32", a if source == F32 else as_float(a))
    return a if source.cuda == to.cuda else call(to.cuda, a)


def _cast_to_integer(a: Expr, source: ScalarType, to: ScalarType) -> Expr:
    """Floats are rounded towards zero, integers wrap."""
    if source.is_float:
        number = as_float(a) if source.has_struct else a
        if to.width > 64:
            return call(f"tw::wide<{to.cuda}>", number)
        if to.has_struct:
            return call(f"tw::to<{to.cuda}>", a if source in (F32, TF32, F64) else as_float(a))
        if to.width < 32:  # the machine converts to 32 bits; the rest would wrap
            return call(f"tw::whole<{to.cuda}>", number)
        return a if source.cuda == to.cuda else call(to.cuda, number)
    if to.has_struct:
        return call(f"tw::low_bits<{to.cuda}>", call("int", a) if source.has_struct else a)
    if source.has_struct:
        return call(to.cuda, call("int", a))
    if to.width < source.width:
        return narrowed(a, to)
    return a if source.cuda == to.cuda else call(to.cuda, a)


def _apply(text: str, args: Sequence[Expr]) -> Expr:
    """The operator or function ``text`` of the arguments."""
    if len(args) == 1 and text in ("-", "~", "!"):
        return prefix(text, *args)
    return infix(text, *args) if text in PRECEDENCE else call(text, *args)


def _integer(
    op: Op, forms: Action, args: Sequence[Expr], elem: ScalarType, operands: Sequence[Value], wraps: bool
) -> Expr:
    if elem.width > 64 and op.opcode in ("min", "max"):  # CUDA C++ has no overload
        return call(f"tw::{'least' if op.opcode == 'min' else 'greatest'}", *args)
    if elem.width < 32 and op.opcode in ("min", "max"):  # C++ would not know which overload
        args = [call("int", a) for a in args]
    if forms.unsigned and not elem.is_signed:
        result = infix(forms.unsigned, *args) if len(args) == 2 else args[0]
    elif op.opcode in ("floordiv", "floormod"):
        result = _floor_division(op.opcode, forms, args, elem, operands[1])
    else:
        wraps |= op.opcode == "neg" and elem == I32  # see tw::negate
        wraps |= op.opcode == "abs" and elem.width > 64  # there is no abs of them
        result = _apply(forms.wrapping if wraps else forms.cuda.format(T=elem.cuda), args)
    # C++ computes narrow integers as int: the cast brings the result back into their range.
    compared = element_of(op.results[0].type) == BOOL
    return narrowed(result, elem) if elem.width < 32 and not compared else result


def narrowed(a: Expr, to: ScalarType) -> Expr:
    """The low bits of an integer that may have more."""
    return call(f"tw::low_half<{to.cuda}>" if to.width == 16 else to.cuda, a)


def _floor_division(code: str, forms: Action, args: Sequence[Expr], elem: ScalarType, divisor: Value) -> Expr:
    """By a power of two: a shift or a mask, which round down for every sign."""
    number = int(divisor.value) if isinstance(divisor, Constant) else 0
    if number > 0 and number & (number - 1) == 0:
        if code == "floormod":
            return infix("&", args[0], literal(elem, number - 1))
        return infix(">>", args[0], Expr(str(number.bit_length() - 1)))
    return call(forms.cuda.format(T=elem.cuda), *args)


def _float(op: Op, forms: Action, args: Sequence[Expr], elem: ScalarType, result: ScalarType) -> Expr:
    if elem.has_struct:
        if elem.width == 16 and (forms.paired or op.opcode == "div"):
            return _apply(forms.cuda if forms.cuda in PRECEDENCE else f"tw::{op.opcode}", args)
        wide = _full(op, forms, [as_float(a) for a in args], F32, result)
        return wide if result == BOOL else call(f"tw::to<{elem.cuda}>", wide)
    return _full(op, forms, args, elem, result)


def _full(op: Op, forms: Action, args: Sequence[Expr], elem: ScalarType, result: ScalarType) -> Expr:
    """f32 and f64."""
    if op.attrs.get("fastmath") and elem != F64 and forms.fast:
        return call(forms.fast, *args)
    # Functions of f32 end in f (expf); operators and the header's own functions have one name for both.
    single = elem != F64 and forms.cuda.isidentifier() and result != BOOL
    return _apply(f"{forms.cuda}f" if single else forms.cuda, args)
