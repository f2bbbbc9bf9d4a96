"""Calls whose number of rows is new: launched from calls of other rows in one range, with the numbers of their tensors,
and planned as if alone."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from tilewright import sim
from tilewright.errors import ArgumentError
from tilewright.gemm import (
    block_scaled_matmul,
    blocked_scales,
    combine_rows,
    grouped_matmul,
    mixed_matmul,
    prepare_weight,
    scaled_grouped_matmul,
    scaled_matmul,
)
from tilewright.gemm.epilogue.activations import Gated
from tilewright.gemm.operators import launches, repeated_call
from tilewright.gemm.operators.matmul import Request
from tilewright.gemm.operators.open_extents import Known, Numbers, Place, exact_numbers, opened, places_of
from tilewright.gemm.operators.planned import by_the_model
from tilewright.gemm.operators.rows import planned_rows

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.unchecked

K, N, GROUPS = 128, 64, 3
Drawn = Callable[..., Any]
Made = tuple[Callable[[], Any], Any]
"""A call, and its result in float64."""


def drawing(device: str, seed: int) -> Drawn:
    """Tensors of small integers."""
    numbers = np.random.default_rng(seed)

    def draw(*shape: int, dtype: Any = torch.float32) -> Any:
        return torch.from_numpy(numbers.integers(-3, 4, shape).astype(np.float32)).to(device).to(dtype)

    return draw


def mixed(draw: Drawn, rows: int, eight: bool = False) -> Made:
    a, numbers = draw(rows, K, dtype=torch.float8_e4m3fn if eight else torch.float16), draw(N, K, dtype=torch.int8)
    weight, scale = prepare_weight(numbers, torch.ones(N, 1, device=a.device).half()), draw(rows, 1).exp2()
    more = {"scale_a": scale} if eight else {}
    wanted = a.double() @ numbers.double().T * (scale.double() if eight else 1)
    return lambda: mixed_matmul(a, weight, out_dtype=torch.float32, **more), wanted


def scaled(draw: Drawn, rows: int, vectors: bool = True, into: bool = False) -> Made:
    a, b = draw(rows, K, dtype=torch.float8_e4m3fn), draw(N, K, dtype=torch.float8_e4m3fn).T
    scale_a, scale_b = (draw(rows, 1), draw(1, N)) if vectors else (draw(1), draw(1))
    result = {"out": draw(rows + 2, N + 16)[1:-1, :N]} if into else {"out_dtype": torch.float32}
    wanted = (a.double() * scale_a) @ (b.double() * scale_b)
    return lambda: scaled_matmul(a, b, scale_a, scale_b, **result), wanted


def ends_of(rows: int, device: Any) -> Any:
    return torch.tensor([rows // 3, rows // 3, rows - 1], dtype=torch.int32, device=device)


def by_groups(a: Any, b: Any, ends: Any) -> Any:
    found, first = a.new_zeros(a.shape[0], b.shape[2]), 0
    for group, last in enumerate(ends.tolist()):
        found[first:last] = a[first:last] @ b[group]
        first = last
    return found


def grouped(draw: Drawn, rows: int, how: str = "auto") -> Made:
    a, b = draw(rows, K, dtype=torch.float16), draw(GROUPS, K, N, dtype=torch.float16)
    ends = ends_of(rows, a.device)
    return lambda: grouped_matmul(a, b, ends, decomposition=how), by_groups(a.double(), b.double(), ends)


def gathered(draw: Drawn, rows: int) -> Made:
    """Two extents are open: the rows of the product, and those that they are read from; a gate has an array, too."""
    a, b = draw(rows // 2 + 3, K, dtype=torch.float16), draw(GROUPS, K, N, dtype=torch.float16)
    index, ends = (torch.arange(rows, device=a.device) * 7 % len(a)).int(), ends_of(rows, a.device)
    gated = torch.empty(rows, N // 2, dtype=torch.float16, device=a.device)
    both = by_groups(a.double()[index.long()], b.double(), ends)
    gate = Gated("relu", gated, store_preact=False)
    return lambda: grouped_matmul(a, b, ends, rows=index, epilogue=gate), both[:, ::2].relu() * both[:, 1::2]


def of_k(draw: Drawn, rows: int) -> Made:
    """The gradient of a weight: rows are added up."""
    a, b = draw(rows, K, dtype=torch.float16), draw(rows, N, dtype=torch.float16)
    ends = ends_of(rows, a.device)
    begins = [0, *ends.tolist()]
    wanted = torch.stack([a[i:j].double().T @ b[i:j].double() for i, j in zip(begins, begins[1:], strict=False)])
    return lambda: grouped_matmul(a.T, b, ends), wanted


def scaled_grouped(draw: Drawn, rows: int) -> Made:
    a, b = draw(rows, K, dtype=torch.float8_e4m3fn), draw(GROUPS, N, K, dtype=torch.float8_e4m3fn).mT
    of_rows, columns, ends = draw(rows), draw(GROUPS, N), ends_of(rows, a.device)
    wanted = by_groups(a.double() * of_rows[:, None], b.double() * columns[:, None, :], ends)
    return lambda: scaled_grouped_matmul(a, b, of_rows, columns, ends, out_dtype=torch.float32), wanted


def combined(draw: Drawn, rows: int) -> Made:
    source, weights = draw(2 * rows + 5, N), draw(rows, 2)
    places = (torch.arange(2 * rows, device=source.device) * 5 % len(source)).int().view(rows, 2)
    wanted = (source.double()[places.long()] * weights.double()[..., None]).sum(1)
    return lambda: combine_rows(source, places, weights), wanted


def block_scaled(draw: Drawn, rows: int) -> Made:
    e4m3, e8m0 = torch.float8_e4m3fn, torch.float8_e8m0fnu
    a, b = draw(rows, K, dtype=e4m3), draw(N, K, dtype=e4m3)
    scales = [blocked_scales(torch.ones(count, K // 32).to(e8m0)) for count in (rows, N)]
    return lambda: block_scaled_matmul(a, b.T, *scales, out_dtype=torch.float32), a.double() @ b.double().T


CASES: dict[str, tuple[Any, ...]] = {
    "few rows by a prepared weight": ((2, 8), mixed),
    "rows by a prepared weight": ((65, 72), mixed),
    "rows of 8 bits by a prepared weight": ((65, 72), mixed, True),
    "scales of rows": ((129, 144), scaled),
    "one scale": ((33, 40), scaled, False),
    "scales of rows, out": ((33, 40), scaled, True, True),
    "groups": ((33, 40), grouped),
    "groups of rows by index, with a gate": ((33, 40), gathered),
    "groups of K": ((33, 40), of_k),
    "scaled groups": ((33, 40), scaled_grouped),
    "sums of rows": ((9, 16), combined),
    "scales of blocks": ((33, 40), block_scaled),
}
PLACED = ("groups", "scaled groups", "groups of rows by index, with a gate", "groups of K")
"""Cases with memory in between, whose remainders by a page are the same in all calls on a GPU only."""


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    repeated_call.forget()
    yield
    repeated_call.forget()


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The calls that were recorded."""
    from tilewright.gemm.operators import torch_recording

    found: list[Any] = []
    recorded = torch_recording.recorded

    def spy(*given: Any) -> Any:
        found.append(recorded(*given))
        return found[-1]

    monkeypatch.setattr(torch_recording, "recorded", spy)
    return found


