"""Composition: ``R = A o B``, the layout with ``R(c) == A(B(c))`` for every coordinate ``c`` of B.

Composition distributes over the modes of B, so it is enough to define it for one mode ``n:r``. Think of A's flat shape
``(s0, s1, ...)`` as the digits of a mixed-radix number: stepping by ``r`` first divides ``r`` out of the digits from
the left, then ``n`` steps are handed to the digits that remain.

    (4,8):(13,1) o 8:2     4 digits / 2 leave 2 with stride 26; 8 steps = 2 of those, then 4 of the next: (2,4):(26,1)

Both divisions must be exact (the *stride* and the *shape* divisibility conditions), and the modes of B must not carry
into each other's digits; otherwise no layout has the values asked for and LayoutError says which condition failed.
The last digit of A is unbounded: A is read past its end with its last stride.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from tilewright.errors import LayoutError
from tilewright.layout.basis import ScaledBasis, basis_get
from tilewright.layout.cache import remembered
from tilewright.layout.composed import ComposedLayout, lifted
from tilewright.layout.drawable import LayoutOrTensor
from tilewright.layout.ints import UNDECIDED, RuntimeInt, ceil_div_int, divisor_of, exact_quotient
from tilewright.layout.layout import Layout, has_scaled_basis
from tilewright.layout.modes import cosize, size
from tilewright.layout.simplify import by_mode, merged
from tilewright.layout.swizzle import Swizzle, compose_swizzle
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import as_tiler, extent_of_tiler


class _ConditionError(Exception):
    """A divisibility condition failed; the operation that knows the operands turns it into a LayoutError."""


class _BasisStrideError(Exception):
    """The right operand has a basis stride, which points into a part of the left one."""


class _Digits:
    """The flat coalesced modes of A, ``extents`` and ``strides``, and what the modes of B have claimed of each digit so
    far, from which :func:`_check_no_carry` knows that they do not carry into each other's digits."""

    __slots__ = ("extents", "strides", "claims", "forward", "backward", "uneven")

    def __init__(self, shape: Any, stride: Any) -> None:
        self.extents, self.strides = merged(shape, stride, True)
        self.claims: list[Any] = [0] * len(self.extents)
        """The largest number claimed of each digit; for numbers of the running program see :func:`_claim_runtime`."""
        self.forward = self.backward = False
        """Whether some mode of B steps forward, and backward."""
        self.uneven = False
        """Whether a mode of B goes on to the next digit although no step of its ends where this digit ends."""


_Leaf = Callable[[_Digits, Any, Any], tuple[Any, Any]]
"""What one mode ``n:r`` of B becomes: a shape and a stride, tuples where it goes on through several digits."""


def compose_layouts(lhs: Layout, shape: Any, stride: Any, static: bool) -> Layout:
    """``lhs o shape:stride``."""
    leaf = _static_leaf if static else _runtime_leaf
    try:
        try:
            digits = _Digits(lhs.shape, lhs.stride)
            if len(digits.extents) == 1:
                return Layout(shape, _scaled(stride, digits.strides[0]))
            result = _tree(digits, shape, stride, leaf)
            _check_no_carry(digits)
        except _BasisStrideError:
            by_path: dict[tuple[int, ...], _Digits] = {}
            result = _by_basis(lhs, by_path, shape, stride, leaf)
            for digits in by_path.values():
                _check_no_carry(digits)
    except _ConditionError as error:
        raise LayoutError(
            f"composition({lhs}, {format_tree(shape)}:{format_tree(stride)}) does not exist: {error}"
        ) from None
    return Layout(*result)


