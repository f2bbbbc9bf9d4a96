"""The places of weights of 4 and 8 bits that were arranged once, for the registers of mma.sync and of wgmma.

Both instructions give thread t of the four of a row the pair of neighbours 2t, 2t + 1 of each 8 elements of K. A
kernel of mma.sync loads both operands to registers: a sum may be taken in any order, so it renames K, and thread t
holds 8 neighbours, 8t to 8t + 7 of 32, of the weight and of the rows that it is multiplied by (``small_m``). wgmma
reads these rows from shared memory, where K has its order. One arrangement serves both:

- Of 8 elements, a *chunk*, each of the four pairs goes to another word of 32 bits. A word has pair p of several chunks
  that are 32 elements of K apart: of four chunks of 4-bit numbers, of two of 8 bits.
- The four words, p = 0 to 3, of the same chunks are neighbours: 16 bytes. A thread of mma.sync loads these and has
  whole chunks.
- Eight rows of 16 bytes follow each other, then the other chunks of 128 elements of K (8 bits: of 64). Thread t of
  wgmma loads four words, number t of the 16 bytes of its row from each of the four places, and has its pairs of all
  chunks; the 32 threads of a warp read 128 bytes in a row.

The two numbers of a pair are 16 bits apart in their word, so that one ``lop3`` makes a register of two 16-bit floats:
``word >> 4c & 0x000f000f | exponents``.
"""

from __future__ import annotations

from typing import Any

from tilewright import Float4E2M1FN, Float8E4M3FN, Float16, Int4, Int8, Int32, Uint32, cute, range_constexpr
from tilewright.gemm.mixed_config import COLUMNS, LANES, WORDS

OFFSET = 8
"""A number q of -8 .. 7 is kept as q + 8, one with a zero point, of 0 .. 15, as it is."""

OFFSET_OF_BYTES = 128
"""A number q of -128 .. 127 is kept as q + 128."""


