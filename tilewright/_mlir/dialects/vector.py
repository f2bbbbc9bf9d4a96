"""``cutlass._mlir.dialects.vector``: vectors of numbers in registers, element by element."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from tilewright._mlir.ir import ShapedVectorType
from tilewright._names import attach
from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.types import VecType
from tilewright.lang.device.calls import operand
from tilewright.lang.numbers.numeric import wrap

__all__ = [
    "bitcast",
    "broadcast",
    "extract",
    "extract_strided_slice",
    "extractelement",
    "from_elements",
    "insert",
    "insert_strided_slice",
    "insertelement",
    "shape_cast",
]
attach(__name__)


class _Shaped(NamedTuple):
    """A vector seen with several extents, the last one fastest."""

    value: Value
    shape: tuple[int, ...]

    def part(self, dynamic: Sequence[Any], static: Sequence[int]) -> Any:
        """What is at these positions of the first extents."""
        places, rest = tuple(static), self.shape[len(static) :]
        fits = 0 < len(places) <= len(self.shape) and all(
            isinstance(i, int) and 0 <= i < n for i, n in zip(places, self.shape, strict=False)
        )
        if dynamic or not fits:
            raise ConstraintError(
                f"vector.extract: {[*dynamic, *static]} of a vector of shape {self.shape}: the positions are in its "
                "extents, and known while staging"
            )
        first, count, builder = 0, math.prod(rest), Builder.current()
        for place, extent in zip(places, self.shape, strict=False):
            first = first * extent + place
        elements = [builder.extract(self.value, first * count + i) for i in range(count)]
        if not rest:
            return wrap(elements[0])
        made = builder.build(elements)
        return made if len(rest) == 1 else _Shaped(made, rest)


def shape_cast(result: Any, source: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The same elements in the same order, the last extent fastest, as a vector of another shape."""
    value, kind = _vector(source.value if isinstance(source, _Shaped) else source, "shape_cast")
    shape = result.shape if isinstance(result, ShapedVectorType) else (getattr(result, "n", 0),)
    if getattr(result, "elem", None) != kind.elem or math.prod(shape) != kind.n:
        raise ConstraintError(f"vector.shape_cast: {kind} has not the elements of {result}")
    return value if isinstance(result, VecType) else _Shaped(value, shape)


def _vector(x: Any, what: str) -> tuple[Value, VecType]:
    value = x if isinstance(x, Value) else x.ir_value()
    if not isinstance(value.type, VecType):
        raise ConstraintError(f"vector.{what}: a vector is needed, not {value.type}")
    return value, value.type


def _place(kind: VecType, dynamic: Sequence[Any], static: Sequence[int], what: str) -> int:
    if dynamic or len(static) != 1 or not isinstance(static[0], int) or not 0 <= static[0] < kind.n:
        raise ConstraintError(
            f"vector.{what}: one place from 0 to {kind.n - 1} of {kind}, known while staging, not "
            f"{[*dynamic, *static]}; put the numbers into a register tensor to index it at run time"
        )
    return static[0]


def from_elements(result: Any, elements: Sequence[Any], *, loc: Any = None, ip: Any = None) -> Value:
    """The vector of type ``result`` (``T.vector(2, T.f32())``) with these elements."""
    values = [operand(x) for x in elements]
    if not isinstance(result, VecType) or result.n != len(values) or any(v.type != result.elem for v in values):
        raise ConstraintError(f"vector.from_elements: {result} of {', '.join(str(v.type) for v in values)}")
    return Builder.current().build(values)


