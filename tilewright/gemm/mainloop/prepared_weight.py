"""The places of 4-bit weights that were arranged once for the registers of mma.sync.

A warp of the kernel for few rows multiplies 8 columns of the product, that is 8 rows of the weight (N, K), with 32
elements of K in two instructions: thread t of the four of a row holds elements 8t .. 8t + 7 of these (``small_m``).
Four such steps, 128 elements of K, are 32 numbers a thread: 16 bytes of 4-bit numbers, one load. So the elements are
moved: what a thread holds follows in memory, thread after thread, and a warp reads 512 bytes in a row.

Two numbers become a register of two 16-bit floats by one ``lop3``: ``word >> 4p & 0x000f000f | exponents``. It takes
bits 4p .. 4p + 3 and those 16 further, so neighbours of K are four numbers apart in a word.
"""

from __future__ import annotations

from typing import Any

from tilewright import Int32, cute, range_constexpr

COLUMNS, DEPTH, LANES, WORDS = 8, 128, 32, 4
"""Rows and elements of K of the weight that a warp loads at once; its threads, and the words of 32 bits of each."""

OFFSET = 8
"""A number q of -8 .. 7 is kept as q + 8, one with a zero point, of 0 .. 15, as it is."""


def prepared_layout(n: int, k: int) -> Any:
    """Where element (n, k) of an (N, K) weight is, in numbers of 4 bits: K is cut into (pair, register, thread, step,
    tile), N into (row, tile).

    >>> layout = prepared_layout(16, 256)
    >>> layout
    ((8,2),(2,4,4,4,2)):((128,2048),(4,1,32,8,1024))
    >>> sorted(layout(i) for i in range(cute.size(layout))) == list(range(16 * 256))
    True
    """
    tiles = k // DEPTH
    tile = COLUMNS * DEPTH
    return cute.make_layout(
        ((COLUMNS, n // COLUMNS), (2, 4, 4, WORDS, tiles)),
        stride=((4 * LANES, tiles * tile), (4, 1, LANES, 8, tile)),
    )


LOW_BITS = 0x000F000F
"""The lowest 4 bits of each half of a word."""

BOTH_HALVES = 0x00010001
"""The factor that copies a number into both halves of a word."""


def widened(words: Any, dtype: Any, mask: Any = LOW_BITS, zeros: Any = None) -> Any:
    """The numbers of 4 bits in registers ``words`` as floats of 16 bits, (8 x words), in the order of K. ``mask`` is
    ``LOW_BITS``; where it is an argument of the kernel it stays in a register (a lop3 has room for one constant).
    ``zeros``: the zero point of each word, in the place of ``OFFSET``; with the same exponents it is the float that has
    to be subtracted."""
    exponents, bias = exponents_of(dtype)
    pairs = cute.make_rmem_tensor(4 * cute.size(words), Int32)
    for i in range_constexpr(cute.size(words)):
        for p in range_constexpr(4):
            pairs[4 * i + p] = ((words[i] >> (4 * p)) & mask) | exponents
    numbers = cute.make_rmem_tensor(8 * cute.size(words), dtype)
    if zeros is None:
        numbers.store(cute.recast_tensor(pairs, dtype).load() - dtype(bias + OFFSET))
    else:
        offsets = cute.make_rmem_tensor(pairs.shape, Int32)
        for i in range_constexpr(cute.size(words)):
            twice = zeros[i] * BOTH_HALVES | exponents
            for p in range_constexpr(4):
                offsets[4 * i + p] = twice
        numbers.store(cute.recast_tensor(pairs, dtype).load() - cute.recast_tensor(offsets, dtype).load())
    return numbers


def exponents_of(dtype: Any) -> tuple[int, int]:
    """Two floats of 16 bits whose mantissas count in ones, and what they are then.

    >>> from tilewright import BFloat16, Float16
    >>> [(hex(bits), bias) for bits, bias in map(exponents_of, (Float16, BFloat16))]
    [('0x64006400', 1024), ('0x43004300', 128)]
    """
    return {"Float16": (0x64006400, 1024), "BFloat16": (0x43004300, 128)}[dtype.__name__]
