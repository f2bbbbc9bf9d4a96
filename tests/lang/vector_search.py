"""Drawn programs of TensorSSA: broadcasts, reshapes, reductions by profiles, choices, comparisons, slices, conversions.

A case is a number; it draws the text of a function of three vectors. It runs in a kernel, and as plain Python on
:class:`Vector`, whose elements are numbers of :mod:`tests.lang.typed_numbers`. The results are equal bit by bit, or the
program is refused at a line of its own.

``python -m tests.lang.vector_search --cases 2000 --jobs 2`` runs many of them; ``--device cuda`` on the GPU.
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

import tilewright as cutlass
import tilewright.cute as cute
from tests.lang.program_search import LITERALS, agrees, compiled, drawn_value
from tests.lang.typed_numbers import DTYPES, FLOATS, INTEGERS, KINDS, NAMES, Number, Undefined, convert
from tests.machines import on_gpu
from tests.search_options import leave, search
from tilewright.errors import TilewrightError

STORED = {"Float8E4M3FN": ml_dtypes.float8_e4m3fn, "Float8E5M2": ml_dtypes.float8_e5m2}
SHAPES = [(4,), (8,), (2, 4), (4, 2), (3, 4), (2, 3, 2), (2, 2, 2), (1, 4), (6,), (16,), (2, 8), (5, 3)]
MOST = 16  # elements of a result
REDUCTIONS = {"ADD": operator.add, "MUL": operator.mul, "MAX": NAMES["max"], "MIN": NAMES["min"]}


def stored(kind: str, number: Any) -> Number:
    """``number`` rounded to 8 bits, as a Float32; what is too large is the largest."""
    value = float(number.value if isinstance(number, Number) else number)
    most = float(ml_dtypes.finfo(STORED[kind]).max)
    value = value if math.isnan(value) else max(-most, min(most, value))
    return convert("Float32", float(np.float64(value).astype(STORED[kind])))


class Vector:
    """What a TensorSSA is, with mode 0 fastest; the oracle."""

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers

    @classmethod
    def of(cls, kind: str, values: list[Any], shape: tuple[int, ...]) -> Vector:
        made = np.empty(len(values), object)
        made[:] = [Number(kind, value) for value in values]
        return cls(made.reshape(shape, order="F"))

    def each(self, act: Callable[..., Any], *others: Any) -> Vector:
        """``act`` of all elements; others are broadcast along modes of extent 1, and aligned at mode 0."""
        parts = [self.numbers, *(x.numbers if isinstance(x, Vector) else x for x in others)]
        rank = max(part.ndim for part in parts if isinstance(part, np.ndarray))
        parts = [p.reshape((*p.shape, *[1] * (rank - p.ndim))) if isinstance(p, np.ndarray) else p for p in parts]
        with np.errstate(all="ignore"):
            return Vector(np.asarray(np.frompyfunc(act, len(parts), 1)(*parts), object))

    def to(self, kind: Any) -> Vector:
        return self.each(kind)

    def by_8_bits(self, kind: str) -> Vector:
        return self.each(partial(stored, kind))

    def reshape(self, shape: Any) -> Vector:
        return Vector(self.numbers.reshape(shape, order="F"))

    def broadcast_to(self, shape: tuple[int, ...]) -> Vector:
        return Vector(
            np.broadcast_to(self.numbers.reshape((*self.numbers.shape, *[1] * (len(shape) - self.numbers.ndim))), shape)
        )

    def reduce(self, op: str, init: Any, profile: Any = 0) -> Any:
        kept = [mode for mode in range(self.numbers.ndim) if profile and profile[mode] is None]
        gone = [mode for mode in range(self.numbers.ndim) if mode not in kept]
        lines = self.numbers.transpose([*kept, *gone])
        lines = lines.reshape((*[self.numbers.shape[mode] for mode in kept], -1), order="F")
        kind = lines.reshape(-1)[0].computing().kind
        made = np.empty(lines.shape[:-1], object)
        for place in np.ndindex(made.shape):
            found = convert(kind, init)
            for x in lines[place]:
                found = convert(kind, REDUCTIONS[op](found, x))
            made[place] = found
        return Vector(made) if kept else made.item()

    def __getitem__(self, coord: Any) -> Any:
        if isinstance(coord, int):
            return self.numbers.reshape(-1, order="F")[coord]
        return Vector(self.numbers[tuple(slice(None) if c is None else c for c in coord)])

    def __neg__(self) -> Vector:
        return self.each(operator.neg)

    def __abs__(self) -> Vector:
        return self.each(abs)

    def __invert__(self) -> Vector:
        return self.each(operator.invert)

    __hash__ = None


def _install() -> None:
    def both(act: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
        return (lambda self, other: self.each(act, other)), (
            lambda self, other: self.each(lambda x, y: act(y, x), other)
        )

    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift"):
        act = getattr(operator, f"{name}_" if name in ("and", "or") else name)
        forward, reflected = both(act)
        setattr(Vector, f"__{name}__", forward)
        setattr(Vector, f"__r{name}__", reflected)
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Vector, f"__{name}__", both(getattr(operator, name))[0])


_install()


def chosen(condition: Vector, x: Vector, y: Vector) -> Vector:
    """``where`` of two vectors of one kind."""
    return condition.each(lambda c, a, b: a if c else b, x, y)


class Drawn:
    """The text of a program; ``variables`` have a kind and a shape."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.given = {name: (self.random.choice(KINDS), self.random.choice(SHAPES)) for name in "xyz"}
        self.variables = dict(self.given)
        lines = [line for i in range(self.random.randint(3, 8)) if (line := self.statement(f"v{i}"))]
        shown = self.random.sample(list(self.variables), 3)
        self.shapes = [self.variables[name][1] for name in shown]
        self.text = "\n".join(["def program(x, y, z):", *lines, f"    return {', '.join(shown)}", ""])

    def statement(self, name: str) -> str:
        pick = self.random.choice
        source = pick(list(self.variables))
        kind, shape = self.variables[source]
        drawn = pick([self.cast, self.cast, self.binary, self.binary, self.compared, self.reduced, self.reshaped])
        found = pick([drawn, self.broadcast, self.chosen, self.sliced, self.unary])(source, kind, shape)
        if found is None or math.prod(found[2]) > MOST:
            return ""
        text, kind, shape = found
        self.variables[name] = kind, shape
        return f"    {name} = {text}"

    def cast(self, source: str, kind: str, shape: tuple[int, ...]) -> Any:
        if self.random.random() < 0.3 and kind != "Boolean":
            eight = self.random.choice(list(STORED))
            return f"by_8_bits({source}, '{eight}')", "Float32", shape
        new = self.random.choice(KINDS)
        return f"{source}.to({new})", new, shape

    def partner(self, shape: tuple[int, ...]) -> tuple[str, str, tuple[int, ...]] | None:
        """A vector that is broadcast beside one of this shape, or made so."""
        for name in self.random.sample(list(self.variables), len(self.variables)):
            kind, other = self.variables[name]
            if len(other) == len(shape) and all(a == b or 1 in (a, b) for a, b in zip(shape, other, strict=True)):
                return name, kind, tuple(map(max, shape, other))
        return None

    def binary(self, source: str, kind: str, shape: tuple[int, ...]) -> Any:
        sign = self.random.choice("+ - * / // % & | ^ << >>".split())
        whole = [k for k in (*INTEGERS,)]
        if sign in "& | ^ << >>".split() and kind in FLOATS:
            return None
        new = self.random.choice(whole if sign in "& | ^ << >>".split() else list(KINDS))
        if sign in ("//", "%", "<<", ">>"):
            other = self.random.choice(["1", "2", "3", "7"])
            return f"({source} {sign} {other}).to({new})", new, shape
        if self.random.random() < 0.4:
            literal = self.random.choice([x for x in LITERALS if not isinstance(x, bool)])
            if sign in "&|^" and isinstance(literal, float):
                return None
            left, right = (source, f"({literal})")[:: self.random.choice([1, -1])]
            return f"({left} {sign} {right}).to({new})", new, shape
        found = self.partner(shape)
        if found is None or (sign in "&|^" and found[1] in FLOATS):
            return None
        return f"({source} {sign} {found[0]}).to({new})", new, found[2]

    def compared(self, source: str, kind: str, shape: tuple[int, ...]) -> Any:
        sign = self.random.choice("< <= == != > >=".split())
        if self.random.random() < 0.5:
            return f"{source} {sign} ({self.random.choice(LITERALS)})", "Boolean", shape
        found = self.partner(shape)
        return found and (f"{source} {sign} {found[0]}", "Boolean", found[2])

    def reduced(self, source: str, kind: str, shape: tuple[int, ...]) -> Any:
        kept = [self.random.random() < 0.5 for _ in shape]
        if not any(kept) or kind == "Boolean":
            return None
        profile = tuple(None if keep else 1 for keep in kept)
        op, init = self.random.choice(list(REDUCTIONS)), self.random.choice([0, 1, 3])
        left = tuple(extent for extent, keep in zip(shape, kept, strict=True) if keep)
        return f"reduce({source}, '{op}', {init}, {profile})", kind, left

    def reshaped(self, source: str, kind: str, shape: tuple[int, ...]) -> Any:
        count = math.prod(shape)
        shapes = [new for new in SHAPES if math.prod(new) == count] + [(count,), (1, count), (count, 1)]
        new = self.random.choice(shapes)
        return f"{source}.reshape({new})", kind, new

    def broadcast(self, source: str, kind: str, shape: tuple[int, ...]) -> Any:
        if 1 not in shape:
            return None
        new = tuple(self.random.choice([1, 2, 3]) if extent == 1 else extent for extent in shape)
        return f"{source}.broadcast_to({new})", kind, new

    def chosen(self, source: str, kind: str, shape: tuple[int, ...]) -> Any:
        found = self.partner(shape)
        if found is None or found[2] != shape:
            return None
        new, limit = self.random.choice(KINDS), self.random.choice(LITERALS)
        return (
            f"where({source} > ({limit}), {source}.to({new}), {found[0]}.broadcast_to({shape}).to({new}))",
            new,
            shape,
        )

    def sliced(self, source: str, kind: str, shape: tuple[int, ...]) -> Any:
        if len(shape) < 2:
            return None
        at = self.random.randrange(len(shape))
        coord = tuple(self.random.randrange(extent) if mode == at else None for mode, extent in enumerate(shape))
        return f"{source}[{coord}]", kind, tuple(extent for mode, extent in enumerate(shape) if mode != at)

    def unary(self, source: str, kind: str, shape: tuple[int, ...]) -> Any:
        if kind == "Boolean":
            return f"~{source}", kind, shape
        sign = self.random.choice(["-", "abs"] + ([] if kind in FLOATS else ["~"]))
        return f"{sign}({source})", kind, shape


