"""What a search of products draws: arrays in every layout, and the numbers of a product (:mod:`.operand_cases`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from tilewright.gemm.family.entry import KernelEntry

GUARD = 64
"""Elements before and after the memory of an operand: a wrong address lands there."""

EXTENTS = (0, 1, 1, 2, 3, 5, 8, 13, 16, 17, 24, 32, 40, 64, 72)


def small_integers(rng: np.random.Generator, size: int, dtype: Any) -> np.ndarray:
    return rng.integers(-3, 4, size).astype(np.int8).astype(dtype)


@dataclass
class Drawn:
    """An array in memory of its own: ``view`` in some layout, ``memory`` all of it, ``before`` a copy of that."""

    view: Any
    memory: np.ndarray
    before: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.before = self.memory.copy()

    def describe(self) -> str:
        item = self.view.itemsize
        first = (self.view.ctypes.data - self.memory.ctypes.data) // item - GUARD
        return f"{self.view.shape} strides {tuple(step // item for step in self.view.strides)} at {first}"


def drawn_array(
    rng: np.random.Generator,
    shape: tuple[int, ...],
    dtype: Any,
    result: bool = False,
    apart: bool = False,
    signed: bool = True,
) -> Drawn:
    """Small integers in ``shape``, as slices, columns, transposes, reversed, broadcast and unaligned views lie.

    The modes come in any order; each steps over all that the modes inside of it reach, often over more. A step may go
    backwards (where ``signed``), and, unless it is a ``result``, be zero. ``apart``: the first mode steps over all that
    others reach.
    """
    order = list(rng.permutation(len(shape))) if rng.random() < 0.5 else list(range(len(shape)))[::-1]
    order.sort(key=lambda mode: apart and mode == 0)
    strides, reach, low = [0] * len(shape), 1, 0
    for place, mode in enumerate(order):
        step = (
            reach
            if rng.random() < 0.65
            else reach * int(rng.integers(2, 4))
            if place == 0 or rng.random() < 0.3
            else reach + int(rng.choice([1, 3, 8, 16]))
        )
        if place == 1 and rng.random() < 0.5:
            step = -(-step // 16) * 16  # rows that begin at multiples of 16 bytes
        reach = step * max(shape[mode], 1)
        kind = rng.random()
        if kind < 0.08 and not result:
            step = 0
        elif kind < 0.16 and signed:
            low, step = low + step * max(shape[mode] - 1, 0), -step
        strides[mode] = step
    return placed(rng, shape, dtype, strides, reach, low, int(rng.choice([0, 0, 0, 8, 1, 3, 5])))


def drawn_rows(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any, likely: int, often: float = 0.8) -> Drawn:
    """As TMA takes it: one mode is contiguous, the ``likely`` one most often, and rows begin at multiples of 16."""
    modes, strides, reach = list(range(len(shape)))[::-1], [0] * len(shape), 1
    inner = likely if rng.random() < often else 2 * len(shape) - 3 - likely
    for mode in sorted(modes, key=lambda mode: mode != inner):
        strides[mode] = reach if mode == inner else -(-reach // 16) * 16 + 16 * int(rng.integers(3))
        reach = strides[mode] * max(shape[mode], 1)
    return placed(rng, shape, dtype, strides, reach, 0, 16 * int(rng.integers(2)))


def placed(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: Any, strides: list[int], reach: int, low: int, lead: int
) -> Drawn:
    """Small integers in memory that is aligned to 128 bytes, ``lead`` elements on."""
    item = np.dtype(dtype).itemsize
    room = np.zeros((reach + lead + 2 * GUARD) * item + 128, np.uint8)
    start = -room.ctypes.data % 128
    memory = room[start : start + (reach + lead + 2 * GUARD) * item].view(dtype)
    memory[:] = small_integers(rng, memory.size, dtype)
    first = start + (GUARD + lead + low) * item
    return Drawn(np.ndarray(shape, dtype, room, first, [item * step for step in strides]), memory)


@dataclass
class Case:
    """One product: operands, numbers, and what it must give. ``c`` is None, or D itself (``in_place``), or its own."""

    rng: np.random.Generator
    entry: KernelEntry
    named: bool  # whether the kernel is asked for by name
    a: Drawn
    b: Drawn
    c: Drawn | None
    d: Drawn
    alpha: float
    beta: float
    in_place: bool
    bias: Drawn | None = None
    more: dict[str, Drawn] = field(default_factory=dict)  # scales, offsets, matrices beside D
    written: list[Drawn] = field(default_factory=list)  # beside D
    expected: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.expected = self.product()

    @property
    def kernel(self) -> str | None:
        return self.entry.name if self.named else None

    @property
    def by(self) -> dict[str, Any]:
        """The kernel as matmul's arguments say it."""
        return {"kernel": self.kernel} | ({"precision": "tf32"} if self.entry.name.endswith("tf32") else {})

    @property
    def source(self) -> Any:
        return None if self.c is None else self.d.view if self.in_place else self.c.view

    def product(self) -> np.ndarray:
        """D in float64, from the operands as they are."""
        a, b = self.a.view.astype(np.float64), self.b.view.astype(np.float64)
        found = self.alpha * (a @ b)
        return found + self.beta * self.source.astype(np.float64) if self.beta else found

    @property
    def operands(self) -> list[tuple[str, Drawn]]:
        """Those that there are, by name."""
        listed = {"A": self.a, "B": self.b, "C": self.c, "D": self.d, "bias": self.bias} | self.more
        return [(name, x) for name, x in listed.items() if x is not None]

    @property
    def drawn(self) -> list[Drawn]:
        return [x for _, x in self.operands]

    def describe(self) -> str:
        names = [f"{name} {x.describe()}" for name, x in self.operands]
        how = f"{self.entry.name}{'' if self.named else ' (by dtype)'}, alpha {self.alpha}, beta {self.beta}"
        return f"{how}, {'in place, ' if self.in_place else ''}{'; '.join(names)}"


