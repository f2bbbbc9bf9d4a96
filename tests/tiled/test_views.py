"""Views of registers and modes that do not correspond: retile's wrong ways, and shapes that differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.tiled.staging import asynchronous, by_rows, half_mma, matrix, run, universal
from tilewright import cute
from tilewright.errors import ConstraintError
from tilewright.layout import Layout, make_layout
from tilewright.tiled import make_tiled_copy_A, make_tiled_copy_C
from tilewright.tiled.retile import _first_out_of_order

HALF = np.zeros((64, 64), np.float16)


def through_c(view: Any, made: bool, by_slice: bool = False) -> Any:
    """Load C by the MMA's partition, store it by the copy made for C, the registers seen through ``view``."""

    def body(tidx: Any, x: Any, y: Any) -> None:
        mma = half_mma()
        gA = mma.get_slice(tidx).partition_C(x)
        rA = mma.make_fragment_C(gA) if made else cute.make_fragment_like(gA)
        cute.autovec_copy(gA, rA)
        copy = cute.make_tiled_copy_C(universal(64, cutlass.Float32), mma)
        gC = copy.get_slice(tidx).partition_D(y)
        rC = view(copy, rA, gC)
        for i in range(cute.size(gC, mode=[2])) if by_slice else [None]:
            cute.copy(copy, rC[None, None, i], gC[None, None, i])

    return body


def retiled(copy: Any, rA: Any, gC: Any) -> Any:
    return copy.retile(rA)


def natural(copy: Any, rA: Any, gC: Any) -> Any:
    return cute.make_tensor(rA.iterator, make_layout(gC.shape))


@pytest.mark.parametrize("made", [False, True])
@pytest.mark.parametrize("by_slice", [False, True])
def test_retile_gives_every_register_its_place(made: bool, by_slice: bool) -> None:
    x = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    y = np.zeros_like(x)
    run(through_c(retiled, made, by_slice), x, y)
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("made", [False, True])
@pytest.mark.parametrize("by_slice", [False, True])
def test_the_other_partitions_shape_on_the_same_registers_is_refused(made: bool, by_slice: bool) -> None:
    x = np.zeros((64, 64), np.float32)
    with pytest.raises(ConstraintError) as caught:
        run(through_c(natural, made, by_slice), x, x.copy())
    text = str(caught.value)
    assert "a fragment of C of SM80_16x8x16" in text and "would get the registers" in text, text
    assert "Use thr_copy.retile(fragment), which gives ((2," in text and "test_views.py" in text, text


def test_a_fragment_that_is_not_retiled_is_refused() -> None:
    x = np.zeros((64, 64), np.float32)
    with pytest.raises(ConstraintError, match=r"modes do not match.*takes \(2,2,4\) copies.*retile"):
        run(through_c(lambda copy, rA, gC: rA, True), x, x.copy())


@pytest.mark.parametrize(
    ("places", "count", "together", "wrong"),
    [
        ([0, 1, 2, 3], 4, 2, None),
        ([0, 2, 1, 3], 4, 2, 1),
        ([2, 3], 8, 2, None),
        ([2, 3, 6, 7], 8, 2, None),
        ([3, 4], 8, 2, 0),
        ([0, 2], 8, 2, 1),
        ([6, 7, 2, 3], 8, 2, 2),
        ([0, 2, 4], 8, 1, None),
        ([0, -1], 8, 1, 1),
    ],
)
def test_slices_keep_the_order_of_the_whole(places: list[int], count: int, together: int, wrong: int | None) -> None:
    assert _first_out_of_order(places, count, together) == wrong


def test_retile_refuses_what_is_no_whole_fragment() -> None:
    copy = make_tiled_copy_A(matrix(), half_mma())
    with pytest.raises(ConstraintError, match=r"mode 2 has 5 elements, and the copy's tile \(32,16\) takes 2"):
        copy.retile(Layout(((2, 2), 2, 5)))
    with pytest.raises(ConstraintError, match="retile first, then slice"):
        copy.retile(Layout(((2, 2, 2), 2)))


# -- cute.copy


def between(source: Any, target: Any) -> Any:
    def body(tidx: Any, x: Any) -> None:
        part = by_rows(source).get_slice(tidx).partition_S(x)
        cute.copy(by_rows(source), part, cute.make_rmem_tensor(target, cutlass.Float16))

    return body


@pytest.mark.parametrize("bits", [128, 0])
@pytest.mark.parametrize("shape", [((8, 1), 3, 1), ((8, 1), 2, 2), ((8, 1), 8)])
def test_modes_must_correspond(bits: int, shape: Any) -> None:
    with pytest.raises(ConstraintError) as caught:
        run(between(universal(bits), shape), HALF)
    assert "((8,1),4,1):(" in str(caught.value) or "((1,8),4,1):(" in str(caught.value)
    assert str(make_layout(shape)) in str(caught.value) and "test_views.py" in str(caught.value)


