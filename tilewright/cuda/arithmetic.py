"""The elementwise operations as C++ expressions of one element.

``elementwise(op, elem, args)`` serves scalars and, element by element, vectors. Semantics, where C++ leaves a choice:

- signed 32- and 64-bit integers must not overflow (as in C); narrower ones wrap; unsigned ones wrap;
- f16 and bf16 round after every operation; 8-bit floats compute in f32 and round (saturating) once;
- f32 and f64 products and sums may contract to one fused operation (NVRTC's ``--fmad=true``);
- ``min`` and ``max`` of floats ignore a NaN beside a number; ``round`` rounds ties to even.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.cuda.expressions import MUL, Expr, call, infix, literal, prefix, ternary
from tilewright.errors import CompileError
from tilewright.ir.core import Constant, Op, Value
from tilewright.ir.types import BOOL, F32, F64, I32, TF32, ScalarType, element_of

OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "rem": "%", "and": "&", "or": "|", "xor": "^", "shl": "<<",
    "shr": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
BOOLEAN = {"and": "&&", "mul": "&&", "min": "&&", "or": "||", "max": "||", "add": "||", "xor": "!="}
#: Operations that f16, bf16 and pairs of them have in the device header.
PAIRED = frozenset(("add", "sub", "mul", "fma", "min", "max", "neg", "abs"))
SUFFIXED = "exp exp2 log log2 log10 sin cos tan asin acos atan tanh sqrt erf floor ceil trunc".split()
MATH = {name: f"{name}f" for name in SUFFIXED} | {
    "round": "rintf", "rsqrt": "rsqrtf", "abs": "fabsf", "pow": "powf", "atan2": "atan2f", "copysign": "copysignf",
    "min": "fminf", "max": "fmaxf", "rem": "fmodf", "fma": "fmaf", "floordiv": "tw::floordiv",
    "floormod": "tw::floormod",
}  # fmt: skip
FAST = {
    "exp": "__expf", "exp2": "tw::approx_exp2", "log": "__logf", "log2": "tw::approx_log2", "log10": "__log10f",
    "sin": "__sinf", "cos": "__cosf", "tan": "__tanf", "tanh": "tw::approx_tanh", "sqrt": "tw::approx_sqrt",
    "rsqrt": "tw::approx_rsqrt", "rcp": "tw::approx_rcp", "pow": "__powf", "div": "__fdividef",
}  # fmt: skip
WHOLE = frozenset(("floor", "ceil", "round", "trunc"))


def is_small(elem: ScalarType) -> bool:
    """Floats that have a type of their own in the device header."""
    return elem.is_float and elem.width < 32


def elementwise(op: Op, args: Sequence[Expr], operands: Sequence[Value]) -> Expr:
    """One element of the result of ``op`` from one element of each operand."""
    source, result = element_of(operands[-1].type), element_of(op.results[0].type)
    if op.opcode == "select":
        return ternary(*args)
    if op.opcode == "cast":
        return cast(args[0], source, result)
    if op.opcode in COMPARISONS:
        return infix(OPERATORS[op.opcode], *(as_float(a) if is_small(source) else a for a in args))
    if op.opcode == "isnan":
        return call("isnan", as_float(args[0]) if is_small(source) else args[0])
    if op.opcode == "isinf":
        return call("isinf", as_float(args[0]) if is_small(source) else args[0])
    if source == BOOL:
        return _boolean(op, args)
    if source.is_integer:
        return _integer(op, args, source, operands)
    return _float(op, args, source)


def as_float(a: Expr) -> Expr:
    return call("float", a)


def cast(a: Expr, source: ScalarType, to: ScalarType) -> Expr:
    """``a`` converted from ``source`` to ``to``."""
    if to == BOOL:
        return infix("!=", as_float(a), literal(F32, 0.0)) if is_small(source) else infix("!=", a, literal(source, 0))
    if is_small(to):
        wide = a if source in (F32, TF32, F64) else as_float(a)
        return call(f"tw::to<{to.cuda}>", wide)
    if source.is_float and to.is_integer and to.width < 32:  # the machine converts to 32 bits; the rest would wrap
        return call(f"tw::whole<{to.cuda}>", as_float(a) if is_small(source) else a)
    if is_small(source):
        return as_float(a) if to in (F32, TF32) else call(to.cuda, as_float(a))
    if to == TF32 and source != TF32:
        return call("tw::to_tf32", a if source == F32 else as_float(a))
    return a if source.cuda == to.cuda else call(to.cuda, a)


def _boolean(op: Op, args: Sequence[Expr]) -> Expr:
    if op.opcode == "not":
        return prefix("!", args[0])
    if op.opcode not in BOOLEAN:
        raise CompileError(f"{op.opcode} has no meaning on Booleans{_at(op)}")
    return infix(BOOLEAN[op.opcode], *args)


def _integer(op: Op, args: Sequence[Expr], elem: ScalarType, operands: Sequence[Value]) -> Expr:
    result = _wide_integer(op, args, elem, operands)
    return call(elem.cuda, result) if elem.width < 32 else result


def _wide_integer(op: Op, args: Sequence[Expr], elem: ScalarType, operands: Sequence[Value]) -> Expr:
    code = op.opcode
    if code in ("floordiv", "floormod"):
        return _floor_division(code, args, elem, operands[1])
    if code in OPERATORS:
        return infix(OPERATORS[code], *args)
    if code in ("min", "max"):
        if elem.width < 32:
            return call(code, *(call("int", a) for a in args))
        return call(code, *args)
    if code == "fma":
        return infix("+", infix("*", args[0], args[1]), args[2])
    if code == "neg":
        return call("tw::negate", args[0]) if elem == I32 else prefix("-", args[0])
    if code == "not":
        return prefix("~", args[0])
    if code == "abs":
        return call("abs", args[0]) if elem.is_signed else args[0]
    if code == "pow":
        return call(f"tw::power<{elem.cuda}>", *args)
    if code in WHOLE:
        return args[0]
    raise CompileError(f"{code} of {elem} needs floats: cast the operand first{_at(op)}")


def _floor_division(code: str, args: Sequence[Expr], elem: ScalarType, divisor: Value) -> Expr:
    """By a power of two: a shift or a mask, which round down for every sign."""
    if not elem.is_signed:
        return infix("/" if code == "floordiv" else "%", *args)
    number = int(divisor.value) if isinstance(divisor, Constant) else 0
    if number > 0 and number & (number - 1) == 0:
        if code == "floormod":
            return infix("&", args[0], literal(elem, number - 1))
        return infix(">>", args[0], Expr(str(number.bit_length() - 1)))
    return call(f"tw::{code}<{elem.cuda}>", *args)


def _float(op: Op, args: Sequence[Expr], elem: ScalarType) -> Expr:
    code = op.opcode
    if is_small(elem):
        if elem.width == 16 and (code in PAIRED or code == "div"):
            return _operator_or(code, args, f"tw::{code}")
        return call(f"tw::to<{elem.cuda}>", _full(op, [as_float(a) for a in args], F32))
    return _full(op, args, elem)


def _full(op: Op, args: Sequence[Expr], elem: ScalarType) -> Expr:
    """f32 and f64."""
    code, double = op.opcode, elem == F64
    if op.attrs.get("fastmath") and not double and code in FAST:
        return call(FAST[code], *args)
    if code in ("add", "sub", "mul", "div", "neg"):
        return _operator_or(code, args, "")
    if code == "rcp":
        return Expr(f"{literal(elem, 1.0)} / {args[0].atom}", MUL)
    if code not in MATH:
        raise CompileError(f"{code} has no meaning on {elem}{_at(op)}")
    name = MATH[code]
    return call(name.removesuffix("f") if double and not name.startswith("tw::") else name, *args)


def _operator_or(code: str, args: Sequence[Expr], function: str) -> Expr:
    if code == "neg":
        return prefix("-", args[0])
    return infix(OPERATORS[code], *args) if code in OPERATORS else call(function, *args)


def _at(op: Op) -> str:
    return f" at {op.loc}" if op.loc else ""
