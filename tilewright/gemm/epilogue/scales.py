"""Scales of quantised operands: what the sums are multiplied by because A and B were divided by it.

Scales of whole rows of A and whole columns of B (or one number of each) are the same for all of K, so they are applied
to the sums, as an epilogue function. Scales of blocks change along K: the sums of each k tile are multiplied on their
own before they are added up, which the main loop asks of a function that has ``weights``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from math import gcd
from typing import Any, ClassVar

from tilewright import Constexpr, Float8E4M3FN, Float8E5M2, Float32, Int32, Uint8, const_expr, cute, range_constexpr
from tilewright.errors import ArgumentError
from tilewright.gemm.epilogue.functions import OfWholeSums
from tilewright.gemm.epilogue.tile import EpilogueTile
from tilewright.lang.arguments.arrays import array_behind
from tilewright.lang.numbers.numeric import Numeric

BLOCK = 128
"""Elements of a block of scales along K, and along M or N where it is square."""


@dataclass(frozen=True)
class Scales(OfWholeSums):
    """acc[m, n] *= a[m] * b[n], with vectors of one number where it belongs to the whole operand. Integer sums become
    Float32.

    >>> from tilewright.cute.runtime import from_dlpack
    >>> from tilewright.gemm import gemm
    >>> x, rows, all = np.ones((32, 32), np.float16), np.arange(32, dtype=np.float32), np.full(1, 0.5, np.float32)
    >>> gemm(x, x, epilogue=Scales(from_dlpack(rows), from_dlpack(all))).d[:4, 0].tolist()  # 32 * m * 0.5
    [0.0, 16.0, 32.0, 48.0]
    """

    a: Any  # (M,) or a static (1,), a cute.Tensor or an array
    b: Any  # (N,) or a static (1,), a cute.Tensor or an array

    @property
    def vectors(self) -> list[tuple[Any, int]]:
        return [(vector, kind) for kind, vector in enumerate((self.a, self.b)) if not is_one(vector)]

    @property
    def numbers(self) -> list[Any]:
        return [vector for vector in (self.a, self.b) if is_one(vector)]

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> cute.Tensor:
        a = tile.number(self.a) if is_one(self.a) else tile.column(self.a)
        b = tile.number(self.b) if is_one(self.b) else tile.row(self.b)
        sums = cute.make_rmem_tensor(acc.shape, Float32) if acc.element_type.is_integer else acc
        sums.store(acc.load().to(sums.element_type) * a * b)
        return sums


@dataclass(frozen=True)
class PerRowLinComb:
    """acc = alpha[m] * acc + beta[m] * C, of scales that the device knows: vectors with an element for each row, or of
    one number for all (CUTLASS's alpha and beta by pointer). C has no effect in rows whose beta is 0, and is not read
    without ``beta``.

    >>> from tilewright.cute.runtime import from_dlpack
    >>> from tilewright.gemm import gemm
    >>> x, rows, two = np.ones((32, 32), np.float16), np.arange(32, dtype=np.float32), np.full(1, 2, np.float32)
    >>> gemm(x, x, x, epilogue=PerRowLinComb(from_dlpack(rows), from_dlpack(two))).d[:4, 0].tolist()  # 32 * m + 2
    [2.0, 34.0, 66.0, 98.0]
    """

    alpha: Any  # (M,) or a static (1,), a cute.Tensor or an array; or a Numeric
    beta: Any = None  # the same
    first: Any = True
    """Whether C is the user's; of the later parts of a K that is split it is what D has."""

    @property
    def vectors(self) -> list[tuple[Any, int]]:
        return [(vector, 0) for vector in self.arrays if not is_one(vector)]

    @property
    def numbers(self) -> list[Any]:
        return [vector for vector in self.arrays if is_one(vector)]

    @property
    def arrays(self) -> list[Any]:
        return [factor for factor in (self.alpha, self.beta) if factor is not None and not isinstance(factor, Numeric)]

    def set_k_partition(self, k: Any, partitions: Any) -> PerRowLinComb:
        """The first part adds beta * C; the others, what D has."""
        return replace(self, first=k == 0)

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> None:
        acc.store((acc.load() * self.of_rows(self.alpha, tile)).to(acc.element_type))
        if const_expr(self.beta is not None):
            if self.first:
                beta, source = self.of_rows(self.beta, tile), tile.source().to(acc.element_type)
                zero = cute.zeros_like(source)
                acc.store((acc.load() + cute.where(beta + zero == 0, zero, source * beta)).to(acc.element_type))
        if const_expr(self.first is not True):
            if self.first == False:  # noqa: E712  # a run-time Boolean
                acc.store(acc.load() + tile.source().to(acc.element_type))

    def of_rows(self, vector: Any, tile: EpilogueTile) -> Any:
        if isinstance(vector, Numeric):
            return vector
        return tile.number(vector) if is_one(vector) else tile.column(vector)


@dataclass(frozen=True)
class ResultScale(OfWholeSums):
    """acc *= scale[0]: before results are rounded to 8 bits.

    >>> from tilewright.cute.runtime import from_dlpack
    >>> from tilewright.gemm import gemm
    >>> x = np.ones((32, 32), np.float16)
    >>> float(gemm(x, x, epilogue=ResultScale(from_dlpack(np.full(1, 0.25, np.float32)))).d[0, 0])  # 32 / 4
    8.0
    """

    scale: Any  # (1,), a cute.Tensor or an array

    @property
    def numbers(self) -> list[Any]:
        return [self.scale]

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> None:
        acc.store(acc.load() * tile.number(self.scale))


OVERFLOW = {Float8E4M3FN: (464.0, False, 0x7F), Float8E5M2: (61440.0, True, 0x7C)}
"""For each type of 8 bits: the number halfway between the largest finite one and the next step, whether it is rounded
up, and the bits of larger numbers: NaN, or infinity."""


@dataclass(frozen=True)
class NonSaturating(OfWholeSums):
    """acc rounded to ``dtype``, an 8-bit float, without saturation: what is beyond its largest finite number becomes
    NaN in e4m3, which has no infinity, and infinity in e5m2. Conversions saturate by themselves (PTX ``satfinite``).
    The function is the last one, and the result of its type.

    >>> import ml_dtypes
    >>> from tilewright.gemm import scaled_matmul
    >>> a, one = np.ones((16, 128), ml_dtypes.float8_e4m3fn), np.ones((), np.float32)
    >>> how = {"scale_b": one, "out_dtype": a.dtype, "saturate": False}
    >>> [float(scaled_matmul(a, a.T, np.float32(scale) * one, **how)[0, 0]) for scale in (3.5, 3.625, 3.75)]
    [448.0, 448.0, nan]
    """

    dtype: Constexpr

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> cute.Tensor:
        limit, included, beyond = OVERFLOW[self.dtype]
        rounded, sums = cute.make_rmem_tensor(acc.shape, self.dtype), acc.load()
        rounded.store(sums.to(self.dtype))
        bits = cute.recast_tensor(rounded, Uint8)
        magnitude = cute.where(sums < 0, -sums, sums)
        over = magnitude >= limit if const_expr(included) else magnitude > limit
        held = bits.load()
        bits.store(cute.where(over, held & 0x80 | beyond, held))
        return rounded


@dataclass(frozen=True)
class Amax(OfWholeSums):
    """amax[0] = max(amax[0], the largest |acc|), which the scale of the next result of 8 bits is made of; acc stays. A
    NaN among them makes it NaN. All lanes of a warp call it.

    >>> from tilewright.gemm import matmul
    >>> x, largest = np.ones((32, 32), np.float16), np.zeros(1, np.float32)
    >>> _ = matmul(x, -x, epilogue=Amax(largest))
    >>> largest.tolist()
    [32.0]
    """

    amax: Any  # (1,) of Float32, 0 or what the largest is to be compared with: a cute.Tensor or an array

    @property
    def targets(self) -> list[Any]:
        return [self.amax]

    def check(self, m: int, n: int) -> None:
        """ArgumentError for an array of another type or size."""
        array = array_behind(self.amax)
        if array is not None and (array.dtype is not Float32 or math.prod(array.shape) != 1):
            raise ArgumentError(
                f"Amax: one number of Float32 is wanted, not {array.dtype.__name__} of shape {tuple(array.shape)}"
            )

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> None:
        largest = Int32(0)  # bits of magnitudes are in the order of these, and NaN's are above infinity's
        for i in range_constexpr(cute.size(acc)):
            if cute.elem_less(tile.coordinates[i], tile.extent):
                largest = cute.max(largest, acc[i].to(Float32).bitcast(Int32) & 0x7FFFFFFF)
        largest = cute.arch.warp_redux_sync(largest, "max")
        if (cute.arch.lane_idx() == 0) & (largest > 0):
            cute.arch.atomic_max(cute.recast_ptr(self.amax.iterator, dtype=Int32), largest, sem="relaxed", scope="gpu")


def is_one(vector: Any) -> bool:
    """Whether a vector is known to have one element."""
    size = cute.size(vector)
    return isinstance(size, int) and size == 1


@dataclass(frozen=True)
class BlockScales:
    """acc[m, n] = the sum over k tiles of weights(m, n, k tile) * the tile's sums.

    ``rows`` of A, ``columns`` of B and 128 elements of K share a scale; ``rows`` and ``columns`` are 1 or 128 (where
    they are those of a tile, in shared memory, any number that divides a warpgroup's part of it). A k tile of the main
    loop has 128 elements, and a part of a tile that a thread holds is within a group, or whole groups.
    """

    a: cute.Tensor  # (M / rows, K / 128)
    b: cute.Tensor  # (N / columns, K / 128)
    rows: Constexpr = 1
    columns: Constexpr = BLOCK

    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> None:
        """Nothing is left to do when the sums are complete."""

    @cute.jit
    def load(self, tile: EpilogueTile, k_tile: Any) -> tuple[cute.Tensor, ...]:
        """The scales of k tile ``k_tile`` that the calling thread's accumulators need, in registers: of their rows and
        of their columns, each once."""
        return self.load_rows(tile, k_tile), self.load_columns(tile, k_tile)

    def load_rows(self, tile: EpilogueTile, k_tile: Any) -> cute.Tensor:
        return lines(tile, self.a[None, k_tile], self.rows, 0)

    def load_columns(self, tile: EpilogueTile, k_tile: Any) -> cute.Tensor:
        return lines(tile, self.b[None, k_tile], self.columns, 1)

    @cute.jit
    def weights(self, tile: EpilogueTile, loaded: tuple, at: Constexpr) -> Any:
        """The factor of each accumulator ``at`` these coordinates of a k tile's: a TensorSSA, or one number for all."""
        rows, columns = loaded
        return repeated(tile, rows, self.rows, 0, at) * repeated(tile, columns, self.columns, 1, at)


@dataclass(frozen=True)
class ColumnBlockScales:
    """acc[m, n] = the sum over k tiles of scales[n, k tile] * the tile's sums: 128 elements of K of a column of B
    share a scale, and A has none. The kernel computes the transposed product, whose rows are these columns: a thread
    has two scales for 64 of them."""

    scales: cute.Tensor  # (N, K / 128), of any type of floats

    rows: ClassVar[int | None] = None
    columns: ClassVar[int | None] = 1

    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> None:
        """Nothing is left to do when the sums are complete."""

    @cute.jit
    def load(self, tile: EpilogueTile, k_tile: Any) -> tuple[cute.Tensor, ...]:
        """The scales of k tile ``k_tile`` that the calling thread's accumulators need, in registers."""
        return (tile.elements(self.scales[None, k_tile], 0),)

    @cute.jit
    def weights(self, tile: EpilogueTile, loaded: tuple, at: Constexpr) -> Any:
        """The factor of each accumulator ``at`` these coordinates of a k tile's, a TensorSSA."""
        factors = cute.make_rmem_tensor(loaded[0].shape, Float32)
        factors.store(loaded[0].load().to(Float32))
        return tile.repeated(factors, 0)[at]


@cute.jit
def lines(tile: EpilogueTile, scales: cute.Tensor, group: Constexpr, mode: Constexpr) -> cute.Tensor:
    """The scales along ``mode`` of the accumulators, of which ``group`` lines share one."""
    if const_expr(group == 1):
        return tile.elements(scales, mode)
    found = cute.make_rmem_tensor(tile.groups(mode, group), scales.element_type)
    for i in range_constexpr(cute.size(found)):
        found[i] = scales[tile.first(mode) // group + i]
    return found


def repeated(tile: EpilogueTile, found: cute.Tensor, group: int, mode: int, at: Any) -> Any:
    """The result of :func:`lines` for each accumulator ``at`` these coordinates, or one number for all."""
    return found[0] if group > 1 and cute.size(found) == 1 else tile.repeated(found, mode, group)[at]


@dataclass(frozen=True)
class TileScales:
    """The scales of blocks for one output tile, as the main loop asks for them; k tiles count from ``k_begin``."""

    scales: Any  # BlockScales, or ColumnBlockScales
    tile: EpilogueTile
    k_begin: Any
    k_end: Any

    from_memory: ClassVar[bool] = True
    """Whether the threads that multiply load them from global memory."""

    def load(self, i: Any) -> tuple[cute.Tensor, ...]:
        """Load the scales of k tile ``i`` into registers; beyond the last k tile, those of the last one."""
        return self.scales.load(self.tile, self.k_tile(i))

    def load_columns(self, i: Any) -> cute.Tensor:
        """Those of the columns alone."""
        return self.scales.load_columns(self.tile, self.k_tile(i))

    def k_tile(self, i: Any) -> Any:
        return cute.min(self.k_begin + i, self.k_end - 1)

    def applied(self, sums: Any, loaded: tuple, block: int) -> Any:
        """The ``sums`` of the ``block``-th 64 rows of a k tile by their factors, from the result of :meth:`load`."""
        return sums * self.scales.weights(self.tile, loaded, (None, block, 0))

    def applied_to_all(self, sums: Any, loaded: tuple) -> Any:
        """The same of all ``sums`` of a k tile."""
        return sums * self.scales.weights(self.tile, loaded, (None, None, None))


REGISTERS = {1: 208, 2: 208, 3: 140}
"""Registers of a thread for its sums and for two k tiles' scales of them, by the number of warpgroups that multiply:
ptxas spills beyond that."""


def fits_block_scales(config: Any, rows: int | None = 1, columns: int | None = BLOCK) -> bool:
    """Whether a Hopper size can apply scales of blocks of ``rows`` of A and ``columns`` of B (None: that operand has no
    scales): it has the sums of each k tile on their own, a k tile is a block long, a warpgroup's part of a tile is
    within one block of rows, and a thread holds the scales of its part. Where B alone has scales, the transposed
    product is computed, whose rows are B's columns, 64 of them a warpgroup (128 take a tenth longer)."""
    if config.pingpong or not config.producers or (config.promote, config.tile[2]) != (1, BLOCK):
        return False
    if config.transposed != (rows is None) or (rows is None and config.part[0] != 64):
        return False
    lines = (columns, rows) if config.transposed else (rows, columns)
    sides = list(zip(lines, config.part, (32, 4), strict=True))  # a thread has so many of 32 rows, and of 4 columns
    held = sum(part // (of if line == 1 else gcd(part, line)) for line, part, of in sides if line is not None)
    fits = config.promoted_registers + 2 * held <= REGISTERS[config.warpgroups]
    return bool(fits and BLOCK % config.part[0] == 0)


def block_scales(function: Any) -> BlockScales | ColumnBlockScales | None:
    """The part of an epilogue function, if it has one, that multiplies the sums of each k tile."""
    parts = getattr(function, "functions", (function,))
    return next((part for part in parts if hasattr(part, "weights")), None)
