"""Calls that repeat an earlier one of the same geometry: the numbers are those of the tensors of each call, and nothing
but launches is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tilewright.errors import ArgumentError
from tilewright.gemm import (
    combine_rows,
    compress_2_4,
    grouped_matmul,
    mixed_matmul,
    prepare_weight,
    scaled_grouped_matmul,
    scaled_matmul,
    sparse_matmul,
)
from tilewright.gemm.epilogue.activations import Gated
from tilewright.gemm.operators import repeated_call

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.unchecked

Drawn = Callable[..., Any]
Call = Callable[[], Any]
K, N, GROUPS = 128, 64, 3


def mixed(draw: Drawn, rows: int, bits: int, into: bool, eight: bool = False) -> tuple[Call, Any]:
    a = draw(rows, K, dtype=torch.float8_e4m3fn if eight else torch.float16)
    weight, scales = draw(N, K, dtype=torch.int8), draw(N, K // 64, dtype=torch.float16)
    prepared, bias = prepare_weight(weight, scales, bits=bits), draw(N, dtype=torch.float16)
    out = draw(rows, N, dtype=torch.float32)
    wanted = a.double() @ (weight.double() * scales.double().repeat_interleave(64, 1)).T + bias.double()
    return lambda: mixed_matmul(a, prepared, bias, **into_or_of(out, into)), wanted


def into_or_of(out: Any, into: bool) -> dict[str, Any]:
    return {"out": out} if into else {"out_dtype": out.dtype}


def scaled(draw: Drawn, into: bool) -> tuple[Call, Any]:
    a, b = draw(16, K, dtype=torch.float8_e4m3fn), draw(N, K, dtype=torch.float8_e4m3fn).T
    scale_a, scale_b, out = draw(16, 1), draw(1, N), draw(16, N)
    wanted = (a.double() * scale_a) @ (b.double() * scale_b)
    return lambda: scaled_matmul(a, b, scale_a, scale_b, **into_or_of(out, into)), wanted


def sparse(draw: Drawn, into: bool) -> tuple[Call, Any]:
    dense = draw(64, K, dtype=torch.float16)
    dense.view(-1, 2)[:, 0] = 0
    compressed, b, out = compress_2_4(dense), draw(K, N, dtype=torch.float16), draw(64, N, dtype=torch.float16)
    return lambda: sparse_matmul(compressed, b, out if into else None), dense.double() @ b.double()


def ends_of(draw: Drawn, rows: int) -> Any:
    return draw(GROUPS, dtype=torch.float32).abs().cumsum(0).clamp(max=rows).to(torch.int32)


def of_groups(a: Any, b: Any, ends: Any) -> Any:
    """The product of groups of rows."""
    wanted, first = torch.zeros(a.shape[0], b.shape[2], dtype=torch.float64, device=a.device), 0
    for group, last in enumerate(ends.tolist()):
        wanted[first:last] = a[first:last].double() @ b[group].double()
        first = last
    return wanted


def grouped(draw: Drawn, how: str, into: bool = False, indexed: bool = False) -> tuple[Call, Any]:
    rows = 9
    a, b = draw(rows, K, dtype=torch.float16), draw(GROUPS, K, N, dtype=torch.float16)
    out, ends = draw(rows, N, dtype=torch.float16), ends_of(draw, rows)
    index = torch.randperm(rows, device=a.device).to(torch.int32) if indexed else None
    more = {"decomposition": how, "out": out if into else None, "rows": index}
    return lambda: grouped_matmul(a, b, ends, **more), of_groups(a if index is None else a[index.long()], b, ends)


def grouped_columns(draw: Drawn) -> tuple[Call, Any]:
    """K is cut, at offsets that wgmma's loads cannot begin at: two launches, of which one works."""
    a, b, ends = draw(N, 24, dtype=torch.float16), draw(24, N, dtype=torch.float16), ends_of(draw, 24)
    wanted = torch.zeros(GROUPS, N, N, dtype=torch.float64, device=a.device)
    for group, (first, last) in enumerate(zip([0, *ends.tolist()], ends.tolist(), strict=False)):
        wanted[group] = a[:, first:last].double() @ b[first:last].double()
    return lambda: grouped_matmul(a, b, ends), wanted


