"""What a copy says of memory it cannot take: the instruction, thread and values, the tensor, a layout that would do."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.tiled.staging import asynchronous, by_rows, half_mma, matrix, run, shared, universal
from tilewright import cute
from tilewright.errors import ConstraintError
from tilewright.layout import Layout, make_composed_layout, make_layout, make_swizzle, parse

ROWS, COLUMNS = Layout((64, 64), (64, 1)), Layout((64, 64), (1, 64))
X = np.zeros((64, 64), np.float16)


def load_matrix(transpose: bool, layout: Any) -> Any:
    def body(tidx: Any, x: Any) -> None:
        copy = cute.make_tiled_copy_A(matrix(transpose), half_mma())
        thread, memory = copy.get_slice(tidx), shared(layout)
        registers = cute.make_rmem_tensor(thread.partition_D(memory).shape, cutlass.Float16)
        cute.copy(copy, thread.partition_S(memory), registers)

    return body


def store_matrix(transpose: bool, layout: Any) -> Any:
    def body(tidx: Any, x: Any) -> None:
        copy = cute.make_tiled_copy_C(matrix(transpose, store=True), half_mma())
        registers = cute.make_rmem_tensor(half_mma().partition_shape_C((64, 64)), cutlass.Float16)
        registers.fill(0)
        cute.copy(copy, copy.retile(registers), copy.get_slice(tidx).partition_D(shared(layout)))

    return body


def to_shared(layout: Any) -> Any:
    def body(tidx: Any, x: Any) -> None:
        thread = by_rows(asynchronous()).get_slice(tidx)
        cute.copy(thread, thread.partition_S(x), thread.partition_D(shared(layout)))

    return body


def from_shared(layout: Any, k: int | None = None) -> Any:
    def body(tidx: Any, x: Any) -> None:
        part = by_rows(universal(128)).get_slice(tidx).partition_S(shared(layout))
        part = part if k is None else part[None, k, None]
        cute.copy(universal(128), part, cute.make_fragment_like(part))

    return body


CASES = {
    "ldmatrix": (load_matrix(False, COLUMNS), "SM75_U32x4_LDSM_N", "V0 and V1 (at (0,0) and (0,1))", ROWS),
    "ldmatrix.trans": (load_matrix(True, ROWS), "SM75_U16x8_LDSM_T", "V0 and V1 (at (0,0) and (1,0))", COLUMNS),
    "stmatrix": (store_matrix(False, COLUMNS), "SM90_U32x4_STSM_N", "V0 and V1 (at (0,0) and (0,1))", ROWS),
    "cp.async": (to_shared(COLUMNS), "uint128_t>: reads or writes 8 contiguous", "V0 and V1", ROWS),
    "vector": (from_shared(COLUMNS), "UniversalCopy<uint128_t>", "V0 and V1", ROWS),
    "slice": (from_shared(COLUMNS, 1), "UniversalCopy<uint128_t>", "V0 and V1", ROWS),
    "torn": (
        from_shared(Layout((64, (4, 16)), (4, (1, 256)))),
        "UniversalCopy<uint128_t>",
        "V3 and V4 (at (0,(3,0)) and (0,(0,1))) are 253 elements apart",
        Layout((64, (4, 16)), (64, (1, 4))),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values_apart(name: str) -> None:
    body, instruction, values, better = CASES[name]
    with pytest.raises(ConstraintError) as caught:
        run(body, X)
    text = str(caught.value)
    assert instruction in text and f"thread T0's values {values}" in text and "test_contiguity.py" in text, text
    assert re.search(r"of the tensor \(64,(64|\(4,16\))\):\S+, thread", text), text
    assert f"a layout such as {better}" in text, text


@pytest.mark.parametrize("name", CASES)
def test_the_layout_that_would_do_does(name: str) -> None:
    made = {
        "ldmatrix": load_matrix(False, ROWS),
        "ldmatrix.trans": load_matrix(True, COLUMNS),
        "stmatrix": store_matrix(False, ROWS),
        "cp.async": to_shared(ROWS),
        "vector": from_shared(ROWS),
        "slice": from_shared(ROWS, 1),
        "torn": from_shared(CASES["torn"][3]),
    }[name]
    run(made, X)


def test_a_matrix_copy_may_be_transposed_instead() -> None:
    with pytest.raises(ConstraintError, match="or use the instruction with transpose=True"):
        run(load_matrix(False, COLUMNS), X)
    with pytest.raises(ConstraintError, match="or use the instruction with transpose=False"):
        run(load_matrix(True, ROWS), X)


def test_fewer_bits_are_offered_where_they_would_do() -> None:
    with pytest.raises(ConstraintError, match="or copy 64 bits at a time"):
        run(CASES["torn"][0], X)


@pytest.mark.parametrize(("pitch", "better", "bits"), [(68, 72, 64), (66, 72, 32)])
def test_a_pitch_that_breaks_the_alignment(pitch: int, better: int, bits: int) -> None:
    wide = np.zeros((64, pitch), np.float16)[:, :64]

    def body(tidx: Any, x: Any) -> None:
        copy = by_rows(universal(128))
        part = copy.get_slice(tidx).partition_S(x)
        cute.copy(copy, part, cute.make_fragment_like(part))

    with pytest.raises(ConstraintError) as caught:
        run(body, wide)
    text = str(caught.value)
    assert f"of the tensor (64,64):({pitch},1)" in text and f"along mode 0 is {pitch} x 2 bytes" in text, text
    assert f"a layout such as (64,64):({better},1), or copy {bits} bits" in text, text
    with pytest.raises(ConstraintError, match=rf"\(64,64\):\({better},1\)\n"):
        run(load_matrix(False, Layout((64, 64), (pitch, 1))), X)


@pytest.mark.parametrize(
    ("rows", "pitch", "named"), [(1, 68, False), (2, 68, True), (3, 68, True), (2, 72, False), (2, 0, False)]
)
def test_a_step_that_nothing_takes_breaks_no_alignment(rows: int, pitch: int, named: bool) -> None:
    """The pitch is named where it is at fault, otherwise the address."""

    def body(t: Any, x: Any) -> None:
        whole = cute.make_tensor(x.iterator, make_layout((rows, 64), stride=(pitch, 1)))
        copy = cute.make_tiled_copy_tv(universal(128), make_layout((1, 8)), make_layout((1, 8)))
        part = copy.get_slice(t).partition_S(whole)
        cute.copy(copy, part, cute.make_fragment_like(part))

    with pytest.raises(ConstraintError, match=f"mode 0 is {pitch} x 2 bytes" if named else "16-byte aligned, .* only"):
        run(body, np.zeros(512, np.float16)[4:], threads=8, aligned=False)


def test_padding_keeps_nested_modes_apart() -> None:
    from tilewright.tiled.contiguity import _padded

    assert _padded(parse("(8,8,4):(1,9,70)"), 8) == parse("(8,8,4):(1,16,128)")


def test_a_swizzle_that_tears_a_vector() -> None:
    layout = make_composed_layout(make_swizzle(3, 2, 3), 0, make_layout((64, 64), stride=(64, 1)))
    with pytest.raises(ConstraintError) as caught:
        run(to_shared(layout), X)
    text = str(caught.value)
    assert "thread T0's values V3 and V4 may part" in text, text
    assert "Raise the swizzle's M by 1 or copy 64 bits" in text, text


def test_the_part_is_named_where_the_tensor_is_not_known() -> None:
    def body(tidx: Any, x: Any) -> None:
        column = cute.make_tensor(x.iterator, make_layout(8, stride=64))
        cute.copy(universal(128), column, cute.make_fragment_like(column))

    with pytest.raises(ConstraintError, match=r"in the source, the part 8:64, thread T0's values V0 and V1 are 64"):
        run(body, X)


def test_why_ldmatrix_wants_neighbours_along_k_side_by_side() -> None:
    """What one lane reads goes to four lanes' registers; the MMA's table says which elements of A those are."""
    atom, table = matrix(), half_mma().tv_layout_A
    owner = {atom.layout_dst_tv(t, v): (t, v) for t in range(32) for v in range(8)}
    for lane in range(32):
        taken = [owner[atom.layout_src_tv(lane, v)] for v in range(8)]
        assert taken == [(4 * (lane % 8) + i // 2, 2 * (lane // 8) + i % 2) for i in range(8)]
        places = [(table(t, v) % 16, table(t, v) // 16) for t, v in taken]
        row, k = places[0]
        assert places == [(row, k + i) for i in range(8)] and k % 8 == 0
        for memory, side_by_side in ((Layout((16, 16), (16, 1)), True), (Layout((16, 16)), False)):
            where = [memory(m, k) for m, k in places]
            assert (where == list(range(where[0], where[0] + 8))) == side_by_side


def first_tile(tidx: Any, x: Any) -> None:
    part = by_rows(universal(128)).get_slice(tidx).partition_S(cute.local_tile(x, (16, 64), (0, 0)))
    cute.copy(universal(128), part, cute.make_rmem_tensor(part.shape, cutlass.Float16))


def test_run_time_strides_are_told_apart() -> None:
    with pytest.raises(ConstraintError) as caught:
        run(first_tile, np.asfortranarray(X), dynamic=True)
    text = str(caught.value)
    assert "the tensor (16,64):(1,?), thread T0's values V0 and V1 (at (0,0) and (0,1)) are a run-time" in text, text
    assert "(leading_dim), or give the tensor a layout such as (16,64):(64,1), or copy 16 bits at a time" in text, text


def test_a_run_time_stride_must_promise_the_alignment() -> None:
    with pytest.raises(ConstraintError) as caught:
        run(first_tile, X, dynamic=True)
    text = str(caught.value)
    assert "of the tensor (16,64):(?,1), a step along mode 0 is a run-time number of 2-byte elements" in text, text
    assert "promise a multiple of 8" in text and "or copy 16 bits at a time" in text, text


@pytest.mark.parametrize("count", [2, 4, 8])
def test_every_number_of_elements_that_an_instruction_moves_is_contiguous(count: int) -> None:
    def body(step: int) -> Any:
        def copy(t: Any, x: Any) -> None:
            whole = cute.make_tensor(x.iterator, make_layout((8, 8), stride=(64, step)))
            tiled = cute.make_tiled_copy_tv(universal(16 * count), make_layout((8, 1)), make_layout((1, 8)))
            part = tiled.get_slice(t).partition_S(whole)
            cute.copy(tiled, part, cute.make_fragment_like(part))

        return copy

    run(body(1), X, threads=8)
    with pytest.raises(ConstraintError, match="contiguous|apart"):
        run(body(2), X, threads=8)