def compose_tiles(lhs: Layout, tile: Layout, rest: Layout, gaps: int, static: bool) -> Layout:
    """``lhs o (tile, rest)``, where the modes of ``rest`` after its first ``gaps`` may run past a digit of ``lhs``.

    The tile and the gaps together name a range of indices once each, and must do so in ``lhs``. The further modes
    repeat that range; where it does not divide the digit in which it ends, its last copy hangs over and the next one
    starts with the next step of the digit above.
    """
    leaf = _static_leaf if static else _runtime_leaf
    several = rest.shape.__class__ is tuple
    shapes, strides = (rest.shape, rest.stride) if several else ((rest.shape,), (rest.stride,))
    try:
        digits = _Digits(lhs.shape, lhs.stride)
        if len(digits.extents) == 1:
            d = digits.strides[0]
            return Layout((tile.shape, rest.shape), (_scaled(tile.stride, d), _scaled(rest.stride, d)))
        inner = _tree(digits, tile.shape, tile.stride, leaf)
        first = _tree(digits, shapes[:gaps], strides[:gaps], leaf)
        _check_no_carry(digits)
        last = _tree(digits, shapes[gaps:], strides[gaps:], leaf)
    except _ConditionError as error:
        raise LayoutError(f"composition({lhs}, {tile}) with its repetitions {rest} does not exist: {error}") from None
    shapes, strides = first[0] + last[0], first[1] + last[1]
    return Layout(*[(a, b if several else b[0]) for a, b in zip(inner, (shapes, strides), strict=True)])


def _scaled(stride: Any, d: Any) -> Any:
    """The stride where A is one digit of stride ``d``: every step of B is that many steps of ``d``."""
    if stride.__class__ is tuple:
        return tuple([_scaled(x, d) for x in stride])
    if stride.__class__ is ScaledBasis:
        raise _BasisStrideError
    if stride.__class__ is int and stride == 0:
        return 0
    return stride * d


def _tree(digits: _Digits, shape: Any, stride: Any, leaf: _Leaf) -> tuple[Any, Any]:
    """Each mode of B by itself, in B's own nesting."""
    if shape.__class__ is not tuple:
        return leaf(digits, shape, stride)
    shapes = []
    strides = []
    for n, r in zip(shape, stride):  # noqa: B905  (congruent by construction)
        n, r = _tree(digits, n, r, leaf) if n.__class__ is tuple else leaf(digits, n, r)
        shapes.append(n)
        strides.append(r)
    return tuple(shapes), tuple(strides)


def _by_basis(
    lhs: Layout, by_path: dict[tuple[int, ...], _Digits], shape: Any, stride: Any, leaf: _Leaf
) -> tuple[Any, Any]:
    """Every basis stride points into its own part of A."""
    if isinstance(shape, tuple):
        parts = [_by_basis(lhs, by_path, n, r, leaf) for n, r in zip(shape, stride, strict=True)]
        return tuple([p[0] for p in parts]), tuple([p[1] for p in parts])
    if not isinstance(stride, ScaledBasis):
        if isinstance(stride, int) and stride == 0:
            return shape, 0
        raise _ConditionError(f"stride {format_tree(stride)} is an offset among basis strides")
    digits = by_path.get(stride.mode)
    if digits is None:
        digits = _Digits(basis_get(stride, lhs.shape), basis_get(stride, lhs.stride))
        by_path[stride.mode] = digits
    if len(digits.extents) == 1:
        return shape, stride.value * digits.strides[0]
    return leaf(digits, shape, stride.value)


