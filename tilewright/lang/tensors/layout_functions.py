"""The functions of :mod:`tilewright.layout` on tensors, too, and with ``loc`` and ``ip``, as documented functions have.

Their parameters and texts are those of their namesakes. Type checkers read ``layout_functions.pyi``, which
``tools/stubs.py`` writes from this table and from the sources of the namesakes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from inspect import Parameter, Signature, signature
from typing import Any

from tilewright import layout as _layout
from tilewright.errors import ArgumentError, unknown_keyword
from tilewright.ir.builder import Builder
from tilewright.lang.numbers.numeric import Integer, wrap
from tilewright.lang.tensors.tensor import Tensor, unwrap_tree
from tilewright.lang.tensors.tensor_ssa import TensorSSA
from tilewright.layout import ComposedLayout, Layout


def _on_layout(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` of a layout as a function of a layout or tensor."""

    def act(*args: Any, **kwargs: Any) -> Any:
        input, *args = args or _first(act, kwargs)
        options = _options(act, kwargs)
        rest = [unwrap_tree(a) for a in args]
        if isinstance(input, Tensor):
            return input.through(lambda layout: f(layout, *rest, **options))
        if hasattr(type(input), "__dlpack__") or hasattr(type(input), "__array_interface__"):
            kind = f"{type(input).__module__}.{type(input).__name__}"
            raise ArgumentError(f"{f.__name__}: a {kind} is an array, not a tensor; from_dlpack(x) makes one of it")
        return f(unwrap_tree(input), *rest, **options)

    doc = f"{f.__doc__}\n    Also on tensors: acts on the layout and keeps the elements.\n"
    return _as_documented(act, f, doc)


def _of_layout(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` that measures a layout or tree as a function of tensors and TensorSSAs, too."""

    def measure(*args: Any, **kwargs: Any) -> Any:
        input, *args = args or _first(measure, kwargs)
        if isinstance(input, Tensor):
            input = input.linear
        elif isinstance(input, TensorSSA):
            input = input.shape
        else:
            input = _shape_of(input)
        return f(unwrap_tree(input), *[unwrap_tree(a) for a in args], **_options(measure, kwargs))

    return _as_documented(measure, f, f.__doc__)


_like_layout = _of_layout  # what gives a layout of the kind that it takes


def _located(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` that also takes ``loc`` and ``ip``, as every documented function does."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return f(*args, **_options(call, kwargs)) if kwargs else f(*args)

    return _as_documented(call, f, f.__doc__)


def _as_documented(made: Callable[..., Any], f: Callable[..., Any], doc: str | None) -> Callable[..., Any]:
    """``made`` with the name and parameters of ``f``, and ``loc`` and ``ip``, which are ignored."""
    update_wrapper(made, f)
    del made.__wrapped__  # type: ignore[attr-defined]  # functions take attributes
    made.__doc__ = doc
    own = list(signature(f).parameters.values())
    more = [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in ("loc", "ip")]
    made.__signature__ = Signature([*own, *more])  # type: ignore[attr-defined]  # functions take attributes
    return made


def _options(function: Callable[..., Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The keywords that matter; an unknown one is an error here, before it ends in the layout algebra."""
    known = function.__signature__.parameters  # type: ignore[attr-defined]  # functions take attributes
    for name in kwargs:
        if name not in known:
            raise unknown_keyword(function.__name__, name, known)
    return {k: unwrap_tree(v) for k, v in kwargs.items() if k not in ("loc", "ip")}


def _first(function: Callable[..., Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The first argument, given by keyword."""
    name = next(iter(function.__signature__.parameters))  # type: ignore[attr-defined]  # functions take attributes
    if name not in kwargs:
        raise ArgumentError(f"{function.__name__}: the argument '{name}' is missing")
    return (kwargs.pop(name),)


def _shape_of(x: Any) -> Any:
    """Objects with a ``shape`` that are not layouts (host arrays, tiled objects) measure as their shape."""
    if isinstance(x, (tuple, list, int, Integer, Layout, ComposedLayout)):
        return tuple(x) if isinstance(x, list) else x
    found = getattr(x, "shape", None)
    return tuple(found) if isinstance(found, (tuple, list)) else x


def _of_extents(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` of a shape whose run-time extents are known not to be negative, as extents are."""
    measured = _of_layout(f)

    def make(*args: Any, **kwargs: Any) -> Any:
        shape, *args = args or _first(make, kwargs)
        if kwargs.get("stride") is not None:
            kwargs["stride"] = _of_the_program(kwargs["stride"])
        return measured(_extents(shape), *args, **kwargs)

    return _as_documented(make, f, f.__doc__)


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
tile_to_shape = _like_layout(_layout.tile_to_shape)
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
left_inverse = _like_layout(_layout.left_inverse)
right_inverse = _like_layout(_layout.right_inverse)
nullspace = _of_layout(_layout.nullspace)
upcast = _like_layout(_layout.upcast)
downcast = _like_layout(_layout.downcast)

make_layout = _of_extents(_layout.make_layout)
make_identity_layout = _of_extents(_layout.make_identity_layout)
make_ordered_layout = _of_extents(_layout.make_ordered_layout)

make_swizzle = _located(_layout.make_swizzle)
make_composed_layout = _located(_layout.make_composed_layout)
assume = _located(_layout.assume)
slice_and_offset = _located(_layout.slice_and_offset)
product = _located(_layout.product)
product_each = _located(_layout.product_each)
product_like = _located(_layout.product_like)
shape_div = _located(_layout.shape_div)
elem_less = _located(_layout.elem_less)
find = _located(_layout.find)
find_if = _located(_layout.find_if)
