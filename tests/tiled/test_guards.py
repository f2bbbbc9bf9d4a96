"""Single conditions of atoms, copies and views: each value on either side of them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.tiled.staging import half_mma, matrix, run, shared, universal
from tilewright import cute
from tilewright.atoms.names import mma_by_name
from tilewright.cute import nvgpu
from tilewright.errors import ConstraintError
from tilewright.ir.types import F16, F32, I16, I32, SCALARS, TF32
from tilewright.layout import Layout, make_composed_layout, make_layout, make_swizzle
from tilewright.tiled.asynchronous_mma import _is_static_place
from tilewright.tiled.atom import CopyAtom, make_copy_atom
from tilewright.tiled.operands import is_tiler, need_thread, need_type
from tilewright.tiled.provenance import partition_of
from tilewright.tiled.sides import _own_elements, check_types
from tilewright.tiled.staged_copy import _divides, split_modes
from tilewright.tiled.tiled_copy import TiledCopy
from tilewright.tiled.tiled_mma import TiledMma, thread_inverse
from tilewright.tiled.tma.bulk import BulkCopyAtom
from tilewright.tiled.vectors import _vectors
from tilewright.tiled.views import sliced

TV, OTHER_TV = Layout((4, 2)), Layout((4, 2), (2, 1))
F16_MMA, BF16_MMA = (mma_by_name(f"SM80_16x8x16_F32{t}{t}F32_TN") for t in ("F16", "BF16"))
BULK = nvgpu.cpasync.CopyBulkG2SOp()


def tiled(threads: Any = (4, 2)) -> Any:
    return cute.make_tiled_copy_tv(universal(16), Layout(threads), Layout((1, 1)))


@pytest.mark.parametrize(
    ("make", "arguments", "others"),
    [
        (CopyAtom, (nvgpu.CopyUniversalOp(), F16, 32), (nvgpu.cpasync.CopyG2SOp(), I16, 64)),
        (BulkCopyAtom, (BULK, F16, 128), (nvgpu.cpasync.CopyBulkS2GOp(), I16, 256)),
        (TiledCopy, (universal(16), TV, (8,)), (universal(16, cutlass.Int16), OTHER_TV, (4, 2))),
        (TiledMma, (F16_MMA, Layout((2, 2, 1)), (32, 32, 16)), (BF16_MMA, Layout((2, 1, 1)), (64, 32, 16))),
    ],
)
def test_atoms_differ_in_each_argument(make: Any, arguments: tuple[Any, ...], others: tuple[Any, ...]) -> None:
    """Kernels are staged for the atoms that they take."""
    assert make(*arguments) == make(*arguments) and hash(make(*arguments)) == hash(make(*arguments))
    for i, other in enumerate(others):
        assert make(*arguments) != make(*arguments[:i], other, *arguments[i + 1 :]), i


def test_the_instruction_tells_tiled_copies_of_the_same_values_apart() -> None:
    layout = Layout((4, 2), (2, 1))
    plain, later = (
        make_copy_atom(op, F16, num_bits_per_copy=32) for op in (nvgpu.CopyUniversalOp(), nvgpu.cpasync.CopyG2SOp())
    )
    assert TiledCopy(plain, layout, (8,)) == TiledCopy(plain, layout, (8,)) != TiledCopy(later, layout, (8,))


@pytest.mark.parametrize("source", SCALARS.values(), ids=str)
def test_copies_move_bits(source: Any) -> None:
    """Between equal types, between integers (or an integer and a float) of one width, and between f32 and tf32."""
    for target in SCALARS.values():
        x, y = (SimpleNamespace(element_type=SimpleNamespace(ir_type=t)) for t in (source, target))
        integer = source.is_integer or target.is_integer
        if source == target or {source, target} == {F32, TF32} or (source.width == target.width and integer):
            check_types("copy", x, y, source)
            with pytest.raises(ConstraintError, match="was made for elements of"):
                check_types("copy", x, y, I32 if source.width != 32 else I16)
        else:
            with pytest.raises(ConstraintError, match=f"copies {source} to {target} without converting"):
                check_types("copy", x, y)


@pytest.mark.parametrize(
    ("wanted", "given"), [(F32, TF32), (TF32, F32), (F16, F16), (F16, I16), (F32, I32), (TF32, I32)]
)
def test_operands_have_their_type(wanted: Any, given: Any) -> None:
    x = SimpleNamespace(element_type=SimpleNamespace(ir_type=given))
    if wanted == given or {wanted, given} == {F32, TF32}:
        need_type("mma", "A", x, wanted)
        return
    with pytest.raises(ConstraintError, match=f"A must hold {wanted}"):
        need_type("mma", "A", x, wanted)


@pytest.mark.parametrize("mode", [1, 2, Layout(3), (1, (2, Layout(4))), ()])
def test_tilers(mode: Any) -> None:
    assert is_tiler(mode)


@pytest.mark.parametrize("mode", [0, -1, True, 1.0, None, "4", (1, 0), (2, (3, None))])
def test_values_that_are_not_tilers(mode: Any) -> None:
    assert not is_tiler(mode)


def test_threads_by_number() -> None:
    for thread in (0, 31, object()):
        need_thread("it", thread, 32)
    for thread in (-1, 32):
        with pytest.raises(ConstraintError, match=f"there is no thread {thread} among the 32 of it"):
            need_thread("it", thread, 32)


@pytest.mark.parametrize(
    "threads",
    [
        Layout((4, 2), (1, 16)),
        Layout((4, 1), (1, 16)),
        Layout((4, 2, 2), (1, 0, 4)),
        Layout((2, 4), (8, 1)),
        Layout(1, 5),
    ],
)
def test_threads_find_their_coordinate(threads: Layout) -> None:
    """A thread without one gets that of a neighbour; a mode of stride 0 has the coordinate 0."""
    inverse = thread_inverse(threads)
    found = {threads(i): i for i in reversed(range(cute.size(threads)))}
    assert all(inverse(thread) == i for thread, i in found.items())
    assert max(found) < cute.size(inverse) < 2 * max(found) + 2


@pytest.mark.parametrize(
    ("bits", "width", "fits"),
    [(0, 16, True), (16, 16, True), (8, 16, False), (24, 16, False), (8, 8, True), (64, 32, True)],
)
def test_bits_of_a_copy(bits: int, width: int, fits: bool) -> None:
    kind = {8: cutlass.Int8, 16: cutlass.Float16, 32: cutlass.Float32}[width]
    if fits:
        assert make_copy_atom(nvgpu.CopyUniversalOp(), kind, num_bits_per_copy=bits).num_val_src == max(
            1, bits // width
        )
    else:
        with pytest.raises(ConstraintError, match=f"num_bits_per_copy={bits} is not a multiple of the {width} bits"):
            make_copy_atom(nvgpu.CopyUniversalOp(), kind, num_bits_per_copy=bits)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: CopyAtom(None, F16), "None is not a copy operation"),
        (lambda: CopyAtom(F16_MMA, F16), "is not a copy operation"),
        (lambda: CopyAtom(universal(16), F16), "is not a copy operation"),
        (lambda: cute.make_mma_atom(nvgpu.CopyUniversalOp()), "is not an MMA operation"),
        (lambda: cute.make_mma_atom(universal(16)), "is not an MMA operation"),
        (lambda: cute.make_mma_atom(None), "None is not an MMA operation"),
        (lambda: half_mma().set("ACCUMULATE", True), "has no field ACCUMULATE; its fields are: none"),
        (lambda: half_mma().get_slice(0).partition_A(Layout(32)), "takes a tensor of at least two modes, not 32:1"),
        (lambda: half_mma().get_slice(0).partition_A(Layout(((3, 5), 24), ((1, 7), 24))), "partitioned as A by"),
        (lambda: half_mma().fragment_layout("C", Layout((4, 2))), r"takes a partitioned tensor \(V,Rest,Rest\) with 4"),
        (lambda: half_mma().fragment_layout("C", Layout((8, 2, 2))), r"with 4 values in V, not \(8,2,2\)"),
        (lambda: half_mma().fragment_layout("A", (4, 2, 2)), r"with 8 values in V, not \(4,2,2\)"),
        (lambda: tiled().get_slice(0).partition_S(Layout(8)), "has fewer modes than the tile"),
        (lambda: tiled().get_slice((0, 0, 0)), "by one integer, and this is a tuple"),
        (lambda: tiled().get_slice(0).partition_S(Layout(((3, 5), 8), ((1, 7), 24))), "cannot be partitioned by"),
        (lambda: tiled().retile(Layout((1, 2))), "retile first, then slice"),
    ],
)
def test_refusals(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ConstraintError, match=words):
        make()


@pytest.mark.parametrize(
    ("layout", "which", "want"),
    [
        (Layout(((2, 2), 2, 3), ((1, 64), 8, 16)), "C", "((2,2),2,3):((1,2),4,8)"),
        (Layout((4, 3, 2), (1, 8, 4)), "B", "(4,3,2):(1,8,4)"),
        (((2, 2), 2, 3), "B", "((2,2),2,3):((1,2),4,8)"),
        (Layout((4, 2, 3), (1, 100, 10)), "C", "(4,2,3):(1,4,8)"),
    ],
)
def test_registers_of_a_fragment(layout: Any, which: str, want: str) -> None:
    """C column-major, A and B in the order of the source's strides."""
    assert str(half_mma().fragment_layout(which, layout)) == want


