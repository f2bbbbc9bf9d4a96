"""The places of weights of 4 and 8 bits that were arranged once for the registers of mma.sync.

A warp of the kernel for few rows multiplies 8 columns of the product, that is 8 rows of the weight (N, K), with 32
elements of K in two instructions: thread t of the four of a row holds elements 8t .. 8t + 7 of these (``small_m``).
Four such steps, 128 elements of K, are 32 numbers a thread: 16 bytes of 4-bit numbers, one load. So the elements are
moved: what a thread holds follows in memory, thread after thread, and a warp reads 512 bytes in a row.

Two numbers become a register of two 16-bit floats by one ``lop3``: ``word >> 4p & 0x000f000f | exponents``. It takes
bits 4p .. 4p + 3 and those 16 further, so neighbours of K are four numbers apart in a word.

Numbers of 8 bits are twice as many bytes: two loads of 16, for 64 elements of K each. Their order in a word is that of
K, as ``prmt`` picks any bytes.
"""

from __future__ import annotations

from typing import Any

from tilewright import Float8E4M3FN, Float16, Float32, Int4, Int8, Int32, cute, range_constexpr

COLUMNS, DEPTH, LANES, WORDS = 8, 128, 32, 4
"""Rows and elements of K of the weight that a warp loads at once; its threads, and the words of 32 bits of each."""

KINDS = Int4, Int8, Float8E4M3FN
"""What the numbers of a weight may be."""

OFFSET = 8
"""A number q of -8 .. 7 is kept as q + 8, one with a zero point, of 0 .. 15, as it is."""

OFFSET_OF_BYTES = 128
"""A number q of -128 .. 127 is kept as q + 128."""


def prepared_layout(n: int, k: int, bits: int = 4) -> Any:
    """Where element (n, k) of an (N, K) weight is, in numbers of ``bits``: K is cut into (pair, register, thread, step,
    tile), of 8 bits into (element, thread, step, half of a tile), N into (row, tile).

    >>> layout = prepared_layout(16, 256)
    >>> layout
    ((8,2),(2,4,4,4,2)):((128,2048),(4,1,32,8,1024))
    >>> sorted(layout(i) for i in range(cute.size(layout))) == list(range(16 * 256))
    True
    >>> prepared_layout(16, 256, 8)
    ((8,2),(8,4,2,4)):((64,2048),(1,16,8,512))
    """
    tiles = k // DEPTH
    tile = COLUMNS * DEPTH
    if bits == 8:
        return cute.make_layout(
            ((COLUMNS, n // COLUMNS), (8, 4, 2, 2 * tiles)), stride=((64, tiles * tile), (1, 16, 8, tile // 2))
        )
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


def widened_bytes(words: Any, dtype: Any) -> Any:
    """The numbers of 8 bits in registers ``words`` as floats of 16 bits, (4 x words), in the order of K. In Float16 a
    byte is the mantissa of 1024 + q + 128. BFloat16 has too few bits for that: a Float32 of 2^23 + q + 128 is made, and
    the difference rounded, which changes nothing."""
    count = cute.size(words)
    numbers = cute.make_rmem_tensor(4 * count, dtype)
    if dtype is Float16:
        pairs = cute.make_rmem_tensor(2 * count, Int32)
        for i in range_constexpr(count):
            for p in range_constexpr(2):
                pairs[2 * i + p] = cute.arch.prmt(words[i], 0x64646464, 0x4140 + 0x0202 * p)
        numbers.store(cute.recast_tensor(pairs, dtype).load() - dtype(1024 + OFFSET_OF_BYTES))
    else:
        floats = cute.make_rmem_tensor(4 * count, Int32)
        for i in range_constexpr(count):
            for e in range_constexpr(4):
                floats[4 * i + e] = cute.arch.prmt(words[i], 0x4B000000, 0x7440 + e)
        numbers.store((cute.recast_tensor(floats, Float32).load() - Float32(2**23 + OFFSET_OF_BYTES)).to(dtype))
    return numbers


def widened_floats(words: Any, dtype: Any) -> Any:
    """The Float8E4M3FN in registers ``words`` as floats of 16 bits, (4 x words), in the order of K: all are floats of
    either type. NaN stays."""
    kept = cute.make_rmem_tensor(cute.size(words), Int32)
    for i in range_constexpr(cute.size(words)):
        kept[i] = words[i]
    numbers = cute.make_rmem_tensor(4 * cute.size(words), dtype)
    # By way of Float16: cvt has no BFloat16 there.
    numbers.store(cute.recast_tensor(kept, Float8E4M3FN).load().to(Float16).to(dtype))
    return numbers


def widened_as(kind: Any, words: Any, dtype: Any, mask: Any = LOW_BITS, zeros: Any = None) -> Any:
    """The numbers of type ``kind``, Int4, Int8 or Float8E4M3FN, in ``words`` as floats of 16 bits."""
    if kind.width == 4:
        return widened(words, dtype, mask, zeros)
    return widened_floats(words, dtype) if kind.is_float else widened_bytes(words, dtype)


def exponents_of(dtype: Any) -> tuple[int, int]:
    """Two floats of 16 bits whose mantissas count in ones, and what they are then.

    >>> from tilewright import BFloat16, Float16
    >>> [(hex(bits), bias) for bits, bias in map(exponents_of, (Float16, BFloat16))]
    [('0x64006400', 1024), ('0x43004300', 128)]
    """
    return {"Float16": (0x64006400, 1024), "BFloat16": (0x43004300, 128)}[dtype.__name__]
