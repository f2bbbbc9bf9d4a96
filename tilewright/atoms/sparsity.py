"""2:4 sparse operands: of four neighbours along K two are stored, and metadata says which.

Two numbers of 2 bits for each four elements of a row are the places of the stored ones, the lower place first: a bit
for each element of K. An element of 32 bits (tf32) counts as two halves, which are stored together: of two neighbours
one is stored, and its places are 0 and 1, or 2 and 3. The words that threads hold are found by a layout
(thread, bit) -> (row, k), as all else is.
``metadata_layout`` has a whole word of each of 128 threads: 64 rows and 64 elements of K (PTX ISA,
"wgmma.mma_async.sp", sparsity metadata; CuTe: ELayout in include/cute/atom/mma_traits_sm90_gmma_sparse.hpp).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tilewright.atoms.tables import offsets
from tilewright.ir.lanes import Array
from tilewright.layout import Layout

SPARSITY, CHUNK = 2, 4
"""Elements of K for each that is stored; neighbours of which half are stored."""
METADATA_ROWS, METADATA_K = 64, 64
"""Rows and elements of K (of 32 bits: halves) of which a warpgroup holds the metadata in one word a thread."""


def halves(width: int) -> int:
    """What an element of ``width`` bits counts for in the metadata: 2 where it has 32, else 1."""
    return 2 if width == 32 else 1


def chunk_of(width: int) -> int:
    """Neighbours of which half are stored.

    >>> chunk_of(16), chunk_of(32)
    (4, 2)
    """
    return CHUNK // halves(width)


def word_k(width: int) -> int:
    """Elements of K that a word of metadata of each thread serves.

    >>> word_k(16), word_k(32)
    (64, 32)
    """
    return METADATA_K // halves(width)


def instruction_metadata_layout(width: int) -> Layout:
    """(thread, bit) -> (row, k) of the metadata of one instruction with stored elements of ``width`` bits.

    Of 16 bits, and of the halves of 32, half of the threads have all of it: the selector says which, threads 0 and 1 of
    four or 2 and 3.

    >>> instruction_metadata_layout(16), instruction_metadata_layout(8)
    (((2,2,8,4),(16,2)):((1024,0,1,16),(64,8)), ((2,2,8,4),32):((8,2048,1,16),64))
    """
    if width >= 16:
        return Layout(((2, 2, 8, 4), (16, 2)), ((1024, 0, 1, 16), (64, 8)))
    return Layout(((2, 2, 8, 4), 32), ((8, 2048, 1, 16), 64))


def metadata_layout(width: int) -> Layout:
    """(thread, bit) -> (row, k) of 64 x 64 elements: of 16 bits, the second pair of threads has the second
    instruction's.

    >>> metadata_layout(16)
    ((2,2,8,4),(16,2)):((1024,2048,1,16),(64,8))
    """
    one = instruction_metadata_layout(width)
    if width >= 16:
        return Layout(one.shape, ((1024, 32 * METADATA_ROWS, 1, 16), one.stride[1]))
    return one


@lru_cache(maxsize=8)
def bit_places(layout: Layout) -> Array:
    """``[row, k]`` the place of an element's bit among the 32 bits of each thread's word, as ``layout`` has them:
    (thread, bit) -> (row, k) of 64 elements along K."""
    where = offsets(layout).reshape(32, -1).T.reshape(-1)  # threads run faster in a layout's own order
    places = np.empty(where.size, np.intp)
    places[where] = np.arange(where.size)
    return places.reshape(METADATA_K, -1).T


def stored_places(words: Array, layout: Layout) -> Array:
    """``[..., rows, K / 4, 2]`` which two of four elements are stored, of ``[..., K / 64, threads]`` words with this
    layout."""
    bits = np.unpackbits(np.ascontiguousarray(words, "<u4").view(np.uint8), axis=-1, bitorder="little")
    chosen = bits[..., bit_places(layout)]  # [..., K / 64, row, k]
    chosen = np.moveaxis(chosen, -3, -2)
    chosen = chosen.reshape(*chosen.shape[:-2], -1, 2, 2)
    places: Array = chosen[..., 0] + 2 * chosen[..., 1]
    return places


def misplaced(stored: Array, places: Array, width: int) -> tuple[Array, str]:
    """Where the :func:`stored_places` of elements that are not zero break the rule, and the rule."""
    if width == 32:
        pairs = (places[..., 0] % 2 == 0) & (places[..., 1] == places[..., 0] + 1)
        return ~pairs & (stored.reshape(pairs.shape) != 0), "which must be 0 and 1, or 2 and 3"
    return (places[..., 0] >= places[..., 1]) & (stored.reshape(places.shape) != 0).any(-1), "which must rise"


def written_out(stored: Array, places: Array, width: int) -> Array:
    """``[..., rows, K]`` the operand with its zeros, of ``[..., rows, K / 2]`` stored elements of ``width`` bits and
    their :func:`stored_places`."""
    *outer, half = stored.shape
    if width == 32:
        pairs = np.zeros((*stored.shape, 2), stored.dtype)
        np.put_along_axis(pairs, places[..., :1] // 2, stored[..., None], axis=-1)
        return pairs.reshape(*outer, SPARSITY * half)
    chunks = np.zeros((*outer, half // 2, CHUNK), stored.dtype)
    np.put_along_axis(chunks, places, stored.reshape(*outer, half // 2, 2), axis=-1)
    return chunks.reshape(*outer, SPARSITY * half)
