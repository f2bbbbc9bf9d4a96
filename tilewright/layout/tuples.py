"""Integer trees: an int, or a tuple of integer trees.

Shapes, strides and coordinates are integer trees. ``None`` (printed ``_``) may stand for a leaf of a coordinate or a
tiler and means "this mode is left alone". Functions here know nothing of layouts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import index
from typing import Annotated, Any, TypeAlias

from tilewright.errors import LayoutError
from tilewright.layout.basis import ScaledBasis
from tilewright.layout.ints import UNDECIDED, IntLike, RuntimeInt, ceil_div_int, exact_quotient, format_int, same_int
from tilewright.layout.text import format_tree

# IntLike | tuple[IntTuple, ...]: mypy cannot narrow the recursive alias in the hot loops. What is annotated has what
# it is annotated with, for those who must tell these from Any.
IntTuple: TypeAlias = Annotated[Any, "CuTe", "IntTuple"]
Shape: TypeAlias = Annotated[Any, "CuTe", "Shape"]
Stride: TypeAlias = Annotated[Any, "CuTe", "Stride"]
Coord: TypeAlias = Annotated[Any, "CuTe", "Coord"]

MOST_MODES = 1 << 16


def as_int_tuple(x: Any, what: str = "shape") -> IntTuple:
    """``x`` with lists turned to tuples and NumPy ints to ints; anything that is not an integer tree is refused.

    >>> as_int_tuple([2, (3, 4)])
    (2, (3, 4))
    """
    kind = type(x)
    if kind is int or isinstance(x, RuntimeInt | ScaledBasis):
        return x
    if isinstance(x, tuple | list):
        if not x:
            raise LayoutError(f"{what}: an empty tuple is not an integer tree")
        return tuple([as_int_tuple(i, what) for i in x])
    try:
        return int(index(x))
    except TypeError:
        raise LayoutError(f"{what}: {'_' if x is None else repr(x)} is neither an int nor a tuple of ints") from None


def extent_of_tiler(x: Any, text: str) -> IntLike:
    """A scalar tiler, which must be a positive int; ``text`` names the operation and its operands."""
    if isinstance(x, RuntimeInt):
        return x
    try:
        extent = int(index(x))
    except TypeError:
        raise LayoutError(f"{text}: a tiler is a layout, an int, None or a tuple of them") from None
    if extent < 1:
        raise LayoutError(f"{text}: a tile of extent {extent} is empty")
    return extent


def as_tiler(x: Any) -> Any:
    """``x`` with lists turned to tuples."""
    return tuple([as_tiler(y) for y in x]) if isinstance(x, list | tuple) else x


def is_static(x: Any) -> bool:
    """Whether everything in ``x`` (a tree, a layout, a tiler) is known now.

    >>> is_static((2, (3, None))), is_static((2, __import__("tilewright").layout.SymbolicInt("m")))
    (True, False)
    """
    if isinstance(x, tuple):
        return all(map(is_static, x))
    if isinstance(x, int) or x is None:
        return True
    if isinstance(x, RuntimeInt):
        return False
    check = getattr(x, "is_static", None)
    return bool(check()) if callable(check) else True


def same_tree(a: Any, b: Any) -> bool:
    """Equality of two integer trees, leaf by leaf with :func:`same_int`.

    >>> same_tree((4, (2, 8)), (4, (2, 8))), same_tree((4, 8), (4, (2, 4)))
    (True, False)
    """
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same_tree, a, b))
    if isinstance(a, tuple) or isinstance(b, tuple):
        return False
    return same_int(a, b)


def flatten_to_tuple(a: Any) -> tuple[Any, ...]:
    """The leaves of a tree, left to right.

    >>> flatten_to_tuple((2, (3, (4,)))), flatten_to_tuple(5)
    ((2, 3, 4), (5,))
    """
    if type(a) is not tuple:
        return (a,)
    for x in a:
        if type(x) is tuple:
            break
    else:
        return a
    out: list[Any] = []
    for x in a:
        if type(x) is tuple:
            out += flatten_to_tuple(x)
        else:
            out.append(x)
    return tuple(out)


def unflatten(sequence: Iterable[Any], profile: Any) -> Any:
    """The leaves of ``sequence`` arranged in the profile of ``profile``.

    >>> unflatten((1, 2, 3), (0, (0, 0)))
    (1, (2, 3))
    """
    leaves = iter(sequence)

    def fill(p: Any) -> Any:
        return tuple([fill(q) for q in p]) if isinstance(p, tuple) else next(leaves)

    try:
        result = fill(profile)
    except StopIteration:
        raise LayoutError(f"unflatten: fewer leaves than the profile {profile} has") from None
    if next(leaves, leaves) is not leaves:
        raise LayoutError(f"unflatten: more leaves than the profile {profile} has")
    return result


def product(a: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The product of all leaves (1 for an empty tuple).

    >>> product((2, (3, 4)))
    24
    """
    if type(a) is not tuple:
        return a
    result: Any = 1
    for x in a:
        result = result * (product(x) if type(x) is tuple else x)
    return result