def extract(
    source: Any,
    dynamic_position: Sequence[Any] = (),
    static_position: Sequence[int] = (),
    *,
    result: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """One element; of a vector of several extents an element or a row."""
    if isinstance(source, _Shaped):
        return source.part(dynamic_position, static_position)
    vector, kind = _vector(source, "extract")
    return wrap(Builder.current().extract(vector, _place(kind, dynamic_position, static_position, "extract")))


def insert(
    value_to_store: Any,
    dest: Any,
    dynamic_position: Sequence[Any] = (),
    static_position: Sequence[int] = (),
    *,
    loc: Any = None,
    ip: Any = None,
) -> Value:
    """The vector with one element replaced."""
    vector, kind = _vector(dest, "insert")
    new, place = operand(value_to_store), _place(kind, dynamic_position, static_position, "insert")
    if new.type != kind.elem:
        raise ConstraintError(f"vector.insert: a number of type {new.type} into {kind}")
    builder = Builder.current()
    return builder.build([new if i == place else builder.extract(vector, i) for i in range(kind.n)])


def _slice(kind: VecType, offsets: Sequence[int], size: int, strides: Sequence[int], what: str) -> int:
    """Where ``size`` successive elements of a vector begin."""
    numbers = [getattr(x, "value", x) for x in (*offsets, *strides)]
    if len(numbers) != 2 or numbers[1] != 1 or not isinstance(numbers[0], int) or not 0 <= numbers[0] <= kind.n - size:
        raise ConstraintError(
            f"vector.{what}: {size} elements of {kind} from offsets {[*offsets]} on, by strides {[*strides]}; vectors "
            f"have one mode here, whose stride is 1, and the elements are from 0 to {kind.n - 1}"
        )
    return numbers[0]


def extract_strided_slice(
    result: Any,
    vector: Any,
    offsets: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
    *,
    loc: Any = None,
    ip: Any = None,
) -> Value:
    """``sizes`` elements from ``offsets`` on, a vector of type ``result``."""
    value, kind = _vector(vector, "extract_strided_slice")
    if not isinstance(result, VecType) or result.elem != kind.elem or [*sizes] != [result.n]:
        raise ConstraintError(f"vector.extract_strided_slice: {[*sizes]} elements of {kind} are no {result}")
    first = _slice(kind, offsets, result.n, strides, "extract_strided_slice")
    builder = Builder.current()
    return builder.build([builder.extract(value, first + i) for i in range(result.n)])


def insert_strided_slice(
    value_to_store: Any, dest: Any, offsets: Sequence[int], strides: Sequence[int], *, loc: Any = None, ip: Any = None
) -> Value:
    """The vector ``dest`` with the elements of another one in place of its own from ``offsets`` on."""
    (new, part), (old, kind) = _vector(value_to_store, "insert_strided_slice"), _vector(dest, "insert_strided_slice")
    if part.elem != kind.elem:
        raise ConstraintError(f"vector.insert_strided_slice: {part} into {kind}")
    first = _slice(kind, offsets, part.n, strides, "insert_strided_slice")
    builder, end = Builder.current(), first + part.n
    places = [(new, i - first) if first <= i < end else (old, i) for i in range(kind.n)]
    return builder.build([builder.extract(vector, i) for vector, i in places])


def _static(position: Any, what: str) -> int:
    value = getattr(position, "value", position)
    if not isinstance(value, int):
        raise ConstraintError(f"vector.{what}: the position must be known while staging")
    return value


def extractelement(vector: Any, *, position: Any, loc: Any = None, ip: Any = None) -> Any:
    """The older form of :func:`extract`."""
    return extract(vector, [], [_static(position, "extractelement")])


def insertelement(source: Any, dest: Any, *, position: Any, loc: Any = None, ip: Any = None) -> Value:
    """The older form of :func:`insert`."""
    return insert(source, dest, [], [_static(position, "insertelement")])


def bitcast(result: Any, source: Any, *, loc: Any = None, ip: Any = None) -> Value:
    """The same bits as a vector of another type."""
    vector, kind = _vector(source, "bitcast")
    if not isinstance(result, VecType) or result.n * result.elem.width != kind.n * kind.elem.width:
        raise ConstraintError(f"vector.bitcast: {kind} and {result} have different numbers of bits")
    return Builder.current().bitcast(vector, result)


def broadcast(vector: Any, source: Any, *, loc: Any = None, ip: Any = None) -> Value:
    """A vector of type ``vector`` whose elements are all ``source``."""
    value = operand(source)
    if not isinstance(vector, VecType) or value.type != vector.elem:
        raise ConstraintError(f"vector.broadcast: {vector} of a number of type {value.type}")
    return Builder.current().splat(value, vector.n)
