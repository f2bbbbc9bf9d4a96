"""TensorSSA: the value of a whole (register-sized) tensor, with elementwise arithmetic, broadcasting and reductions.

Elements are held in one IR vector in colexicographic order of the shape (mode 0 fastest), which is the order of a
tensor's 1-D coordinates. A TensorSSA is immutable; a tensor's ``load()`` makes one and ``store()`` takes one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.errors import ConstraintError, explained
from tilewright.ir import types as ir
from tilewright.ir.builder import Builder
from tilewright.ir.core import Constant, Value
from tilewright.ir.types import BOOL, ScalarType, Type, VecType
from tilewright.lang.numbers import operators, promote
from tilewright.lang.numbers.dtypes import type_text
from tilewright.lang.numbers.numeric import (
    ARITHMETIC,
    BITWISE,
    Boolean,
    NumberInMemory,
    Numeric,
    as_numeric,
    class_of,
    is_number,
    unwrap,
    wrap,
)
from tilewright.lang.tensors.bounds import inside
from tilewright.lang.tensors.tensor_reduction import ReductionOp as ReductionOp
from tilewright.lang.tensors.tensor_reduction import as_vector, first_operand, neutral, reduction_kind
from tilewright.lang.tensors.tensor_shapes import broadcast_picks, broadcast_shape, joined, reduction_groups, rescaled
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import as_int_tuple, flatten_to_tuple, product
from tilewright.location_keywords import takes_location


@takes_location
@explained
class TensorSSA:
    """The elements ``value`` (an IR vector) of a tensor of static ``shape`` with elements of class ``dtype``."""

    __slots__ = ("dtype", "shape", "value")
    __array_priority__ = 1001

    def __init__(self, value: Any, shape: Any, dtype: Any) -> None:
        self.value: Value = value.value if isinstance(value, TensorSSA) else value
        self.shape = as_int_tuple(shape)
        self.dtype = dtype

    element_type = property(lambda self: self.dtype)

    @property
    def numel(self) -> int:
        """How many elements."""
        return int(product(self.shape))

    def ir_value(self, *, loc: Any = None, ip: Any = None) -> Value:
        return self.value

    def to_vector(self, *, loc: Any = None, ip: Any = None) -> Value:
        """The elements as a vector of the program, in the order of 1-D coordinates; :meth:`from_vector` takes it."""
        return self.value

    @staticmethod
    def from_vector(value: Any, *, dtype: Any = None, shape: Any = None, loc: Any = None, ip: Any = None) -> TensorSSA:
        """A vector of the program as the elements of a tensor of ``shape``, or of one mode."""
        kind = value.type
        if not isinstance(kind, VecType):
            raise ConstraintError(f"TensorSSA.from_vector takes a vector, not {kind}")
        tensor = TensorSSA(value, kind.n, class_of(kind.elem) if dtype is None else dtype)
        return tensor if shape is None else tensor.reshape(shape)

    def apply_op(self, op: Any, other: Any, flip: bool = False, *, loc: Any = None, ip: Any = None) -> Any:
        """``op(self, other)``, with ``flip`` ``op(other, self)``."""
        return op(other, self) if flip else op(self, other)

    def __str__(self) -> str:
        extents = "x".join(map(str, flatten_to_tuple(self.shape)))
        return f"tensor_value<vector<{extents}x{type_text(self.dtype.ir_type)}> o {format_tree(self.shape)}>"

    __repr__ = __str__

    # -- elements ------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        """The elements one after another, the first mode fastest, as those of a tensor."""
        for i in range(self.numel):
            yield self[i]

    def to_elements(self, *, loc: Any = None, ip: Any = None) -> tuple[Any, ...]:
        """The elements as numbers, the first mode fastest."""
        return tuple(self)

    def __getitem__(self, coord: Any, *, loc: Any = None, ip: Any = None) -> Any:
        """An element as a numeric, or a slice (None keeps a mode) as a TensorSSA."""
        from tilewright.layout.layout import Layout, has_underscore
        from tilewright.layout.slicing import slice_and_offset

        layout = Layout(self.shape)
        coord = tuple(map(unwrap, coord)) if isinstance(coord, (tuple, list)) else unwrap(coord)
        if not inside(coord, self.shape):
            raise ConstraintError(f"the coordinate {format_tree(coord)} is outside the shape {format_tree(self.shape)}")
        if has_underscore(coord):
            part, offset = slice_and_offset(coord, layout)
            offset, picks = unwrap(offset), [part(i) for i in range(product(part.shape))]
            if not isinstance(offset, int):
                return TensorSSA(self._pick(offset, picks), part.shape, self.dtype)
            picks = [offset + pick for pick in picks]
            if not 0 <= offset <= max(picks) < self.numel:
                raise ConstraintError(f"the slice {coord} is outside the shape {format_tree(self.shape)}")
            return TensorSSA(Builder.current().shuffle(self.value, picks), part.shape, self.dtype)
        index = unwrap(layout(coord))
        if not isinstance(index, int):
            return wrap(Builder.current().extract(self._pick(index, [0]), 0))
        if not 0 <= index < self.numel:
            raise ConstraintError(f"index {coord} is outside the shape {format_tree(self.shape)}")
        return wrap(Builder.current().extract(self.value, index))

    def _pick(self, index: Any, offsets: Sequence[int]) -> Value:
        """The elements at a run-time index plus ``offsets``: through registers."""
        from tilewright.lang.tensors.registers import alloc

        if self.dtype.ir_type.packed:  # registers hold these without gaps
            picked = self.to(class_of(ir.F32))._pick(index, offsets)
            return TensorSSA(picked, (len(offsets),), class_of(ir.F32)).to(self.dtype).value
        registers = alloc(self.dtype, self.numel)
        registers.store(self.value, list(range(self.numel)))
        return registers.load(offsets, index)

    def reshape(self, shape: Any, *, loc: Any = None, ip: Any = None) -> TensorSSA:
        """The same elements in the same order under another shape."""
        shape = as_int_tuple(shape)
        if product(shape) != self.numel:
            raise ConstraintError(
                f"reshape from {format_tree(self.shape)} to {format_tree(shape)} changes the number of elements"
            )
        return TensorSSA(self.value, shape, self.dtype)

    def to(self, dtype: Any, *, loc: Any = None, ip: Any = None) -> TensorSSA:
        """Every element converted."""
        if dtype is self.dtype:
            return self
        if not (isinstance(dtype, type) and hasattr(dtype, "ir_type")):
            raise ConstraintError(f"a TensorSSA converts to numeric classes such as Float16, not to {dtype!r}")
        builder = Builder.current()
        if dtype.ir_type == BOOL:
            zero = Constant(self.value.type, 0.0 if self.dtype.is_float else 0)
            return TensorSSA(builder.compare("ne", self.value, zero), self.shape, dtype)
        return TensorSSA(builder.cast(self.value, dtype.ir_type), self.shape, dtype)

    def bitcast(self, dtype: Any, *, loc: Any = None, ip: Any = None) -> TensorSSA:
        """The same bits as ``dtype``; where the width changes, mode 0 shrinks or grows."""
        count = self.numel * self.dtype.width // dtype.width
        shape = self.shape
        if count != self.numel:
            if self.numel * self.dtype.width % dtype.width:
                raise ConstraintError(f"bitcast of {self} to {dtype}: the bits do not come in whole {dtype}s")
            shape = rescaled(shape, self.dtype.width, dtype.width)
        vector = Builder.current().bitcast(self.value, VecType(dtype.ir_type, count))
        return TensorSSA(vector, shape, dtype)

    # -- broadcasting --------------------------------------------------------------------------------------------

    def broadcast_to(self, target_shape: Any, *, loc: Any = None, ip: Any = None) -> TensorSSA:
        """The elements repeated along modes of extent 1 (missing trailing modes count as 1) to ``target_shape``."""
        target = as_int_tuple(target_shape)
        if target == self.shape:
            return self
        picks = broadcast_picks(self.shape, target)
        return TensorSSA(Builder.current().shuffle(self.value, picks), target, self.dtype)

    # -- arithmetic ----------------------------------------------------------------------------------------------

    def combine(self, opcode: str, left: Any, right: Any, compare: bool = False) -> TensorSSA:
        """``left opcode right`` elementwise after promotion and broadcasting; one of them is this value."""
        left, right = (x if isinstance(x, TensorSSA) else operators.as_literal(x) for x in (left, right))
        if compare and (decided := operators.decided(opcode, left, right)) is not None:
            return full(broadcast_shape(left, right), decided, Boolean)
        if opcode in operators.SHIFTS:
            kind = operators.shift_type(opcode, *(x.dtype if isinstance(x, TensorSSA) else x for x in (left, right)))
            right = _counts(right, kind)
        else:
            kind = self._common(opcode, left, right, compare)
        if opcode == "truediv":
            kind, opcode = promote.quotient(kind), "div"
        cls = class_of(kind)
        shape = broadcast_shape(left, right)
        a, b = broadcast_operand(left, cls, shape), broadcast_operand(right, cls, shape)
        builder = Builder.current()
        if compare:
            return TensorSSA(builder.compare(opcode, a, b), shape, Boolean)
        return TensorSSA(builder.binary(opcode, a, b), shape, cls)

    def _common(self, opcode: str, left: Any, right: Any, compare: bool) -> Any:
        types = [getattr(x, "dtype", None) for x in (left, right)]
        kinds = [t.ir_type if t is not None else None for t in types]
        if opcode in ("and", "or", "xor") or compare:
            if all(k == BOOL or (k is None and isinstance(x, bool)) for k, x in zip(kinds, (left, right), strict=True)):
                return BOOL
        if None in kinds:
            kind = next(k for k in kinds if k is not None)
            number = right if kinds[1] is None else left
            return promote.common(kind, promote.literal(number, kind))
        return promote.common(*kinds)

    def map(self, opcode: str, **attrs: Any) -> TensorSSA:
        """A unary op on every element."""
        kind = self.dtype.ir_type if opcode == "not" else promote.arithmetic(self.dtype.ir_type)
        value = self.to(class_of(kind)).value
        return TensorSSA(Builder.current().unary(opcode, value, **attrs), self.shape, class_of(kind))

    def __neg__(self) -> TensorSSA:
        return self.map("neg")

    def __pos__(self) -> TensorSSA:
        return self

    def __abs__(self) -> TensorSSA:
        return self.map("abs")

    def __invert__(self) -> TensorSSA:
        return self.map("not")

    def __bool__(self) -> bool:
        raise ConstraintError("a TensorSSA has no truth value: reduce it with cute.any_() or cute.all_()")

    __hash__ = object.__hash__

    if TYPE_CHECKING:  # what _install adds

        def __add__(self, other: TensorSSA | Numeric | float) -> TensorSSA: ...

        __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __pow__ = __rpow__ = __truediv__ = __rtruediv__ = __add__
        __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __lshift__ = __rlshift__ = __add__
        __rshift__ = __rrshift__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __add__
        __lt__ = __le__ = __gt__ = __ge__ = __add__

        def __eq__(self, other: object) -> TensorSSA: ...  # type: ignore[override]  # element by element
        def __ne__(self, other: object) -> TensorSSA: ...  # type: ignore[override]  # element by element

    # -- reduction -----------------------------------------------------------------------------------------------

    def reduce(
        self, op: Any, init_val: Any = None, reduction_profile: Any = 0, *, loc: Any = None, ip: Any = None
    ) -> Any:
        """Fold elements with ``op`` (ADD, MUL, MAX, MIN), starting from ``init_val``.

        ``reduction_profile``: 0 reduces everything to a numeric; a tuple has None for the modes that stay and 1 (any
        number) for those that are reduced, e.g. ``(None, 1)`` gives one result per element of mode 0.

        The folding order is by 1-D coordinate, so that results are the same on every machine.
        """
        kind = reduction_kind(op)
        groups, shape = reduction_groups(self.shape, reduction_profile)
        value = (
            self
            if promote.arithmetic(self.dtype.ir_type) == self.dtype.ir_type
            else self.to(class_of(promote.arithmetic(self.dtype.ir_type)))
        )
        if init_val is None:
            init_val = neutral(kind, value.dtype)
        start = first_operand(init_val, value.dtype, kind)
        result = Builder.current().reduce(value.value, kind, groups, start)
        return wrap(result) if shape is None else TensorSSA(as_vector(result, len(groups)), shape, value.dtype)

    def any(self) -> Any:
        return any_(self)

    def all(self) -> Any:
        return all_(self)

    # -- the protocol --------------------------------------------------------------------------------------------

    __carry_immutable__ = True

    def __extract_mlir_values__(self) -> list[Value]:
        return [self.value]

    def __new_from_mlir_values__(self, values: list[Value]) -> TensorSSA:
        return TensorSSA(values[0], self.shape, self.dtype)

    def __get_mlir_types__(self) -> list[Type]:
        return [self.value.type]

    def __carry_key__(self) -> Any:
        return (self.shape, self.dtype)


def _install() -> None:
    def add(name: str, opcode: str, compare: bool = False) -> None:
        def forward(self: TensorSSA, other: Any) -> Any:
            return self.combine(opcode, self, other, compare) if _is_operand(other) else NotImplemented

        def reflected(self: TensorSSA, other: Any) -> Any:
            return self.combine(opcode, other, self, compare) if _is_operand(other) else NotImplemented

        setattr(TensorSSA, f"__{name}__", forward)
        if not compare:
            setattr(TensorSSA, f"__r{name}__", reflected)

    for name, opcode in {**ARITHMETIC, **BITWISE}.items():
        add(name, opcode)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        add(name, name, compare=True)


_install()


def _is_operand(x: Any) -> bool:
    return isinstance(x, TensorSSA) or is_number(x)


def _counts(count: Any, kind: ScalarType) -> Any:
    """:func:`operators.shift_count`, of one number or element by element."""
    if not isinstance(count, TensorSSA):
        return operators.shift_count(count, kind)
    if count.dtype.width <= kind.width:
        return count
    whole = count.to(class_of(promote.unsigned(count.dtype.ir_type)))
    return whole.combine("min", whole, kind.width)


def broadcast_operand(x: Any, cls: Any, shape: Any) -> Value:
    """A TensorSSA or a number as the vector of ``cls`` elements of ``shape``."""
    if isinstance(x, TensorSSA):
        return x.to(cls).broadcast_to(shape).value
    return Builder.current().splat(cls(x).ir_value(), int(product(shape)))


# -- making and choosing -------------------------------------------------------------------------------------------


def full(shape: Any, fill_value: Any, dtype: Any = None, *, loc: Any = None, ip: Any = None) -> TensorSSA:
    """A TensorSSA of ``shape`` with every element ``fill_value``.

    >>> from tilewright import Int32
    >>> def sums(t):
    ...     x = cute.full((2, 3), 7, Int32)
    ...     return x.reduce(cute.ReductionOp.ADD, 0, 0) + t
    >>> per_thread(sums, 3)
    [42, 43, 44]
    """
    number = as_numeric(fill_value) if dtype is None else dtype(fill_value)
    shape = as_int_tuple(getattr(shape, "shape", shape))
    return TensorSSA(Builder.current().splat(number.ir_value(), int(product(shape))), shape, type(number))


def full_like(a: Any, fill_value: Any, dtype: Any = None, *, loc: Any = None, ip: Any = None) -> TensorSSA:
    """:func:`full` with the shape (and the element type, unless given) of a tensor or TensorSSA.

    >>> def clear(t, p):
    ...     x = cute.make_tensor(p + 2 * t, 2)
    ...     x.store(cute.full_like(x, -1))
    >>> per_thread(clear, 2, memory=[1, 2, 3, 4, 5])[1]
    [-1, -1, -1, -1, 5]
    """
    return full(a.shape, fill_value, dtype if dtype is not None else a.element_type)


def zeros_like(a: Any, dtype: Any = None, *, loc: Any = None, ip: Any = None) -> TensorSSA:
    """A TensorSSA of zeros with the shape (and the element type, unless given) of a tensor or TensorSSA.

    >>> def relu(t, p):
    ...     x = cute.make_tensor(p + 2 * t, 2)
    ...     values = x.load()
    ...     x.store(cute.where(values > 0, values, cute.zeros_like(values)))
    >>> per_thread(relu, 2, memory=[1, -2, -3, 4])[1]
    [1, 0, 0, 4]
    """
    return full_like(a, 0, dtype)


def ones_like(a: Any, dtype: Any = None, *, loc: Any = None, ip: Any = None) -> TensorSSA:
    """A TensorSSA of ones with the shape (and the element type, unless given) of a tensor or TensorSSA.

    >>> def increment(t, p):
    ...     x = cute.make_tensor(p + 2 * t, 2)
    ...     x.store(x.load() + cute.ones_like(x))
    >>> per_thread(increment, 2, memory=[1, 2, 3, 4])[1]
    [2, 3, 4, 5]
    """
    return full_like(a, 1, dtype)


def empty_like(a: Any, dtype: Any = None, *, loc: Any = None, ip: Any = None) -> TensorSSA:
    """A TensorSSA whose elements are of no interest (they are zero).

    >>> def shape(t, p):
    ...     print(cute.empty_like(cute.make_tensor(p, (2, 2))))
    >>> _ = per_thread(shape, 1, memory=range(4))
    tensor_value<vector<2x2xi32> o (2,2)>
    """
    return full_like(a, 0, dtype)


def where(cond: Any, x: Any, y: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """``x`` where ``cond``, else ``y``; numbers broadcast. With three numbers: a choice without a branch.

    >>> where(True, 1, 2)
    1
    """
    cond, x, y = (v.load() if isinstance(v, NumberInMemory) else v for v in (cond, x, y))
    tensors = [t for t in (cond, x, y) if isinstance(t, TensorSSA)]
    if not tensors:
        return operators.select(cond, x, y)
    shape = tensors[0].shape
    for tensor in tensors[1:]:
        shape = joined(shape, tensor.shape, shape, tensor.shape) if shape != tensor.shape else shape
    cls = _result_class(x, y)
    test = broadcast_operand(cond, Boolean, shape) if isinstance(cond, TensorSSA) else Boolean(cond).ir_value()
    chosen = Builder.current().select(test, broadcast_operand(x, cls, shape), broadcast_operand(y, cls, shape))
    return TensorSSA(chosen, shape, cls)


def _result_class(x: Any, y: Any) -> Any:
    a: Any = x.dtype if isinstance(x, (TensorSSA, Numeric)) else None
    b: Any = y.dtype if isinstance(y, (TensorSSA, Numeric)) else None
    if a is b and a is not None:
        return a
    if a is None and b is None:
        return class_of(promote.common(promote.default(x), promote.default(y)))
    if a is None or b is None:
        kind, literal = (b, x) if a is None else (a, y)
        kept = kind.ir_type.stored and promote.holds(kind.ir_type, literal)
        return kind if kept else class_of(promote.literal(literal, kind.ir_type))
    return class_of(promote.common(a.ir_type, b.ir_type))


def any_(x: TensorSSA, *, loc: Any = None, ip: Any = None) -> Any:
    """Whether any element is true (non-zero).

    >>> def has_zero(t, p):
    ...     x = cute.make_tensor(p + 4 * t, 4).load()
    ...     return cute.any_(x == 0)
    >>> per_thread(has_zero, 2, memory=[1, 2, 3, 4, 5, 0, 7, 8])[0]
    [0, 1]
    """
    return _bool_reduce(x, "max")


def all_(x: TensorSSA, *, loc: Any = None, ip: Any = None) -> Any:
    """Whether every element is true (non-zero).

    >>> from tilewright import Float32
    >>> def bounded(t, p):
    ...     x = cute.make_tensor(p + 4 * t, 4).load()
    ...     return cute.all_(x < 10)
    >>> per_thread(bounded, 2, memory=[1, 2, 3, 4, 5, 6, 7, 80])[0]
    [1, 0]
    """
    return _bool_reduce(x, "min")


def _bool_reduce(x: TensorSSA, kind: str) -> Any:
    numbers = Builder.current().cast(x.to(Boolean).value, ir.I32)
    result = Builder.current().reduce(numbers, kind, [range(x.numel)])
    return wrap(result) != 0
