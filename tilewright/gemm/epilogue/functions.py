"""Epilogue functions: what is applied to the sums of a tile before they are rounded and written.

An epilogue function is an object that the kernel gets as an argument: a dataclass whose fields (numbers, tensors) are
kernel arguments, too, and whose call changes the accumulators in place. The library calls it once for each part of an
output tile, with the accumulators of the calling thread (a register tensor of the accumulator's type) and an
:class:`~tilewright.gemm.epilogue.tile.EpilogueTile` that gives what belongs to the same elements: ``tile.source()`` C,
``tile.row(v)`` the element of a vector over N, ``tile.column(v)`` of one over M, ``tile.read(x)`` that of another
matrix; ``tile.write(x, values)`` is a second output. A function of one's own needs no change of the library::

    @dataclass(frozen=True)
    class BiasRelu:
        bias: cute.Tensor  # (N,)

        @cute.jit
        def __call__(self, acc, tile):
            acc.store(cute.max(acc.load() + tile.row(self.bias), 0.0))

    gemm(a, b, epilogue=BiasRelu(from_dlpack(bias)))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import tilewright as cutlass
from tilewright import const_expr, cute
from tilewright.errors import ConstraintError
from tilewright.gemm.epilogue.tile import EpilogueTile


class EpilogueFunction(Protocol):
    """Changes the accumulators of one part of a tile in place, or returns others of another type in their place.

    A function may also have ``check(m, n)``, which the library calls before a launch with the extents of D: raise
    ArgumentError there where an operand of the function does not fit them. And it may have ``vectors``, pairs of a
    vector and 1 where it asks for ``tile.row`` of it, 0 for ``tile.column``: the library checks their extents, and
    loads them earlier, as it does ``numbers``, vectors of one element that ``tile.number`` is asked for. A function
    that uses ``tile.read`` or ``tile.write`` has ``matrices``, pairs of a matrix and whether it is written (and, third,
    how many columns of D one of its own stands for): the library checks their extents, and that one which is written
    shares no memory with others. ``untransposed`` is true of a function that cannot be applied by kernels that compute
    the transposed product. ``writes_always`` is true of one that writes its matrices of D's shape in each call,
    whatever the values are: kernels may store them as they store D. ``stores_result`` is false of one after which the
    sums are not wanted: kernels leave D as it is, and ``matmul`` gives the first matrix that the function writes.
    ``one_product`` is true of one that uses the coordinates of elements, which stacks and groups of products repeat.
    """

    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> Any: ...


def applied(function: EpilogueFunction, acc: cute.Tensor, tile: EpilogueTile) -> cute.Tensor:
    """The accumulators after ``function``: themselves, unless it returns others.

    >>> applied(lambda acc, tile: None, "sums", None), applied(lambda acc, tile: "scaled", "sums", None)
    ('sums', 'scaled')
    """
    result = function(acc, tile)
    return acc if result is None else result


def vectors_of(function: Any) -> list[tuple[Any, int]]:
    """The vectors that a function says it will ask for.

    >>> vectors_of(Bias("b")), vectors_of(Chain((Relu(), Bias("b"))))
    ([('b', 1)], [('b', 1)])
    """
    return [pair for part in parts_of(function) for pair in getattr(part, "vectors", ())]


def numbers_of(function: Any) -> list[Any]:
    """The vectors of one element that a function says it will ask for.

    >>> numbers_of(Bias("b"))
    []
    """
    return [number for part in parts_of(function) for number in getattr(part, "numbers", ())]


def parts_of(function: Any) -> tuple[Any, ...]:
    """The functions of a :class:`Chain`, or the one function.

    >>> parts_of(Chain((Relu(), Relu()))), parts_of(Relu())
    ((Relu(), Relu()), (Relu(),))
    """
    return tuple(getattr(function, "functions", (function,)))


def second_outputs(function: Any) -> list[Any]:
    """The matrices that a function writes in each call, one element for each of D's.

    >>> second_outputs(Chain((Store("before"), Relu()))), second_outputs(Residual("r"))
    (['before'], [])
    """
    return [
        matrix
        for part in parts_of(function)
        if getattr(part, "writes_always", False)
        for matrix, is_written, *columns in part.matrices
        if is_written and not columns
    ]


def stores_result(function: Any) -> bool:
    """Whether the sums are written to D when a function was applied.

    >>> stores_result(Chain((Relu(), Store("before"))))
    True
    """
    return all(getattr(part, "stores_result", True) for part in parts_of(function))


def is_untransposed(function: Any) -> bool:
    """Whether a function wants kernels that do not compute the transposed product.

    >>> is_untransposed(Relu())
    False
    """
    return any(getattr(part, "untransposed", False) for part in parts_of(function))


def partitionable(function: Any) -> bool:
    """Whether a function has ``set_k_partition(k, partitions)``, which serial split-K calls for each part of K: it
    gives the function for part ``k``, whose C is what D has by then (from the second part on)."""
    return all(hasattr(part, "set_k_partition") for part in parts_of(function))


def of_k_partition(function: Any, k: Any, partitions: Any) -> Chain:
    """A :func:`partitionable` function for part ``k``. What D has by then is added first where all of its functions
    wait for the last part: none of them adds it.

    >>> of_k_partition(Relu(), 0, 2)
    Chain(functions=(EarlierParts(k=0), OnLast(function=Relu(), last=False)))
    """
    parts = tuple(part.set_k_partition(k, partitions) for part in parts_of(function))
    waiting = all(isinstance(part, OnLast) for part in parts)
    return Chain((EarlierParts(k), *parts) if waiting else parts)


class OfWholeSums:
    """Base of the functions that are applied to whole sums: of a K that is split, in the last part alone.

    >>> Relu().set_k_partition(1, 2)
    OnLast(function=Relu(), last=True)
    """

    def set_k_partition(self, k: Any, partitions: Any) -> OnLast:
        """The function for part ``k``: D has the parts before the last one as they are."""
        return OnLast(self, k + 1 == partitions)


@dataclass(frozen=True)
class LinearCombination:
    """acc = alpha * acc + beta * C. C is read only where ``beta`` is not 0; without a ``beta`` (None) the kernel has no
    code for it, which is half of a long epilogue's.

    >>> from tilewright.gemm import gemm
    >>> a = np.full((32, 32), 1, np.float16)
    >>> epilogue = LinearCombination(cutlass.Float32(0.5), cutlass.Float32(2))
    >>> float(gemm(a, a, a, epilogue=epilogue).d[0, 0])  # 0.5 * 32 + 2 * 1
    18.0
    """

    alpha: cutlass.Numeric
    beta: cutlass.Numeric | None = None

    def set_k_partition(self, k: Any, partitions: Any) -> LinearCombination:
        """The first part adds beta * C; the others, what D has."""
        number = type(self.alpha)
        first = number(0) if self.beta is None else self.beta
        return LinearCombination(self.alpha, cute.where(k > 0, number(1), first))

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> None:
        if self.alpha != 1:  # an instruction of each sum
            acc.store(acc.load() * self.alpha)
        if const_expr(self.beta is not None):
            if self.beta != 0:
                acc.store(acc.load() + tile.source().to(acc.element_type) * self.beta)


@dataclass(frozen=True)
class ScaledSource:
    """acc = beta * C, whatever the sums are: what alpha = 0 asks for. C is read only where ``beta`` is not 0.

    >>> from tilewright.gemm import matmul
    >>> a, c = np.full((16, 16), np.nan, np.float16), np.ones((16, 16), np.float16)
    >>> matmul(a, a, c=c, alpha=0.0, beta=3.0)[0, :3].tolist()
    [3.0, 3.0, 3.0]
    """

    beta: cutlass.Numeric

    def set_k_partition(self, k: Any, partitions: Any) -> ScaledSource:
        """The first part writes beta * C; the others leave what D has."""
        return ScaledSource(cute.where(k > 0, type(self.beta)(1), self.beta))

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> None:
        acc.fill(0)
        if self.beta != 0:
            acc.store(tile.source().to(acc.element_type) * self.beta)


@dataclass(frozen=True)
class Bias(OfWholeSums):
    """acc += vector[n].

    >>> from tilewright.cute.runtime import from_dlpack
    >>> from tilewright.gemm import gemm
    >>> a, vector = np.ones((32, 32), np.float16), np.arange(32, dtype=np.float32)
    >>> gemm(a, a, epilogue=Bias(from_dlpack(vector))).d[0, :3].tolist()
    [32.0, 33.0, 34.0]
    """

    vector: Any  # (N,), a cute.Tensor or an array

    @property
    def vectors(self) -> list[tuple[Any, int]]:
        return [(self.vector, 1)]

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> None:
        acc.store(acc.load() + tile.row(self.vector).to(acc.element_type))


@dataclass(frozen=True)
class RowBias(OfWholeSums):
    """acc += vector[m].

    >>> from tilewright.gemm import matmul
    >>> a, vector = np.ones((32, 32), np.float16), np.arange(32, dtype=np.float32)
    >>> matmul(a, a, epilogue=RowBias(vector))[:3, 0].tolist()
    [32.0, 33.0, 34.0]
    """

    vector: Any  # (M,), a cute.Tensor or an array

    @property
    def vectors(self) -> list[tuple[Any, int]]:
        return [(self.vector, 0)]

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> None:
        acc.store(acc.load() + tile.column(self.vector).to(acc.element_type))


@dataclass(frozen=True)
class Residual(OfWholeSums):
    """acc += scale * matrix[m, n], a matrix of any type and layout.

    >>> from tilewright.gemm import matmul
    >>> a, matrix = np.ones((32, 32), np.float16), np.arange(1024, dtype=np.float32).reshape(32, 32)
    >>> matmul(a, a, epilogue=Residual(matrix, cutlass.Float32(2)))[0, :3].tolist()
    [32.0, 34.0, 36.0]
    """

    matrix: Any  # (M, N), a cute.Tensor or an array
    scale: cutlass.Numeric = cutlass.Float32(1)

    @property
    def matrices(self) -> list[tuple[Any, bool]]:
        return [(self.matrix, False)]

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> None:
        acc.store((acc.load() + tile.read(self.matrix).to(acc.element_type) * self.scale).to(acc.element_type))


@dataclass(frozen=True)
class Store(OfWholeSums):
    """matrix[m, n] = acc, rounded to the matrix's type: a second output, such as the numbers that an activation after
    it is applied to, which the gradient needs.

    >>> from tilewright.gemm import matmul
    >>> a, before = np.ones((32, 32), np.float16), np.empty((32, 32), np.float32)
    >>> after = matmul(a, -a, epilogue=(Store(before), Relu()))
    >>> float(before[0, 0]), float(after[0, 0])
    (-32.0, 0.0)
    """

    matrix: Any  # (M, N), a cute.Tensor or an array

    writes_always = True

    @property
    def matrices(self) -> list[tuple[Any, bool]]:
        return [(self.matrix, True)]

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> None:
        tile.write(self.matrix, acc.load())


@dataclass(frozen=True)
class Relu(OfWholeSums):
    """acc = max(acc, 0).

    >>> from tilewright.gemm import gemm
    >>> a = np.ones((32, 32), np.float16)
    >>> float(gemm(a, -a, epilogue=Relu()).d.max())
    0.0
    """

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> None:
        values = acc.load()
        acc.store(cute.where(values < 0, cute.zeros_like(values), values))  # NaN stays


@dataclass(frozen=True)
class Chain:
    """Several functions, one after the other.

    >>> from tilewright.cute.runtime import from_dlpack
    >>> from tilewright.gemm import gemm
    >>> a, vector = np.ones((32, 32), np.float16), np.full(32, -30, np.float32)
    >>> both = Chain((Bias(from_dlpack(vector)), Relu()))
    >>> float(gemm(a, a, epilogue=both).d[0, 0])  # 32 - 30
    2.0
    """

    functions: tuple[Any, ...]

    def check(self, m: int, n: int) -> None:
        for function in self.functions:
            if hasattr(function, "check"):
                function.check(m, n)

    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> cute.Tensor:
        for function in self.functions:
            acc = applied(function, acc, tile)
        return acc


@dataclass(frozen=True)
class OnLast:
    """A function that belongs to the last part of a split K alone: where ``last`` is true."""

    function: Any
    last: Any

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> None:
        if self.last:
            in_place(self.function, acc, tile)


def in_place(function: Any, acc: cute.Tensor, tile: EpilogueTile) -> None:
    """Apply a function that is refused where it gives other accumulators.

    >>> in_place(lambda acc, tile: None, "sums", None)
    """
    if applied(function, acc, tile) is not acc:
        raise ConstraintError(
            f"{type(function).__name__} gives sums of another type for the last part of K, and the parts before it "
            "have theirs: take SplitK(..., mode='parallel')"
        )


@dataclass(frozen=True)
class EarlierParts:
    """acc += what D has of the parts of K before part ``k``.

    >>> from tilewright.gemm import SplitK, gemm
    >>> a = np.ones((32, 32), np.float16)
    >>> float(gemm(a, a, epilogue=Relu(), kernel="tensorop_f16", decomposition=SplitK(2)).d[0, 0])  # of two parts
    32.0
    """

    k: Any

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> None:
        if self.k > 0:
            acc.store(acc.load() + tile.source().to(acc.element_type))