def _static_leaf(digits: _Digits, n: Any, r: Any) -> tuple[Any, Any]:
    """The mode ``n:r`` of B, from A's first digit on: first ``r`` is divided by the digits that it steps over whole,
    then the ``n`` steps are handed to the digits that follow, as many to each as fit."""
    if r.__class__ is not int:
        raise _BasisStrideError
    if r == 0:
        return n, 0
    sign = 1
    if r < 0:
        sign, r = -1, -r
    if n != 1:
        if sign > 0:
            digits.forward = True
        else:
            digits.backward = True
    shapes: list[Any] = []
    strides: list[Any] = []
    last = len(digits.extents) - 1
    for i in range(last):
        extent = digits.extents[i]
        if r >= extent:  # each step passes over this digit whole
            if r % extent and n != 1:
                raise _ConditionError(
                    f"stride {r} is not divisible by {extent} (stride divisibility condition); take a multiple of "
                    f"{extent}"
                )
            r = -(-r // extent)
            continue
        if n == 1:  # nothing is left to hand out; a mode of one element gets the last digit's stride, as in CuTe C++
            if shapes:
                break
            r = 1
            continue
        steps = -(-extent // r)
        if steps >= n:  # all that are left fit here
            steps = n
        else:
            if n % steps:
                raise _ConditionError(
                    f"{n} is not divisible by {steps} (shape divisibility condition); take fewer or a multiple"
                )
            if steps * r != extent:
                digits.uneven = True
        digits.claims[i] += (steps - 1) * r
        shapes.append(steps)
        strides.append(sign * r * digits.strides[i])
        n //= steps
        r = 1
    # The last digit is unbounded.
    if not shapes:
        return n, sign * r * digits.strides[last]
    if n != 1:
        shapes.append(n)
        strides.append(sign * r * digits.strides[last])
    elif len(shapes) == 1:
        return shapes[0], strides[0]
    return tuple(shapes), tuple(strides)


def _runtime_leaf(digits: _Digits, n: Any, r: Any) -> tuple[Any, Any]:
    """The same walk where some leaf is known only at run time: every decision must follow from a known divisor."""
    if isinstance(r, ScaledBasis):
        raise _BasisStrideError
    if isinstance(r, int) and (r == 0 or isinstance(n, int)) and set(map(type, digits.extents)) == {int}:
        return _static_leaf(digits, n, r)
    if isinstance(r, int) and r == 0:
        return n, 0
    if isinstance(n, int) and n == 1:
        return 1, 0
    mode = f"for the mode {format_tree(n)}:{format_tree(r)} of the right operand, whether"
    shapes: list[Any] = []
    strides: list[Any] = []
    for i, s in enumerate(digits.extents[:-1]):
        skipped = exact_quotient(r, s)
        if skipped is not None:
            r = skipped
            continue
        room = exact_quotient(s, r)
        rest = None if room is None else exact_quotient(n, room)
        if rest is None and (room is None or exact_quotient(room, n) is None):  # the running program has to find out
            steps, remainder, after = _open_digit(s, n, r, mode)
            _claim_open(digits, i, steps, remainder, r)
            shapes.append(steps)
            strides.append(r * digits.strides[i])
            n, r = remainder, after
            continue
        if rest is None:
            room, rest = n, 1
        _claim_runtime(digits, i, room, r)
        shapes.append(room)
        strides.append(r * digits.strides[i])
        n, r = rest, 1
        if isinstance(n, int) and n == 1:
            break
    else:
        shapes.append(n)
        strides.append(r * digits.strides[-1])
    return (shapes[0], strides[0]) if len(shapes) == 1 else (tuple(shapes), tuple(strides))


class _OpenClaim:
    """Claims on a digit that only the running program can add up: the largest number claimed, so far."""

    def __init__(self, total: Any) -> None:
        self.total = total


def _open_digit(s: Any, n: Any, r: Any, mode: str) -> tuple[Any, Any, Any]:
    """What ``n`` steps of ``r`` do in a digit of extent ``s``, computed by the program itself: (steps taken here, steps
    left for the next digits, their stride there). As in CuTe C++, this digit keeps its mode even if it has one step."""
    runtime = next((x for x in (s, n, r) if isinstance(x, RuntimeInt)), None)
    room = s if isinstance(r, int) and r == 1 else ceil_div_int(s, r)
    steps = room.minimum(n) if isinstance(room, RuntimeInt) else n.minimum(room) if isinstance(n, RuntimeInt) else None
    if steps is None or runtime is None or (isinstance(r, int) and r < 0):
        raise _ConditionError(f"{mode} {format_tree(n)} steps of {format_tree(r)} fit {format_tree(s)} {UNDECIDED}")
    after = r
    if not (isinstance(r, int) and r == 1):
        text = f"{mode} {format_tree(r)} is divisible by the extent {format_tree(s)} that it passes"
        runtime.require((r < s) | (r % s == 0), f"{text}: it is not (stride divisibility condition)")
        after = ceil_div_int(r, s)
    text = f"{mode} {format_tree(n)} is divisible by the steps that fit the extent {format_tree(s)}"
    runtime.require(n % steps == 0, f"{text}: it is not (shape divisibility condition)")
    return steps, n // steps, after


def _claim_open(digits: _Digits, i: int, steps: Any, remainder: Any, r: Any) -> None:
    """Enter ``steps:r`` among the claims on digit ``i``; a mode that goes on into the next digit uses this one up."""
    claim, s = digits.claims[i], digits.extents[i]
    before = claim.total if isinstance(claim, _OpenClaim) else claim[1] - 1 if isinstance(claim, tuple) else claim
    total = (steps - 1) * r + before
    runtime = next(x for x in (steps, remainder, r, s) if isinstance(x, RuntimeInt))
    text = f"a mode of the right operand leaves the extent {format_tree(s)} of the left one before its end"
    runtime.require((remainder == 1) | (steps * r >= s), text)
    runtime.require(total < s, _PAST.format(s=format_tree(s)))
    digits.claims[i] = _OpenClaim(total)


_PAST = (
    "the right operand steps past the extent {s} of a mode of the left one, so that no stride describes the result; "
    "let its modes divide {s} between them"
)


def _claim_runtime(digits: _Digits, i: int, steps: Any, r: Any) -> None:
    """Enter ``steps:r`` among the claims on digit ``i``: an int is the largest number claimed so far; ``(low, reach)``
    says that the claims are multiples of ``low`` below ``reach``, which fits because it divides the digit."""
    claim = digits.claims[i]
    if isinstance(claim, _OpenClaim):
        return _claim_open(digits, i, steps, 1, r)
    if not isinstance(claim, tuple):
        if isinstance(steps, int) and isinstance(r, int):
            digits.claims[i] = claim + (steps - 1) * r
            return
        if claim < divisor_of(r):
            digits.claims[i] = (1 if claim else r, steps * r)
            return
    elif exact_quotient(r, claim[1]) is not None:
        digits.claims[i] = (claim[0], steps * r)
        return
    elif exact_quotient(claim[0], steps * r) is not None:
        digits.claims[i] = (r, claim[1])
        return
    elif isinstance(steps, int) and isinstance(r, int) and (steps - 1) * r < divisor_of(claim[0]):
        digits.claims[i] = (1, claim[1])
        return
    raise _ConditionError(
        f"whether the mode {format_tree(steps)}:{format_tree(r)} of the right operand stays clear of the other modes "
        f"within the extent {format_tree(digits.extents[i])} of the left one is not known before run time"
    )


def _check_no_carry(digits: _Digits) -> None:
    """Refuse modes of B that together claim more of a digit than it has: their sum would carry into the next one."""
    if digits.forward and digits.backward:
        raise _ConditionError("modes of the right operand step forward and backward through the left one")
    for claim, s in zip(digits.claims[:-1], digits.extents[:-1], strict=True):
        if claim.__class__ is int and s.__class__ is int and (claim >= s or digits.uneven):
            if not digits.uneven and _names_the_index(digits.strides):
                return
            raise _ConditionError(_PAST.format(s=s))


def _names_the_index(steps: list[Any]) -> bool:
    """Whether a coordinate beyond its extent still tells the index, as (7,0) in an identity layout (6,6) says 7.

    It does if every digit steps along its own mode of the coordinate.
    """
    return all(d.__class__ is ScaledBasis for d in steps) and len({d.mode for d in steps}) == len(steps)


def compose(lhs: Any, rhs: Any, static: bool = False) -> Any:
    """:func:`composition` without its cache."""
    kind = rhs.__class__
    if kind is Layout:
        if lhs.__class__ is Layout:
            return compose_layouts(lhs, rhs.shape, rhs.stride, static)
        if isinstance(lhs, Swizzle):
            return ComposedLayout(lhs, 0, rhs) if lhs.bits else rhs
    if rhs is None:
        return lhs
    if isinstance(lhs, ComposedLayout) and not isinstance(rhs, Swizzle | ComposedLayout):
        return lhs.on_outer(lambda outer: compose(outer, rhs, static))
    if isinstance(lhs, Swizzle) and isinstance(rhs, Swizzle):
        return lhs.merge(rhs)
    if isinstance(rhs, Swizzle):
        return compose_swizzle(lhs, rhs)
    if isinstance(rhs, ComposedLayout):
        if not (isinstance(rhs.offset, int) and rhs.offset == 0):
            raise LayoutError(f"composition({lhs}, {rhs}): the right operand must have offset 0")
        if isinstance(lhs, Layout) and isinstance(rhs.inner, Swizzle) and isinstance(rhs.outer, Layout):
            count, reach = size(lhs), cosize(rhs.outer)
            if isinstance(count, int) and isinstance(reach, int) and reach > count:  # a swizzle has no end to go past
                why = f"the right operand reaches {reach} elements, the left one has {count}"
                raise LayoutError(f"composition({lhs}, {rhs}) does not exist: {why}")
        return compose(compose(lhs, rhs.inner, static), rhs.outer, static)
    if not isinstance(lhs, Layout):
        return lifted(lhs, "composition", lambda outer: compose(outer, rhs, static))
    if isinstance(rhs, tuple):
        result = by_mode(lambda mode, tile: compose(mode, tile, static), lhs, rhs, "composition")
        return Layout(result.shape[: len(rhs)], result.stride[: len(rhs)])
    return compose_layouts(lhs, extent_of_tiler(rhs, f"composition({lhs}, {rhs!r})"), 1, static)


@remembered
def _composition(static: bool, lhs: Any, rhs: Any) -> Any:
    return compose(lhs, rhs, static)


@overload
def composition(lhs: Layout, rhs: Layout | int | tuple[Any, ...], *, loc: Any = None, ip: Any = None) -> Layout: ...
@overload
def composition(lhs: Any, rhs: Any, *, loc: Any = None, ip: Any = None) -> Any: ...
def composition(lhs: Any, rhs: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The layout ``R`` with ``R(c) == lhs(rhs(c))``; its shape refines that of ``rhs``.

    A tuple on the right is a tiler: it composes mode by mode, an int ``n`` meaning ``n:1`` and None leaving its mode
    alone; modes beyond it are dropped. Raises LayoutError when no layout has these values.

    >>> composition(Layout((4, 8), (13, 1)), Layout(8, 2))
    (2,4):(26,1)
    >>> composition(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1)))
    ((2,2),3):((24,2),8)
    >>> composition(Layout((12, (4, 8)), (59, (13, 1))), (Layout(3, 4), Layout(8, 2)))
    (3,(2,4)):(236,(26,1))
    >>> composition(Layout((4, 6), (1, 10)), Layout(5, 1))
    Traceback (most recent call last):
    tilewright.errors.LayoutError: composition((4,6):(1,10), 5:1) does not exist: 5 is not divisible by 4 (shape ...
    """
    return _composition(lhs, as_tiler(rhs) if rhs.__class__ is list or rhs.__class__ is tuple else rhs)


@overload
def with_shape(layout: LayoutOrTensor, shape: Any, *, loc: Any = None, ip: Any = None) -> LayoutOrTensor: ...
@overload
def with_shape(layout: Any, shape: Any, *, loc: Any = None, ip: Any = None) -> Any: ...
def with_shape(layout: Any, shape: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The elements of ``layout`` in the same order under another shape.

    >>> with_shape(Layout((8, 4), (4, 1)), (2, 4, 4))
    (2,4,4):(4,8,1)
    """
    return composition(layout, Layout(shape))


def make_composed_layout(
    inner: Any, offset: Any, outer: Layout | ComposedLayout, *, loc: Any = None, ip: Any = None
) -> ComposedLayout:
    """``inner o offset o outer``: ``inner`` is a swizzle, a layout or any function of an offset.

    >>> from tilewright.layout import make_swizzle
    >>> make_composed_layout(make_swizzle(2, 1, 2), 128, Layout((4, 8)))
    Sw<2,1,2> o 128 o (4,8):(1,4)
    """
    if not isinstance(outer, Layout | ComposedLayout):
        raise LayoutError(f"make_composed_layout: the outer part must be a layout, not {outer!r}")
    if not callable(inner):
        raise LayoutError(f"make_composed_layout: the inner part must be a function of an offset, not {inner!r}")
    if isinstance(inner, Swizzle) and isinstance(outer, Layout) and has_scaled_basis(outer):
        raise LayoutError(f"make_composed_layout: {inner} permutes offsets, but {outer} gives coordinates")
    return ComposedLayout(inner, offset, outer)
