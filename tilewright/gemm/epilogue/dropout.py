"""Dropout as an epilogue function, by a counter-based generator: its mask follows from (seed, offset) and the place of
an element, whatever kernel computes it.

The generator is Philox 4x32-10 (Salmon et al., 2011) as cuRAND and PyTorch have it: a key, the seed, and a counter of
four words give four words. The element in row m and column n takes a word of the block of

    subsequence  (m // 16 * 8 + m % 8) * 2**32 + n // 2      curand_init(seed, subsequence, 4 * offset)
    word         m // 8 % 2 * 2 + n % 2

so that the two rows and two columns that a thread of a tensor core holds take all four words of a block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright import Constexpr, Int64, Numeric, Uint32, Uint64, const_expr, cute, range, range_constexpr
from tilewright.errors import ArgumentError, ConstraintError
from tilewright.gemm.epilogue.functions import OfWholeSums
from tilewright.gemm.epilogue.tile import EpilogueTile
from tilewright.lang.arguments.arrays import array_behind
from tilewright.lang.device.rematerialize import rematerialize

ROUNDS = 10
FACTORS = 0xD2511F53, 0xCD9E8D57
STEPS = 0x9E3779B9, 0xBB67AE85
"""What is added to the two words of the key after each round."""
WORD = 0xFFFFFFFF
Words = tuple[Any, Any, Any, Any]


def philox(counter: Words, key: tuple[Any, Any], multiply: Callable[[Any, int], tuple[Any, Any]], add: Any) -> Words:
    """Four words of Philox 4x32-10. ``multiply(a, b)`` gives the upper and the lower word of a product, ``add(a, b)``
    the lower word of a sum, of whatever stands for words.

    >>> product = lambda a, b: (a * b >> 32, a * b & WORD)
    >>> [hex(word) for word in philox((0, 0, 0, 0), (0, 0), product, lambda a, b: a + b & WORD)]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    a, b, c, d = counter
    first, second = key
    for _ in range_constexpr(ROUNDS):
        (high_a, low_a), (high_c, low_c) = multiply(a, FACTORS[0]), multiply(c, FACTORS[1])
        a, b, c, d = high_c ^ b ^ first, low_c, high_a ^ d ^ second, low_a
        first, second = add(first, STEPS[0]), add(second, STEPS[1])
    return a, b, c, d


def threshold(p: float) -> int:
    """The words below it keep an element: a part 1 - p of all of them, as nearly as a word can say.

    >>> hex(threshold(0.5)), threshold(0.0) == WORD + 1
    ('0x80000000', True)
    """
    return round((1 - p) * (WORD + 1))