# -- modes of a copy ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "mode", "found"), [(2, Layout(4), True), (4, Layout(4), False), (3, Layout(4), False), (8, Layout(4), False)]
)
def test_a_mode_is_cut_into_several(n: int, mode: Layout, found: bool) -> None:
    assert _divides(n, mode) == found


@pytest.mark.parametrize(
    ("atom", "source", "target", "want"),
    [
        (universal(32), (2, 3), (2, 3), "(2, 3)"),
        (universal(32), ((2, 1), 3), ((2, 1), 3), "(2, 3)"),
        (universal(32), (8, 3), (8, 3), "(2, 12)"),
        (universal(32), (8, 3), ((2, 4), 3), "(2, 12)"),
        (universal(32), ((2, 4), 3), (8, 3), "(2, 12)"),
        (universal(32), (3,), (3,), "moves 2 x f16 of the source"),
        (universal(32), (3,), (2,), "moves 2 x f16 of the source"),
        (universal(32), (8, 3), (3, 8), "moves 2 x f16 of the source"),
        (universal(32), (2, 3), (2, 4), "modes do not match"),
        (universal(32), (1, 2), (1, 2), "moves 2 x f16 of the source"),
        (matrix(), (16,), (16,), "moves 8 x f16 of the source"),
    ],
)
def test_values_and_repetitions(atom: Any, source: Any, target: Any, want: str) -> None:
    x, y = (SimpleNamespace(linear=make_layout(shape)) for shape in (source, target))
    if want.startswith("("):
        values, rest, _, other = split_modes(atom, x, y)
        assert str((cute.size(values), cute.size(rest))) == want and cute.size(rest) == cute.size(other)
    else:
        with pytest.raises(ConstraintError, match=want):
            split_modes(atom, x, y)