NAMES_HERE = {
    "where": chosen,
    "by_8_bits": Vector.by_8_bits,
    "reduce": Vector.reduce,
    **NAMES,
}
STAGED = {kind: getattr(cutlass, kind) for kind in KINDS} | {
    "where": cute.where,
    "by_8_bits": lambda x, kind: x.to(getattr(cutlass, kind)).to(cutlass.Float32),
    "reduce": lambda x, op, init, profile: x.reduce(getattr(cute.ReductionOp, op), init, profile),
}


def staged(text: str, arrays: list[np.ndarray], device: str) -> tuple[list[str], np.ndarray]:
    """The kinds of the results, and their elements as bits of 64 (floats as Float64)."""
    inner = compiled(text, STAGED)
    kinds: list[str] = []

    @cute.kernel
    def body(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, out: cute.Tensor):
        results = inner(x.load(), y.load(), z.load())
        kinds[:] = [r.dtype.__name__ for r in results]
        for i in cutlass.range_constexpr(len(results)):
            for j in cutlass.range_constexpr(cute.size(results[i].shape)):
                number = results[i].reshape(cute.size(results[i].shape))[j]
                if cutlass.const_expr(results[i].dtype.is_integer):
                    out[i, j] = cutlass.Int64(number).bitcast(cutlass.Float64)
                else:
                    out[i, j] = cutlass.Float64(number)

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, out: cute.Tensor):
        body(x, y, z, out).launch(grid=1, block=1)

    out = np.zeros((3, MOST))
    given = [*arrays, out] if device == "cpu" else [on_gpu(a) for a in (*arrays, out)]
    tensors = [cute.runtime.from_dlpack(a) for a in given]
    if device == "cpu":
        host(*tensors)
        return kinds, out
    cute.compile[cute.PtxasOptions("--fmad=false")](host, *tensors)(*tensors)
    return kinds, given[-1].cpu().numpy()


