"""Stores of whole vectors from fragments of which four lanes hold a row: an exchange among the lanes of a quad.

In the accumulators of mma.sync and wgmma lane q of a quad holds columns 2q and 2q + 1 of each 8. One number for each
pair of columns, such as the result of a gate, is then column q of 4 in each of four lanes: stored alone, a number of 16
bits is 2 bytes of a sector of 32. After a transposition among the lanes each has 4 or 8 neighbours, one store.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import Int32, cute, range_constexpr
from tilewright.gemm.addressing import aligned_pointer
from tilewright.layout.ints import divisor_of

QUAD, COLUMNS, WORD = 4, 8, 32
"""Lanes that hold a row, the columns of a row that they hold at once, and the bits that one shuffle moves."""


def quads_hold_rows(tiled_mma: cute.TiledMma) -> bool:
    """Whether lanes 4i .. 4i + 3 hold 8 neighbouring columns of a row of C, two each.

    >>> from tilewright import Float16, Float32
    >>> op = cute.nvgpu.warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16))
    >>> quads_hold_rows(cute.make_tiled_mma(op, (2, 2, 1)))
    True
    >>> quads_hold_rows(cute.make_tiled_mma(cute.nvgpu.MmaUniversalOp(Float32), (16, 16, 1)))
    False
    """
    layout, rows = tiled_mma.tv_layout_C_tiled, tiled_mma.get_tile_size(0)
    lanes, own = ((cute.flatten((layout.shape[i],))[0], cute.flatten((layout.stride[i],))[0]) for i in (0, 1))
    return bool(lanes == (QUAD, 2 * rows) and own == (2, rows))


@dataclass(frozen=True)
class Exchange:
    """Four words of a lane that are exchanged for the same word of the four lanes: ``words[j]`` are the numbers of
    word j, ``row`` is the first number of each vector that a lane has then. ``apart``: columns of D from what one lane
    has to what the next one has; ``joined``: the vectors of a lane follow each other, and are one."""

    words: tuple[tuple[int, ...], ...]
    rows: tuple[int, ...]
    apart: int
    joined: bool


def exchanges_of(layout: Any, first: tuple[int, ...], width: int, columns: int) -> list[Exchange] | None:
    """How numbers of ``width`` bits, one for each accumulator ``first`` of a coordinate ``layout``, become vectors;
    None where they do not. ``columns``: the mode that goes along D's columns.

    Numbers of 16 bits share a word with the next group of 8 columns, where these are neighbours (vectors of 16 bytes),
    else with another row.

    >>> row, column = cute.ScaledBasis(8, 0), cute.ScaledBasis(8, 1)
    >>> layout = cute.make_layout((2, 2, 8), stride=(cute.ScaledBasis(1, 1), row, column))
    >>> [(one.words, one.joined) for one in exchanges_of(layout, tuple(range(0, 32, 2)), 16, 1)]
    [(((0, 2), (4, 6), (8, 10), (12, 14)), True), (((1, 3), (5, 7), (9, 11), (13, 15)), True)]
    """
    if width not in (16, 32):
        return None
    lines: dict[int, list[tuple[int, int]]] = {}  # by row: (column, number)
    for number, i in enumerate(first):
        at = layout(i)
        lines.setdefault(at[1 - columns], []).append((at[columns], number))
    sorted_lines = [sorted(line) for _, line in sorted(lines.items())]
    apart = _steps_of([[column for column, _ in line] for line in sorted_lines])
    if apart is None or apart % COLUMNS:
        return None
    numbers = [[number for _, number in line] for line in sorted_lines]  # by row, then by column
    rows, count, each = len(numbers), len(numbers[0]), WORD // width
    vector = QUAD * each
    if apart == COLUMNS and count % vector == 0:
        return [_joined(line[begin : begin + vector], each) for line in numbers for begin in range(0, count, vector)]
    if count % QUAD == 0 and rows % each == 0:
        return [
            _apart([line[begin : begin + QUAD] for line in numbers[row : row + each]], apart)
            for row in range(0, rows, each)
            for begin in range(0, count, QUAD)
        ]
    return None


def _steps_of(lines: list[list[int]]) -> int | None:
    """The one step between neighbouring columns of all rows, which begin at column 0; None where there is not one."""
    columns = lines[0]
    step = columns[1] - columns[0] if len(columns) > 1 else 0
    uniform = all(column == step * i for i, column in enumerate(columns))
    return step if uniform and all(line == columns for line in lines) else None


def _joined(line: list[int], each: int) -> Exchange:
    """Neighbouring numbers of a row, ``each`` to a word."""
    words = tuple(tuple(line[each * j : each * (j + 1)]) for j in range(QUAD))
    return Exchange(words, (line[0],), each * COLUMNS, True)


def _apart(lines: list[list[int]], apart: int) -> Exchange:
    """Four numbers of as many rows as a word has numbers: a word holds one number of each row."""
    words = tuple(tuple(line[j] for line in lines) for j in range(QUAD))
    return Exchange(words, tuple(line[0] for line in lines), apart, False)


def vectors_of_quads(tile: Any, matrix: Any, first: tuple[int, ...]) -> list[Exchange] | None:
    """The exchanges for a matrix with a column for each two of D's; None where its vectors cannot be stored: rows that
    are not contiguous, or not known to begin at and to be multiples of them."""
    width = matrix.element_type.width
    if tile.transposed or not tile.quads or cute.rank(matrix) != 2:
        return None
    found = exchanges_of(tile.coordinates.layout, first, width, 1)
    if found is None:
        return None
    count = vector_of(found[0])
    step = count * width // 8
    strides = matrix.stride
    contiguous = isinstance(strides[1], int) and strides[1] == 1
    whole = divisor_of(strides[0]) % count == 0 and divisor_of(cute.size(matrix, mode=[1])) % count == 0
    return found if contiguous and whole and matrix.iterator.alignment % step == 0 else None


def vector_of(exchange: Exchange) -> int:
    """Elements of a vector."""
    return QUAD * len(exchange.words[0]) // len(exchange.rows)


@cute.jit
def store_vectors(tile: Any, matrix: Any, stored: cute.Tensor, first: Any, exchanges: Any) -> None:
    """Store the fragment ``stored``, in the matrix's type, by ``exchanges``. All lanes of a warp call it."""
    lane = cute.arch.lane_idx() % QUAD
    for exchange in exchanges:
        each, count = len(exchange.words[0]), vector_of(exchange)
        numbers, words = cute.make_rmem_tensor(each * QUAD, matrix.element_type), cute.make_rmem_tensor(QUAD, Int32)
        for j in range_constexpr(QUAD):
            for s in range_constexpr(each):
                numbers[each * j + s] = stored[exchange.words[j][s]]
        words.store(cute.recast_tensor(numbers, Int32).load())
        transpose_in_quad(words, lane)
        received = cute.recast_tensor(words, matrix.element_type)
        # Word j is now that of lane j: its number s belongs to the s-th group of 8 columns, or to the s-th row.
        vectors = cute.make_rmem_tensor((QUAD, each), matrix.element_type)
        for s in range_constexpr(each):
            for j in range_constexpr(QUAD):
                vectors[j, s] = received[each * j + s]
        for i in range_constexpr(len(exchange.rows)):
            m, n = tile.coordinates[first[exchange.rows[i]]]
            # Groups of 8 columns of D, 4 of the matrix; a part whose vectors are joined begins at a multiple of 64.
            joined = each if exchange.joined else 1
            group = n // (COLUMNS * joined) * joined + lane * (exchange.apart // COLUMNS)
            if cute.elem_less((m, group * COLUMNS), tile.extent):
                place = aligned_pointer(
                    matrix.iterator + cute.crd2idx((m, group * QUAD), matrix.layout), count * matrix.element_type.bytes
                )
                source = cute.make_tensor(vectors.iterator + i * count, cute.make_layout(count))
                cute.autovec_copy(source, cute.make_tensor(place, cute.make_layout(count)))


def transpose_in_quad(words: cute.Tensor, lane: Any) -> None:
    """``words[j]`` of lane i of a quad becomes ``words[i]`` of lane j: two rounds of shuffles, of two words each.

    >>> def of_lane(t):
    ...     words = cute.make_rmem_tensor(4, Int32)
    ...     for j in range(4):
    ...         words[j] = t * 4 + j
    ...     transpose_in_quad(words, t % 4)
    ...     return words[1]
    >>> per_thread(of_lane)[:8]  # word t % 4 of lanes 1 and 5
    [4, 5, 6, 7, 20, 21, 22, 23]
    """
    for bit in (1, 2):
        upper = lane // bit % 2 != 0
        for j in range(QUAD):
            if j & bit == 0:
                low, high = words[j], words[j + bit]
                received = cute.arch.shuffle_sync_bfly(cute.where(upper, low, high), bit)
                words[j] = cute.where(upper, received, low)
                words[j + bit] = cute.where(upper, high, received)