def drawn_case(
    rng: np.random.Generator, entry: KernelEntry, batch: int | None, apart: bool = False, signed: bool = True
) -> Case:
    """A case for ``entry``; stacks of ``batch`` matrices, or single ones (None). ``apart``: no two results of a stack
    reach into each other; ``signed``: strides may be below 0."""
    config = entry.config
    few = "small_m" in entry.name
    m, n, k = (int(rng.choice(EXTENTS)) for _ in range(3))
    m, k = (min(m, 16) if few else m), max(k, 1) if rng.random() < 0.9 else k
    stack = () if batch is None else (batch,)
    ab, cd = numpy_of(config.a.dtype), numpy_of(config.c.dtype)
    a, b = (drawn_array(rng, (*stack, *shape), ab, signed=signed) for shape in ((m, k), (k, n)))
    with_c, in_place = rng.random() < 0.4, rng.random() < 0.3
    d = drawn_array(rng, (*stack, m, n), cd, True, apart, signed)
    c = None if not with_c else d if in_place else drawn_array(rng, (*stack, m, n), cd, signed=signed)
    beta = float(rng.choice([0.0, 1.0, -2.0])) if with_c else 0.0
    return Case(
        rng,
        entry,
        bool(rng.random() < 0.7),
        a,
        b,
        c,
        d,
        float(rng.choice([1.0, 1.0, 2.0, -1.0])),
        beta,
        with_c and in_place,
    )


def aligned_case(rng: np.random.Generator, entry: KernelEntry) -> Case:
    """One that Hopper's kernels take, too: of aligned rows, D's of whole vectors."""
    ab, cd = numpy_of(entry.config.a.dtype), numpy_of(entry.config.c.dtype)
    m, n, k = (int(rng.choice(sizes)) for sizes in ((1, 5, 16), (16, 32, 64), (13, 16, 32, 64)))
    a, b = drawn_rows(rng, (m, k), ab, 1), drawn_rows(rng, (k, n), ab, 0)
    return Case(rng, entry, True, a, b, None, drawn_rows(rng, (m, n), cd, 1), 1.0, 0.0, False)


def numpy_of(dtype: Any) -> Any:
    """tf32 kernels take float32 arrays."""
    names = {
        "Float8E4M3FN": ml_dtypes.float8_e4m3fn,
        "Float8E5M2": ml_dtypes.float8_e5m2,
        "BFloat16": ml_dtypes.bfloat16,
        "TFloat32": np.float32,
    }
    return names.get(dtype.__name__) or np.dtype(dtype.dtype)