def prepared_layout(n: int, k: int, bits: int = 4) -> Any:
    """Where element (n, k) of an (N, K) weight is, in numbers of ``bits``: K is cut into (pair, word, thread, chunk,
    tile), N into (row, tile).

    >>> layout = prepared_layout(16, 256)
    >>> layout
    ((8,2),(2,4,4,4,2)):((32,2048),(4,8,256,1,1024))
    >>> sorted(layout(i) for i in range(cute.size(layout))) == list(range(16 * 256))
    True
    >>> prepared_layout(16, 256, 8)
    ((8,2),(2,4,4,2,4)):((16,2048),(2,4,128,1,512))
    """
    numbers = 32 // bits  # of a word
    chunks = numbers // 2
    row, thread, tile = (WORDS * numbers * count for count in (1, COLUMNS, LANES))
    return cute.make_layout(
        ((COLUMNS, n // COLUMNS), (2, WORDS, 4, chunks, k * COLUMNS // tile)),
        stride=((row, k * COLUMNS), (chunks, numbers, thread, 1, tile)),
    )


LOW_BITS = 0x000F000F
"""The lowest 4 bits of each half of a word."""

BOTH_HALVES = 0x00010001
"""The factor that copies a number into both halves of a word."""


def widened(kind: Any, words: Any, chunk: int, dtype: Any, mask: Any = LOW_BITS, zeros: Any = None) -> Any:
    """The pair of ``chunk`` of each of the registers ``words`` as floats of 16 bits, (2 x words). The numbers are of
    type ``kind``, one of ``KINDS``. ``mask`` is ``LOW_BITS``; where it is an argument of the kernel it stays in a
    register (a lop3 has room for one constant). ``zeros``: the zero point of each word, in the place of ``OFFSET``."""
    if kind is Int4:
        return integers_of_4_bits(words, chunk, dtype, mask, zeros)
    if kind is Int8:
        return integers_of_8_bits(words, chunk, dtype, mask)
    return floats_of_4_bits(words, chunk, dtype) if kind is Float4E2M1FN else floats_of_8_bits(words, chunk, dtype)


def integers_of_4_bits(words: Any, chunk: int, dtype: Any, mask: Any, zeros: Any) -> Any:
    """A number becomes the lowest bits of the mantissa of a float, from which the offset is subtracted."""
    exponents, bias = exponents_of(dtype)
    count = cute.size(words)
    pairs, numbers = cute.make_rmem_tensor(count, Int32), cute.make_rmem_tensor(2 * count, dtype)
    for i in range_constexpr(count):
        pairs[i] = ((words[i] >> (4 * chunk)) & mask) | exponents
    if zeros is None:
        numbers.store(cute.recast_tensor(pairs, dtype).load() - dtype(bias + OFFSET))
    else:  # with the same exponents, the zero point is the float that has to be subtracted
        offsets = cute.make_rmem_tensor(count, Int32)
        for i in range_constexpr(count):
            offsets[i] = zeros[i] * BOTH_HALVES | exponents
        numbers.store(cute.recast_tensor(pairs, dtype).load() - cute.recast_tensor(offsets, dtype).load())
    return numbers


def integers_of_8_bits(words: Any, chunk: int, dtype: Any, mask: Any) -> Any:
    """In Float16 a byte is the mantissa of 1024 + q + 128. BFloat16 has a mantissa of 7 bits: these of q + 128 give
    128 + q or, where the first bit of the byte is 0, 256 + q; that bit, inverted, is the last one of the exponent of
    what is subtracted, 128 or 256."""
    count = cute.size(words)
    numbers = cute.make_rmem_tensor(2 * count, dtype)
    if dtype is Float16:
        pairs = cute.make_rmem_tensor(count, Int32)
        for i in range_constexpr(count):
            pairs[i] = cute.arch.prmt(words[i], 0x64646464, 0x4240 + 0x0101 * chunk)
        numbers.store(cute.recast_tensor(pairs, dtype).load() - dtype(1024 + OFFSET_OF_BYTES))
    else:
        low = mask | (mask << 3)  # 0x007f007f, in a register where the mask is
        high = low + BOTH_HALVES
        pairs, offsets = cute.make_rmem_tensor(count, Int32), cute.make_rmem_tensor(count, Int32)
        for i in range_constexpr(count):
            word = words[i] >> (8 * chunk)
            pairs[i] = (word & low) | 0x43004300
            offsets[i] = (word & high) ^ 0x43804380
        numbers.store(cute.recast_tensor(pairs, dtype).load() - cute.recast_tensor(offsets, dtype).load())
    return numbers


def floats_of_8_bits(words: Any, chunk: int, dtype: Any) -> Any:
    """All Float8E4M3FN are floats of either type. NaN stays."""
    count = cute.size(words)
    kept = cute.make_rmem_tensor(count // 2, Int32)
    for i in range_constexpr(count // 2):  # the pairs of two words
        kept[i] = cute.arch.prmt(words[2 * i], words[2 * i + 1], 0x6420 + 0x1111 * chunk)
    numbers = cute.make_rmem_tensor(2 * count, dtype)
    # By way of Float16: cvt has no BFloat16 there.
    numbers.store(cute.recast_tensor(kept, Float8E4M3FN).load().to(Float16).to(dtype))
    return numbers


def floats_of_4_bits(words: Any, chunk: int, dtype: Any) -> Any:
    """A Float4E2M1FN is a sign, two bits of exponent and one of mantissa. In the places that these have in a larger
    float they are that number but for a power of two, also the one that is subnormal."""
    down, magnitude, power = {"Float16": (3, 0x0E000E00, 14), "BFloat16": (6, 0x01C001C0, 126)}[dtype.__name__]
    count = cute.size(words)
    pairs, numbers = cute.make_rmem_tensor(count, Int32), cute.make_rmem_tensor(2 * count, dtype)
    for i in range_constexpr(count):
        signs = words[i] << (12 - 4 * chunk)  # the first number at bits 12 to 15, the second at 28 to 31
        pairs[i] = (signs & 0x80008000) | ((signs >> down) & magnitude)
    numbers.store(cute.recast_tensor(pairs, dtype).load() * dtype(2.0**power))
    return numbers


def exponents_of(dtype: Any) -> tuple[int, int]:
    """Two floats of 16 bits whose mantissas count in ones, and what they are then.

    >>> from tilewright import BFloat16, Float16
    >>> [(hex(bits), bias) for bits, bias in map(exponents_of, (Float16, BFloat16))]
    [('0x64006400', 1024), ('0x43004300', 128)]
    """
    return {"Float16": (0x64006400, 1024), "BFloat16": (0x43004300, 128)}[dtype.__name__]


# -- as 8-bit floats ---------------------------------------------------------------------------------------------------

POWERS = {Int4: 9, Float4E2M1FN: 6, Float8E4M3FN: 0}
"""The types of numbers that Float8E4M3FN has all of. What :func:`narrowed` gives is the number by 2**-power: the bits
0 to 15, of the subnormal floats and the smallest normal ones, count in steps of 2**-9."""

BYTES = 0x01010101
"""The factor that copies a byte into the four bytes of a word."""


def narrowed(kind: Any, low: Any, high: Any, chunk: int, zeros: Any = None) -> Any:
    """Four neighbours of K, from the words of two pairs, as a word of Float8E4M3FN: the numbers of ``chunk`` by
    ``2**-POWERS[kind]``. ``zeros``: the zero point, in each byte, in the place of ``OFFSET``."""
    byte, nibble = (chunk, 0) if kind.width == 8 else divmod(chunk, 2)
    four: Any = cute.arch.prmt(low, high, 0x6420 + 0x1111 * byte)
    if kind is Float8E4M3FN:
        return four
    four = Uint32(four)  # products of bytes and 0x81 leave the range of Int32
    if kind is Float4E2M1FN:  # the sign, and the other three bits in the middle
        sign, rest = (four, four >> 2) if nibble else (four << 4, four << 2)
        return Int32((sign & 0x80 * BYTES) | (rest & 0x1C * BYTES))
    four = four >> 4 if nibble else four
    if zeros is None:  # the highest of the four bits says that the number is not negative, the others are it modulo 8
        negative, rest, ones = (~four >> 3) & BYTES, four & 0x07 * BYTES, 0x07
    else:  # 128 + the number
        sums = ((four & 0x0F * BYTES) | 0x80 * BYTES) - Uint32(zeros)
        negative, rest, ones = (~sums >> 7) & BYTES, sums & 0x7F * BYTES, 0x7F
    return Int32((rest ^ negative * ones) + negative * 0x81)  # the magnitude, and the sign
