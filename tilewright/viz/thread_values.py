"""Pictures of thread-value maps: who holds which element of a tile, of an atom, of a tiled copy or MMA."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilewright.atoms.matrix_copy import MatrixCopy
from tilewright.atoms.tensor_memory import COPY, LOAD, MMA, STORE
from tilewright.errors import ArgumentError, LayoutError
from tilewright.layout import product, size, upcast
from tilewright.viz.colouring import ColorBy, ThreadColours
from tilewright.viz.figure import Figure
from tilewright.viz.figure_drawing import stacked_if_wide
from tilewright.viz.grids import AnyLayout, extents_of_tile
from tilewright.viz.owners import ElementOwners
from tilewright.viz.panels import Axis, Panel
from tilewright.viz.tensor_memory import cp_figure, tcgen05_figure, tmem_copy_figure

CORE = ("#e9edf1", "#cdd5dd")  # neighbouring core matrices of an operand in shared memory


def tv_figure(tv_layout: AnyLayout, tile_mn: Any, *, thread: int | None = None, color_by: ColorBy = "thread") -> Figure:
    """Draw a thread-value layout: thread and value in each element of the tile.

    Args:
        tv_layout: maps (thread, value) to the colexicographic index in the tile, or to its coordinate.
        tile_mn: the tile's extents, as a shape or a tiler; of rank 1: a row.
        thread: draw only what this thread holds.
        color_by: what colours stand for: "thread" (hue by warp and shade by lane; of one warp: a hue for every four
            lanes), "warp", "lane", "value", or a function of thread and value that gives a number.

    Raises:
        ArgumentError: not a layout of rank 2, it points outside the tile, or an unknown ``color_by``.

    >>> from tilewright.layout import Layout
    >>> print(tv_figure(Layout((2, 2), (2, 1)), (2, 2)).text())
    (2,2):(2,1) on 2 x 2
           0      1
    0  T0/V0  T1/V0
    1  T0/V1  T1/V1
       T0 to T1
    """
    rows, columns = _two(extents_of_tile(tile_mn))
    owners = ElementOwners.of(tv_layout, (rows, columns))
    colours = ThreadColours(color_by, owners.threads, owners.values)
    panel, notes = owners.only(thread).panel("", colours)
    return _figure(f"{tv_layout} on {rows} x {columns}", (panel,), colours, thread, notes)


def mma_figure(
    a: AnyLayout,
    b: AnyLayout,
    c: AnyLayout,
    tile_mnk: Any,
    *,
    title: str = "",
    shown: Any = None,
    thread: int | None = None,
    color_by: ColorBy = "thread",
    atoms: tuple[AnyLayout, AnyLayout, AnyLayout] | None = None,
) -> Figure:
    """Draw A, B and C of a matrix instruction as one multiplies by hand: A to the left of C, B above it.

    Args:
        a, b, c: thread-value layouts into the M x K, N x K and M x N tiles.
        tile_mnk: M, N and K.
        shown: extents (M, N, K) over which the tile is repeated; the tile itself by default.
        thread: draw only what this thread holds.
        color_by: see :func:`tv_figure`.
        atoms: the thread-value layouts of one atom, where the tile is made of several.

    >>> from tilewright.viz import mma_figure
    >>> from tilewright import Float16, Float32
    >>> atom = cute.make_mma_atom(cute.nvgpu.warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16)))
    >>> figure = mma_figure(atom.tv_layout_A, atom.tv_layout_B, atom.tv_layout_C, (16, 8, 16))
    >>> [panel.title for panel in figure.panels]
    ['B (K x N)', 'A (M x K)', 'C (M x N)']
    """
    m, n, k = _three(tile_mnk)
    to_m, to_n, to_k = _three(shown) if shown is not None else (m, n, k)
    of_a, of_b, of_c = atoms or (None, None, None)
    owners_a, owners_b, owners_c = (
        ElementOwners.of(a, (m, k), of_a),
        ElementOwners.of(b, (n, k), of_b),
        ElementOwners.of(c, (m, n), of_c),
    )
    every = (owners_a, owners_b, owners_c)
    colours = ThreadColours(color_by, max(o.threads for o in every), max(o.values for o in every))
    panel_a, notes_a = owners_a.only(thread).repeated((to_m, to_k)).panel("A (M x K)", colours, (1, 0))
    panel_b, notes_b = owners_b.only(thread).repeated((to_n, to_k)).transposed().panel("B (K x N)", colours, (0, 1))
    panel_c, notes_c = owners_c.only(thread).repeated((to_m, to_n)).panel("C (M x N)", colours, (1, 1))
    said: list[str] = []
    if color_by == "thread" and owners_a.is_shared:
        panel_a = _by_rows_of(panel_a, owners_c, colours)
        said.append("A: the colour of the threads whose accumulators the row is for")
    if color_by == "thread" and owners_b.is_shared:
        panel_b = _by_core_matrix(panel_b, k)
        said.append("B: for all threads; shades: core matrices of 8 columns and 16 bytes")
    panels = (panel_b, panel_a, panel_c)
    notes = (*said, *notes_a, *notes_b, *notes_c)
    return _figure(title or f"MMA {m} x {n} x {k}", panels, colours, thread, notes)


def _by_rows_of(panel: Panel, owners: ElementOwners, colours: ThreadColours) -> Panel:
    """The cells in the colour of the first thread of their row in C."""
    fills = {row: colours.of(*who[0]) for (row, column), who in owners.at.items() if column == 0}
    rows = owners.extents[0]
    return replace(panel, cells=tuple(replace(c, fill=fills.get(c.row % rows, c.fill)) for c in panel.cells))


def _by_core_matrix(panel: Panel, k: int) -> Panel:
    """The cells of B in two greys: an instruction has 32 bytes along K, two core matrices."""
    half = max(1, k // 2)
    cells = (replace(c, fill=CORE[(c.column // 8 + c.row % k // half) % 2]) for c in panel.cells)
    return replace(panel, cells=tuple(cells))


def mma_atom_figure(atom: Any, *, thread: int | None = None, color_by: ColorBy = "thread") -> Figure:
    """Draw an MMA atom: which thread holds which elements of A, B and C.

    Those of ``tcgen05.mma`` belong to no threads: :func:`~tilewright.viz.tcgen05_figure` draws them.

    >>> from tilewright.atoms.names import mma_by_name
    >>> len(mma_atom_figure(mma_by_name("SM80_16x8x8_F32F16F16F32_TN")).panels)  # A, B and C
    3
    """
    if _mnemonic(atom) == MMA:
        return _without_threads(atom, None, thread, color_by)
    a, b, c = _attributes(atom, ("tv_layout_A", "tv_layout_B", "tv_layout_C"), ("layout_a", "layout_b", "layout_c"))
    return mma_figure(a, b, c, atom.shape_mnk, title=_name(atom), thread=thread, color_by=color_by)


def tiled_mma_figure(
    tiled_mma: Any, tile_mnk: Any = None, *, thread: int | None = None, color_by: ColorBy = "thread"
) -> Figure:
    """Draw a tiled MMA: its own tile, or that repeated over ``tile_mnk``; of all threads, or of one.

    >>> from tilewright.atoms.names import mma_by_name
    >>> from tilewright.tiled import make_tiled_mma
    >>> len(tiled_mma_figure(make_tiled_mma(mma_by_name("SM80_16x8x8_F32F16F16F32_TN"))).panels)  # A, B and C
    3
    """
    if _mnemonic(tiled_mma) == MMA:
        own = tuple(int(tiled_mma.get_tile_size(mode)) for mode in range(3))
        return _without_threads(tiled_mma, own if tile_mnk is None else _three(tile_mnk), thread, color_by)
    names = ("tv_layout_A_tiled", "tv_layout_B_tiled", "tv_layout_C_tiled")
    a, b, c = _attributes(tiled_mma, names)
    one_a, one_b, one_c = (getattr(tiled_mma, name.removesuffix("_tiled"), None) for name in names)
    atoms = None if one_a is None or one_b is None or one_c is None else (one_a, one_b, one_c)
    m, n, k = (int(tiled_mma.get_tile_size(mode)) for mode in range(3))
    own = (m, n, k)
    shown = own if tile_mnk is None else extents_of_tile(tile_mnk)
    title = f"tiled MMA of {_name(tiled_mma)}: {_sides(own)} on {_sides(shown)}"
    return mma_figure(a, b, c, own, title=title, shown=shown, thread=thread, color_by=color_by, atoms=atoms)


def copy_atom_figure(
    atom: Any, value_bits: int = 16, *, thread: int | None = None, color_by: ColorBy = "thread"
) -> Figure:
    """Draw a copy atom: the elements that one instruction moves, with who reads and who receives each.

    The values of one source thread make a row; of ldmatrix and stmatrix the matrices are named. A bare instruction
    knows bits only: ``value_bits`` of them are then drawn as one element. Of ``tcgen05.ld`` and ``st`` tensor memory is
    drawn, with thread and register at each place, and of ``tcgen05.cp`` the rows that are copied there.

    >>> from tilewright.atoms.names import copy_by_name
    >>> len(copy_atom_figure(copy_by_name("SM75_U32x4_LDSM_N")).panels)  # source and destination
    2
    """
    if _mnemonic(atom) in (LOAD, STORE):
        return tmem_copy_figure(atom, thread=thread, color_by=color_by)
    if _mnemonic(atom) == COPY:
        return _without_threads(atom, None, thread, color_by)
    source, destination = _attributes(atom, ("layout_src_tv", "layout_dst_tv"), ("src_bits", "dst_bits"))
    if not hasattr(atom, "layout_src_tv"):
        source, destination = in_values(atom, value_bits)
    row = int(product(source.shape[1]))
    rows = max(_reach(source), _reach(destination)) // row + 1
    figure = _source_and_destination(
        _name(atom), source, destination, (row, rows), transposed=True, thread=thread, color_by=color_by
    )
    instruction = getattr(atom, "instruction", atom)
    if not isinstance(instruction, MatrixCopy) or instruction.num_matrices == 1:
        return figure
    each = rows // instruction.num_matrices
    matrices = [(n * each, (n + 1) * each, f"matrix {n}") for n in range(instruction.num_matrices)]
    axis, breaks = Axis(groups=tuple(matrices)), tuple(first for first, _, _ in matrices[1:])
    return replace(figure, panels=tuple(replace(p, row_axis=axis, row_breaks=breaks) for p in figure.panels))


def _mnemonic(atom: Any) -> str:
    """The name of the instruction of an atom, or of a bare one."""
    instruction = getattr(atom, "instruction", atom)
    return str(getattr(atom if callable(instruction) else instruction, "name", ""))


def _without_threads(atom: Any, tile_mnk: Any, thread: int | None, color_by: ColorBy) -> Figure:
    """The picture of what tcgen05's unit does: no thread has a part of it."""
    if thread is not None or color_by != "thread":
        raise ArgumentError(
            f"what {_name(atom)} works on is in shared and tensor memory, not in threads: there are no thread= and "
            "color_by=; tensor_memory_figure(mma, load) shows which thread loads accumulators"
        )
    return cp_figure(atom) if _mnemonic(atom) == COPY else tcgen05_figure(atom, tile_mnk)