def grouped_gate(draw: Drawn) -> tuple[Call, Any]:
    """The result of the epilogue is an array of its own."""
    a, b, ends = draw(9, K, dtype=torch.float16), draw(GROUPS, K, N, dtype=torch.float16), ends_of(draw, 9)
    gated = draw(9, N // 2, dtype=torch.float16)
    sums = of_groups(a, b, ends)
    gate, up = sums[:, 0::2], sums[:, 1::2]
    return lambda: grouped_matmul(a, b, ends, epilogue=Gated("relu", gated, store_preact=False)), gate.relu() * up


def scaled_grouped(draw: Drawn) -> tuple[Call, Any]:
    a, b = draw(9, K, dtype=torch.float8_e4m3fn), draw(GROUPS, N, K, dtype=torch.float8_e4m3fn).mT
    rows, columns, ends = draw(9), draw(GROUPS, N), ends_of(draw, 9)
    wanted = of_groups(a.double() * rows[:, None], b.double() * columns[:, None, :], ends)
    return lambda: scaled_grouped_matmul(a, b, rows, columns, ends, out_dtype=torch.float32), wanted


def combined(draw: Drawn) -> tuple[Call, Any]:
    source, weights = draw(8, N), draw(4, 2)
    places = torch.randperm(8, device=source.device).to(torch.int32).view(4, 2)
    wanted = (source.double()[places.long()] * weights.double()[..., None]).sum(1)
    return lambda: combine_rows(source, places, weights), wanted


CASES: dict[str, tuple[Any, ...]] = {
    "mixed, few rows": (mixed, 2, 4, False),
    "mixed, few rows, out": (mixed, 2, 8, True),
    "mixed, many rows": (mixed, 33, 4, False),
    "mixed, many rows, out": (mixed, 33, 8, True),
    "mixed, rows of 8 bits": (mixed, 33, 4, False, True),
    "scaled": (scaled, False),
    "scaled, out": (scaled, True),
    "sparse": (sparse, False),
    "sparse, out": (sparse, True),
    "groups": (grouped, "auto"),
    "groups, out": (grouped, "auto", True),
    "groups that share tiles": (grouped, "stream_k"),
    "groups of rows by index": (grouped, "auto", False, True),
    "groups along K": (grouped_columns,),
    "groups with a gate": (grouped_gate,),
    "scaled groups": (scaled_grouped,),
    "sums of rows": (combined,),
}


def drawing(device: str, seed: int) -> Drawn:
    """Tensors of small integers."""
    numbers = np.random.default_rng(seed)

    def draw(*shape: int, dtype: Any = torch.float32) -> Any:
        return torch.from_numpy(numbers.integers(-3, 4, shape).astype(np.float32)).to(device).to(dtype)

    return draw


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[Any, Any]]:
    """The calls that are kept, none at first."""
    kept: dict[Any, Any] = {}
    monkeypatch.setattr(repeated_call, "CALLS", kept)
    yield kept


