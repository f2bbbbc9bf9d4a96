"""The bases of all numerics: ``Numeric``, ``Integer`` and ``Float``, from which come the types in
:mod:`tilewright.lang.numbers.numeric`, and the ways from Python numbers and run-time values to numerics and back.
"""

from __future__ import annotations

import numbers
import sys
import threading
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, overload

from tilewright.errors import StagingError, explained
from tilewright.ir import types as ir
from tilewright.ir.arithmetic import convert, normalise
from tilewright.ir.builder import Builder
from tilewright.ir.computed import computed
from tilewright.ir.core import Constant, Value
from tilewright.ir.types import ScalarType, Type, VecType
from tilewright.lang.numbers import factors, facts, operators
from tilewright.lang.numbers.classes import CLASS_OF
from tilewright.lang.numbers.facts import Facts
from tilewright.lang.numbers.literals import convertible, is_truth, plain_number
from tilewright.lang.numbers.number_in_memory import NumberInMemory as NumberInMemory
from tilewright.lang.numbers.numeric_class import NumericMeta as NumericMeta
from tilewright.lang.numbers.numeric_class import numeric_type
from tilewright.layout.ints import RuntimeInt

if TYPE_CHECKING:
    from tilewright.lang.numbers.operator_types import IntegerOperators, NumericOperators
else:
    IntegerOperators = NumericOperators = object  # what a table puts into the classes below

N = TypeVar("N", bound="Numeric")
Plain = TypeVar("Plain", int, float, bool)


class _Shown(threading.local):
    count = 0
    asked_by: tuple[CodeType, ...] = ()


SHOWN_UNKNOWN = _Shown()
"""Counts the question marks that stand in texts for numbers, so that who made a text can tell that it has one; and the
functions that were running when the last one was asked for, innermost first."""
_FRAMES = 16