def in_values(instruction: Any, value_bits: int) -> tuple[AnyLayout, AnyLayout]:
    """The source and destination layouts of a copy instruction, which are in bits, in values of ``value_bits``.

    Raises:
        ArgumentError: such values do not fit what one thread reads or writes in a row.

    >>> from tilewright.atoms.names import copy_by_name
    >>> in_values(copy_by_name("SM75_U32x4_LDSM_N"), 32)
    ((32,4):(4,1), (32,(1,4)):(1,(1,32)))
    """
    layouts = []
    for side, bits in (("source", instruction.src_bits), ("destination", instruction.dst_bits)):
        try:
            values = upcast(bits, value_bits)
        except LayoutError:
            values = None
        if values is None or size(values, [0]) != size(bits, [0]):  # a wider value would swallow threads
            raise ArgumentError(
                f"values of {value_bits} bits do not fit the {side} of {_name(instruction)}, in bits {bits}"
            )
        layouts.append(values)
    return layouts[0], layouts[1]


def tiled_copy_figure(
    tiled_copy: Any, tile_mn: Any = None, *, thread: int | None = None, color_by: ColorBy = "thread"
) -> Figure:
    """Draw a tiled copy: who reads and who writes each element of its tile, or of ``tile_mn`` by repetition.

    With ``thread`` only what that one reads and writes.

    >>> from tilewright import Float32
    >>> from tilewright.viz import tiled_copy_figure
    >>> atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Float32, num_bits_per_copy=128)
    >>> tiled = cute.make_tiled_copy_tv(atom, cute.make_layout((4, 8), stride=(8, 1)), cute.make_layout((1, 4)))
    >>> [(panel.title, panel.rows, panel.columns) for panel in tiled_copy_figure(tiled).panels]
    [('source', 4, 32), ('destination', 4, 32)]
    """
    names = ("layout_src_tv_tiled", "layout_dst_tv_tiled")
    source, destination = _attributes(tiled_copy, names)
    single = tuple(getattr(tiled_copy, name.removesuffix("_tiled"), None) for name in names)
    own = _two(extents_of_tile(tiled_copy.tiler_mn))
    shown = own if tile_mn is None else _two(extents_of_tile(tile_mn))
    title = f"tiled copy of {_name(tiled_copy)}: {_sides(own)} on {_sides(shown)}"
    return _source_and_destination(
        title, source, destination, own, shown=shown, thread=thread, color_by=color_by, atoms=single
    )


