"""What ``cute.copy``, ``tma_partition`` and their kin refuse of a TMA copy's operands, and what is just inside of it.

Nothing runs: a kernel is staged and compiled.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.tiled.staging import half_mma, universal
from tilewright import cute, utils
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError
from tilewright.layout import Layout, Swizzle, make_composed_layout
from tilewright.tiled.tma.stage import CACHE_POLICIES, _boxes, _check_elements, _whole, cache_policy_value

TILE = (16, 64)
ROW = Layout(TILE, (64, 1))
ONE = Layout(1)
LOAD, STORE = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()
MULTICAST = cpasync.CopyBulkTensorTileG2SMulticastOp()
STAGES = Layout((16, 64, 2), (64, 1, 1024))


def swizzled(bits: int, base: int = 4) -> Any:
    return make_composed_layout(Swizzle(bits, base, 3), 0, ROW)


class Parts:
    """What the bodies get: the atom, the TMA tensor, the tensor, a run-time number, and shared memory."""

    def __init__(self, atom: Any, tma: Any, x: Any, n: Any) -> None:
        self.atom, self.tma, self.x, self.n = atom, tma, x, n
        self.full = utils.SmemAllocator().allocate_array(cutlass.Int64, 1)

    def shared(self, layout: Any = ROW, dtype: Any = cutlass.Float16, swizzle: Any = None) -> Any:
        return utils.SmemAllocator().allocate_tensor(dtype, layout, 1024, swizzle=swizzle)

    def partition(self, shared: Any = None, tma: Any = None, blocks: Any = ONE) -> tuple[Any, Any]:
        tile = cute.local_tile(self.tma if tma is None else tma, TILE, (0, 0))
        shared = self.shared() if shared is None else shared
        return cpasync.tma_partition(
            self.atom,
            0,
            blocks,
            *(cute.group_modes(t, 0, 2) if isinstance(t, cute.Tensor) else t for t in (shared, tile)),
        )

    def load(self, shared: Any, tma: Any, **options: Any) -> None:
        cute.copy(self.atom, tma, shared, tma_bar_ptr=self.full, **options)


def staged(body: Callable[[Parts], Any], op: Any = LOAD, layout: Any = ROW, **options: Any) -> None:
    @cute.kernel
    def kernel(atom: cute.CopyAtom, tma: cute.Tensor, x: cute.Tensor, n: cutlass.Int32):
        body(Parts(atom, tma, x, n))

    @cute.jit
    def host(x: cute.Tensor, n: cutlass.Int32):
        atom, tma = cpasync.make_tiled_tma_atom(op, x, layout, TILE, **options)
        kernel(atom, tma, x, n).launch(grid=(1, 1, 1), block=(32, 1, 1))

    cute.compile(host, from_dlpack(np.zeros((64, 64), np.float16), assumed_align=16), 1)


def refused(words: str, body: Callable[[Parts], Any], *given: Any, **options: Any) -> None:
    with pytest.raises(ConstraintError, match=re.escape(words)):
        staged(body, *given, **options)


@pytest.mark.parametrize(
    ("words", "body"),
    [
        ("the global side is the TMA tensor", lambda p: p.load(p.partition()[0], cute.local_tile(p.x, TILE, (0, 0)))),
        ("the other side must be in shared memory",
         lambda p: p.load(cute.local_tile(p.x, TILE, (0, 0)), p.partition()[1])),
        ("the other side must be in shared memory",
         lambda p: p.load(cute.make_rmem_tensor(1024, cutlass.Float16), p.partition()[1])),
        ("the other side must be in shared memory", lambda p: p.load(p.partition()[1], p.partition()[1])),
        ("takes its mbarrier as tma_bar_ptr", lambda p: p.load(*p.partition(), mbar_ptr=p.full)),
        ("which do not make up the shared-memory tensor", lambda p: p.load(p.shared(512), p.partition()[1])),
        ("which do not make up the TMA tensor",
         lambda p: p.load(p.partition()[0], cute.local_tile(p.tma, (8, 64), (0, 0)))),
        ("1 boxes of (((64,16),1)):", lambda p: p.load(p.shared(Layout((1024, 2))), p.partition()[1])),
        ("mode 0 of the shared-memory tensor 2048:1 is no such box",
         lambda p: p.load(p.shared(2048), p.partition()[1])),
        ("is no such box", lambda p: p.load(p.shared(Layout((1024, 1), (2, 1))), p.partition()[1])),
        ("is no such box", lambda p: p.load(p.shared(Layout((TILE, 1), ((72, 1), 0))), p.partition()[1])),
        ("is no such box", lambda p: p.load(p.shared(Layout(((512, 2), 1), ((1, 0), 0))), p.partition()[1])),
        ("with no swizzle, but the tensor has the swizzle Sw<3,4,3> of bytes",
         lambda p: p.load(p.partition(p.shared(swizzle=Swizzle(3, 4, 3)))[0], p.partition()[1])),
        ("takes no mcast_mask; make the atom", lambda p: p.load(*p.partition(), mcast_mask=3)),
        ("EVICT_NORMAL, EVICT_FIRST, EVICT_LAST, not EVICT_NEVER",
         lambda p: p.load(*p.partition(), cache_policy=SimpleNamespace(name="EVICT_NEVER"))),
        ("cute.prefetch takes a TMA tensor", lambda p: cute.prefetch(p.atom, p.x)),
        ("cute.prefetch takes a TMA tensor", lambda p: cute.prefetch(p.atom, 3)),
        ("cute.prefetch takes a TMA tensor", lambda p: cute.prefetch(p.atom, p.shared())),
        ("cute.prefetch takes a TMA copy atom", lambda p: cute.prefetch(universal(16), p.tma)),
        # tma_partition
        ("takes an atom of make_tiled_tma_atom",
         lambda p: cpasync.tma_partition(universal(16), 0, ONE, p.shared(), p.tma)),
        ("takes the shared-memory tensor, then", lambda p: cpasync.tma_partition(p.atom, 0, ONE, ROW, p.tma)),
        ("takes the shared-memory tensor, then", lambda p: cpasync.tma_partition(p.atom, 0, ONE, p.shared(), ROW)),
        ("is not a TMA tensor", lambda p: cpasync.tma_partition(p.atom, 0, ONE, p.shared(), p.x)),
        ("the blocks 2:1 that share the tile are 2", lambda p: p.partition(blocks=Layout(2))),
        ("differ in size: group the modes of the tile", lambda p: p.partition(p.shared(Layout((32, 64), (64, 1))))),
        ("shape ((8,64)), has 512 elements, and the atom copies tiles of (16,64): 1024 elements, in boxes of 1024. "
         "Mode 0 is the whole tile, the modes after it are stages or tiles: pass tensors tiled as the atom is",
         lambda p: p.partition(p.shared(Layout((8, 64), (64, 1))))),
        ("mode 0 of the shared-memory tensor, of shape (16,64,2), has 16 elements",
         lambda p: cpasync.tma_partition(p.atom, 0, ONE, p.shared(STAGES), p.tma)),
        ("modes 0 to 1 are the tile, so pass cute.group_modes(tensor, 0, 2)",
         lambda p: cpasync.tma_partition(p.atom, 0, ONE, p.shared(STAGES), p.tma)),
        ("mode 0 of the global tensor, of shape (16,64,4), has 16 elements", lambda p: cpasync.tma_partition(
            p.atom, 0, ONE, cute.group_modes(p.shared(STAGES), 0, 2), cute.local_tile(p.tma, TILE, (None, 0)))),
        ("the tile must be static",
         lambda p: p.partition(cute.make_tensor(p.shared().iterator, Layout((16, 64), (p.n, 1))))),
        ("pass tensors tiled as the atom is", lambda p: cpasync.tma_partition(
            p.atom, 0, ONE, cute.make_tensor(p.shared().iterator, Layout(96)), cute.make_tensor((0, 0), Layout(96)))),
        # tensor maps in memory
        ("takes a tensor in global memory, not", lambda p: cpasync.update_tma_descriptor(p.atom, 3, p.full)),
        ("takes a tensor in global memory, not", lambda p: cpasync.update_tma_descriptor(p.atom, p.tma, p.full)),
        ("f16 in the tensor map, Int16 in",
         lambda p: cpasync.update_tma_descriptor(p.atom, cute.recast_tensor(p.x, cutlass.Int16), p.full)),
        ("is not like (64,64):(64,1)", lambda p: cpasync.update_tma_descriptor(
            p.atom, cute.make_tensor(p.x.iterator, Layout((64, 64, 1), (64, 1, 0))), p.full)),
        ("is not like (64,64):(64,1)", lambda p: cpasync.update_tma_descriptor(
            p.atom, cute.make_tensor(p.x.iterator, Layout((64, 64), (1, 64))), p.full)),
    ],
)  # fmt: skip
def test_refusals(words: str, body: Callable[[Parts], Any]) -> None:
    refused(words, body)


@pytest.mark.parametrize(
    ("words", "body"),
    [
        ("takes no tma_bar_ptr; wait for its group", lambda p: cute.copy(p.atom, *p.partition(), tma_bar_ptr=p.full)),
        ("takes no mcast_mask; wait for its group", lambda p: cute.copy(p.atom, *p.partition(), mcast_mask=1)),
        ("the other side must be in shared memory", lambda p: cute.copy(p.atom, p.x, p.partition()[1])),
    ],
)
def test_stores(words: str, body: Callable[[Parts], Any]) -> None:
    refused(words, body, STORE)


def test_multicast() -> None:
    refused(
        "give the blocks that receive as mcast_mask",
        lambda p: p.load(*p.partition(blocks=Layout(2))),
        MULTICAST,
        num_multicast=2,
    )
    staged(lambda p: p.load(*p.partition(blocks=Layout(2)), mcast_mask=3), MULTICAST, num_multicast=2)


@pytest.mark.parametrize(("held", "made"), [(0, 3), (3, 0), (2, 3), (3, 2), (1, 1), (2, 2), (3, 3)])
def test_the_swizzle_is_that_of_the_map(held: int, made: int) -> None:
    span = (16 << made) // 2
    layout = Layout((16, (span, 64 // span)), (span, (1, 16 * span))) if made else ROW
    given = make_composed_layout(Swizzle(made, 4, 3), 0, layout) if made else layout

    def body(p: Parts) -> None:
        shared = p.shared(layout, swizzle=Swizzle(held, 4, 3) if held else None)
        tile = cute.local_tile(p.tma, TILE, (0, 0))
        p.load(*cpasync.tma_partition(p.atom, 0, ONE, cute.group_modes(shared, 0, 2), cute.group_modes(tile, 0, 2)))

    if held == made:
        staged(body, layout=given)
    else:
        refused("give both the same layout", body, layout=given)


def test_tma_operands_just_inside_the_limits_are_accepted() -> None:
    def body(p: Parts) -> None:
        shared, tma = p.partition()
        p.load(shared, tma, mcast_mask=0)
        p.load(shared, tma, cache_policy=SimpleNamespace(name="EVICT_FIRST"))
        p.load(shared, tma, cache_policy=cutlass.Int64(1))
        p.load(p.shared(1024), tma)
        p.load(p.shared(Layout((1024, 1))), tma)
        for shape, stride in (((64, 64), (128, 1)), ((p.n, 32), (64, 1)), ((8, 8), (8, p.n))):
            cpasync.update_tma_descriptor(p.atom, cute.make_tensor(p.x.iterator, Layout(shape, stride)), p.full)

    staged(body)


FLOATS, WORDS = (cutlass.Float16, cutlass.BFloat16), (cutlass.Int16, cutlass.Uint16)
WIDE = (cutlass.Float32, cutlass.TFloat32, cutlass.Int32, cutlass.Uint32)
BYTES = (cutlass.Int8, cutlass.Uint8, cutlass.Float8E4M3FN, cutlass.Float8E5M2)


@pytest.mark.parametrize("moved", [*FLOATS, *WORDS, *WIDE, *BYTES], ids=lambda t: t.__name__)
def test_types_that_may_be_moved_as_another(moved: Any) -> None:
    """Integers of either sign, TF32 as Float32, and bytes, which fp8 arrays come as."""
    alike = [{t} for t in FLOATS] + [{*WORDS}, {*WIDE[:2]}, {*WIDE[2:]}, {*BYTES}]
    for held in (*FLOATS, *WORDS, *WIDE, *BYTES):
        atom: Any = SimpleNamespace(
            scalar=moved.ir_type, instruction="tma", plan=SimpleNamespace(element=moved.ir_type)
        )
        shared: Any = SimpleNamespace(element_type=held)
        if any({held, moved} <= kinds for kinds in alike):
            _check_elements(atom, shared)
            continue
        with pytest.raises(ConstraintError, match="the shared-memory tensor holds") as caught:
            _check_elements(atom, shared)
        assert ("take the atom's value_type" in str(caught.value)) == (held is cutlass.Int32)


@pytest.mark.parametrize(
    ("layout", "side", "want"),
    [
        (Layout((8, 3), (1, 8)), "shared-memory", [0, 8, 16]),
        (Layout(((2, 4), 2)), "shared-memory", [0, 8]),
        (Layout((8, 2), (3, 100)), "TMA", [0, 100]),
        (Layout(8, 3), "TMA", [0]),
        (Layout(8), "shared-memory", [0]),
        (Layout(8, 3), "shared-memory", None),
        (Layout((4, 2), (1, 5)), "shared-memory", None),
        (Layout(16), "TMA", None),
        (Layout((3, 8)), "TMA", None),
        (Layout(12), "TMA", None),
        (Layout((4, 4), (1, 4)), "TMA", None),
    ],
)
def test_boxes_lie_one_after_another_in_shared_memory(layout: Layout, side: str, want: list[int] | None) -> None:
    atom: Any = SimpleNamespace(plan=SimpleNamespace(elements_per_instruction=8), instruction="tma")
    tensor: Any = SimpleNamespace(linear=layout)
    if want is None:
        with pytest.raises(ConstraintError, match="copies boxes of 8 elements"):
            _boxes(atom, tensor, side)
    else:
        assert _boxes(atom, tensor, side) == want


def test_coordinates_are_whole_numbers() -> None:
    from fractions import Fraction

    number = object()
    assert _whole(3) == 3 and _whole(Fraction(6, 2)) == 3 and type(_whole(Fraction(3))) is int
    assert _whole(number) is number
    with pytest.raises(ConstraintError, match="coordinate 1/2 is not a whole number"):
        _whole(Fraction(1, 2))


@pytest.mark.parametrize(
    ("block", "modes", "mask"), [(15, (1,), -(1 << 15)), (0, (0, 1), -1), (14, (1,), 1 << 14), (0, (), 1)]
)
def test_masks_of_16_blocks(block: int, modes: tuple[int, ...], mask: int) -> None:
    """As an Int16, whose highest bit is its sign."""
    layout = Layout((16, 1), (1, 0))
    assert cpasync.create_tma_multicast_mask(layout, (block, 0), modes).value == mask


def test_a_mask_of_a_run_time_block() -> None:
    def body(t: Any, x: Any) -> None:
        x[t] = cutlass.Int32(cpasync.create_tma_multicast_mask(Layout((4, 2), (1, 4)), (t, 1), 1)) & 0xFFFF

    from tests.tiled.staging import run

    x = np.zeros(4, np.int32)
    run(body, x, threads=4)
    assert x.tolist() == [0b10001 << i for i in range(4)]


@pytest.mark.parametrize("name", CACHE_POLICIES)
def test_cache_policies_by_name(name: str) -> None:
    assert cache_policy_value(SimpleNamespace(name=name)).value == CACHE_POLICIES[name]


def test_an_mma_must_have_the_whole_tile_in_one_thread() -> None:
    @cute.jit
    def host(x: cute.Tensor):
        cpasync.make_tiled_tma_atom(LOAD, x, Layout((16, 64), (64, 1)), (16, 64), 1)
        cute.nvgpu.make_tiled_tma_atom_A(LOAD, x, Layout((32, 16), (16, 1)), (32, 32, 16), half_mma())

    with pytest.raises(ConstraintError, match="a thread of SM80_16x8x16_F32F16F16F32_TN has 8 of the 512 elements"):
        host(from_dlpack(np.zeros((64, 64), np.float16), assumed_align=16))


@pytest.mark.parametrize("kind", ["source", "internal"])
def test_numbers_that_tma_does_not_copy(kind: str) -> None:
    @cute.jit
    def host(x: cute.Tensor):
        truths = cute.recast_tensor(x, cutlass.Boolean) if kind == "source" else x
        internal = None if kind == "source" else cutlass.Boolean
        cpasync.make_tiled_tma_atom(LOAD, truths, ROW, TILE, internal_type=internal)

    with pytest.raises(ConstraintError, match="TMA copies numbers of 1, 2, 4 or 8 bytes, not"):
        host(from_dlpack(np.zeros((64, 64), np.int8), assumed_align=16))


def test_extents_that_are_known_while_staging_count_as_known() -> None:
    """Though they are numbers of the language."""
    shown = []

    @cute.jit
    def host(x: cute.Tensor):
        layout = Layout((cutlass.Int32(64), 64), (64, cutlass.Int32(1)))
        atom, _ = cpasync.make_tiled_tma_atom(LOAD, cute.make_tensor(x.iterator, layout), ROW, TILE)
        shown.append(str(atom.plan.gmem))

    host(from_dlpack(np.zeros((64, 64), np.float16), assumed_align=16))
    assert shown == ["(64,64):(64,1)"]
