"""The functions of :mod:`tilewright.layout`, on tensors too, and with the language's integers for Python's.

Names, parameters and texts are those of their namesakes, for Python and for type checkers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from inspect import signature
from typing import Any, TypeVar

from tilewright import layout as _layout
from tilewright.errors import ArgumentError, unknown_keyword
from tilewright.ir.builder import Builder
from tilewright.lang.numbers.numeric import Integer, wrap
from tilewright.lang.tensors.tensor import Tensor, unwrap_tree
from tilewright.lang.tensors.tensor_ssa import TensorSSA
from tilewright.layout import ComposedLayout, Layout

Function = TypeVar("Function", bound=Callable[..., Any])


def _on_layout(f: Function) -> Function:
    """``f`` of a layout as a function of a layout or tensor."""

    def act(*args: Any, **kwargs: Any) -> Any:
        input, *others = args or _first(f, kwargs)
        options = _options(f, kwargs)
        rest = [unwrap_tree(a) for a in others]
        if isinstance(input, Tensor):
            return input.through(lambda layout: f(layout, *rest, **options))
        if hasattr(type(input), "__dlpack__") or hasattr(type(input), "__array_interface__"):
            kind = f"{type(input).__module__}.{type(input).__name__}"
            raise ArgumentError(f"{f.__name__}: a {kind} is an array, not a tensor; from_dlpack(x) makes one of it")
        return f(unwrap_tree(input), *rest, **options)

    return _named_as(f, act, f"{f.__doc__}\n    Also on tensors: acts on the layout and keeps the elements.\n")


def _of_layout(f: Function) -> Function:
    """``f`` that measures a layout or tree as a function of tensors and TensorSSAs, too."""

    def measure(*args: Any, **kwargs: Any) -> Any:
        input, *rest = args or _first(f, kwargs)
        if isinstance(input, Tensor):
            input = input.linear
        elif isinstance(input, TensorSSA):
            input = input.shape
        else:
            input = _shape_of(input)
        return f(unwrap_tree(input), *[unwrap_tree(a) for a in rest], **_options(f, kwargs))

    return _named_as(f, measure, f.__doc__)


def _of_extents(f: Function) -> Function:
    """``f`` of a shape whose run-time extents are known not to be negative, as extents are."""
    measured = _of_layout(f)

    def make(*args: Any, **kwargs: Any) -> Any:
        shape, *rest = args or _first(f, kwargs)
        if kwargs.get("stride") is not None:
            kwargs["stride"] = _of_the_program(kwargs["stride"])
        return measured(_extents(shape), *rest, **kwargs)

    return _named_as(f, make, f.__doc__)


def _named_as(f: Function, made: Callable[..., Any], doc: str | None) -> Function:
    """``made`` with the name and parameters of ``f``."""
    update_wrapper(made, f)
    del made.__wrapped__  # type: ignore[attr-defined]  # doctest would run the examples of `f` a second time
    made.__doc__ = doc
    made.__signature__ = signature(f)  # type: ignore[attr-defined]  # functions take attributes
    return made  # type: ignore[return-value]  # of the same parameters


def _parameters(f: Callable[..., Any]) -> tuple[str, ...]:
    code = f.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _options(f: Callable[..., Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The keywords with Python's integers; an unknown one is an error here, before it ends in the layout algebra."""
    for name in kwargs:
        if name not in _parameters(f):
            raise unknown_keyword(f.__name__, name, _parameters(f))
    return {k: unwrap_tree(v) for k, v in kwargs.items()}


def _first(f: Callable[..., Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The first argument, given by keyword."""
    name = _parameters(f)[0]
    if name not in kwargs:
        raise ArgumentError(f"{f.__name__}: the argument '{name}' is missing")
    return (kwargs.pop(name),)


def _shape_of(x: Any) -> Any:
    """Objects with a ``shape`` that are not layouts (host arrays, tiled objects) measure as their shape."""
    if isinstance(x, (tuple, list, int, Integer, Layout, ComposedLayout)):
        return tuple(x) if isinstance(x, list) else x
    shape = getattr(x, "shape", None)
    return tuple(shape) if isinstance(shape, (tuple, list)) else x


def _extents(shape: Any) -> Any:
    if isinstance(shape, (tuple, list)):
        return tuple(map(_extents, shape))
    shape = _of_the_program(shape)
    return shape.assume_nonneg() if isinstance(shape, Integer) and not shape.nonneg else shape


def _of_the_program(number: Any) -> Any:
    """A known number of the language as the result of an op, so that layouts do not take it for a static one."""
    if isinstance(number, (tuple, list)):
        return tuple(map(_of_the_program, number))
    if not (isinstance(number, Integer) and number.is_static and Builder.active()):
        return number
    kind = type(number).ir_type
    return wrap(Builder.current().emit("add", (number.ir_value(), Builder.constant(kind, 0)), (kind,)).result)


append = _on_layout(_layout.append)
prepend = _on_layout(_layout.prepend)
coalesce = _on_layout(_layout.coalesce)
filter = _on_layout(_layout.filter)
filter_zeros = _on_layout(_layout.filter_zeros)
composition = _on_layout(_layout.composition)
flatten = _on_layout(_layout.flatten)
with_shape = _on_layout(_layout.with_shape)
append_ones = _on_layout(_layout.append_ones)
prepend_ones = _on_layout(_layout.prepend_ones)
get = _on_layout(_layout.get)
group_modes = _on_layout(_layout.group_modes)
select = _on_layout(_layout.select)
logical_divide = _on_layout(_layout.logical_divide)
zipped_divide = _on_layout(_layout.zipped_divide)
tiled_divide = _on_layout(_layout.tiled_divide)
flat_divide = _on_layout(_layout.flat_divide)
logical_product = _on_layout(_layout.logical_product)
zipped_product = _on_layout(_layout.zipped_product)
tiled_product = _on_layout(_layout.tiled_product)
flat_product = _on_layout(_layout.flat_product)
blocked_product = _on_layout(_layout.blocked_product)
raked_product = _on_layout(_layout.raked_product)

recast_layout = _of_layout(_layout.recast_layout)
max_alignment = _of_layout(_layout.max_alignment)
tile_to_shape = _of_layout(_layout.tile_to_shape)
make_layout_tv = _of_layout(_layout.make_layout_tv)
make_layout_like = _of_layout(_layout.make_layout_like)
size = _of_layout(_layout.size)
rank = _of_layout(_layout.rank)
depth = _of_layout(_layout.depth)
shape = _of_layout(_layout.shape)
stride = _of_layout(_layout.stride)
cosize = _of_layout(_layout.cosize)
coshape = _of_layout(_layout.coshape)
crd2idx = _of_layout(_layout.crd2idx)
idx2crd = _of_layout(_layout.idx2crd)
ceil_div = _of_layout(_layout.ceil_div)
round_up = _of_layout(_layout.round_up)
complement = _of_layout(_layout.complement)
left_inverse = _of_layout(_layout.left_inverse)
right_inverse = _of_layout(_layout.right_inverse)
nullspace = _of_layout(_layout.nullspace)
upcast = _of_layout(_layout.upcast)
downcast = _of_layout(_layout.downcast)

make_layout = _of_extents(_layout.make_layout)
make_identity_layout = _of_extents(_layout.make_identity_layout)
make_ordered_layout = _of_extents(_layout.make_ordered_layout)
