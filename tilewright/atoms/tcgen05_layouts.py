"""Which part of one ``tcgen05.mma`` each block has, where its operands and accumulator are, and the order of MMAs.

The threads of such an MMA are blocks, one or a pair: A and C are split by M, B by N. (CuTe:
include/cute/atom/mma_traits_sm100.hpp and include/cute/algorithm/gemm.hpp.)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tilewright.atoms.tensor_memory import TmemAllocMode, tmem_layout
from tilewright.errors import ConstraintError
from tilewright.layout import Layout


class CtaLayouts(NamedTuple):
    """``thr_id``: blocks of one MMA; ``a``, ``b``, ``c``: (block, value) to row + rows * column of (M, K), (N, K),
    (M, N).

    >>> made = cta_layouts((256, 64, 16), ctas=2)
    >>> made.thr_id, made.b
    (2:1, (2,(32,16)):(32,(1,64)))
    """

    thr_id: Layout
    a: Layout
    b: Layout
    c: Layout


def cta_layouts(shape_mnk: tuple[int, int, int], ctas: int = 1) -> CtaLayouts:
    """The layouts of one MMA of M, N, K (of both blocks of a pair). ConstraintError if M or N does not halve.

    >>> cta_layouts((128, 64, 16)).a
    (1,(128,16)):(0,(1,128))
    """
    m, n, k = shape_mnk
    if ctas not in (1, 2) or m % ctas or n % ctas:
        raise ConstraintError(
            f"tcgen05.mma: {m}x{n}x{k} is not the work of {ctas} blocks: 1 does it, or 2 halve M and N"
        )
    parts = ((m, k), (n, k), (m, n))
    a, b, c = (
        Layout((ctas, (rows // ctas, columns)), (rows // ctas if ctas == 2 else 0, (1, rows)))
        for rows, columns in parts
    )
    return CtaLayouts(Layout(ctas, ctas - 1), a, b, c)


def accumulator_fragment(shape: Any, value_bits: int, ctas: int = 1, a_in_tmem: bool = False) -> Layout:
    """The accumulator ``((M, N), M tiles, N tiles, ...)`` of a block in its tensor memory, in elements.

    ``shape`` is what ``partition_shape_C`` gives, with stages or without. Errors as of ``tmem_layout``.

    >>> accumulator_fragment(((128, 64), 1, 2), 16)
    ((128,64),1,2):((131072,2),0,128)
    """
    apart = a_in_tmem and ctas == 1
    mode = TmemAllocMode.NON_INTERLEAVED if apart else TmemAllocMode.INTERLEAVED
    return tmem_layout(shape, value_bits, 32, ctas, mode)


def a_fragment(shape: Any, value_bits: int, ctas: int = 1) -> Layout:
    """Operand A ``((M, K), M tiles, K tiles, ...)`` of a block in its tensor memory, packed, in elements.

    Of a pair with 64 rows in each block, the rows are there twice, in lanes 0-63 and 64-127.

    >>> a_fragment(((64, 16), 1, 4), 16, ctas=2)
    ((128,16),1,4):((131072,1),0,16)
    """
    mode = TmemAllocMode.DUPLICATED if ctas == 2 else TmemAllocMode.NON_INTERLEAVED
    return tmem_layout(shape, value_bits, value_bits, ctas, mode)


def issue_order(m_tiles: int, n_tiles: int, a_in_tmem: bool = False) -> Iterator[tuple[int, int]]:
    """The tiles (m, n) of one k-block in the order in which ``cute.gemm`` issues their MMAs, in serpentines.

    M is outermost, so that A stays; with A in tensor memory N is, so that B stays.

    >>> list(issue_order(2, 2)), list(issue_order(2, 2, a_in_tmem=True))
    ([(0, 0), (0, 1), (1, 1), (1, 0)], [(0, 0), (1, 0), (1, 1), (0, 1)])
    """
    outer, inner = (n_tiles, m_tiles) if a_in_tmem else (m_tiles, n_tiles)
    for i in range(outer):
        for j in range(inner)[:: -1 if i % 2 else 1]:
            yield (j, i) if a_in_tmem else (i, j)
