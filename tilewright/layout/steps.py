"""``explain(op, ...)``: an operation worked out step by step, for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tilewright.errors import LayoutError
from tilewright.layout.compose import composition
from tilewright.layout.divides import flat_divide, logical_divide, tiled_divide, zipped_divide
from tilewright.layout.inverse import complement, left_inverse, right_inverse
from tilewright.layout.layout import Layout
from tilewright.layout.modes import append, cosize, rank, size
from tilewright.layout.products import blocked_product, logical_product, raked_product
from tilewright.layout.simplify import coalesce, filter
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import as_tiler, flatten_to_tuple, is_static

SHOWN = 12


def _row(name: str, layout: Any) -> str:
    n = size(layout)
    values = " ".join(str(layout(i)) for i in range(min(n, SHOWN)))
    return f"{name} = {layout}: {values}{' ...' if n > SHOWN else ''}"


def _coalesce(a: Layout) -> list[str]:
    lines = [_row("A", a)]
    kept: list[tuple[Any, Any]] = []
    for s, d in zip(flatten_to_tuple(a.shape), flatten_to_tuple(a.stride), strict=True):
        if s == 1:
            lines.append(f"{s}:{d} has one element: dropped")
        elif kept and kept[-1][0] * kept[-1][1] == d:
            s0, d0 = kept.pop()
            lines.append(f"{s0}:{d0} ends where {s}:{d} steps ({s0}*{d0} = {d}): together {s0 * s}:{d0}")
            kept.append((s0 * s, d0))
        else:
            if kept:
                s0, d0 = kept[-1]
                lines.append(f"{s0}:{d0} ends at {s0 * d0}, {s}:{d} steps {d}: apart")
            kept.append((s, d))
    return [*lines, _row("coalesce(A)", coalesce(a))]


def _composition(a: Layout, b: Any) -> list[str]:
    lines = [_row("A", a)]
    if isinstance(b, tuple):
        for i, (mode, t) in enumerate(zip(a, b, strict=False)):
            lines.append(f"mode {i} of A, {mode}, o {format_tree(t)}: {composition(mode, t)}")
        return [*lines, _row("by mode", composition(a, b))]
    b = b if isinstance(b, Layout) else Layout(b)
    lines += [_row("B", b), f"A coalesced: {coalesce(a)}"]
    for n, r in zip(flatten_to_tuple(b.shape), flatten_to_tuple(b.stride), strict=True):
        every = "" if r == 1 else f", {r} apart"
        lines.append(f"mode {n}:{r} of B takes {n} elements of A{every}: {composition(a, Layout(n, r))}")
        lines += [f"  {step}" for step in _digits(coalesce(a), n, r)]
    return [*lines, _row("A o B", composition(a, b)), "check: (A o B)(i) = A(B(i)) for every i"]


def _digits(a: Layout, n: int, r: int) -> Iterator[str]:
    """How ``n`` steps of ``r`` are handed to the modes of ``a``, seen as digits of a number."""
    modes = list(zip(flatten_to_tuple(a.shape), flatten_to_tuple(a.stride), strict=True))
    for i, (s, d) in enumerate(modes):
        if r == 0 or n == 1:
            return
        if i == len(modes) - 1:
            yield f"{s}:{d}, the last: all {n} that are left, {n}:{r * d}"
        elif r >= s:
            yield f"{s}:{d} is stepped over whole: {r}/{s} = {r // s} of the next"
            r //= s
        else:
            count = min(n, -(-s // r))
            yield f"{s}:{d} takes {s}/{r} = {-(-s // r)}: {count} of {n} here, {count}:{r * d}"
            n, r = n // count, 1


def _complement(a: Layout, target: Any) -> list[str]:
    moving = filter(a)
    lines = [_row("A", a), f"without broadcast and size-1 modes: {moving}"]
    filled = 1
    for d, s in sorted(zip(flatten_to_tuple(moving.stride), flatten_to_tuple(moving.shape), strict=True)):
        if d:
            gap = f"{d // filled} copies of what fills {filled} fit" if d > filled else "no gap"
            lines.append(f"mode {s}:{d}: {gap} below stride {d}")
            filled = d * s
    lines.append(f"above {filled}: ceil({format_tree(target)}/{filled}) copies")
    return [*lines, _row("complement", complement(a, target))]


def _divide(a: Layout, tiler: Any) -> list[str]:
    if isinstance(tiler, tuple):
        lines = [_row("A", a)]
        for i, (mode, t) in enumerate(zip(a, tiler, strict=False)):
            lines.append(f"mode {i} of A, {mode}, by {format_tree(t)}: {logical_divide(mode, t)}")
        return [*lines, _row("(tile, rest) in every mode", logical_divide(a, tiler))]
    t = tiler if isinstance(tiler, Layout) else Layout(tiler)
    rest = complement(t, coalesce(a).shape)
    return [
        _row("A", a),
        _row("tile T", t),
        _row(f"T* = complement(T, {size(a)}), the layout of the tiles", rest),
        f"(T, T*) = {Layout((t.shape, rest.shape), (t.stride, rest.stride))}",
        _row("A o (T, T*)", logical_divide(a, t)),
    ]


def _regrouped_divide(operation: Callable[..., Any], how: str) -> Callable[..., list[str]]:
    return lambda a, tiler: [*_divide(a, tiler), _row(f"{how}: {operation.__name__}", operation(a, tiler))]


def _product(a: Layout, tiler: Any) -> list[str]:
    t = tiler if isinstance(tiler, Layout) else Layout(tiler)
    span = size(a) * cosize(t)
    free = complement(a, span)
    return [
        _row("block A", a),
        _row("tiler T", t),
        _row(f"A* = complement(A, {size(a)}*{cosize(t)}), where copies of A fit", free),
        _row("A* o T", composition(free, t)),
        _row("(A, A* o T)", logical_product(a, t)),
    ]


def _paired_product(operation: Callable[..., Any], how: str) -> Callable[..., list[str]]:
    def lines(a: Layout, tiler: Layout) -> list[str]:
        n = max(rank(a), rank(tiler))
        padded = append(a, up_to_rank=n), append(tiler, up_to_rank=n)
        return [*_product(*padded), _row(f"mode i is {how}: {operation.__name__}", operation(a, tiler))]

    return lines


def _inverse(name: str, inverse: Callable[[Any], Any]) -> Callable[[Layout], list[str]]:
    def lines(a: Layout) -> list[str]:
        flat = coalesce(a)
        steps = []
        before = 1
        for s, d in zip(flatten_to_tuple(flat.shape), flatten_to_tuple(flat.stride), strict=True):
            steps.append((d, s, before))
            before *= s
        ordered = [f"offset step {d}: mode of {s}, 1-D coordinate step {c}" for d, s, c in sorted(steps)]
        return [_row("A", a), f"A coalesced: {flat}", *ordered, _row(f"{name}(A)", inverse(a))]

    return lines


_EXPLAINERS: dict[str, Callable[..., list[str]]] = {
    "coalesce": _coalesce,
    "composition": _composition,
    "complement": _complement,
    "logical_divide": _divide,
    "zipped_divide": _regrouped_divide(zipped_divide, "all tiles' modes first, then all rests"),
    "tiled_divide": _regrouped_divide(tiled_divide, "the tiles' modes together, every rest by itself"),
    "flat_divide": _regrouped_divide(flat_divide, "every mode by itself"),
    "logical_product": _product,
    "blocked_product": _paired_product(blocked_product, "(block, copies)"),
    "raked_product": _paired_product(raked_product, "(copies, block)"),
    "right_inverse": _inverse("right_inverse", right_inverse),
    "left_inverse": _inverse("left_inverse", left_inverse),
}


def explain(op: str | Callable[..., Any], *operands: Any) -> str:
    """The steps of an operation on static layouts, with the first values of every layout on the way.

    >>> print(explain("coalesce", Layout((2, (1, 6)), (1, (6, 2)))))
    A = (2,(1,6)):(1,(6,2)): 0 1 2 3 4 5 6 7 8 9 10 11
    1:6 has one element: dropped
    2:1 ends where 6:2 steps (2*1 = 2): together 12:1
    coalesce(A) = 12:1: 0 1 2 3 4 5 6 7 8 9 10 11
    """
    name = op if isinstance(op, str) else getattr(op, "__name__", str(op))
    if name not in _EXPLAINERS:
        raise LayoutError(f"explain: no explanation of {name}; there are {', '.join(_EXPLAINERS)}")
    operands = tuple(map(as_tiler, operands))
    text = f"explain({name}, {', '.join(map(format_tree, operands))})"
    if not operands or not isinstance(operands[0], Layout) or not is_static(operands):
        raise LayoutError(f"{text}: works on plain layouts without run-time ints")
    try:
        return "\n".join(_EXPLAINERS[name](*operands))
    except TypeError as error:
        raise LayoutError(f"{text}: these are not the operands of {name} ({error})") from error