def copy_figure(
    layout_s: AnyLayout, layout_d: AnyLayout, tile_mn: Any, *, thread: int | None = None, color_by: ColorBy = "thread"
) -> Figure:
    """Draw who reads and who writes each element of a tile, from two thread-value layouts.

    >>> from tilewright.layout import Layout
    >>> len(copy_figure(Layout((2, 2)), Layout((2, 2), (2, 1)), (2, 2)).panels)
    2
    """
    extents = _two(extents_of_tile(tile_mn))
    title = f"copy on {_sides(extents)}"
    return _source_and_destination(title, layout_s, layout_d, extents, thread=thread, color_by=color_by)


def _source_and_destination(
    title: str,
    source: AnyLayout,
    destination: AnyLayout,
    extents: tuple[int, int],
    *,
    shown: tuple[int, int] | None = None,
    transposed: bool = False,
    thread: int | None = None,
    color_by: ColorBy = "thread",
    atoms: tuple[Any, ...] = (None, None),
    names: tuple[str, str] = ("source", "destination"),
) -> Figure:
    both = [ElementOwners.of(tv, extents, atom) for tv, atom in zip((source, destination), atoms, strict=True)]
    colours = ThreadColours(color_by, max(o.threads for o in both), max(o.values for o in both))
    panels: list[Panel] = []
    notes: list[str] = []
    for column, (name, owners) in enumerate(zip(names, both, strict=True)):
        drawn = owners.only(thread).repeated(shown or extents)
        panel, some = (drawn.transposed() if transposed else drawn).panel(name, colours, (0, column))
        panels.append(panel)
        notes += list(some)
    return _figure(title, stacked_if_wide(tuple(panels)), colours, thread, tuple(notes))