def keeps(rows: Any, columns: Any, seed: Any, offset: Any, p: float) -> Any:
    """Whether the elements in ``rows`` and ``columns`` are kept: arrays of 64-bit integers of one framework, which are
    broadcast, NumPy's unsigned ones or PyTorch's."""

    def multiply(a: Any, b: int) -> tuple[Any, Any]:
        product = a * b  # modulo 2**64, with or without a sign
        return product >> 32 & WORD, product & WORD

    zero = rows * 0 + columns * 0
    counter = (
        (offset & WORD) + zero,
        (offset >> 32 & WORD) + zero,
        columns // 2 + zero,
        rows // 16 * 8 + rows % 8 + zero,
    )
    key = (seed & WORD) + zero, (seed >> 32 & WORD) + zero
    a, b, c, d = philox(counter, key, multiply, lambda x, y: x + y & WORD)
    odd = columns % 2
    upper, lower = a + (b - a) * odd, c + (d - c) * odd  # of both, a word or 0: nothing is lost modulo 2**64
    return upper + (lower - upper) * (rows // 8 % 2) < threshold(p)


def dropout_mask(m: int, n: int, p: float, seed: int, offset: int = 0) -> np.ndarray:
    """The mask of :class:`Dropout` for a result of m x n elements: True where an element is kept.

    >>> dropout_mask(2, 8, 0.5, seed=1).astype(int).tolist()
    [[0, 0, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 0, 0, 1]]
    """
    rows, columns = np.arange(m, dtype=np.uint64)[:, None], np.arange(n, dtype=np.uint64)
    kept: np.ndarray = keeps(rows, columns, seed % 2**64, offset % 2**64, p)
    return kept


@dataclass(frozen=True)
class Dropout(OfWholeSums):
    """acc = acc / (1 - p) where :func:`dropout_mask` keeps the element, 0 elsewhere: dropout of probability ``p``.

    ``seed`` and ``offset`` are integers, or arrays of one Int64 on the operands' device, which a CUDA graph or a step
    of training may change without another launch. Two launches with the same numbers have the same mask, whatever their
    kernels are, and take other offsets to have other masks. The gradient of the sums is the same function of the
    gradient of the result: with the same seed and offset, on a product with the result's rows and columns.

    It belongs to one product, not to a stack or to groups, whose elements would share places.

    >>> from tilewright.gemm import matmul
    >>> a = np.ones((32, 32), np.float16)
    >>> dropped = matmul(a, a, epilogue=Dropout(0.5, seed=1))
    >>> dropped[0, :8].tolist(), bool(((dropped > 0) == dropout_mask(32, 32, 0.5, seed=1)).all())
    ([0.0, 0.0, 64.0, 64.0, 0.0, 0.0, 0.0, 0.0], True)
    """

    p: Constexpr
    seed: Any = 0
    offset: Any = 0

    one_product = True

    def __post_init__(self) -> None:
        """ArgumentError for what is no probability below 1."""
        number = isinstance(self.p, (int, float)) and not isinstance(self.p, bool)
        if not number or not 0 <= self.p < 1 or threshold(self.p) == 0:
            raise ArgumentError(f"Dropout: p is the probability that an element becomes 0, 0 <= p < 1, not {self.p!r}")
        for name in ("seed", "offset"):
            value = getattr(self, name)
            if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
                object.__setattr__(self, name, Int64((int(value) + 2**63) % 2**64 - 2**63))
            elif isinstance(value, (bool, float, str)) or value is None:
                raise ArgumentError(f"Dropout: {name} is an integer or an array of one Int64, not {value!r}")
            elif getattr(value, "shape", None) == ():  # an array of no dimensions has one number, too
                object.__setattr__(self, name, value.reshape(1))

    @property
    def numbers(self) -> list[Any]:
        return [x for x in (self.seed, self.offset) if not isinstance(x, Numeric)]

    def check(self, m: int, n: int) -> None:
        """ArgumentError for arrays that are not one Int64."""
        for name in ("seed", "offset"):
            array = array_behind(getattr(self, name))
            if array is not None and (tuple(array.shape) != (1,) or array.dtype is not Int64):
                raise ArgumentError(
                    f"Dropout: {name} is an integer or an array of one Int64, not {array.dtype} of shape "
                    f"{tuple(array.shape)}"
                )

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: EpilogueTile) -> None:
        if const_expr(acc.element_type.is_integer):
            raise ConstraintError(
                "Dropout divides sums by 1 - p, and these are integers: take a kernel that adds floats"
            )
        if const_expr(self.p > 0):
            seed, offset = words_of(self.seed, tile), words_of(self.offset, tile)
            scale, least = acc.element_type(1 / (1 - self.p)), threshold(self.p) - 1
            held = words_held(tile)
            blocks = cute.size(acc) // held
            for block in range(0, blocks, 1, unroll=blocks):
                m, n = (Uint32(x) for x in tile.of_user(tile.coordinates[block * held]))
                counter = *offset, n >> 1, (m >> 4 << 3) + (m & 7)
                # The keys of the rounds are computed again for each block: 20 registers would hold them.
                key = Uint32(rematerialize(seed[0])), Uint32(rematerialize(seed[1]))
                words = philox(counter, key, product, lambda a, b: a + Uint32(b))
                for i in range_constexpr(held):
                    word = words[i] if const_expr(held == 4) else chosen(words, m >> 3 & 1, (n & 1) + i)
                    value = acc[block * held + i] * scale
                    acc[block * held + i] = cute.where(word <= Uint32(least), value, acc.element_type(0))


def product(a: Any, b: int) -> tuple[Any, Any]:
    """The upper and the lower word of a product of words."""
    whole = a.to(Uint64) * Uint64(b)
    return (whole >> 32).to(Uint32), whole.to(Uint32)


def chosen(words: Words, row: Any, column: Any) -> Any:
    """The word of a row (0 or 1) and a column of its block."""
    upper, lower = (cute.where(column == 0, *pair) for pair in (words[:2], words[2:]))
    return cute.where(row == 0, upper, lower)


def words_of(number: Any, tile: EpilogueTile) -> tuple[Any, Any]:
    """The lower and the upper word of a number of 64 bits, or of an array of one."""
    whole = (number if isinstance(number, Numeric) else tile.number(number)).to(Uint64)
    return whole.to(Uint32), (whole >> 32).to(Uint32)


def words_held(tile: EpilogueTile) -> int:
    """How many of a thread's neighbouring accumulators take words of one block: 4 where they are two columns of rows m
    and m + 8, as tensor cores have them, 2 where they are two columns, else 1."""
    layout, (row, column) = tile.coordinates.layout, (1, 0) if tile.transposed else (0, 1)
    flat = zip(cute.flatten(layout.shape), cute.flatten(layout.stride), strict=True)
    modes = [(extent, *step(stride)) for extent, stride in flat if extent != 1]
    if not modes or modes[0][0] % 2 or modes[0][1:] != (column, 1):
        return 1
    return 4 if len(modes) > 1 and modes[0][0] == 2 and modes[1] == (2, row, 8) else 2


def step(stride: Any) -> tuple[int, int]:
    """(mode, elements) of the stride of a coordinate layout; a plain 0 is no step."""
    return (stride.mode[0], stride.value) if stride != 0 else (-1, 0)