def rows_in_turn(case: str, device: str, long: list[Any]) -> list[int]:
    """Multiply all numbers of rows of a range, each with numbers and memory of its own; those that went a long way."""
    (first, last), make, *options = CASES[case]
    at_length, choose = [], np.random.default_rng(1)
    for turn, rows in enumerate([first, last, *choose.permutation(np.arange(first + 1, last)).tolist()]):
        call, wanted = make(drawing(device, turn), rows, *options)
        before, found = len(long), call()
        assert found.shape == wanted.shape
        np.testing.assert_array_equal(found.cpu().double(), wanted.to(found.dtype).cpu().double())
        at_length += [rows] if len(long) > before else []
    return at_length


@pytest.mark.parametrize("case", [case for case in CASES if case not in PLACED])
def test_two_calls_are_enough_for_a_range(case: str, long: list[Any]) -> None:
    (first, last), *_ = CASES[case]
    with sim.options(arch="sm_100a" if case == "scales of blocks" else "sm_90a", sms=4):
        assert rows_in_turn(case, "cpu", long) == [first, last]


@pytest.mark.parametrize("case", PLACED)
def test_groups_have_the_numbers_of_their_tensors(case: str, long: list[Any]) -> None:
    with sim.options(arch="sm_90a", sms=4):
        rows_in_turn(case, "cpu", long)


