"""``cutlass._mlir.dialects.vector``: vectors of numbers in registers, element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright._names import attach
from tilewright.errors import ConstraintError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Value
from tilewright.ir.types import VecType
from tilewright.lang.device.calls import operand
from tilewright.lang.numbers.numeric import wrap

__all__ = ["bitcast", "broadcast", "extract", "extractelement", "from_elements", "insert", "insertelement"]
attach(__name__)


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
    """One element."""
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
