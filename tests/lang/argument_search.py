"""Drawn arrays as arguments of a compiled copy: static, marked dynamic, aligned as promised or not; then others as
arguments of the same function. What it writes equals its source and nothing around it changes, or it is refused.

``python -m tests.lang.argument_search --cases 2000 --jobs 2`` runs many of them.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from typing import Any

import ml_dtypes
import numpy as np

import tilewright as cutlass
from tests.gemm.operand_draws import Drawn, drawn_array, placed
from tests.search_options import add_options, in_processes, leave
from tilewright import cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import TilewrightError

DTYPES = (np.int8, np.uint16, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.float32, np.bool_, np.float64)
EXTENTS = (0, 1, 1, 2, 3, 4, 5, 8, 16)


@cute.kernel
def rows_copied(x: cute.Tensor, y: cute.Tensor, count: cutlass.Constexpr):
    rows, columns = x.shape
    for i in range(rows):
        source, target = x[i, None], y[i, None]
        for j in range(columns // count):
            cute.local_tile(target, (count,), (j,)).store(cute.local_tile(source, (count,), (j,)).load())
        for j in range(columns // count * count, columns):
            target[j] = source[j]


@cute.jit
def copy_rows(x: cute.Tensor, y: cute.Tensor, count: cutlass.Constexpr):
    rows_copied(x, y, count).launch(grid=1, block=1)


@cute.kernel
def columns_copied(x: cute.Tensor, y: cute.Tensor, count: cutlass.Constexpr):
    rows, columns = x.shape
    for j in range(columns):
        source, target = x[None, j], y[None, j]
        for i in range(rows // count):
            cute.autovec_copy(cute.local_tile(source, (count,), (i,)), cute.local_tile(target, (count,), (i,)))
        for i in range(rows // count * count, rows):
            target[i] = source[i]


@cute.jit
def copy_columns(x: cute.Tensor, y: cute.Tensor, count: cutlass.Constexpr):
    columns_copied(x, y, count).launch(grid=1, block=1)


class Marks:
    """How an array is made a tensor, promises that it breaks among them."""

    def __init__(self, choose: random.Random) -> None:
        self.kind = choose.choice(["raw", "static", "layout", "compact", "compact", "all"])
        self.align = choose.choice([None, None, None, 16, 8, 4, 2])
        self.wide = choose.choice([None, None, True, False])
        self.leading = choose.choice([None, None, 0, 1])
        self.order = choose.choice([None, None, (0, 1), (1, 0)])
        self.modes = [(mode, choose.choice([1, 1, 2, 4, 8])) for mode in choose.choice([(0,), (1,), (0, 1), (1, 0)])]
        self.divisors = choose.choice([(1, 1), (1, 1), (2, 4), (8, 8)])

    def __repr__(self) -> str:
        return str(vars(self))

    def tensor(self, array: np.ndarray) -> Any:
        if self.kind == "raw":
            return array
        given = {"assumed_align": self.align, "use_32bit_stride": self.wide}
        found: Any = from_dlpack(array, **{name: value for name, value in given.items() if value is not None})
        if self.kind == "layout":
            return found.mark_layout_dynamic(self.leading)
        if self.kind == "all":
            return found.mark_all_dynamic(self.leading, *self.divisors)
        for mode, divisor in self.modes if self.kind == "compact" else ():
            found = found.mark_compact_shape_dynamic(mode, self.order, divisor)
        return found


def drawn_pair(choose: random.Random, rng: np.random.Generator, dtype: Any, shape: Any = None) -> tuple[Drawn, Drawn]:
    rows, columns = shape or (choose.choice(EXTENTS), choose.choice(EXTENTS))
    if choose.random() < 0.5:
        return drawn_array(rng, (rows, columns), dtype), drawn_array(rng, (rows, columns), dtype, result=True)
    step = columns + choose.choice([0, 0, 0, 8, 1])
    first = [choose.choice([0, 0, 0, 1, 4, 8]) for _ in range(2)]
    x, y = (placed(rng, (rows, columns), dtype, [step, 1], step * max(rows, 1), 0, at) for at in first)
    return x, y


def wrong_bytes(x: Drawn, y: Drawn, before: np.ndarray) -> int:
    item, wanted = y.memory.itemsize, before.copy()
    first = (y.view.ctypes.data - y.memory.ctypes.data) // item
    if 0 not in y.view.shape:
        np.lib.stride_tricks.as_strided(wanted[first:], y.view.shape, y.view.strides)[...] = x.view
    return int((wanted.view(np.uint8) != y.memory.view(np.uint8)).sum())


def verdict(seed: int) -> tuple[str, str]:
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    dtype, count = np.dtype(choose.choice(DTYPES)), choose.choice([1, 2, 4, 8])
    function = choose.choice([copy_rows, copy_columns])
    marks = Marks(choose)
    other = Marks(choose) if choose.random() < 0.5 else marks
    x, y = drawn_pair(choose, rng, dtype)
    text = f"case {seed}: {dtype}, {count} at once, {marks}, {other}; x {x.describe()}, y {y.describe()}"
    later = choose.choice(["raw", "raw", "marked", "static"])
    try:
        tensors = marks.tensor(x.view), other.tensor(y.view)
        compiled = cute.compile(function, *tensors, count)
        before = y.memory.copy()
        compiled(*tensors)
        if wrong := wrong_bytes(x, y, before):
            return "wrong", f"{text}: {wrong} bytes"
        x, y = drawn_pair(choose, rng, dtype, x.view.shape if choose.random() < 0.4 else None)
        text += f"; then {later} x {x.describe()}, y {y.describe()}"
        given: Any = x.view, y.view
        if later != "raw":
            made = (marks, other) if later == "marked" else 2 * (None,)
            given = [m.tensor(a) if m else from_dlpack(a) for m, a in zip(made, given, strict=True)]
        before = y.memory.copy()
        compiled(*given)
    except TilewrightError as refused:
        return "refused", f"{text}: {refused}"
    except Exception as error:
        return "foreign", f"{text}: {type(error).__name__}: {error}"
    wrong = wrong_bytes(x, y, before)
    return ("wrong", f"{text}: {wrong} bytes") if wrong else ("right", text)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_options(parser)
    options = parser.parse_args()
    options.device, options.seconds = "cpu", 36_000.0
    found: Counter[str] = Counter()
    for _, (kind, text) in in_processes(options, verdict):
        found[kind] += 1
        if kind in ("wrong", "foreign"):
            print(f"{kind}: {text}", flush=True)
    print(dict(found))
    return 1 if found["wrong"] or found["foreign"] else 0


if __name__ == "__main__":
    leave(main())