def refuse_the_long_way(patch: pytest.MonkeyPatch) -> None:
    """No call but a repeated one is possible from now on."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("the call goes the long way")

    patch.setattr("tilewright.gemm.operators.torch_recording.recorded", refuse)


@pytest.mark.parametrize("case", CASES)
def test_a_repeated_call_has_the_numbers_of_its_tensors(
    case: str, calls: dict[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    make, *options = CASES[case]
    for turn in range(2):
        call, wanted = make(drawing("cpu", turn), *options)
        with monkeypatch.context() as patch:
            if turn:
                refuse_the_long_way(patch)
            found = call()
        np.testing.assert_array_equal(found.double(), wanted.to(found.dtype).double())
    assert len(calls) == 1


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES)
def test_repeated_calls_on_a_gpu(case: str, calls: dict[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """At many addresses, on two streams, and in a graph that is replayed with other numbers."""
    make, *options = CASES[case]
    made = [make(drawing("cuda", turn), *options) for turn in range(8)]
    streams = torch.cuda.current_stream(), torch.cuda.Stream()
    with monkeypatch.context() as patch:
        for turn in range(3):
            streams[turn % 2].wait_stream(streams[1 - turn % 2])
            with torch.cuda.stream(streams[turn % 2]):
                for call, wanted in made:
                    found = call()
                    assert torch.equal(found.double(), wanted.to(found.dtype).double())
                    refuse_the_long_way(patch)
        streams[0].wait_stream(streams[1])
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            results = [call() for call, _ in made]
        for _ in range(2):
            for result in results:
                result.zero_()
            graph.replay()
            for found, (_, wanted) in zip(results, made, strict=True):
                assert torch.equal(found.double(), wanted.to(found.dtype).double())


def test_elements_are_checked_in_repeated_calls() -> None:
    """Offsets and indices of the simulator, which a GPU cannot refuse."""
    draw = drawing("cpu", 0)
    a, b = draw(9, K, dtype=torch.float16), draw(GROUPS, K, N, dtype=torch.float16)
    good, falling, index = torch.tensor([2, 5, 9]), torch.tensor([5, 2, 9]), torch.arange(9).to(torch.int32)
    for _ in range(2):
        grouped_matmul(a, b, good.to(torch.int32), rows=index)
    with pytest.raises(ArgumentError, match="offsets do not fall"):
        grouped_matmul(a, b, falling.to(torch.int32), rows=index)
    with pytest.raises(ArgumentError, match="a has 9 rows"):
        grouped_matmul(a, b, good.to(torch.int32), rows=index + 1)


def test_a_result_over_an_operand_is_refused_in_repeated_calls() -> None:
    draw = drawing("cpu", 0)
    memory = draw(9 * K + 9 * N, dtype=torch.float16)
    a, b, ends = memory[: 9 * K].view(9, K), draw(GROUPS, K, N, dtype=torch.float16), ends_of(draw, 9)
    apart, over = memory[9 * K :].view(9, N), memory[: 9 * N].view(9, N)
    for _ in range(2):
        grouped_matmul(a, b, ends, out=apart)
    with pytest.raises(ArgumentError, match="overlap"):
        grouped_matmul(a, b, ends, out=over)


def test_one_tensor_in_two_places_is_not_taken_for_two(calls: dict[Any, Any]) -> None:
    """Both scales are one tensor at first, so that its address is that of both; then they are two."""
    draw = drawing("cpu", 0)
    a, b = draw(16, K, dtype=torch.float8_e4m3fn), draw(N, K, dtype=torch.float8_e4m3fn).T
    one, two = torch.tensor(2.0), torch.tensor(0.5)
    product = a.double() @ b.double()
    for first, second in ((one, one), (one, one), (one, two), (two, one), (two, two), (one, two)):
        found = scaled_matmul(a, b, first, second, out_dtype=torch.float32)
        np.testing.assert_array_equal(found.double(), product * first * second)
    assert len(calls) == 1


def test_what_is_copied_is_not_kept(calls: dict[Any, Any]) -> None:
    """Rows at odd addresses are copied by PyTorch, which launches alone would not repeat."""
    draw = drawing("cpu", 0)
    a = draw(2 * K + 1, dtype=torch.float16)[1:].view(2, K)
    weight, scales = draw(N, K, dtype=torch.int8), draw(N, K // 64, dtype=torch.float16)
    prepared, wanted = prepare_weight(weight, scales), weight.double() * scales.double().repeat_interleave(64, 1)
    for step in range(2):
        a += step
        np.testing.assert_array_equal(mixed_matmul(a, prepared).double(), (a.double() @ wanted.T).half().double())
    assert not calls


def test_what_is_copied_into_the_result_is_not_kept(calls: dict[Any, Any]) -> None:
    """Rows of a stack that are not those of one matrix get a copy of the product, by PyTorch."""
    draw = drawing("cpu", 0)
    weight, scales = draw(N, K, dtype=torch.int8), draw(N, K // 64, dtype=torch.float16)
    prepared, wanted = prepare_weight(weight, scales), weight.double() * scales.double().repeat_interleave(64, 1)
    for _ in range(2):
        a, out = draw(2, 3, K, dtype=torch.float16), draw(3, 2, N, dtype=torch.float16).transpose(0, 1)
        assert mixed_matmul(a, prepared, out=out) is out
        np.testing.assert_array_equal(out.double(), (a.double() @ wanted.T).half().double())
    assert not calls