def _figure(
    title: str, panels: tuple[Panel, ...], colours: ThreadColours, thread: int | None, notes: tuple[str, ...]
) -> Figure:
    """The figure with the legend of those colours that are seen in it."""
    seen = {cell.fill for panel in panels for cell in panel.cells}
    legend = tuple(
        (of, what) for of, what in colours.legend(thread) if seen & {*((of,) if isinstance(of, str) else of)}
    )
    sentences = (colours.sentence(), *notes)
    return Figure(title, panels, legend, tuple(dict.fromkeys(filter(None, sentences))))


def _attributes(thing: Any, *choices: tuple[str, ...]) -> tuple[Any, ...]:
    for names in choices:
        if all(hasattr(thing, name) for name in names):
            return tuple(getattr(thing, name) for name in names)
    raise ArgumentError(f"cannot draw an object of type {type(thing).__name__} here: it has no {', '.join(choices[0])}")


def _name(atom: Any) -> str:
    """The CuTe name of an instruction, or of the one inside an atom."""
    instruction = getattr(atom, "instruction", atom)
    return str(atom if callable(instruction) else instruction)


def _sides(extents: tuple[int, ...]) -> str:
    return " x ".join(map(str, extents))


def _reach(tv_layout: AnyLayout) -> int:
    """The largest element index that the layout points to."""
    return max(int(tv_layout(index)) for index in range(int(product(tv_layout.shape))))


def _two(extents: tuple[int, ...]) -> tuple[int, int]:
    if len(extents) > 2:
        raise ArgumentError(f"a tile of rank {len(extents)} cannot be drawn as rows and columns")
    return (1, extents[0]) if len(extents) == 1 else (extents[0], extents[1])


def _three(tile_mnk: Any) -> tuple[int, int, int]:
    extents = extents_of_tile(tile_mnk)
    if len(extents) != 3:
        raise ArgumentError(f"the tile {tile_mnk} must have the modes (M, N, K)")
    return extents[0], extents[1], extents[2]
