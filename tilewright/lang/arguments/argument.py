"""Which kind of argument an object makes for a parameter."""

from __future__ import annotations

import dataclasses
import numbers
import typing
from typing import Any

from tilewright.errors import ArgumentError
from tilewright.lang.arguments.arrays import is_array
from tilewright.lang.arguments.kinds import (
    Argument,
    CompoundArgument,
    ConstantField,
    OmittedArgument,
    ScalarArgument,
    StaticArgument,
    StreamArgument,
    describe,
    number_class,
    numpy_scalars,
)
from tilewright.lang.arguments.protocol import ADAPTERS, ProtocolArgument, implicit_tensor
from tilewright.lang.arguments.signature import is_constexpr, is_integer_tree, numeric_annotation
from tilewright.lang.arguments.streams import EnvironmentStream, is_stream, wants_stream
from tilewright.lang.numbers.numeric import Float32, Int32, Int64, Numeric
from tilewright.lang.staging import objects
from tilewright.lang.tensors.pointer import Pointer
from tilewright.lang.tensors.tensor import Tensor

_OWN_HINTS: dict[type, dict[str, Any]] = {}
NUMBERS = frozenset((Int32, Int64, Float32))
"""Numbers that are most often among the arguments of the library's own kernels."""


def argument_of(name: str, value: Any, annotation: Any = None) -> Argument:
    """The argument that ``value`` makes for a parameter with ``annotation``."""
    if is_constexpr(annotation) or value is None or (type(value) is int and is_integer_tree(annotation)):
        return StaticArgument(name, value)
    if annotation is None and type(value) in NUMBERS:
        return ScalarArgument(name, type(value))  # the code below gives the same in four times the time
    _check_annotation(name, value, annotation)
    if isinstance(value, EnvironmentStream):
        return OmittedArgument(name, None)  # what `launch(stream=None)` means
    if wants_stream(annotation) or is_stream(value):
        return StreamArgument(name)
    if type(value) in ADAPTERS:
        adapter = ADAPTERS[type(value)]
        return ProtocolArgument(name, adapter(value), adapter)
    number = None if _is_tensor(annotation) else number_class(value, annotation)
    if number is not None:
        return ScalarArgument(name, number)
    if hasattr(type(value), "__get_mlir_types__") and hasattr(type(value), "__c_pointers__"):
        fields = _group(name, value, None) if hasattr(value, "_fields") else None
        return ProtocolArgument(name, value, fields=fields)
    if is_array(value):
        return ProtocolArgument(name, implicit_tensor(value), implicit_tensor)
    if isinstance(value, (tuple, list, dict)) or objects.is_record(value):
        return _group(name, value, annotation if is_integer_tree(annotation) else None)
    return StaticArgument(name, value)


def _group(name: str, value: Any, annotation: Any) -> Argument:
    """A container; ``annotation`` holds for all that is in it."""
    labels, notes = objects.labels_of(value), _notes(value)
    parts: list[Argument] = []
    for label, item in zip(labels, objects.codec(value)[0](value), strict=True):
        note, field = notes.get(label, annotation), f"{name}{label}"
        constant = label in notes and is_constexpr(note)
        parts.append(ConstantField(field, item) if constant else argument_of(field, item, note))
    fixed = all(isinstance(part, StaticArgument) and not isinstance(part, ConstantField) for part in parts)
    return StaticArgument(name, value) if fixed else CompoundArgument(name, value, parts)


def _notes(value: Any) -> dict[str, Any]:
    """The annotations of the fields of a dataclass or a named tuple, by label; strings mean what they name."""
    names: Any = ()
    if objects.is_record(value):
        names = [field.name for field in dataclasses.fields(value)]
    elif isinstance(value, tuple):
        names = getattr(value, "_fields", ())
    if not names:
        return {}
    hints = field_types(type(value))
    return {f".{name}": hints[name] for name in names if name in hints}


def field_types(cls: type) -> dict[str, Any]:
    """The annotations of a class, evaluated; of the library's own, whose names never change, once: that takes 0.8 ms
    of the 2 of a product whose launch is not kept."""
    if not cls.__module__.startswith("tilewright."):
        return _evaluated_hints(cls)
    if cls not in _OWN_HINTS:
        _OWN_HINTS[cls] = _evaluated_hints(cls)
    return _OWN_HINTS[cls]


def _evaluated_hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except Exception:  # a name that only a type checker finds
        return dict(getattr(cls, "__annotations__", {}))


def _check_annotation(name: str, value: Any, annotation: Any) -> None:
    if not isinstance(annotation, type):
        return
    number = numeric_annotation(annotation)
    if number is not None and not (isinstance(value, (Numeric, numbers.Real)) or numpy_scalars(value)):
        raise ArgumentError(f"argument '{name}': expected a number ({number.__name__}), got {objects.describe(value)}")
    if issubclass(annotation, Tensor) and not (isinstance(value, Tensor) or is_array(value) or _has_tensor_face(value)):
        advice = "; an array (NumPy, PyTorch, DLPack) or from_dlpack(array) is wanted"
        raise ArgumentError(f"argument '{name}': expected a Tensor, got {objects.describe(value)}{advice}")
    if issubclass(annotation, Pointer) and not isinstance(value, Pointer) and not hasattr(value, "__c_pointers__"):
        raise ArgumentError(f"argument '{name}': expected a Pointer (cute.runtime.make_ptr), got {describe(value)}")


def _is_tensor(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Tensor)


def _has_tensor_face(value: Any) -> bool:
    return hasattr(type(value), "__c_pointers__") and not isinstance(value, Numeric)