@pytest.mark.parametrize("shape", [((8, 1), 4, 1), (8, 4), ((2, 4), (2, 2), 1), ((8, 1), 1, 4)])
def test_modes_correspond_whatever_their_nesting(shape: Any) -> None:
    run(between(universal(128), shape), HALF)


@pytest.mark.parametrize("kind", ["ldmatrix", "stmatrix", "cp.async"])
def test_wrong_memories_are_named_with_both_layouts(kind: str) -> None:
    def body(tidx: Any, x: Any) -> None:
        registers = cute.make_rmem_tensor(half_mma().partition_shape_C((64, 64)), cutlass.Float16)
        registers.fill(0)
        if kind == "cp.async":
            part = by_rows(asynchronous()).get_slice(tidx).partition_S(x)
            cute.copy(asynchronous(), part, cute.make_fragment_like(part))
        else:
            make = cute.make_tiled_copy_C if kind == "stmatrix" else cute.make_tiled_copy_A
            copy = make(matrix(store=kind == "stmatrix"), half_mma())
            thread, seen = copy.get_slice(tidx), copy.retile(registers)
            if kind == "stmatrix":
                cute.copy(copy, seen, thread.partition_D(x))
            else:
                wanted = cute.make_rmem_tensor(thread.partition_D(x).shape, cutlass.Float16)
                cute.copy(copy, thread.partition_S(x), wanted)

    words = {
        "ldmatrix": r"from shared memory to registers, not from gmem \(\(8,1\),2,4\):.* to rmem \(\(\(2,2,2\),1\),2,4",
        "stmatrix": r"from registers to shared memory, not from rmem .*:.* to gmem \(\(8,1\),2,2\):",
        "cp.async": r"from global to shared memory, not from gmem \(\(8,1\),4,1\):.* to rmem \(\(8,1\),4,1\):",
    }
    with pytest.raises(ConstraintError, match=words[kind]):
        run(body, HALF)


@pytest.mark.parametrize("predicated", [False, True])
def test_registers_to_registers(predicated: bool) -> None:
    y = np.zeros((64, 64), np.float16)

    def body(tidx: Any, x: Any, y: Any) -> None:
        copy = by_rows(universal(128))
        thread = copy.get_slice(tidx)
        first, second = (cute.make_fragment_like(thread.partition_S(x)) for _ in range(2))
        cute.copy(copy, thread.partition_S(x), first)
        second.fill(7)
        pred = cute.make_rmem_tensor((1, 4, 1), cutlass.Boolean)
        for i in range(4):
            pred[i] = cutlass.Boolean(i != 1)
        cute.copy(copy, first, second, pred=pred if predicated else None)
        cute.copy(copy, second, thread.partition_D(y))

    x = np.arange(64 * 64).reshape(64, 64).astype(np.float16)
    run(body, x, y)
    if predicated:
        x[16:32] = 7
    np.testing.assert_array_equal(x, y)


# -- cute.gemm and basic_copy


def test_c_must_have_the_shape_of_d() -> None:
    def body(tidx: Any, x: Any) -> None:
        a, b = (cute.make_rmem_tensor(s, cutlass.Float16) for s in (((2, 2, 2), 2, 2), ((2, 2), 4, 2)))
        d, c = (cute.make_rmem_tensor(((2, 2), *s), cutlass.Float32) for s in ((2, 4), (4, 2)))
        c.fill(0)
        cute.gemm(half_mma(), d, a, b, c)

    with pytest.raises(ConstraintError, match=r"C \(\(2,2\),4,2\):\S+ and D \(\(2,2\),2,4\):\S+ differ in shape"):
        run(body, HALF)


def test_an_accumulator_in_memory_is_told_of_make_fragment_c() -> None:
    def body(tidx: Any, x: Any) -> None:
        a, b = (cute.make_rmem_tensor(s, cutlass.Float16) for s in (((2, 2, 2), 2, 2), ((2, 2), 4, 2)))
        d = cute.make_tensor(x.iterator, make_layout(((2, 2), 2, 4)))
        cute.gemm(half_mma(), d, a, b, d)

    with pytest.raises(ConstraintError, match="must be in registers, not in gmem: use make_fragment_C"):
        run(body, HALF.astype(np.float32))


@pytest.mark.parametrize("conditional", [False, True])
def test_basic_copies_do_not_broadcast(conditional: bool) -> None:
    def body(tidx: Any, x: Any, y: Any) -> None:
        pred = cute.make_rmem_tensor(4, cutlass.Boolean)
        pred.fill(True)
        if conditional:
            cute.basic_copy_if(pred, y, y)
        else:
            cute.basic_copy(x, y)

    with pytest.raises(ConstraintError, match=r"basic_copy(_if)?: .* differ in size"):
        run(body, np.zeros(1, np.float32), np.zeros(6, np.float16))


def test_equality_does_not_depend_on_how_a_copy_was_made() -> None:
    mma, atom = half_mma(), universal(64, cutlass.Float32)
    made = make_tiled_copy_C(atom, mma)
    assert made == cute.make_tiled_copy(atom, made.layout_tv_tiled, made.tiler_mn)
    assert made.get_slice(3).operand_of == (mma, "C")
