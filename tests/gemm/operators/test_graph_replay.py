"""Products in CUDA graphs: captured once, then operands, scales, indices and offsets change in place, and each replay
gives the result of the new values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tilewright.gemm import combine_rows, grouped_matmul, matmul, mixed_matmul, prepare_weight, scaled_grouped_matmul
from tilewright.gemm.epilogue.activations import Gated

torch = pytest.importorskip("torch")

ROWS, K, N, EXPERTS = 96, 192, 128, 5
Tensors = dict[str, Any]
Case = tuple[Callable[[Any], Tensors], Callable[[Tensors], Any], Callable[[Tensors], Any]]
"""What draws the tensors of a call, the call, and the same in float64."""


def integers(draw: Any, *shape: int, dtype: Any = None) -> Any:
    return torch.randint(-2, 3, shape, generator=draw).to(dtype or torch.float16)


def ends_of(draw: Any, extent: int = ROWS, step: int = 1) -> Any:
    """Where groups end; some are empty, and some of the extent may belong to none."""
    return (torch.randint(0, extent // step + 1, (EXPERTS,), generator=draw).sort().values * step).int()


def by_groups(a: Any, b: Any, ends: Any) -> Any:
    """Rows of ``a`` times the matrix of their group."""
    found = a.new_zeros(a.shape[0], b.shape[2])
    for group, (first, last) in enumerate(zip([0, *ends.tolist()], ends.tolist(), strict=False)):
        found[first:last] = a[first:last] @ b[group]
    return found


def groups(how: str) -> Case:
    def drawn(draw: Any) -> Tensors:
        return {"a": integers(draw, ROWS, K), "b": integers(draw, EXPERTS, K, N), "ends": ends_of(draw)}

    return (
        drawn,
        lambda t: grouped_matmul(t["a"], t["b"], t["ends"], decomposition=how),
        lambda t: by_groups(t["a"].double(), t["b"].double(), t["ends"]),
    )


def gathered(how: str) -> Case:
    def drawn(draw: Any) -> Tensors:
        index = torch.randint(0, 40, (ROWS,), generator=draw).int()
        return {"a": integers(draw, 40, K), "b": integers(draw, EXPERTS, K, N), "index": index, "ends": ends_of(draw)}

    return (
        drawn,
        lambda t: grouped_matmul(t["a"], t["b"], t["ends"], rows=t["index"], decomposition=how),
        lambda t: by_groups(t["a"].double()[t["index"].long()], t["b"].double(), t["ends"]),
    )


def groups_of_k(how: str, step: int) -> Case:
    """At multiples of 8, which TMA can begin at, or between them: one launch of two does the work, as the device
    decides."""

    def drawn(draw: Any) -> Tensors:
        return {"a": integers(draw, N, ROWS), "b": integers(draw, ROWS, N), "ends": ends_of(draw, step=step)}

    def exact(t: Tensors) -> Any:
        begins = [0, *t["ends"].tolist()]
        a, b = t["a"].double(), t["b"].double()
        return torch.stack([a[:, i:j] @ b[i:j] for i, j in zip(begins, begins[1:], strict=False)])

    return drawn, lambda t: grouped_matmul(t["a"], t["b"], t["ends"], decomposition=how), exact


def scaled_groups() -> Case:
    def drawn(draw: Any) -> Tensors:
        e4m3 = torch.float8_e4m3fn
        return {
            "a": integers(draw, ROWS, K, dtype=e4m3),
            "b": integers(draw, EXPERTS, N, K, dtype=e4m3),
            "rows": integers(draw, ROWS, dtype=torch.float32),
            "columns": integers(draw, EXPERTS, N, dtype=torch.float32),
            "ends": ends_of(draw),
        }

    def call(t: Tensors) -> Any:
        return scaled_grouped_matmul(t["a"], t["b"].mT, t["rows"], t["columns"], t["ends"], out_dtype=torch.float32)

    def exact(t: Tensors) -> Any:
        a, b = t["a"].double() * t["rows"][:, None], t["b"].mT.double() * t["columns"][:, None, :]
        return by_groups(a, b, t["ends"])

    return drawn, call, exact


def experts() -> Case:
    """A block of experts: tokens read by index, a gate, the second product, the weighted sum of each token's rows."""
    tokens = ROWS // 2

    def drawn(draw: Any) -> Tensors:
        chosen = torch.rand(tokens, EXPERTS, generator=draw).topk(2).indices
        by_expert, order = chosen.reshape(-1).sort(stable=True)
        places = torch.empty_like(order).scatter_(0, order, torch.arange(len(order)))
        return {
            "x": integers(draw, tokens, K),
            "first": integers(draw, EXPERTS, K, 2 * N) / 8,
            "second": integers(draw, EXPERTS, N, K) / 8,
            "index": (order // 2).int(),
            "ends": torch.searchsorted(by_expert, torch.arange(EXPERTS), right=True).int(),
            "places": places.int().view(tokens, 2),
            "weights": 2.0 ** -torch.randint(1, 4, (tokens, 2), generator=draw).float(),
        }

    def call(t: Tensors) -> Any:
        gated = t["x"].new_empty(ROWS, N)
        gate = Gated("relu", gated, store_preact=False)
        grouped_matmul(t["x"], t["first"], t["ends"], rows=t["index"], epilogue=gate)
        return combine_rows(grouped_matmul(gated, t["second"], t["ends"]), t["places"], t["weights"])

    def exact(t: Tensors) -> Any:
        both = by_groups(t["x"].double()[t["index"].long()], t["first"].double(), t["ends"])
        gated = (both[:, ::2].relu() * both[:, 1::2]).half().double()
        given = by_groups(gated, t["second"].double(), t["ends"]).half().double()
        return (given[t["places"].long()] * t["weights"].double()[..., None]).sum(1)

    return drawn, call, exact


def shared_tiles() -> Case:
    """Stream-K: blocks add up their sums through memory that is the graph's own."""
    return (
        lambda draw: {"a": integers(draw, 136, 8192), "b": integers(draw, 8192, 264)},
        lambda t: matmul(t["a"], t["b"], decomposition="stream_k", out_dtype=torch.float32),
        lambda t: t["a"].double() @ t["b"].double(),
    )


def prepared_weight(rows: int, dtype: Any = None) -> Case:
    """Rows change, the weight stays."""
    draw = torch.Generator().manual_seed(9)
    numbers = torch.randint(-8, 8, (N, K + 64), generator=draw).to(torch.int8)
    weight = prepare_weight(numbers.cuda(), torch.ones(N, (K + 64) // 128).half().cuda())
    return (
        lambda draw: {"a": integers(draw, rows, K + 64, dtype=dtype)},
        lambda t: mixed_matmul(t["a"], weight, out_dtype=torch.float32),
        lambda t: t["a"].double() @ numbers.double().to(t["a"].device).T,
    )


CASES: dict[str, Callable[[], Case]] = {
    "groups": lambda: groups("auto"),
    "groups that share tiles": lambda: groups("stream_k"),
    "rows by index that share tiles": lambda: gathered("stream_k"),
    "groups of K": lambda: groups_of_k("auto", 8),
    "groups of K at any element": lambda: groups_of_k("auto", 1),
    "groups of K that share tiles": lambda: groups_of_k("stream_k", 8),
    "scaled groups": scaled_groups,
    "a block of experts": experts,
    "shared tiles": shared_tiles,
    "few rows by a prepared weight": lambda: prepared_weight(3),
    "many rows by a prepared weight": lambda: prepared_weight(96),
    "rows of 8 bits by a weight that is written out": lambda: prepared_weight(1100, torch.float8_e4m3fn),
}


@pytest.mark.gpu
@pytest.mark.parametrize("warm", [False, True], ids=["captured at first", "captured when repeated"])
@pytest.mark.parametrize("case", CASES)
def test_a_replay_has_the_numbers_that_are_there(case: str, warm: bool) -> None:
    drawn, call, exact = CASES[case]()
    draw = torch.Generator().manual_seed(1)
    tensors = {name: x.cuda() for name, x in drawn(draw).items()}
    for _ in range(8 if warm else 1):  # kernels are compiled outside of the capture
        eager = call(tensors)
    assert torch.equal(eager.double(), exact(tensors).to(eager.dtype).double())
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(graph, stream=stream):
        result = call(tensors)
    for turn in range(4):
        for name, x in drawn(draw).items():
            tensors[name].copy_(x)
        result.fill_(99)
        graph.replay()
        wanted = exact(tensors).to(result.dtype)
        assert torch.equal(result.double(), wanted.double()), turn
        assert torch.equal(call(tensors), result), "a launch beside the graph has the same bits"