@explained
class Numeric(NumericOperators, metaclass=NumericMeta):
    """Base of all numerics. ``value`` is a Python number or an ``ir.Value``."""

    __slots__ = ("value",)
    __array_priority__ = 1000
    ir_type: ClassVar[ScalarType]

    def __init__(self, value: Any) -> None:
        kind = getattr(type(self), "ir_type", None)
        if kind is None:
            raise TypeError(f"{type(self).__name__} is abstract: use Int32, Float32, ...")
        self.value = _convert(value, kind)

    # -- what it is ----------------------------------------------------------------------------------------------

    if TYPE_CHECKING:  # numeric classes have these names too (NumericMeta), but checkers look here first
        dtype: ClassVar[Any]
        width: ClassVar[int]
    else:

        @property
        def dtype(self) -> type[Self]:
            """The numeric class."""
            return type(self)

        @property
        def width(self) -> int:
            return type(self).ir_type.width

    @property
    def is_static(self) -> bool:
        """Whether the number is known now."""
        return not isinstance(self.value, Value)

    def ir_value(self, *, loc: Any = None, ip: Any = None) -> Value:
        """The value as an operand of the IR."""
        return self.value if isinstance(self.value, Value) else Builder.constant(type(self).ir_type, self.value)

    @overload
    def to(self, dtype: type[N], *, loc: Any = None, ip: Any = None) -> N: ...
    @overload
    def to(self, dtype: type[Plain], *, loc: Any = None, ip: Any = None) -> Plain: ...
    def to(self, dtype: Any, *, loc: Any = None, ip: Any = None) -> Any:
        """Convert to another numeric type, or to ``int``/``float``/``bool`` when the number is known now."""
        if dtype in (int, float, bool):
            if not self.is_static:
                raise StagingError(f"a run-time {type(self).__name__} has no Python value while staging")
            return dtype(self.value)
        return self if dtype is type(self) else numeric_type("to", dtype)(self)

    def bitcast(self, dtype: type[N], *, loc: Any = None, ip: Any = None) -> N:
        """The same bits as another type of the same width."""
        if dtype.width != self.width:
            raise StagingError(
                f"bitcast from {type(self)} ({self.width} bits) to {dtype} ({dtype.width} bits) changes the width"
            )
        if self.width > 64:  # integers both: the conversion keeps the bits
            return dtype(self)
        if self.is_static:
            import numpy as np

            number = np.asarray(self.value).astype(type(self).ir_type.dtype).view(dtype.dtype).item()
            # Python's numbers keep no NaN's other bits: in a program the machine makes it.
            if number == number or not Builder.active():
                return dtype(number)
        return dtype(Builder.current().bitcast(self.ir_value(), dtype.ir_type))

    # -- the protocol --------------------------------------------------------------------------------------------

    def __extract_mlir_values__(self) -> list[Value]:
        return [self.ir_value()]

    def __new_from_mlir_values__(self, values: list[Value]) -> Self:
        return type(self)(values[0])

    def __get_mlir_types__(self) -> list[Type]:
        return [type(self).ir_type]

    def __c_pointers__(self) -> list[Any]:
        return [self.value]

    # -- operators -----------------------------------------------------------------------------------------------

    def __pos__(self) -> Self:
        return self

    def __divmod__(self, other: Any) -> Any:
        return (self // other, self % other) if is_number(other) else NotImplemented

    def __rdivmod__(self, other: Any) -> Any:
        return (other // self, other % self) if is_number(other) else NotImplemented

    def __round__(self, digits: None = None) -> Any:
        """The nearest whole number, ties to even, in the same type (Python gives an int); ``.to(Int32)`` converts it.

        >>> from tilewright import Float32, Int32
        >>> round(Float32(2.5)), round(Int32(3))
        (Float32(2.0), Int32(3))
        """
        if digits is not None:
            raise StagingError(f"round({self!r}, {digits!r}): numerics round to whole numbers only")
        return operators.unary("round", self) if type(self).is_float else self

    def __str__(self) -> str:
        """The number outside jit functions; a question mark inside, where ``print`` runs before the program does."""
        return str(self.value) if self.is_static and not Builder.active() else _unknown()

    def __repr__(self) -> str:
        """``Int32(3)``; a run-time number is ``?``, as in layouts, so that tuples print as documented."""
        return f"{type(self).__name__}({self.value})" if self.is_static else _unknown()

    def __format__(self, spec: str) -> str:
        """Text for f-strings while staging; a run-time number is a question mark, whatever the format."""
        return format(self.value, spec) if self.is_static and not Builder.active() else _unknown()

    def __hash__(self) -> int:
        return hash(self.value)

    def __bool__(self) -> bool:
        if self.is_static:
            return bool(self.value)
        raise StagingError(
            f"a run-time {type(self).__name__} has no truth value while staging: write `if`, `and`, `or`, `not` in a "
            "function marked @cute.jit or @cute.kernel, use cute.where for a choice of values, or "
            "const_expr() for what must be known now"
        )

    def _python(self, what: str) -> Any:
        if self.is_static:
            return self.value
        name = type(self).__name__
        known_later = f"a run-time {name} cannot be used as {what}: its number is known when the kernel runs."
        if type(self).is_float or what == "a Python float":
            to = "Float32" if what == "a Python float" else "Int32"
            advice = f"Use cute.math instead of Python's math (cute.math.exp(x)), and x.to({to}) to convert"
            raise StagingError(f"{known_later} {advice}")
        raise StagingError(
            f"{known_later} Loops over it need `range` inside a @cute.jit or @cute.kernel function; range_constexpr, "
            "list indices and layouts' modes need Python ints; what a run-time index chooses from is a tensor, for "
            "example of registers (cute.make_rmem_tensor)"
        )

    def __index__(self) -> int:
        return int(self._python("a Python index"))

    def __int__(self) -> int:
        return int(self._python("a Python int"))

    def __float__(self) -> float:
        return float(self._python("a Python float"))


def _unknown() -> str:
    SHOWN_UNKNOWN.count += 1
    codes: list[CodeType] = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and len(codes) < _FRAMES:
        codes.append(frame.f_code)
        frame = frame.f_back
    SHOWN_UNKNOWN.asked_by = tuple(codes)
    return "?"


def _binary(opcode: str, compare: bool = False) -> tuple[Any, Any]:
    act = operators.compare if compare else operators.binary

    def forward(self: Any, other: Any, modulus: Any = None) -> Any:  # the third one is of pow(), and refused
        return act(opcode, self, other) if modulus is None and is_number(other) else NotImplemented

    def reflected(self: Any, other: Any) -> Any:
        return act(opcode, other, self) if is_number(other) else NotImplemented

    return forward, reflected


def _install(cls: Any, table: dict[str, str]) -> None:
    for name, opcode in table.items():
        forward, reflected = _binary(opcode)
        setattr(cls, f"__{name}__", forward)
        setattr(cls, f"__r{name}__", reflected)


ARITHMETIC = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "truediv",
    "floordiv": "floordiv",
    "mod": "floormod",
    "pow": "pow",
}
BITWISE = {"and": "and", "or": "or", "xor": "xor", "lshift": "shl", "rshift": "shr"}


def is_number(x: Any) -> bool:
    """Whether ``x`` may be the other operand of a numeric: a numeric or a Python number."""
    return type(x) is int or (isinstance(x, (Numeric, numbers.Real)) and not isinstance(x, Value)) or is_truth(x)


def _unary(opcode: str) -> Any:
    return lambda self: operators.unary(opcode, self)


_install(Numeric, ARITHMETIC)
for _name in ("neg", "abs"):
    setattr(Numeric, f"__{_name}__", _unary(_name))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Numeric, f"__{_name}__", _binary(_name, compare=True)[0])


