"""The kinds of argument: how Python objects become run-time values, and how they are checked at a call.

One *argument* per parameter is the spec of what was passed (:mod:`~tilewright.lang.staging.values`: the types of its
values, the object that the function sees while it is staged), which also reads the values (Python numbers and
:class:`~tilewright.ir.runtime.DevicePointer`) from later arguments. Objects with methods of their own, tensors among
them, are in :mod:`protocol`.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator
from typing import Any

from tilewright.errors import ArgumentError, ArgumentTypeError
from tilewright.ir.core import Value
from tilewright.ir.types import I64, Type
from tilewright.lang.arguments.arrays import array_of, is_array
from tilewright.lang.arguments.signature import numeric_annotation
from tilewright.lang.arguments.streams import Stream, stream_handle
from tilewright.lang.numbers.numeric import Boolean, Numeric
from tilewright.lang.staging import objects
from tilewright.lang.staging import values as run_time

Values = Iterator[Value]


class Argument(run_time.Spec):
    """Base: a spec with a ``name``, which reads what a call passes."""

    name: str

    @property
    def on_cpu(self) -> bool:
        """Whether it is, or holds, an array of the CPU."""
        return False

    def value_names(self) -> list[str]:
        """A name for each value."""
        return run_time.object_names(None, self.name, len(self.types()))

    def read(self, value: Any) -> list[Any]:
        """The run-time values of ``value``; ArgumentError unless it fits."""
        raise NotImplementedError

    def exact(self, value: Any) -> list[Any]:
        """Like ``read``, but ArgumentError also for what would rather be another specialisation."""
        return self.read(value)

    def release(self) -> None:
        """Drop the arrays that the function was compiled with; only their kind matters from now on."""

    def wrong(self, expected: str, value: Any) -> ArgumentError:
        return ArgumentError(f"argument '{self.name}': expected {expected}, got {describe(value)}")

    def wrong_kind(self, expected: str, value: Any) -> ArgumentError:
        return ArgumentTypeError(str(self.wrong(expected, value)))


class StaticArgument(Argument, run_time.StaticSpec):
    """A value that is part of the program."""

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(value)
        self.name = name

    def read(self, value: Any) -> list[Any]:
        if value is not self.value and not objects.same_static(self.value, value):
            raise self.wrong(f"{describe(self.value)}, with which the function was compiled", value)
        return []


class ConstantField(StaticArgument):
    """A field annotated Constexpr, of a named tuple or dataclass: a call of the compiled function may leave it None."""

    def read(self, value: Any) -> list[Any]:
        return [] if value is None else super().read(value)

    def exact(self, value: Any) -> list[Any]:
        return super().read(value)


class OmittedArgument(StaticArgument):
    """A value that is part of the program and that calls do not pass."""

    def read(self, value: Any) -> list[Any]:
        return []


class ScalarArgument(Argument, run_time.NumberSpec):
    """A number."""

    def __init__(self, name: str, cls: Any) -> None:
        super().__init__(cls, False)
        self.name = name
        kind = cls.ir_type
        self.span = (cls.min, cls.max) if kind.is_integer else None

    def read(self, value: Any) -> list[Any]:
        if isinstance(value, Numeric):
            value = value.value
        span = self.span
        if type(value) is int and span is not None and span[0] <= value <= span[1]:
            return [value]  # the code below gives the same
        if isinstance(value, Value) or not isinstance(value, (numbers.Real, *numpy_scalars(value))):
            raise self.wrong(f"a number ({self.cls.__name__})", repr(value) if isinstance(value, str) else value)
        number: Any = value
        if self.span is None:
            return [bool(number) if self.cls is Boolean else float(number)]
        if not math.isfinite(number) or int(number) != number or not self.span[0] <= number <= self.span[1]:
            raise self.wrong(f"{self.cls.__name__} ({self.span[0]} to {self.span[1]})", value)
        return [int(number)]

    def exact(self, value: Any) -> list[Any]:
        if number_class(value) is not self.cls:
            raise self.wrong(self.cls.__name__, value)
        return self.read(value)


class StreamArgument(Argument):
    """A CUDA stream."""

    def __init__(self, name: str) -> None:
        self.name = name

    def types(self) -> list[Type]:
        return [I64]

    def rebuild(self, values: Values) -> Any:
        return Stream(next(values))

    def read(self, value: Any) -> list[Any]:
        stream = stream_handle(value)
        if stream is None:
            raise self.wrong("a CUDA stream (cuda.CUstream, a PyTorch stream or its handle)", value)
        return [stream]

    def key(self) -> Any:
        return StreamArgument


class CompoundArgument(Argument, run_time.CompoundSpec):
    """A tuple, list, dict, named tuple or dataclass of arguments, such as ``value`` is."""

    parts: list[Argument]  # type: ignore[assignment]  # of the parts of a Compound, those that read

    def __init__(self, name: str, value: Any, parts: list[Argument]) -> None:
        super().__init__(type(value), objects.labels_of(value), [*parts], *objects.codec(value))
        self.name, self.value = name, value

    @property
    def on_cpu(self) -> bool:
        return any(part.on_cpu for part in self.parts)

    def value_names(self) -> list[str]:
        return [label for part in self.parts for label in part.value_names()]

    def read(self, value: Any) -> list[Any]:
        if issubclass(self.type, tuple) and isinstance(value, tuple) and len(value) == len(self.parts):
            items = list(value)  # tuples and named tuples are passed by position
        elif type(value) is self.type and objects.labels_of(value) == self.labels:
            items = self.split(value)
        else:
            raise self.wrong_kind(describe(self.value), value)
        return [leaf for part, item in zip(self.parts, items, strict=True) for leaf in part.read(item)]

    def exact(self, value: Any) -> list[Any]:
        if type(value) is not self.type or objects.labels_of(value) != self.labels:
            raise self.wrong(describe(self.value), value)
        return [leaf for part, item in zip(self.parts, self.split(value), strict=True) for leaf in part.exact(item)]

    def release(self) -> None:
        self.value = describe(self.value)
        for part in self.parts:
            part.release()


def number_class(value: Any, annotation: Any = None) -> Any:
    """The numeric class of a number that is passed for a parameter with ``annotation``; None if it is not a number."""
    if numpy_scalars(value):
        return numeric_annotation(annotation) or objects.number_class(value.item())
    cls = objects.number_class(value)
    return cls if cls is None else numeric_annotation(annotation) or cls


def numpy_scalars(value: Any) -> tuple[type, ...]:
    """The class of a NumPy scalar, to pass to isinstance; empty for anything else."""
    cls = type(value)
    return (cls,) if hasattr(cls, "dtype") and hasattr(cls, "item") and getattr(value, "shape", None) == () else ()


def _strides(array: Any) -> tuple[int, ...]:
    strides = getattr(array, "stride", None) or getattr(array, "strides", ())
    return tuple(strides() if callable(strides) else strides or ())


def describe(value: Any) -> str:
    if isinstance(value, str):
        return value
    if is_array(value):
        if hasattr(value, "shape") and hasattr(value, "dtype"):
            shape, dtype = tuple(value.shape), str(value.dtype).removeprefix("torch.")
        else:  # an array by its interface alone
            array = array_of(value)
            shape, dtype = array.shape, str(array.dtype)
        broadcast = [i for i, d in enumerate(_strides(value)) if d == 0 and shape[i] != 1]
        still = f", stride 0 in mode {', '.join(map(str, broadcast))}" if broadcast else ""
        return f"{type(value).__name__} of {dtype}, shape {shape}{still}"
    if hasattr(value, "element_type") and hasattr(value, "engine"):  # whose text shows no sign of integers
        text = f"cute.Tensor of {value.element_type}, {value!r}"
    else:
        text = objects.describe(value)
    wide = getattr(getattr(value, "engine", None), "wide", False) and getattr(value, "is_dynamic_layout", False)
    return text + (" with strides of 64 bits" if wide else "")