def test_a_copy_has_static_extents_and_plain_layouts() -> None:
    def of_sides(one: Any, other: Any) -> Any:
        return lambda t, x: cute.copy(universal(16), one(x), other(x))

    def static(x: Any) -> Any:
        return cute.make_tensor(x.iterator, Layout((1, 4)))

    def open_(x: Any) -> Any:
        return cute.make_tensor(x.iterator, make_layout((1, x.shape[0]), stride=(0, 1)))

    for pair in ((static, open_), (open_, static), (open_, open_)):
        with pytest.raises(ConstraintError, match="static|known"):
            run(of_sides(*pair), np.zeros(8, np.float16), dynamic=True)


@pytest.mark.parametrize(("source", "target"), [(2, 4), (4, 2)])
def test_one_call_has_the_values_of_both_sides(source: int, target: int) -> None:
    def body(t: Any, x: Any) -> None:
        registers = cute.make_rmem_tensor(target, cutlass.Float16)
        cute.copy_atom_call(universal(64), cute.make_tensor(x.iterator, source), registers)

    with pytest.raises(ConstraintError, match="one call moves 4 x f16"):
        run(body, np.zeros(8, np.float16))


# -- registers and pointers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "seen", "numbers", "want"),
    [
        (16, 16, (3, 4), (3, 4)),
        (16, 32, (1, 3), (2, 3, 6, 7)),
        (32, 16, (2, 3), (1,)),
        (32, 8, (4, 5, 6, 7), (1,)),
        (32, 16, (1, 2), None),
        (32, 16, (2, 4), None),
        (32, 16, (2,), None),
        (32, 16, (2, 3, 6, 7), (1, 3)),
    ],
)
def test_recast_registers_are_whole_elements(own: int, seen: int, numbers: Any, want: Any) -> None:
    registers: Any = SimpleNamespace(elem=SimpleNamespace(width=own), dtype=SimpleNamespace(width=seen))
    if want is None:
        with pytest.raises(ConstraintError, match="are not whole elements of the fragment"):
            _own_elements("copy", registers, numbers)
    else:
        assert _own_elements("copy", registers, numbers) == want