class Integer(Numeric, RuntimeInt, IntegerOperators):  # type: ignore[misc]  # mypy compares bases before it types aliases
    """Base of the integers and Boolean. ``facts`` says what is known of a run-time one.

    >>> from tilewright import Int16, Int32, Int64
    >>> Int32(7) // -2, Int32(7) % -2, Int16(1) + Int32(2), Int32(1) + Int64(2)  # Python's rounding, C's promotion
    (Int32(-4), Int32(-1), Int32(3), Int64(3))
    >>> issubclass(Int32, Integer)
    True
    """

    __slots__ = ("facts",)

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        if not isinstance(self.value, Value):
            self.facts = facts.of_number(int(self.value))
        elif isinstance(value, Integer):
            same = type(value) is type(self)
            self.facts = value.facts if same else facts.converted(value.facts, type(value).ir_type, type(self).ir_type)
        elif type(self).ir_type.kind == "bool":
            self.facts = Facts(True, 1, 2)
        else:
            self.facts = Facts(type(self).ir_type.kind == "uint", 1, None)

    @property
    def nonneg(self) -> bool:
        """Whether the number is provably not negative."""
        return self.facts.nonneg or type(self).ir_type.kind == "uint"

    @computed
    def bits(self) -> int:
        return type(self).ir_type.width

    @computed
    def divisibility(self) -> int:
        """A known divisor of the number."""
        return self.facts.divisibility

    def learn(self, known: Facts) -> Self:
        """Attach facts to this object, and return it."""
        if isinstance(self.value, Value):
            self.facts = known
        return self

    def with_divisibility(self, divisor: int) -> Self:
        """This number with the promise that ``divisor`` divides it."""
        if self.is_static:
            if self.value % divisor:
                raise StagingError(f"assume: {self.value} is not divisible by {divisor}")
            return self
        import math

        kept = type(self)(self.value)
        return kept.learn(self.facts._replace(divisibility=math.lcm(self.divisibility, divisor)))

    def assume_nonneg(self, bound: int | None = None) -> Self:
        """This number with the promise that it is not negative (and below ``bound``)."""
        if self.is_static:
            return self
        kept = type(self)(self.value)
        return kept.learn(self.facts._replace(nonneg=True, bound=self.facts.bound if bound is None else bound))

    def is_same(self, other: Any) -> bool:
        """Provably the same number: the same IR value, or equal static numbers."""
        if isinstance(other, Integer):
            if self.is_static and other.is_static:
                return bool(self.value == other.value)
            return not self.is_static and not other.is_static and factors.same(self.value, other.value)
        return self.is_static and isinstance(other, int) and bool(self.value == other)

    def minimum(self, other: Any) -> Any:
        """The lesser of the two."""
        return operators.binary("min", self, other)

    def require(self, condition: Any, text: str) -> None:
        """A condition of the layout algebra: checked now if it is known, else by the simulator in the run."""
        if not isinstance(condition, Numeric) or condition.is_static:
            if not bool(condition.value if isinstance(condition, Numeric) else condition):
                raise StagingError(text)
        elif Builder.active():
            Builder.current().emit("assert", (condition.ir_value(),), (), {"message": text, "simulated": True})

    def known_quotient(self, other: Any, proven: bool = False) -> Any:
        """``self / other`` where the multiplications that made this number show that it is whole; else None.

        Layouts assume that their index arithmetic does not overflow; ``proven``: only such products count.
        """
        divisor = other.value if isinstance(other, Integer) else other
        if not isinstance(self.value, Value) or type(divisor) not in (int, Value):
            return None
        quotient = factors.quotient(self.value, divisor, proven)
        if not isinstance(quotient, Value):
            return quotient
        other_facts = other.facts if isinstance(other, Integer) else facts.of_number(other)
        return wrap(quotient, facts.combine("div", self.facts, other_facts))

    def __new_from_mlir_values__(self, values: list[Value]) -> Self:
        made = type(self)(values[0])
        return made.learn(self.facts) if values[0] is self.value else made

    def __invert__(self) -> Self:
        return operators.unary("not", self)