@pytest.mark.gpu
@pytest.mark.parametrize("case", [case for case in CASES if case != "scales of blocks"])
def test_two_calls_are_enough_on_a_gpu(case: str, long: list[Any]) -> None:
    (first, last), *_ = CASES[case]
    assert rows_in_turn(case, "cuda", long) == [first, last]
    for _ in range(6):  # by now only addresses are written anew
        assert rows_in_turn(case, "cuda", long) == []


RANGES = {
    "few rows by a prepared weight": ("sm_80", (33, 64, 45, 50, 3)),
    "rows by a prepared weight": ("sm_90a", (65, 72, 121, 129)),
    "scales of rows": ("sm_90a", (129, 144, 40, 200)),
    "sums of rows": ("sm_90a", (9, 16, 3, 30, 31)),
}
"""Rows of several ranges; the first two show the places of their number. The size for 129 is another one."""


@pytest.mark.parametrize("case", RANGES)
def test_where_the_same_is_decided_launches_are_those_at_length(case: str, long: list[Any]) -> None:
    arch, rows = RANGES[case]
    with sim.options(arch=arch, sms=4):
        derived_as_at_length(case, "cpu", rows, long)


@pytest.mark.gpu
@pytest.mark.parametrize("case", [*RANGES, *PLACED])
def test_where_the_same_is_decided_launches_are_those_at_length_on_a_gpu(case: str, long: list[Any]) -> None:
    derived_as_at_length(case, "cuda", (65, 72, 80, 200, 3, 9000, 9080, 9300, 9500), long)


def derived_as_at_length(case: str, device: str, numbers: tuple[int, ...], long: list[Any]) -> None:
    """Calls that were derived, also in ranges that no call was in: the results, and every number of the launches."""
    _, make, *options = CASES[case]
    derived = {}
    for turn, rows in enumerate(numbers):
        call, wanted = make(drawing(device, turn), rows, *options)
        before, found = len(long), call()
        np.testing.assert_array_equal(found.cpu().double(), wanted.to(found.dtype).cpu().double())
        if len(long) == before:
            derived[rows] = list(repeated_call.CALLS.values())[-1]
    seen = {planned_rows(call.result.shape[-2]) for _, call in long}
    assert any(planned_rows(rows) not in seen for rows in derived)
    for rows, known in derived.items():
        repeated_call.forget()
        make(drawing(device, 0), rows, *options)[0]()
        assert [*exact_numbers(known)] == [*exact_numbers(long[-1][1])]
        assert [slots_of(*one) for one in known.launches] == [slots_of(*one) for one in long[-1][1].launches]


def slots_of(launches: Any, places: Any) -> Any:
    """What is launched, and where addresses go."""
    return [(step.code, [x[:2] for x in step.slots]) for step in launches.bindings[0]], places