@pytest.mark.parametrize(
    ("start", "stride", "count", "want"),
    [
        (0, 1, 8, [4, 4]),
        (0, 1, 7, [4, 2, 1]),
        (1, 1, 7, [1, 2, 4]),
        (2, 1, 6, [2, 4]),
        (0, 2, 3, [1, 1, 1]),
        (0, 1, 3, [2, 1]),
        (0, 1, 1, [1]),
    ],
)
def test_vectors_are_as_wide_as_the_alignment_proves(start: int, stride: int, count: int, want: list[int]) -> None:
    found = []

    def body(t: Any, x: Any) -> None:
        where = [(0, stride * i) for i in range(count)]
        found.extend(len(members) for _, _, members in _vectors(x.iterator + start, where))

    run(body, np.zeros(16, np.float32))
    assert found == want


def test_addresses_shared_by_all_threads() -> None:
    def body(t: Any, x: Any) -> None:
        memory = shared(64).iterator
        assert _is_static_place(memory) and _is_static_place(memory + 8)
        assert _is_static_place(cute.recast_ptr(memory, dtype=cutlass.Int32))
        assert not _is_static_place(memory + t) and not _is_static_place(x.iterator)
        assert not _is_static_place(cute.recast_ptr(memory + t, dtype=cutlass.Int16))

    run(body, np.zeros(16, np.float32))


def test_partition_remembers_its_whole_and_operand() -> None:
    def body(t: Any, x: Any) -> None:
        copy, other = tiled(), tiled((2, 4))
        part = copy.get_slice(t).partition_S(x)
        origin = partition_of(part)
        assert origin is not None and origin.whole == x.layout and origin.operand == "S"
        assert partition_of(part, copy) == origin and partition_of(part, other) is None
        assert partition_of(part[None, 0, None]) == origin
        assert partition_of(cute.make_tensor(part.iterator, Layout((7, 2, 2)))) is None
        assert partition_of(x) is None and partition_of(cute.make_rmem_tensor(4, cutlass.Float16)) is None

    run(body, np.zeros((8, 8), np.float16))


@pytest.mark.parametrize("swizzle", [(2, 1, 3), (3, 3, 3), (2, 0, 2), (1, 2, 3), (2, 1, 4)], ids=str)
@pytest.mark.parametrize("plain", [Layout((8, 8), (8, 1)), Layout((8, 16), (16, 1)), Layout((16, 4), (4, 1))], ids=str)
def test_slices_of_swizzled_layouts_have_one_shape(swizzle: Any, plain: Layout) -> None:
    """Whatever the thread's own offset is."""
    layout = make_composed_layout(make_swizzle(*swizzle), 0, plain)
    shapes = set()
    for row in range(plain.shape[0]):
        part, offset = sliced(layout, (row, None))
        assert [offset + part(i) for i in range(cute.size(part))] == [layout(row, i) for i in range(plain.shape[1])]
        shapes.add(part.shape)
    assert len(shapes) == 1


def test_a_copy_without_a_width_takes_a_predicate_for_each_element() -> None:
    def body(t: Any, x: Any, y: Any) -> None:
        pred = cute.make_rmem_tensor((1, 4), cutlass.Boolean)
        for i in range(4):
            pred[i] = cutlass.Boolean(i != 2)
        one, other = (cute.make_tensor(z.iterator, Layout((1, 4))) for z in (x, y))
        cute.copy(universal(0, cutlass.Float32), one, other, pred=pred)

    x, y = np.arange(4, dtype=np.float32), np.full(4, -1, np.float32)
    run(body, x, y, threads=1)
    assert y.tolist() == [0, 1, -1, 3]


def test_wgmma_reads_shared_memory_of_a_static_layout() -> None:
    major = nvgpu.warpgroup.OperandMajorMode.K
    op = nvgpu.warpgroup.MmaF16BF16Op(
        cutlass.Float16, cutlass.Float32, (64, 8, 16), nvgpu.warpgroup.OperandSource.SMEM, major, major
    )

    @cute.kernel
    def kernel(pitch: cutlass.Int32, tiled_mma: cute.TiledMma) -> None:
        pointer = cute.arch.alloc_smem(cutlass.Float16, 64 * 16, 1024)
        sA = cute.make_tensor(pointer, cute.make_layout((64, 16), stride=(pitch, 1)))
        tiled_mma.make_fragment_A(tiled_mma.get_slice(0).partition_A(sA))

    @cute.jit
    def host(pitch: cutlass.Int32) -> None:
        kernel(pitch, cute.make_tiled_mma(op)).launch(grid=(1, 1, 1), block=(128, 1, 1))

    with pytest.raises(ConstraintError, match="make_fragment_A: a shared-memory tensor has a static layout"):
        cute.compile(host, 16)
