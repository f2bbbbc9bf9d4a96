"""``cutlass._mlir.dialects.arith``: arithmetic on numbers and vectors by MLIR's names; the operators do the same.

Integers of 32 bits are ``T.i32()``, signed; what an operation takes as unsigned (``divui``, ``shrui``, ``extui``) is in
its name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright._names import attach
from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.types import SCALARS, ScalarType, Type, VecType, element_of, with_element
from tilewright.lang.device.calls import operand
from tilewright.lang.numbers.numeric import wrap

_BINARY = {
    "addi": "add",
    "subi": "sub",
    "muli": "mul",
    "divsi": "div",
    "remsi": "rem",
    "shli": "shl",
    "shrsi": "shr",
    "andi": "and",
    "ori": "or",
    "xori": "xor",
    "maxsi": "max",
    "minsi": "min",
    "addf": "add",
    "subf": "sub",
    "mulf": "mul",
    "divf": "div",
    "maxnumf": "max",
    "minnumf": "min",
}
_OF_NAN = {"maximumf": "max", "minimumf": "min"}  # what these give beside a NaN is a NaN
_OF_UNSIGNED = {"divui": "div", "remui": "rem", "shrui": "shr", "maxui": "max", "minui": "min"}
_CASTS = {  # from integers or floats, to which, and whether to more bits (1), to fewer (-1) or to any (0)
    "extsi": ("integer", "integer", 1),
    "trunci": ("integer", "integer", -1),
    "extf": ("float", "float", 1),
    "truncf": ("float", "float", -1),
    "sitofp": ("integer", "float", 0),
    "fptosi": ("float", "integer", 0),
}
_CASTS_OF_UNSIGNED = {"extui": ("integer", "integer", 1), "uitofp": ("integer", "float", 0)}

__all__ = ["bitcast", "constant", "select", *_BINARY, *_OF_NAN, *_OF_UNSIGNED, *_CASTS, *_CASTS_OF_UNSIGNED]


def _value(x: Any) -> Value:
    """The IR value of a number of the language, of Python, or of a value of the IR itself."""
    return x if isinstance(x, Value) else x.ir_value() if hasattr(x, "ir_value") else operand(x)


def _as_given(value: Value) -> Any:
    """A scalar as a number of the language; a vector stays a value of the IR."""
    return wrap(value) if isinstance(value.type, ScalarType) else value


def constant(result: Any, value: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """``value`` as a number of the type ``result``."""
    if not isinstance(result, ScalarType):
        raise ConstraintError(f"arith.constant: a type of one number such as T.i32(), not {result}")
    return wrap(Builder.constant(result, value))


def select(condition: Any, true_value: Any, false_value: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """One of two values."""
    a, b = _value(true_value), _value(false_value)
    if a.type != b.type:
        raise ConstraintError(f"arith.select: {a.type} or {b.type}: both must have one type")
    return _as_given(Builder.current().select(_value(condition), a, b))


def bitcast(out: Any, in_: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The same bits as another type."""
    value = _value(in_)
    if not isinstance(out, Type) or _bits(out) != _bits(value.type):
        raise ConstraintError(f"bitcast of {value.type} to {out}: both must have as many bits")
    return _as_given(Builder.current().bitcast(value, out))


def _bits(kind: Type) -> int:
    if not isinstance(kind, (ScalarType, VecType)):
        raise ConstraintError(f"{kind} is not a type of numbers")
    return kind.width if isinstance(kind, ScalarType) else kind.n * kind.elem.width


def _as_unsigned(value: Value, unsigned: bool = True) -> Value:
    """The same bits as unsigned integers, or back."""
    kind = element_of(value.type)
    if not kind.is_integer:
        raise ConstraintError(f"integers are needed, not {value.type}")
    target = SCALARS[f"{'u' if unsigned else 'i'}{kind.width}"]
    return Builder.current().bitcast(value, with_element(value.type, target))


def _binary(name: str) -> Callable[..., Any]:
    opcode, unsigned = (_BINARY | _OF_NAN | _OF_UNSIGNED)[name], name in _OF_UNSIGNED

    def emit(lhs: Any, rhs: Any, *, loc: Any = None, ip: Any = None) -> Any:
        a, b = _value(lhs), _value(rhs)
        if a.type != b.type or element_of(a.type).is_float != name.endswith("f"):
            raise ConstraintError(f"arith.{name} of {a.type} and {b.type}")
        kind = element_of(a.type)
        if kind.is_integer and unsigned != (kind.kind == "uint") and opcode not in ("add", "sub", "mul"):
            made = Builder.current().binary(opcode, _as_unsigned(a, unsigned), _as_unsigned(b, unsigned))
            return _as_given(_as_unsigned(made, not unsigned))
        builder = Builder.current()
        made = builder.binary(opcode, a, b)
        # The table's min and max give the other operand beside a NaN, as PTX does; MLIR's maximumf and minimumf do not.
        for side in (b, a) if name in _OF_NAN else ():
            made = builder.select(builder.predicate("isnan", side), side, made)
        return _as_given(made)

    emit.__name__ = name
    return emit


def _cast(name: str) -> Callable[..., Any]:
    source, target, longer = (_CASTS | _CASTS_OF_UNSIGNED)[name]

    def is_a(kind: ScalarType, family: str) -> bool:
        return kind.is_integer if family == "integer" else kind.is_float

    def emit(out: Any, in_: Any, *, loc: Any = None, ip: Any = None) -> Any:
        value = _value(in_)
        if not isinstance(out, (ScalarType, VecType)):
            raise ConstraintError(f"arith.{name}: a type such as T.f32() first, not {out!r}")
        old, new = element_of(value.type), element_of(out)
        fits = is_a(old, source) and is_a(new, target) and (not longer or (new.width - old.width) * longer > 0)
        if not fits or with_element(value.type, new) != out:
            raise ConstraintError(f"arith.{name}: from {value.type} to {out}")
        if element_of(value.type).is_integer:
            value = _as_unsigned(value, name in _CASTS_OF_UNSIGNED)
        return _as_given(Builder.current().cast(value, element_of(out)))

    emit.__name__ = name
    return emit


globals().update({name: _binary(name) for name in _BINARY | _OF_NAN | _OF_UNSIGNED})
globals().update({name: _cast(name) for name in _CASTS | _CASTS_OF_UNSIGNED})
attach(__name__)
