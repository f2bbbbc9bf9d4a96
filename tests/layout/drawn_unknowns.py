"""Operations on drawn layouts of which some extents, strides and tilers are known at run time only: with the numbers
put in, the result is the function that the operation gives for the numbers, or the operation is refused.

``python -m tests.layout.drawn_unknowns --cases 20000 --jobs 2`` searches further and counts.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.search_options import leave, search
from tilewright.errors import LayoutError
from tilewright.layout import (
    Layout,
    ScaledBasis,
    SymbolicInt,
    coalesce,
    complement,
    composition,
    cosize,
    flat_divide,
    flatten_to_tuple,
    is_injective,
    left_inverse,
    logical_divide,
    logical_product,
    rank,
    right_inverse,
    size,
    tiled_divide,
    unflatten,
    zipped_divide,
)

EXTENTS = (1, 2, 2, 3, 4, 4, 6, 8)


class DrawnOperation:
    """An operation with static arguments, and the same with unknowns whose values are in ``numbers``."""

    def __init__(self, seed: int) -> None:
        r = self.random = random.Random(seed)
        self.seed, self.numbers = seed, {}
        self.name = r.choice(list(OPERATIONS))
        self.share = r.choice([0.2, 0.5, 1])
        self.static = OPERATIONS[self.name][1](self)
        self.unknown = tuple(map(self.with_unknowns, self.static))

    # -- arguments ---------------------------------------------------------------------------------------------------

    def layout(self, most: int = 200) -> Layout:
        """Compact in some order, with gaps, or with any strides."""
        r = self.random
        shape = tuple([self.mode() for _ in range(r.choice([1, 2, 2, 3]))])
        extents = flatten_to_tuple(shape)
        strides, step = [0] * len(extents), 1
        for k in r.sample(range(len(extents)), len(extents)):
            strides[k], step = step, step * extents[k] * r.choice([1, 1, 1, 1, 2, 3])
        if r.random() < 0.2:
            strides = [r.choice([0, 1, 2, 3, 4, 8, d]) for d in strides]
        return self.layout(most) if size(shape) > most else Layout(shape, unflatten(strides, shape))

    def mode(self) -> Any:
        r = self.random
        return r.choice(EXTENTS) if r.random() < 0.8 else (r.choice(EXTENTS), r.choice(EXTENTS))

    def tiler(self, layout: Layout) -> Any:
        """Extents by mode, or one layout for all of them. Nested modes are divided evenly: a tile that reaches past the
        end of one enters the next where known strides let the two count as one, and unknown strides do not."""
        r = self.random
        if r.random() < 0.3 and not any(n % 12 for n in flatten_to_tuple(layout.shape)[:-1]):
            return Layout(r.choice([2, 3, 4]), r.choice([1, 1, 2, 4]))
        modes = [layout[i] for i in range(r.randint(1, rank(layout)))]
        return tuple([r.choice([1, *[n for n in (2, 3, 4, size(mode)) if self.even(mode, n)]]) for mode in modes])

    @staticmethod
    def even(mode: Layout, tile: int) -> bool:
        return tile == size(mode) or all(n % tile == 0 for n in flatten_to_tuple(mode.shape)[:-1])

    def with_unknowns(self, x: Any) -> Any:
        """Names in the place of numbers, with a divisor that is promised."""
        if isinstance(x, Layout):
            return Layout(self.with_unknowns(x.shape), self.with_unknowns(x.stride))
        if isinstance(x, tuple):
            return tuple(map(self.with_unknowns, x))
        r = self.random
        if x == 0 or r.random() >= self.share:
            return x
        same = [name for name, value in self.numbers.items() if value[0] == x]
        if same and r.random() < 0.5:
            return self.numbers[r.choice(same)][1]
        name = f"n{len(self.numbers)}"
        unknown = SymbolicInt(name, r.choice([d for d in range(1, x + 1) if x % d == 0]))
        self.numbers[name] = x, unknown
        return unknown

    # -- results -----------------------------------------------------------------------------------------------------

    def put(self, x: Any) -> Any:
        """Numbers for names."""
        if isinstance(x, SymbolicInt):
            return x.substitute({name: value for name, (value, _) in self.numbers.items()})
        if isinstance(x, Layout):
            return Layout(self.put(x.shape), self.put(x.stride))
        if isinstance(x, ScaledBasis):
            return ScaledBasis(self.put(x.value), x.mode)
        return tuple(map(self.put, x)) if isinstance(x, tuple) else x

    def run(self) -> tuple[str, str]:
        operation, _, compare = OPERATIONS[self.name]
        try:
            late = operation(*self.unknown)
        except LayoutError:
            return "refused", ""
        try:
            early = operation(*self.static)
        except LayoutError as error:
            if self.name == "left_inverse" and not is_injective(self.static[0]):
                return "trusted", ""  # that coordinates share no offsets
            return "wrong", f"{self} gives {late}, and of the numbers: {error}"
        text = f"{self} gives {late}; of the numbers {early}"
        try:
            late = self.put(late)
        except LayoutError as error:
            return "wrong", f"{text}: {error}"
        return ("right", "") if compare(self, late, early) else ("wrong", f"{text}, put in {late}")

    def __str__(self) -> str:
        given = ", ".join(map(str, self.static)), ", ".join(map(str, self.unknown))
        names = [x for x in leaves(self.unknown) if isinstance(x, SymbolicInt)]
        return f"{self.seed}: {self.name} of {given[0]} with unknowns {given[1]} ({', '.join(map(repr, names))})"


def leaves(x: Any) -> list[Any]:
    if isinstance(x, Layout):
        return leaves(x.shape) + leaves(x.stride)
    return [y for each in x for y in leaves(each)] if isinstance(x, tuple) else [x]


def values(layout: Layout) -> list[Any]:
    return [layout(i) for i in range(size(layout))]


def same(_: DrawnOperation, late: Any, early: Any) -> bool:
    """Element by element; the shape may be merged in another way."""
    return values(late) == values(early) if isinstance(early, Layout) else bool(late == early)


def same_below_the_end(case: DrawnOperation, late: Layout, early: Layout) -> bool:
    """Modes that have extent 1 at last do not count as such before, so that the last ones may reach further."""
    end = case.static[1]
    return [x for x in values(late) if x < end] == [x for x in values(early) if x < end]


def same_modes(case: DrawnOperation, late: Layout, early: Layout) -> bool:
    return same(case, late, early) and [size(mode) for mode in late] == [size(mode) for mode in early]


def same_tile(case: DrawnOperation, late: Layout, early: Layout) -> bool:
    """Modes of the rest that static strides merge stay apart where strides are unknown."""
    return same(case, late, early) and size(late[0]) == size(early[0])


def inverts_on_the_left(case: DrawnOperation, late: Layout, early: Layout) -> bool:
    """What lies between the offsets is not defined."""
    layout = case.static[0]
    return all(late(layout(i)) == i for i in range(size(layout))) or not is_injective(layout)


def inverts_on_the_right(case: DrawnOperation, late: Layout, early: Layout) -> bool:
    """Unknowns may end the inverse early."""
    layout = case.static[0]
    return size(late) <= size(early) and all(layout(late(i)) == i for i in range(size(late)))


def one(case: DrawnOperation) -> tuple[Any, ...]:
    return (case.layout(),)


def divided(case: DrawnOperation) -> tuple[Any, ...]:
    layout = case.layout()
    return layout, case.tiler(layout)


def composed(case: DrawnOperation) -> tuple[Any, ...]:
    """The second within the first."""
    inner = case.layout(60)
    r = case.random
    room = max(1, cosize(inner) + r.choice([0, 0, 1, 5]))
    outer = case.layout()
    if size(outer) < room:
        outer = Layout((outer.shape, -(-room // size(outer))), (outer.stride, cosize(outer)))
    return outer, inner


def completed(case: DrawnOperation) -> tuple[Any, ...]:
    layout = case.layout()
    return layout, cosize(layout) * case.random.choice([1, 2, 3]) + case.random.choice([0, 0, 0, 1])


def multiplied(case: DrawnOperation) -> tuple[Any, ...]:
    return case.layout(40), case.layout(20)


OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[[DrawnOperation], tuple[Any, ...]], Callable[..., bool]]] = {
    "coalesce": (coalesce, one, same),
    "complement": (complement, completed, same_below_the_end),
    "composition": (composition, composed, same_modes),
    "cosize": (cosize, one, same),
    "flat_divide": (flat_divide, divided, same_tile),
    "left_inverse": (left_inverse, one, inverts_on_the_left),
    "logical_divide": (logical_divide, divided, same_modes),
    "logical_product": (logical_product, multiplied, same_modes),
    "right_inverse": (right_inverse, one, inverts_on_the_right),
    "tiled_divide": (tiled_divide, divided, same_tile),
    "zipped_divide": (zipped_divide, divided, same_modes),
}


def verdict(seed: int, device: str = "cpu") -> tuple[str, str]:
    return DrawnOperation(seed).run()


if __name__ == "__main__":
    leave(search(__doc__, verdict, ("right", "refused", "trusted")))
