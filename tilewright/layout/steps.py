"""``explain(op, ...)``: an operation worked out step by step, for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.errors import LayoutError
from tilewright.layout.compose import composition
from tilewright.layout.divides import logical_divide
from tilewright.layout.inverse import complement, left_inverse, right_inverse
from tilewright.layout.layout import Layout
from tilewright.layout.modes import cosize, size
from tilewright.layout.products import logical_product
from tilewright.layout.simplify import coalesce, filter
from tilewright.layout.text import format_tree
from tilewright.layout.tuples import flatten_to_tuple

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


def _composition(a: Layout, b: Layout) -> list[str]:
    lines = [_row("A", a), _row("B", b), f"A coalesced: {coalesce(a)}"]
    for n, r in zip(flatten_to_tuple(b.shape), flatten_to_tuple(b.stride), strict=True):
        lines.append(f"mode {n}:{r} of B: every {r}th element of A, {n} of them: {composition(a, Layout(n, r))}")
    return [*lines, _row("A o B", composition(a, b)), "check: (A o B)(i) = A(B(i)) for every i"]


def _complement(a: Layout, target: Any) -> list[str]:
    moving = filter(a)
    lines = [_row("A", a), f"without broadcast and size-1 modes: {moving}"]
    filled = 1
    for d, s in sorted(zip(flatten_to_tuple(moving.stride), flatten_to_tuple(moving.shape), strict=True)):
        if d:
            lines.append(f"mode {s}:{d}: {d // filled} copies of what fills {filled} fit below stride {d}")
            filled = d * s
    lines.append(f"above {filled}: ceil({format_tree(target)}/{filled}) copies")
    return [*lines, _row("complement", complement(a, target))]


def _divide(a: Layout, tiler: Any) -> list[str]:
    t = tiler if isinstance(tiler, Layout) else Layout(tiler)
    rest = complement(t, coalesce(a).shape)
    return [
        _row("A", a),
        _row("tile T", t),
        _row(f"T* = complement(T, {size(a)}), the layout of the tiles", rest),
        f"(T, T*) = {Layout((t.shape, rest.shape), (t.stride, rest.stride))}",
        _row("A o (T, T*)", logical_divide(a, t)),
    ]


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
    "logical_product": _product,
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
    return "\n".join(_EXPLAINERS[name](*operands))
