"""Conditions of copies and matrix instructions that no product reaches, asked by themselves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.tiled.staging import half_mma, run, universal
from tilewright import cute
from tilewright.atoms.names import copy_by_name
from tilewright.cute import nvgpu
from tilewright.errors import ConstraintError
from tilewright.ir.types import F16
from tilewright.layout import Layout, make_composed_layout, make_layout, make_swizzle
from tilewright.tiled import sides
from tilewright.tiled.asynchronous_mma import _is_static_place
from tilewright.tiled.atom import CopyAtom
from tilewright.tiled.provenance import _same_first_mode
from tilewright.tiled.retile import _first_elsewhere
from tilewright.tiled.tma.plan import TmaPlan


def part(layout: Any) -> Any:
    return SimpleNamespace(part=layout)


WHOLE = Layout((2, 4), (1, 10))
COMPOSED = make_composed_layout(make_swizzle(1, 1, 1), 0, WHOLE)


@pytest.mark.parametrize(
    ("origin", "modes", "places", "count", "steps", "found"),
    [
        (WHOLE, 2, [0, 1, 2, 3], 4, Layout(4, 10), None),
        (WHOLE, 2, [0, 2], 4, Layout(2, 20), None),
        (WHOLE, 2, [0, 2], 4, Layout(2, 10), 1),
        (WHOLE, 2, [1, 2, 3], 4, Layout(3, 10), None),
        (WHOLE, 2, [0, 1, 3], 4, Layout(3, 10), 2),
        (Layout((2, 4, 3), (1, 10, 100)), 2, [0, 1], 4, Layout(2, 10), None),  # stages
        (WHOLE, 3, [0, 2], 4, Layout(2, 10), None),  # fewer modes than the fragment
        (WHOLE, 2, [0, 2], 3, Layout(2, 10), None),  # instructions that do not divide it
        (COMPOSED, 2, [0, 2], 4, Layout(2, 10), None),
        (None, 2, [0, 2], 4, Layout(2, 10), None),
    ],
)
def test_first_misplaced_instruction_of_a_partition(
    origin: Any, modes: int, places: Any, count: int, steps: Any, found: int | None
) -> None:
    assert _first_elsewhere(places, count, None if origin is None else part(origin), modes, steps) == found


def test_run_time_strides_are_not_compared() -> None:
    def body(t: Any, x: Any, y: Any) -> None:
        open_ = make_layout((2, 4), stride=(1, x.shape[0]))
        for origin, steps in ((open_, Layout(2, 10)), (WHOLE, make_layout(2, stride=x.shape[0]))):
            assert _first_elsewhere([0, 2], 4, part(origin), 2, steps) is None
        other = make_layout((2, 4), stride=(1, y.shape[0]))
        assert _same_first_mode(open_, open_) and _same_first_mode(WHOLE, WHOLE) and _same_first_mode(open_, other)
        turned = make_layout((4, 2), stride=(x.shape[0], 1))
        assert not _same_first_mode(open_, turned) and not _same_first_mode(turned, WHOLE)
        assert not _same_first_mode(WHOLE, turned) and not _same_first_mode(WHOLE, Layout((4, 2)))
        with pytest.raises(ConstraintError, match="make_tiled_copy: the layout .* must be known while staging"):
            cute.make_tiled_copy(universal(16), make_layout((4, x.shape[0]), stride=(1, 4)), (4, 8))

    run(body, np.zeros(8, np.float16), np.zeros(8, np.float16), dynamic=True)


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_a_layout_is_offered_only_if_it_brings_the_values_together(order: tuple[int, int]) -> None:
    """In one mode the values 0, 2, 1, 3 follow each other in no layout; in two modes one is found."""

    def body(t: Any, x: Any) -> None:
        if order == (2, 1):
            tv, tiler, layout = Layout((32, (2, 2)), (4, (2, 1))), (128,), Layout(128)
        else:
            tv, tiler, layout = Layout((32, (2, 2)), (1, (32, 64))), (32, 4), Layout((32, 4))
        memory = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float16, 128, 128), layout)
        thread = cute.make_tiled_copy(universal(64), tv, tiler).get_slice(t)
        source = thread.partition_S(memory)
        cute.copy(thread, source, cute.make_fragment_like(source))

    with pytest.raises(ConstraintError, match="contiguous elements for each thread") as refused:
        run(body, np.zeros(8, np.float16), threads=32)
    assert ("give the tensor a layout such as" in str(refused.value)) == (order == (1, 2))


def test_an_address_of_the_programs_own_is_no_static_place() -> None:
    def body(t: Any, x: Any) -> None:
        assert not _is_static_place(cute.make_ptr(cutlass.Float16, 0, cute.AddressSpace.smem))

    run(body, np.zeros(8, np.float16))


@pytest.mark.parametrize("bits", [4, 8, 16, 32])
def test_the_bits_of_a_copy_hold_a_value(bits: int) -> None:
    if bits >= 16:
        assert CopyAtom(nvgpu.CopyUniversalOp(), F16, bits).num_val_src == bits // 16
    else:
        with pytest.raises(ConstraintError, match="values of f16 do not fit in|bits at a time, not 4"):
            CopyAtom(nvgpu.CopyUniversalOp(), F16, bits)


def test_the_fields_of_a_matrix_instruction_are_named() -> None:
    major = nvgpu.warpgroup.OperandMajorMode.K
    wgmma = nvgpu.warpgroup.MmaF16BF16Op(
        cutlass.Float16, cutlass.Float32, (64, 8, 16), nvgpu.warpgroup.OperandSource.SMEM, major, major
    )
    for op, known in ((nvgpu.MmaUniversalOp(cutlass.Float32), "none"), (wgmma, "accum_c")):
        atom = cute.make_mma_atom(op)
        for call in (lambda atom=atom: atom.set("size", True), lambda atom=atom: atom.get("size")):
            with pytest.raises(ConstraintError, match=f"has no field size; its fields are: {known}$"):
                call()


def test_wgmma_reads_shared_memory_of_a_plain_layout() -> None:
    major = nvgpu.warpgroup.OperandMajorMode.K
    op = nvgpu.warpgroup.MmaF16BF16Op(
        cutlass.Float16, cutlass.Float32, (64, 8, 16), nvgpu.warpgroup.OperandSource.SMEM, major, major
    )

    def body(t: Any, x: Any) -> None:
        outer = make_composed_layout(Layout((64, 16), (16, 1)), 0, Layout((64, 16)))
        memory = cute.make_tensor(cute.arch.alloc_smem(cutlass.Float16, 64 * 16, 1024), outer)
        cute.make_tiled_mma(op).make_fragment_A(memory)

    with pytest.raises(ConstraintError, match="make_fragment_A: a shared-memory tensor has a static layout"):
        run(body, np.zeros(8, np.float16))


def test_a_copy_of_accumulators_takes_no_more_than_a_thread_has() -> None:
    with pytest.raises(ConstraintError, match="takes 8 values of a thread, but SM80_16x8x16.* gives it 4"):
        one = cute.make_tiled_mma(nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16)))
        cute.make_tiled_copy_C_atom(universal(128), one)
    assert cute.make_tiled_copy_C_atom(universal(64), half_mma()).size == 128


@pytest.mark.parametrize("which", range(4))
def test_one_matrix_instruction_takes_the_values_of_a_thread(which: int) -> None:
    def body(t: Any, x: Any) -> None:
        given = [cute.make_rmem_tensor((1, 2) if i == which else 1, cutlass.Float32) for i in range(4)]
        cute.mma_atom_call(cute.make_mma_atom(nvgpu.MmaUniversalOp(cutlass.Float32)), *given)

    with pytest.raises(ConstraintError, match=r"one call takes tensors \(V\), not \(1,2\)"):
        run(body, np.zeros(8, np.float32))


def test_tensor_memory_is_copied_by_its_own_instructions() -> None:
    tensor: Any = SimpleNamespace(element_type=SimpleNamespace(width=32))
    with pytest.raises(ConstraintError, match="is tensor memory: copy it with tcgen05.make_tmem_copy"):
        sides._tensor_memory(copy_by_name("DefaultCopy"), "source", tensor, Layout(4), Layout(1))
    given = {"memory_offsets": lambda self, width: (0, 1, 2, 3), "__repr__": lambda self: "a move"}
    move = object.__new__(type("Move", (sides.TmemMove,), given))
    with pytest.raises(ConstraintError, match="the values .* of the source .* are not where the instruction finds"):
        sides._tensor_memory(move, "source", tensor, Layout(4, 2), Layout(1))


@pytest.mark.parametrize(
    ("boxes", "merged"), [([1, 1], [1]), ([1, 8], [8]), ([4, 1], [4]), ([4, 8], [32]), ([4, 1, 2], [4, 2])]
)
def test_boxes_that_follow_each_other_are_one(boxes: list[int], merged: list[int]) -> None:
    plan = object.__new__(TmaPlan)
    given = {
        "gmem": SimpleNamespace(stride=(1, 4, 64)),
        "swizzle": None,
        "_in_elements": int,
        "_ragged": lambda e: False,
    }
    for name, value in given.items():
        object.__setattr__(plan, name, value)
    assert plan._merged(boxes, [cute.E(mode) for mode in range(len(boxes))]) == merged


def test_prefetch_takes_tma_tensors_only() -> None:
    def body(t: Any, x: Any) -> None:
        from tilewright.tiled.tma.stage import stage_prefetch

        for given in (x, 3, None):
            with pytest.raises(ConstraintError, match="cute.prefetch takes a TMA tensor that tma_partition has"):
                stage_prefetch(None, given)

    run(body, np.zeros(8, np.float32))