def test_blocks_that_share_tiles_do_so_for_other_rows_on_any_stream(
    long: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def planner(self: Request, entries: Any, may_pack: str) -> Any:
        one = entries[0].only(entries[0].config)
        return partial(by_the_model, [one], "stream_k", may_pack, ())

    monkeypatch.setattr(Request, "planner", planner)
    streams = iter((0, 0, 5, 0, 5))
    monkeypatch.setattr(launches, "current_stream", lambda device, apart: next(streams))
    with sim.options(arch="sm_90a", sms=3):
        for turn, rows in enumerate((33, 40, 120, 50, 130)):
            draw = drawing("cpu", turn)
            a, b, scale = draw(rows, 1024, dtype=torch.int8), draw(N, 1024, dtype=torch.int8).T, draw(rows, 1)
            found = scaled_matmul(a, b, scale, torch.ones(1), out_dtype=torch.float32)
            np.testing.assert_array_equal(found.double(), a.double() @ b.double() * scale)
    assert all(launched.workspace for _, call in long for launched, _ in call.launches)
    assert [call.result.shape[0] for _, call in long] == [33, 40, 130], "130 rows have another tile"


@pytest.mark.parametrize("case", ["rows by a prepared weight", "scales of rows", "groups"])
def test_what_decides_for_other_rows_keeps_no_array(case: str) -> None:
    def operands() -> list[Any]:
        (first, _), make, *options = CASES[case]
        given, draw = list[Any](), drawing("cpu", 0)

        def drawn(*shape: int, **more: Any) -> Any:
            given.append(draw(*shape, **more))
            return given[-1]

        make(drawn, first, *options)[0]()
        return [weakref.ref(x) for x in given[:2]]  # the simulator keeps others, until its next kernel

    with sim.options(arch="sm_90a", sms=4):
        kept = operands()
        gc.collect()
        assert [x() for x in kept] == [None, None]


def test_tuned_rows_and_other_shapes_of_scales_are_looked_at_at_length(
    long: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a range that is known, too."""
    monkeypatch.setattr("tilewright.gemm.operators.rows.store.may_have", lambda problem: problem().shape[0] == 134)
    for rows in (129, 144, 134, 135):
        scaled(drawing("cpu", rows), rows)[0]()
    assert [call.result.shape[0] for _, call in long] == [129, 144, 134]

    def by_blocks(rows: int) -> Any:
        a, b = torch.ones(rows, 256).to(torch.float8_e4m3fn), torch.ones(64, 256).to(torch.float8_e4m3fn).T
        return scaled_matmul(a, b, torch.ones(1, 2), torch.ones(2, 1))

    with sim.options(arch="sm_90a", sms=4):
        assert all((by_blocks(rows) == 256).all() for rows in (97, 112, 100))
        with pytest.raises(ArgumentError, match="scale_a has the shape"):
            by_blocks(200)


def test_rows_alone_are_open(long: list[Any]) -> None:
    """Another type, stride, alignment, kind of scale or number of columns is another call."""

    def multiplied(rows: int, **changed: Any) -> None:
        draw = drawing("cpu", rows)
        e4m3 = torch.float8_e4m3fn
        a, b = draw(rows, K, dtype=e4m3), draw(N, K, dtype=e4m3).T
        given = {"a": a, "b": b, "scale_a": draw(rows, 1), "scale_b": draw(1, N)} | {
            name: make(draw, rows) for name, make in changed.items()
        }
        found = scaled_matmul(**given, out_dtype=torch.float32)
        wanted = (given["a"].double() * given["scale_a"]) @ (given["b"].double() * given["scale_b"])
        np.testing.assert_array_equal(found.double(), wanted)

    for rows in (33, 40, 34):
        multiplied(rows)
    assert len(long) == 2
    e4m3, e5m2 = torch.float8_e4m3fn, torch.float8_e5m2
    changes: list[dict[str, Any]] = [
        {"a": lambda draw, rows: draw(rows, K, dtype=e5m2)},
        {"a": lambda draw, rows: draw(rows, K + 16, dtype=e4m3)[:, :K]},
        {"a": lambda draw, rows: draw(rows * K + 1, dtype=e4m3)[1:].view(rows, K)},
        {"scale_a": lambda draw, rows: draw(1)},
        {"scale_a": lambda draw, rows: draw(rows, 2)[:, :1]},
        {"b": lambda draw, rows: draw(2 * N, K, dtype=e4m3).T, "scale_b": lambda draw, rows: draw(1, 2 * N)},
    ]
    for count, changed in enumerate(changes, 3):
        multiplied(36, **changed)
        assert len(long) == count


def test_what_is_refused_stays_refused() -> None:
    def call(rows: int, scales: int) -> Any:
        draw = drawing("cpu", 0)
        a, b = draw(rows, K, dtype=torch.float8_e4m3fn), draw(N, K, dtype=torch.float8_e4m3fn).T
        return scaled_matmul(a, b, draw(scales, 1), draw(1, N))

    for rows in (33, 40, 36):
        call(rows, rows)
    with pytest.raises(ArgumentError, match="scale_a"):
        call(37, 36)


def test_offsets_are_checked_against_the_rows_of_each_call() -> None:
    draw = drawing("cpu", 0)
    whole, b = draw(40, K, dtype=torch.float16), draw(GROUPS, K, N, dtype=torch.float16)
    for rows in (33, 40, 34, 35, 36, 37, 38, 39) * 2:
        ends = torch.tensor([3, 5, rows], dtype=torch.int32)
        grouped_matmul(whole[:rows], b, ends)
        with pytest.raises(ArgumentError, match="offsets do not fall"):
            grouped_matmul(whole[: rows - 1], b, ends)


def test_what_is_planned_for_one_number_of_rows_is_for_no_other(
    long: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tilewright.gemm.operators.rows.holds", lambda plan, rows: False)
    (first, last), *_ = CASES["one scale"]
    assert sorted(rows_in_turn("one scale", "cpu", long)) == [*range(first, last + 1)]


def test_a_result_whose_offsets_are_wide_is_planned(long: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches with offsets of 32 bits are not made for a result that needs 64."""
    monkeypatch.setattr("tilewright.gemm.operators.open_extents.WIDE_OFFSET", 39 * 256)
    for rows in (33, 34, 35, 39, 40):
        draw = drawing("cpu", rows)
        a, b = draw(rows, K, dtype=torch.float8_e4m3fn), draw(256, K, dtype=torch.float8_e4m3fn).T
        found = scaled_matmul(a, b, draw(1).abs() + 1, torch.ones(1), out_dtype=torch.float32)
        assert found.shape == (rows, 256)
    assert [call.result.shape[0] for _, call in long] == [33, 34, 40]


def test_an_extent_that_has_been_one_number_is_learnt_when_it_changes(long: list[Any]) -> None:
    """Rows of the source that are not there count as zeros, so their number matters."""
    source, weights = torch.arange(1.0, 31.0)[:, None].repeat(1, 8), torch.ones(16, 2)
    places = torch.full((16, 2), 29, dtype=torch.int32)
    for tokens, rows in ((9, 30), (16, 30), (12, 30), (13, 20), (14, 20), (15, 30)):
        found = combine_rows(source[:rows], places[:tokens], weights[:tokens])
        assert torch.equal(found, torch.full((tokens, 8), 60.0 if rows == 30 else 0.0))
    assert len(long) == 3


# -- what is open, and where it is -------------------------------------------------------------------------------------


def test_an_extent_that_says_more_than_how_many_is_not_open() -> None:
    modes = [(Place(0), Place(1, vector=True))]
    a, column = torch.zeros(9, 16), torch.zeros(9, 1)
    found = opened([a, column], modes)
    assert found is not None and found.extents == (9,) and found.modes == {0: (0, 0), 1: (0, 0)}
    assert opened([a[:1], column[:1]], modes) is None, "one row: its stride says nothing"
    assert opened([a.T.contiguous().T, column], modes) is None, "rows next to each other"
    assert opened([column, column], modes) is None, "rows of one element"
    large = torch.empty(1 << 27, 32, dtype=torch.int8, device="meta")
    assert opened([large, column], modes) is None, "offsets of 64 bits"
    assert opened([large[: 1 << 25], column], modes) is not None
    only = opened([a, torch.zeros(1, 1)], modes)
    assert only is not None and only.modes == {0: (0, 0)}, "one scale for all rows"


def known(extents: tuple[int, ...], *exact: Any, bounds: tuple[tuple[int, int], ...] = ()) -> Known:
    return Known(None, extents, Numbers(list(exact), list(bounds)))


def test_places_are_those_of_numbers_that_are_the_extent_in_both() -> None:
    found = places_of(
        known((9,), 9, 128, 2.0, 9, bounds=((0, 0), (90, 0))), known((12,), 12, 128, 2.0, 9, bounds=((0, 0), (120, 0)))
    )
    assert found is not None
    assert (found.exact, found.bounds, found.fixed) == ([0, None, None, None], [False, True], ())
    assert places_of(known((9,), 16), known((17,), 24)) is None, "rounded up to 8"
    assert places_of(known((9,), 5), known((10,), 6)) is None, "another number that depends on it"
    assert places_of(known((9,), bounds=((7, 1),)), known((12,), bounds=((9, 2),))) is None, "no bounds of an operand"
    two = places_of(known((9, 4), 9, 4), known((12, 4), 12, 4))
    assert two is not None and two.fixed == (1,), "the second extent has been one number"
    assert places_of(known((9, 9), 9), known((12, 12), 12)) is None, "either of two"


def test_what_decides_the_kernel_of_a_prepared_weight_does_not_change_in_a_range() -> None:
    """The thresholds of ``mixed_matmul`` are ends of ranges."""
    from tilewright.gemm.operators import mixed as module

    thresholds = {module.MOST_ROWS, module.FEW_ROWS, module.FEW_ROWS_OF_8_BITS, module.MOST_CONVERTED}
    thresholds |= {rows for sizes in module.SIZES.values() for rows in sizes} | set(module.MOST_NARROWED.values())
    assert all(planned_rows(rows) == rows for rows in thresholds)