def verdict(seed: int, device: str = "cpu") -> tuple[str, str]:
    """As :func:`tests.lang.program_search.verdict`."""
    drawn = Drawn(seed)
    choose = random.Random(seed)
    values = {
        name: [drawn_value(choose, kind) for _ in range(math.prod(shape))]
        for name, (kind, shape) in drawn.given.items()
    }
    text = drawn.text
    try:
        vectors = [Vector.of(kind, values[name], shape) for name, (kind, shape) in drawn.given.items()]
        rows = compiled(text, NAMES_HERE)(*vectors)
    except (Undefined, ArithmeticError, TypeError):
        return "undefined", text
    arrays = [
        np.array(values[name], DTYPES[kind]).reshape(shape, order="F") for name, (kind, shape) in drawn.given.items()
    ]
    try:
        kinds, out = staged(text, arrays, device)
    except TilewrightError as error:
        return ("refused" if "<drawn program" in str(error) else "foreign"), f"{text}\n{error}"
    except Exception as error:
        return "foreign", f"{text}\n{type(error).__name__}: {error}"
    for place, (row, kind, shape) in enumerate(zip(rows, kinds, drawn.shapes, strict=True)):
        numbers = row.numbers.reshape(-1, order="F")
        if numbers.size != math.prod(shape):
            return "wrong", f"{text}\nresult {place} has {row.numbers.shape}"
        for i, number in enumerate(numbers):
            if number.kind != kind or not agrees(number, out[place, i], kind):
                found = out[place, i] if kind in FLOATS else int(out[place, i].view(np.int64))
                given = {name: (drawn.given[name], values[name]) for name in values}
                return "wrong", f"{text}\n{given}\nresult {place}[{i}]: expected {number!r}, found {kind}({found})"
    return "right", text


if __name__ == "__main__":
    leave(search(__doc__, verdict, ("right", "refused", "undefined")))
