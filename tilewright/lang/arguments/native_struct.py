"""``@cute.native_struct``: a class of numbers whose fields change in kernels and go through loops and branches."""

from __future__ import annotations

import dataclasses
import functools
import sys
from types import FrameType
from typing import Any, dataclass_transform, get_type_hints

from tilewright.errors import ArgumentError
from tilewright.lang.arguments.argument import field_types
from tilewright.lang.arguments.signature import numeric_annotation

_ABSENT: Any = object()


@dataclass_transform()
def native_struct(cls: Any = None, *, zero_init: bool = True, packed: bool = False) -> Any:
    """Make ``cls`` a class of numbers: arguments of ``@cute.jit`` and ``@cute.kernel`` functions, whose fields may be
    assigned. Its annotations are the fields: numbers (``Int32``) and ``Constexpr``, which are Python values. A number
    that the constructor is not given is 0.

    Args:
        zero_init: false where the program does not read numbers before it assigns them; they are 0 all the same.
        packed: fields are values of their own, which have no place in memory and no gaps, with it or without.

    Raises:
        ArgumentError: an object is made without one of its ``Constexpr`` fields.

    >>> from tilewright import Int32
    >>> @native_struct
    ... class Accumulator:
    ...     total: Int32
    ...     count: Int32
    >>> Accumulator(count=3)
    Accumulator(total=Int32(0), count=Int32(3))
    """
    if cls is None:
        return functools.partial(native_struct, zero_init=zero_init, packed=packed)
    _evaluate(cls, sys._getframe(1))
    after = getattr(cls, "__post_init__", None)

    def complete(self: Any) -> None:
        _complete(self)
        if after is not None:
            after(self)

    for name in vars(cls).get("__annotations__", {}):
        if name not in vars(cls):
            setattr(cls, name, _ABSENT)
    cls.__post_init__ = complete
    return dataclasses.dataclass(cls)


def _evaluate(cls: type, frame: FrameType) -> None:
    """Annotations that are strings mean what they name where the class is written, also inside of a function."""
    try:
        hints = get_type_hints(cls, frame.f_globals, frame.f_locals)
    except Exception:  # a name that only a type checker finds: its field has to be given
        return
    cls.__annotations__ = {name: hints[name] for name in vars(cls).get("__annotations__", {})}


def _complete(made: Any) -> None:
    """Zeros for numbers that were not given, and the annotated types for those that were."""
    kinds = field_types(type(made))
    for field in dataclasses.fields(made):
        number, value = numeric_annotation(kinds.get(field.name)), getattr(made, field.name)
        if value is _ABSENT and number is None:
            raise ArgumentError(f"{type(made).__name__}: a value for the field {field.name} is needed")
        if number is not None:
            setattr(made, field.name, number(0 if value is _ABSENT else value))
