"""Composed layouts: ``R(c) = inner(offset + outer(c))`` where the composition is not itself a layout.

The inner function is most often a swizzle. The outer layout defines the domain, so every operation that only
rearranges the domain acts on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar

from tilewright.errors import LayoutError, explained
from tilewright.layout.basis import add_coords
from tilewright.layout.drawable import Drawable
from tilewright.layout.layout import Layout, has_underscore
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import Coord, Shape, is_static, same_tree


@explained
class ComposedLayout(Drawable):
    """``inner o offset o outer``, with the three parts as attributes.

    >>> from tilewright.layout import Swizzle
    >>> swizzled = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)))
    >>> swizzled, swizzled(1, 0), swizzled.shape
    (Sw<3,3,3> o 0 o (8,64):(64,1), 72, (8, 64))
    """

    __slots__ = ("inner", "offset", "outer")
    inner: Any
    offset: Any
    outer: Any

    def __init__(self, inner: Any, offset: Any, outer: Any) -> None:
        object.__setattr__(self, "inner", inner)
        object.__setattr__(self, "offset", offset)
        object.__setattr__(self, "outer", outer)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a ComposedLayout is immutable: make a new one instead of setting {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return ComposedLayout, (self.inner, self.offset, self.outer)

    @property
    def value(self) -> Self:
        """What functions of the CuTe DSL's internals take: the layout itself."""
        return self

    @property
    def shape(self) -> Shape:
        return self.outer.shape

    @property
    def is_normal(self) -> bool:
        """Whether it is a plain layout: a composed layout never is."""
        return False

    @property
    def stride(self) -> Any:
        raise LayoutError(f"{self} has no stride: {self.inner} is not linear; ask its .outer for one")

    def on_outer(self, f: Callable[[Any], Any]) -> ComposedLayout:
        """The same inner function and offset over ``f(outer)``."""
        return ComposedLayout(self.inner, self.offset, f(self.outer))

    def __call__(self, *coord: Coord, loc: Any = None, ip: Any = None) -> Any:
        c = coord[0] if len(coord) == 1 else coord
        if has_underscore(c):
            from tilewright.layout.slicing import slice_

            return slice_(self, c)
        return self.inner(add_coords(self.offset, self.outer(c)))

    def __getitem__(self, mode: int, *, loc: Any = None, ip: Any = None) -> ComposedLayout:
        return self.on_outer(lambda outer: outer[mode])

    def __len__(self) -> int:
        return len(self.outer)

    def __iter__(self) -> Iterator[ComposedLayout]:
        return (self[mode] for mode in range(len(self)))

    def with_shape(self, *shape: Any) -> ComposedLayout:
        return self.on_outer(lambda outer: outer.with_shape(*shape))

    def compose(self, *rhs: Any) -> Any:
        """``composition(self, rhs)``; several arguments are the modes of a tiler."""
        from tilewright.layout.compose import composition

        return composition(self, rhs[0] if len(rhs) == 1 else rhs)

    @property
    def max_alignment(self) -> int:
        """The widest unit, in elements, in which the layout can be moved."""
        from tilewright.layout.recast import max_alignment

        return max_alignment(self)

    def is_static(self) -> bool:
        return is_static(self.inner) and is_static(self.offset) and is_static(self.outer)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ComposedLayout):
            return NotImplemented
        same_inner = self.inner is other.inner or bool(self.inner == other.inner)
        return same_inner and same_tree(self.offset, other.offset) and bool(self.outer == other.outer)

    def __hash__(self) -> int:
        return hash((self.inner, self.offset, self.outer))

    def __repr__(self) -> str:
        inner = getattr(self.inner, "__name__", None) or str(self.inner)
        return f"{inner} o {format_tree(self.offset)} o {self.outer}"


AnyLayout = Layout | ComposedLayout
LayoutT = TypeVar("LayoutT", bound=AnyLayout)


def lifted(layout: Any, operation: str, f: Callable[[Any], Any]) -> ComposedLayout:
    """``f`` on the outer layout of a composed layout; anything else was meant to be a layout and is not."""
    if isinstance(layout, ComposedLayout):
        return layout.on_outer(f)
    shown = format_tree(layout) if isinstance(layout, tuple | list) else repr(layout)
    raise LayoutError(f"{operation}: {shown} is not a layout; make_layout(shape, stride=...) makes one")


class PartOfSwizzled(ComposedLayout):
    """The layout of a part of a swizzled tensor, whose ``offset`` counts from the memory ``origin``.

    With a pointer that was made from a number it counts from where the part begins, as the number does:
    ``inner(offset + outer(c)) - inner(offset)``.
    """

    __slots__ = ("origin",)
    origin: Any

    def __init__(self, inner: Any, offset: Any, outer: Any, origin: Any) -> None:
        super().__init__(inner, offset, outer)
        object.__setattr__(self, "origin", origin)
