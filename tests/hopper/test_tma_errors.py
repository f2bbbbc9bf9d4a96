"""What TMA cannot do is said while staging or at the launch, with the rule and what would do."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.hopper.test_tma import smem
from tests.hopper.tma_programs import Through
from tilewright import cute
from tilewright.cuda import compile as compile_cuda
from tilewright.cute.nvgpu import cpasync
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, ConstraintError, StagingError, TilewrightError
from tilewright.ir.tensormap import ATOM_32B
from tilewright.ir.types import F16 as F16_
from tilewright.ir.types import F32, U8, ScalarType
from tilewright.layout import Swizzle, make_composed_layout
from tilewright.tiled.tma.plan import plan_of, split_swizzle

F16 = np.float16


def host(layout: Any, tile: Any, op: Any = None, array: Any = None, leading: int | None = None, **options: Any) -> None:
    """Make one atom on the host."""
    given = np.zeros((256, 256), F16) if array is None else array
    view = from_dlpack(given, assumed_align=16)
    view = view.mark_layout_dynamic(leading) if leading is not None else view

    @cute.jit
    def make(a: cute.Tensor):
        cpasync.make_tiled_tma_atom(op or cpasync.CopyBulkTensorTileG2SOp(), a, layout, tile, **options)

    make(view)


ROW = cute.make_layout((16, 64), stride=(64, 1))


@pytest.mark.parametrize(
    ("text", "make"),
    [
        ("the box extent of TMA mode 0 (mode 1 of (256,512):(512,1)) is more than 256 (512)",
         lambda: host(cute.make_layout((8, 512), stride=(512, 1)), (8, 512), array=np.zeros((256, 512), F16))),
        ("inner box extent is not a multiple of 16 bytes: 12 x f16 (24 bytes) along mode 1; TMA moves 16 bytes at "
         "least: make the tile 16 elements wide", lambda: host(cute.make_layout((16, 12), stride=(12, 1)), (16, 12))),
        ("inner box extent exceeds the swizzle span: 64 x f16 (128 bytes) along mode 1 under a swizzle of 32B; lay "
         "shared memory out in rows of 16 elements",
         lambda: host(make_composed_layout(Swizzle(1, 3, 3), 0, ROW), (16, 64))),
        ("TMA has the swizzles Sw<1|2|3,4,3> and Sw<2,5,2> of byte addresses; Sw<3,2,3> is not one of them: use "
         "Sw<3,4,3> (or Sw<3,3,3>, the same in elements of f16)",
         lambda: host(make_composed_layout(Swizzle(3, 2, 3), 0, ROW), (16, 64))),
        ("the elements that follow each other in shared memory are not neighbours along a mode of the tensor",
         lambda: host(cute.make_layout((16, 64)), (cute.make_layout(16, stride=2), 64))),
        ("the stride of TMA mode 0 (mode 0 of (256,256):(256,1)) is 256, and TMA needs contiguous elements there",
         lambda: host(cute.make_layout((16, 64)), (16, 64))),
        ("has 1024 elements, the shared-memory layout (16,128):(128,1) has 2048",  # a third mode would be stages
         lambda: host(cute.make_layout((16, 128), stride=(128, 1)), (16, 64))),
        ("has 1024 elements, the shared-memory layout (16,128):(128,1) has 2048",
         lambda: host(cute.make_layout((16, 128, 2), stride=(128, 1, 2048)), (16, 64))),
        ("has 1024 elements, the shared-memory layout (16,64,2,2):(64,1,1024,2048) has 4096",
         lambda: host(cute.make_layout((16, 64, 2, 2), stride=(64, 1, 1024, 2048)), (16, 64))),
        ("for num_multicast=2 use CopyBulkTensorTileG2SMulticastOp", lambda: host(ROW, (16, 64), num_multicast=2)),
        ("num_multicast=3 does not divide the box (64,16)",
         lambda: host(ROW, (16, 64), cpasync.CopyBulkTensorTileG2SMulticastOp(), num_multicast=3)),
        ("takes a bulk tensor operation of cute.nvgpu.cpasync", lambda: host(ROW, (16, 64), cpasync.CopyG2SOp())),
        ("TMA reduces by add, min, max, inc, dec, and, or, xor, not by 'mul'",
         lambda: host(ROW, (16, 64), cpasync.CopyReduceBulkTensorTileS2GOp(cute.ReductionOp.MUL))),
    ],
)  # fmt: skip
def test_atoms(text: str, make: Any) -> None:
    with pytest.raises(ConstraintError, match=re.escape(text)):
        make()


@pytest.mark.parametrize("element", [F16_, F32, U8])
@pytest.mark.parametrize("swizzle", [(b, m, s) for b in range(5) for m in range(1, 6) for s in (2, 3, 4) if b <= s])
def test_swizzles(swizzle: tuple[int, int, int], element: ScalarType) -> None:
    """Those of 16-byte pieces, 8 of them apart, on bytes or on elements, and of 32-byte pieces, 4 of them apart; the
    rest are refused, never taken as one."""
    bits, base, shift = swizzle
    layout = make_composed_layout(Swizzle(*swizzle), 0, cute.make_layout((8, 16), stride=(16, 1)))
    known = bits == 0 or (bits <= 3 and shift == 3 and base in (4, 4 - element.bytes // 2))
    if (bits, shift) == (2, 2) and base in (5, 5 - element.bytes // 2):
        assert split_swizzle(layout, element) == (layout.outer, ATOM_32B)
    elif known:
        assert split_swizzle(layout, element) == (layout.outer, bits)
    else:
        with pytest.raises(ConstraintError, match=re.escape("Sw<1|2|3,4,3> and Sw<2,5,2> of byte addresses")):
            split_swizzle(layout, element)


@pytest.mark.parametrize(
    ("smem", "text"),
    [
        (make_composed_layout(Swizzle(3, 4, 3), 8, ROW), "must begin at offset 0"),
        (make_composed_layout(ROW, 0, cute.make_layout(8)), "takes|layout or swizzled layout of shared memory"),
        (64, "layout or swizzled layout of shared memory"),
        (cute.make_layout((16, 64), stride=(0, 1)), "several elements of the tile one address"),
    ],
)
def test_layouts_of_shared_memory(smem: Any, text: str) -> None:
    with pytest.raises(ConstraintError, match=text):
        plan_of(cute.make_layout((64, 64), stride=(64, 1)), smem, (16, 64), F16_, F16_, 1)


def test_a_tensor_of_global_memory_has_a_plain_layout() -> None:
    composed = make_composed_layout(Swizzle(3, 3, 3), 0, ROW)
    with pytest.raises(ConstraintError, match="tensors with a plain layout, not"):
        plan_of(composed, ROW, (16, 64), F16_, F16_, 1)


@pytest.mark.parametrize(
    ("layout", "steps"),
    [
        (cute.make_layout((64, 1, 64), stride=(64, 64, 1)), "(1@1,0,1@0)"),  # modes that lead nowhere have no step
        (cute.make_layout((64, 5, 64), stride=(64, 0, 1)), "(1@1,0,1@0)"),
        (cute.make_layout((1, 1, 64), stride=(64, 64, 1)), "(0,0,1@0)"),
        (cute.make_layout((64, 5, 64), stride=(64, 4096, 1)), "(1@1,1@2,1@0)"),
    ],
)
@pytest.mark.parametrize("tile", [(16, 1, 64), (64, 1, 8)])
def test_steps_of_the_coordinates(layout: Any, steps: str, tile: tuple[int, ...]) -> None:
    smem = cute.make_layout(tile, stride=(tile[2], 0, 1))
    plan = plan_of(layout, smem, tile, F16_, F16_, 1)
    assert str(plan.coordinates()).rpartition(":")[2] == steps


@pytest.mark.parametrize("mode", [-1, 4, "2", None, 1.0])
def test_modes_of_a_multicast(mode: Any) -> None:
    layout = cute.make_layout((1, 2, 4, 1), stride=(0, 4, 1, 0))
    for modes in (mode, (2, mode)):
        with pytest.raises(ConstraintError, match=f"is 0 to 3, not {mode!r}"):
            cpasync.create_tma_multicast_mask(layout, (0, 0, 3, 0), modes)
    assert cpasync.create_tma_multicast_mask(layout, (0, 0, 3, 0), 1).value == 0b10001000
    assert cpasync.create_tma_multicast_mask(layout, (0, 1, 3, 0), 0).value == 1 << 7
    with pytest.raises(ConstraintError, match="a multicast mask has 16 bits"):
        cpasync.create_tma_multicast_mask(cute.make_layout((1, 32)), (0, 0), 1)


@pytest.mark.parametrize(
    ("text", "array"),
    [
        (
            "the stride of TMA mode 1 (mode 0 of (?,?):(?,1)) is not a multiple of 16 bytes: 200 bytes; pad it to 104 "
            "elements of f16",
            np.zeros((64, 100), F16),
        ),
        ("the address 0x", np.zeros((64, 136), F16)[:, 4:]),
        ("the extent of TMA mode 1 (mode 0 of (?,?):(?,1)) is less than 1 (0)", np.zeros((0, 64), F16)),
    ],
)
def test_launches(text: str, array: np.ndarray) -> None:
    """What a launch brings: an executor that was compiled for a good array refuses a bad one."""
    good = np.zeros((64, 128), F16)

    @cute.jit
    def run(a: cute.Tensor):
        atom, tensor = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), a, ROW, (16, 64))
        nothing(atom, tensor).launch(grid=(1, 1, 1), block=(32, 1, 1))

    compiled = cute.compile(run, from_dlpack(good).mark_layout_dynamic(leading_dim=1))
    compiled(from_dlpack(good).mark_layout_dynamic(leading_dim=1))
    with pytest.raises(ArgumentError, match=re.escape(text)) as caught:
        compiled(from_dlpack(array).mark_layout_dynamic(leading_dim=1))
    assert "make_tiled_tma_atom at" in str(caught.value) and __file__.rpartition("/")[2] in str(caught.value)


@cute.kernel
def nothing(atom: cute.CopyAtom, tensor: cute.Tensor):
    cpasync.prefetch_descriptor(atom)


class Wrong(Through):
    """A copy with one mistake."""

    def __init__(self, mistake: str) -> None:
        super().__init__((16, 64), ROW)
        self.mistake = mistake

    @cute.kernel
    def kernel(
        self,
        load: cute.CopyAtom,
        tma_a: cute.Tensor,
        store: cute.CopyAtom,
        tma_b: cute.Tensor,
        a: cute.Tensor,
        b: cute.Tensor,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        smem = cutlass.utils.SmemAllocator()
        full = smem.allocate_array(cutlass.Int64, 1)
        sA = smem.allocate_tensor(a.element_type, ROW, 16 if self.mistake == "alignment" else 128)
        if tidx == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        gA = cute.group_modes(cute.local_tile(tma_a, (16, 64), (0, 0)), 0, 2)
        if cutlass.const_expr(self.mistake == "no TMA tensor"):
            gA = cute.group_modes(cute.local_tile(a, (16, 64), (0, 0)), 0, 2)
        if cutlass.const_expr(self.mistake == "unpartitioned"):
            cute.copy(load, cute.local_tile(tma_a, (16, 32), (0, 0)), sA, tma_bar_ptr=full)
        tAsA, tAgA = cpasync.tma_partition(load, 0, cute.make_layout(1), cute.group_modes(sA, 0, 2), gA)
        if cutlass.const_expr(self.mistake == "elect_one"):
            with cute.arch.elect_one():
                cute.copy(load, tAgA, tAsA, tma_bar_ptr=full)
        elif cutlass.const_expr(self.mistake == "one thread"):
            if tidx == 0:
                cute.copy(load, tAgA, tAsA, tma_bar_ptr=full)
        elif cutlass.const_expr(self.mistake == "no mbarrier"):
            cute.copy(load, tAgA, tAsA)
        elif cutlass.const_expr(self.mistake == "mask"):
            cute.copy(load, tAgA, tAsA, tma_bar_ptr=full, mcast_mask=3)
        elif cutlass.const_expr(self.mistake == "predicate"):
            cute.copy(load, tAgA, tAsA, tma_bar_ptr=full, pred=tAsA)
        else:
            if warp == 0:
                with cute.arch.elect_one():
                    size = 1024 if self.mistake == "bytes" else 2048
                    cute.arch.mbarrier_arrive_and_expect_tx(full, size)
                cute.copy(load, tAgA, tAsA, tma_bar_ptr=full)
            cute.arch.mbarrier_wait(full, 0)
            if tidx < 16:
                b[0, tidx] = sA[0, tidx]


@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        ("alignment", "the box in shared memory is aligned to 128 bytes, but its address is only known"),
        ("no TMA tensor", "is not a TMA tensor: tile the second result of make_tiled_tma_atom"),
        ("unpartitioned", "partition it with tma_partition"),
        ("elect_one", "is called by a whole warp and elects the thread that issues"),
        ("one thread", "tma.load.2d by 1 of the 32 threads of a warp"),
        ("no mbarrier", "give it as tma_bar_ptr"),
        ("mask", "takes no mcast_mask"),
        ("predicate", "takes no pred"),
        ("bytes", "mbarrier"),
    ],
)
def test_kernels(mistake: str, text: str) -> None:
    """Each mistake is an error that names it; the twin without one runs."""
    a = np.arange(16 * 64, dtype=F16).reshape(16, 64)
    b = np.zeros_like(a)
    with pytest.raises(TilewrightError, match=re.escape(text)):
        Wrong(mistake)(*(from_dlpack(x, assumed_align=16) for x in (a, b)))
    Wrong("")(*(from_dlpack(x, assumed_align=16) for x in (a, b)))
    np.testing.assert_array_equal(b[0, :16], a[0, :16])


@pytest.mark.parametrize(
    ("held", "dtype", "text"),
    [
        (None, np.float32, "the element_type of a TMA tensor is Int32, that of its coordinates: take the atom's value"),
        (None, F16, "copies Float16, but the shared-memory tensor holds Int32; allocate it for Float16"),
        (cutlass.BFloat16, F16, "copies Float16, but the shared-memory tensor holds BFloat16"),
        (cutlass.Int16, F16, r"cute.recast_tensor(tensor, Float16)"),
        (cutlass.Uint16, np.int16, ""),
        (cutlass.TFloat32, np.float32, ""),
    ],
)
def test_elements_of_another_type(held: Any, dtype: Any, text: str) -> None:
    """Bits that are read as another type than was loaded would be wrong numbers without an error."""

    @cute.kernel
    def kernel(load: cute.CopyAtom, tma_a: cute.Tensor):
        kept = cutlass.const_expr(tma_a.element_type if held is None else held)
        sA = cutlass.utils.SmemAllocator().allocate_tensor(kept, cute.make_layout((16, 32), stride=(32, 1)), 128)
        gA = cute.group_modes(cute.local_tile(tma_a, (16, 32), (0, 0)), 0, 2)
        tAsA, tAgA = cpasync.tma_partition(load, 0, cute.make_layout(1), cute.group_modes(sA, 0, 2), gA)
        full = cutlass.utils.SmemAllocator().allocate_array(cutlass.Int64, 1)
        if cute.arch.warp_idx() == 0:
            cute.copy(load, tAgA, tAsA, tma_bar_ptr=full)

    @cute.jit
    def run(a: cute.Tensor):
        tile = cute.make_layout((16, 32), stride=(32, 1))
        load, tma_a = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, tile, (16, 32))
        kernel(load, tma_a).launch(grid=(1, 1, 1), block=(32, 1, 1))

    array = from_dlpack(np.zeros((16, 32), dtype), assumed_align=16)
    if not text:
        cute.compile(run, array)
        return
    with pytest.raises(ConstraintError, match=re.escape(text)):
        cute.compile(run, array)


def test_atoms_are_made_on_the_host() -> None:
    @cute.kernel
    def kernel(a: cute.Tensor):
        cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, ROW, (16, 64))

    @cute.jit
    def run(a: cute.Tensor):
        kernel(a).launch(grid=(1, 1, 1), block=(32, 1, 1))

    with pytest.raises(StagingError, match="makes the tensor map on the host"):
        run(from_dlpack(np.zeros((64, 64), F16)))


def test_writing_to_a_read_only_array() -> None:
    a, b = np.zeros((16, 64), F16), np.zeros((16, 64), F16)
    b.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        Through((16, 64), smem("K", "SW128", "f16", (16, 64)))(*(from_dlpack(x, assumed_align=16) for x in (a, b)))


def test_an_atom_chosen_at_run_time() -> None:
    """A GPU reads tensor maps where the parameters are; a copy of one among the registers is none."""

    @cute.kernel
    def kernel(first: cute.CopyAtom, second: cute.CopyAtom, tensor: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        atom = first
        if tidx < 64:
            atom = second
        cpasync.prefetch_descriptor(atom)

    @cute.jit
    def run(a: cute.Tensor, b: cute.Tensor):
        op = cpasync.CopyBulkTensorTileG2SOp()
        (one, tensor), (two, _) = (cpasync.make_tiled_tma_atom(op, x, ROW, (16, 64)) for x in (a, b))
        kernel(one, two, tensor).launch(grid=(1, 1, 1), block=(128, 1, 1))

    views = [from_dlpack(np.zeros((64, 64), F16)).mark_layout_dynamic(leading_dim=1) for _ in range(2)]
    with pytest.raises(ConstraintError, match="chosen at run time: TMA reads its tensor map in the kernel"):
        compile_cuda(cute.compile(run, *views).kernels[0], "sm_90a")