_install(Integer, BITWISE)
_install(Integer, ARITHMETIC)  # over RuntimeInt's abstract ones, and shared by attribute lookup with Numeric's


class Float(Numeric):
    """Base of the floating-point types.

    >>> from tilewright import Float16, Float32
    >>> Float16(1) / 3, Float16(1) * 2.0, Float16(1) + Float32(1)  # Python's floats take the other's type
    (Float16(0.333251953125), Float16(2.0), Float32(2.0))
    >>> issubclass(Float16, Float)
    True
    """

    __slots__ = ()


def class_of(elem: ScalarType) -> Any:
    """The numeric class of a scalar type."""
    return CLASS_OF[elem]


def wrap(value: Value, known: Facts | None = None) -> Any:
    """A scalar ``ir.Value`` as a numeric of its type."""
    made = CLASS_OF[value.type](value)  # type: ignore[index]  # a scalar
    return made.learn(known) if known is not None else made


def as_numeric(x: Any) -> Any:
    """``x`` as a numeric: Python literals become Boolean, Int32 (Int64 when they do not fit) or Float32.

    >>> import tilewright.lang.numbers.numeric  # the types
    >>> as_numeric(3), as_numeric(2.5), as_numeric(True), as_numeric(1 << 40)
    (Int32(3), Float32(2.5), Boolean(True), Int64(1099511627776))
    """
    if isinstance(x, Numeric):
        return x
    if isinstance(x, Value):
        return wrap(x)
    if isinstance(x, NumberInMemory):
        return x.load()
    from tilewright.lang.numbers import promote

    plain = plain_number(x)
    return CLASS_OF[promote.default(plain)](plain)


def unwrap(x: Any) -> Any:
    """An integer numeric whose number is known now as a Python int; anything else as it is."""
    return int(x.value) if isinstance(x, Integer) and x.is_static else x


def _convert(value: Any, kind: ScalarType) -> Any:
    if type(value) is int:  # most are; or the result of an op, below
        return normalise(kind, value)
    if type(value) is Value and value.type == kind:
        return value
    if isinstance(value, NumberInMemory):
        value = value.load()
    if isinstance(value, Numeric):
        other, value = type(value).ir_type, value.value
        if other != kind and not isinstance(value, Value):
            return convert(other, kind, convertible(value, kind))
    if isinstance(value, Constant) and not isinstance(value.type, VecType):
        value = value.value
    if not isinstance(value, Value):
        return normalise(kind, plain_number(value, kind))
    if not isinstance(value.type, ScalarType):
        raise StagingError(f"{value.type} is not a scalar: a {CLASS_OF[kind].__name__} needs one number")
    if value.type == kind:
        return value
    builder = Builder.current()
    if kind == ir.BOOL:
        return builder.compare("ne", value, builder.constant(value.type, 0))
    return builder.cast(value, kind)