def product_each(a: Any, *, loc: Any = None, ip: Any = None) -> tuple[Any, ...]:
    """The product of every top-level mode.

    >>> product_each((2, (3, 4)))
    (2, 12)
    """
    return tuple([product(x) for x in a]) if isinstance(a, tuple) else (a,)


def product_like(a: Any, target_profile: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Products of ``a`` at the leaves of ``target_profile``.

    >>> product_like(((2, 3), 4), (0, 0))
    (6, 4)
    """
    return transform_leaf(lambda _, x: product(x), target_profile, a)


def transform_leaf(f: Callable[..., Any], *args: Any) -> Any:
    """``f`` at the leaves of the first tree; the others are walked along with it.

    >>> transform_leaf(lambda a, b: a + b, (1, (2, 3)), (10, (20, 30)))
    (11, (22, 33))
    """
    first = args[0]
    if not isinstance(first, tuple):
        return f(*args)
    for other in args[1:]:
        if not isinstance(other, tuple) or len(other) != len(first):
            raise LayoutError(f"transform_leaf: {other} does not have the profile of {first}")
    return tuple([transform_leaf(f, *parts) for parts in zip(*args, strict=True)])


def transform_apply(*args: Any, f: Callable[..., Any], g: Callable[..., Any]) -> Any:
    """``g(f(a0, b0), f(a1, b1), ...)`` over the modes of the arguments.

    >>> transform_apply((1, 2), (3, 4), f=lambda a, b: a * b, g=lambda *products: sum(products))
    11
    """
    if isinstance(args[0], tuple):
        return g(*[f(*parts) for parts in zip(*args, strict=True)])
    return g(f(*args))


def checked_rank(n: int, name: str) -> int:
    """``n`` as the number of modes of a tree; more than any shape has is refused before it fills the memory."""
    if n > MOST_MODES:
        raise LayoutError(f"{name}: {n} modes are more than the {MOST_MODES} that a tuple may have")
    return n


def repeat(x: Any, n: int) -> Any:
    """``x`` itself for ``n == 1``, else a tuple of ``n`` of it.

    >>> repeat(7, 1), repeat(7, 3)
    (7, (7, 7, 7))
    """
    return x if n == 1 else repeat_as_tuple(x, n)


def repeat_as_tuple(x: Any, n: int) -> tuple[Any, ...]:
    """A tuple of ``n`` of ``x``.

    >>> repeat_as_tuple(5, 3)
    (5, 5, 5)
    """
    if n < 1:
        raise LayoutError(f"repeat: n must be at least 1, not {n}")
    return (x,) * checked_rank(n, "repeat")


def repeat_like(x: Any, target: Any) -> Any:
    """``x`` at every leaf of ``target``.

    >>> repeat_like(0, (1, (2, 3)))
    (0, (0, 0))
    """
    return transform_leaf(lambda _: x, target)


def tuple_cat(*tuples: Any) -> tuple[Any, ...]:
    """All tuples one after another; an int counts as a 1-tuple.

    >>> tuple_cat((1, 2), 3, ((4, 5),))
    (1, 2, 3, (4, 5))
    """
    return tuple(x for t in tuples for x in (t if isinstance(t, tuple) else (t,)))


def is_congruent(a: Any, b: Any, *, loc: Any = None, ip: Any = None) -> bool:
    """Whether two trees (or layouts) have the same profile.

    >>> is_congruent((2, (3, 4)), (0, (0, 0))), is_congruent((2, 3), 6)
    (True, False)
    """
    a, b = getattr(a, "shape", a), getattr(b, "shape", b)
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(is_congruent, a, b))
    return not isinstance(b, tuple)


def is_weakly_congruent(a: Any, b: Any) -> bool:
    """Whether ``b`` refines the profile of ``a``: every leaf of ``a`` meets a leaf or a subtree of ``b``.

    >>> is_weakly_congruent((2, 3), (2, (3, 4))), is_weakly_congruent((2, (3, 4)), (2, 3))
    (True, False)
    """
    a, b = getattr(a, "shape", a), getattr(b, "shape", b)
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(is_weakly_congruent, a, b))
    return True


def ones_at_zeros(shape: Any, stride: Any) -> Any:
    """``shape`` with 1 wherever the stride is a static 0."""
    if type(stride) is tuple:
        return tuple([ones_at_zeros(s, d) for s, d in zip(shape, stride, strict=True)])
    return repeat_like(1, shape) if type(stride) is int and stride == 0 else shape


def tiles_along(input: Any, tiler: Any) -> Any:
    """How many tiles of the shape ``tiler`` cover ``input``: element by element, a scalar divisor folded over a tuple.

    >>> tiles_along((100, 64), (32, 16)), tiles_along((5, 6), 10), tiles_along(29, 8)
    ((4, 4), (1, 3), 4)
    """
    if isinstance(input, tuple):
        if isinstance(tiler, tuple):
            if len(tiler) > len(input):
                raise LayoutError(f"ceil_div({input}, {tiler}): the tiler has more modes than the input")
            return tuple(map(tiles_along, input, tiler)) + input[len(tiler) :]
        out = []
        for x in input:
            if isinstance(x, tuple):
                out.append(tiles_along(x, tiler))
                x = product(x)
            else:
                out.append(ceil_div_int(x, tiler))
            tiler = ceil_div_int(tiler, x)
        return tuple(out)
    return ceil_div_int(input, product(tiler))


def round_up(a: Any, b: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """``a`` raised to the next multiple of ``b``, element by element.

    >>> round_up(29, 8), round_up((5, 9), (4, 4))
    (32, (8, 12))
    """
    if isinstance(a, tuple):
        b = b + (1,) * (len(a) - len(b))
        return tuple(map(round_up, a, b))
    return ceil_div_int(a, b) * b


def shape_div(lhs: Any, rhs: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Division of shapes: one side must divide the other; a quotient below one is one.

    >>> shape_div((4, 5, 6), 40), shape_div(12, (2, 3)), shape_div((8, 3), (2, 6))
    ((1, 1, 3), 2, (4, 1))
    """
    if isinstance(lhs, tuple):
        if isinstance(rhs, tuple):
            if len(lhs) != len(rhs):
                raise LayoutError(f"shape_div({lhs}, {rhs}): the ranks differ")
            return tuple(map(shape_div, lhs, rhs))
        out = []
        for x in lhs:
            out.append(shape_div(x, rhs))
            rhs = shape_div(rhs, product(x))
        return tuple(out)
    if isinstance(rhs, tuple):
        return shape_div(lhs, product(rhs))
    if isinstance(rhs, int) and rhs == 0:
        raise LayoutError(f"shape_div({lhs}, 0): division by zero")
    quotient = exact_quotient(lhs, rhs)
    if quotient is not None:
        return quotient
    if exact_quotient(rhs, lhs) is not None:
        return 1
    if isinstance(lhs, int) and isinstance(rhs, int):
        raise LayoutError(f"shape_div({lhs}, {rhs}): neither divides the other")
    a, b = format_int(lhs), format_int(rhs)
    raise LayoutError(f"shape_div({a}, {b}): whether one of {a} and {b} divides the other {UNDECIDED}")


def elem_less(lhs: Any, rhs: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Whether every element of ``lhs`` is below its partner: the bounds test of predication.

    Missing trailing elements of ``lhs`` count as below. A run-time operand makes the answer a run-time boolean.
    A number in place of a tuple is an index: it is compared with the number of elements.

    Raises LayoutError where ``lhs`` has several elements and ``rhs`` fewer: no bound says whether they are inside.

    >>> elem_less((3, (1, 2)), (4, (2, 3))), elem_less((3, 5), (4, 5)), elem_less((3, 11), (4, (2, 6)))
    (True, False, True)
    """
    lhs, rhs = getattr(lhs, "shape", lhs), getattr(rhs, "shape", rhs)
    if isinstance(lhs, tuple) and (len(lhs) > len(rhs) if isinstance(rhs, tuple) else len(flatten_to_tuple(lhs)) > 1):
        raise LayoutError(
            f"elem_less: the coordinate {format_tree(lhs)} has more modes than its bound {format_tree(rhs)}: take the "
            "modes that are bounded (coord[0], coord[:2]), or give a bound for each"
        )
    if not (isinstance(lhs, tuple) and isinstance(rhs, tuple)):
        return product(lhs) < product(rhs)
    result: Any = True
    for a, b in zip(lhs, rhs, strict=False):
        part = elem_less(a, b)
        result = part if result is True else result & part
    return result


def find_if(
    t: Any, pred_fn: Callable[[Any, tuple[int, ...]], bool], *, loc: Any = None, ip: Any = None
) -> int | tuple[int, ...] | None:
    """Position of the first leaf that satisfies ``pred_fn(leaf, position)``; nested positions are tuples.

    >>> find_if((3, (1, 4)), lambda x, _: x == 4)
    (1, 1)
    """

    def walk(x: Any, path: tuple[int, ...]) -> tuple[int, ...] | None:
        if isinstance(x, tuple):
            hits = (walk(y, (*path, i)) for i, y in enumerate(x))
            return next((hit for hit in hits if hit is not None), None)
        return path if pred_fn(x, path) else None

    indices = walk(t, ())
    return indices[0] if indices is not None and len(indices) == 1 else indices


def find(t: Any, x: IntLike, *, loc: Any = None, ip: Any = None) -> int | tuple[int, ...] | None:
    """Position of the first leaf equal to ``x``, or None.

    >>> find((4, (8, 2)), 2), find((4, 8), 4), find((4, 8), 3)
    ((1, 1), 0, None)
    """
    return find_if(t, lambda leaf, _: same_int(leaf, x))
