"""Stream-K across groups of which only the device knows the sizes: exact, blocks do share tiles, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gemm.operators.test_offsets import FORMS, expected, launches_of, operands
from tilewright import sim
from tilewright.cuda import compile as cross_compile
from tilewright.errors import ArgumentError
from tilewright.gemm import grouped_matmul, kernels
from tilewright.gemm.epilogue.activations import Gated
from tilewright.gemm.epilogue.functions import Bias
from tilewright.gemm.family.group_times import GroupTimes
from tilewright.gemm.kernel.group_table import EXTENT, FIRST, ITERATION, ORIGIN
from tilewright.gemm.operators import group_launch
from tilewright.gemm.schedule.group_shares import least_iterations

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@settings(max_examples=8, deadline=None)
@given(
    st.sampled_from(FORMS),
    st.tuples(*[st.integers(1, 120)] * 3),
    st.sampled_from([1, 8]),
    st.lists(st.floats(0, 1), min_size=1, max_size=5),
    st.tuples(st.booleans(), st.booleans()),
    st.sampled_from([4, 132]),
)
def test_any_groups(form: str, sizes: Any, step: int, cuts: list[float], turned: Any, multiprocessors: int) -> None:
    """By both kernels, also where the device decides between two launches by the offsets."""
    sizes = tuple(-(-size // step) * step for size in sizes)
    ends = sorted(int(cut * sizes[0]) // step * step for cut in cuts)
    a, b = operands(form, len(ends), sizes, turned)
    with sim.options(sms=multiprocessors):
        found = grouped_matmul(a, b, np.array(ends, np.int32), decomposition="stream_k")
    np.testing.assert_array_equal(found, expected(a, b, ends))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("form", "kernel"),
    [("m", "hopper_f16"), ("k", "hopper_f16"), ("m", "tensorop_f16"), ("n", "tensorop_f16"), ("k", "tensorop_f16")],
)
def test_the_table_says_where_iterations_begin(
    form: str, kernel: str, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the kernels count them; and with few tiles of long K there are more blocks than tiles."""
    torch = pytest.importorskip("torch")
    tables: list[Any] = []
    launches = launches_of(monkeypatch)
    from tilewright.gemm.operators.offsets import OffsetLaunch

    table_of, share, blocks = OffsetLaunch.table, OffsetLaunch.share, list[int]()
    monkeypatch.setattr(OffsetLaunch, "table", lambda self: tables.append(table_of(self)) or tables[-1])
    monkeypatch.setattr(OffsetLaunch, "share", lambda self, *x: blocks.append(share(self, *x)) or blocks[-1])
    cut = 2048 if form == "k" else 64
    sizes = (cut, 16, 16) if form == "k" else (cut, 2048, 16) if form == "m" else (cut, 16, 2048)
    ends = [cut // 8, cut // 8, cut // 2]
    a, b = operands(form, 3, sizes, (form == "k", False))
    given = (torch.from_numpy(x).to(device) for x in (a, b, np.array(ends, np.int32)))
    found = grouped_matmul(*given, out_dtype=torch.float32, kernel=kernel, decomposition="stream_k")
    np.testing.assert_array_equal(found.cpu().numpy(), expected(a, b, ends))
    launch, (table, _) = launches[0], tables[0]
    rows, (bM, bN, bK) = table.cpu().numpy(), launch.config.tile
    m, n, k = (rows[:-1, EXTENT + i] - rows[:-1, ORIGIN + i] * (not launch.groups.moved) for i in range(3))
    tiles = -(-m // bM) * -(-n // bN)
    iterations = tiles * [least_iterations(int(-(-one // bK))) for one in k]
    assert rows[:, FIRST].tolist() == [0, *tiles.cumsum()]
    assert rows[:, ITERATION].tolist() == [0, *iterations.cumsum()]
    assert blocks[0] > tiles.sum()


def test_a_bias_is_added_once() -> None:
    a, b = operands("m", 3, (40, 512, 16), (False, False))
    ends, bias = [8, 8, 30], np.arange(16, dtype=np.float32)
    more: dict[str, Any] = {"epilogue": Bias(bias), "out_dtype": np.float32, "decomposition": "stream_k"}
    found = grouped_matmul(a, b, np.array(ends, np.int32), **more)
    np.testing.assert_array_equal(found, expected(a, b, ends) + bias)


@settings(max_examples=6, deadline=None)
@given(
    st.tuples(*[st.integers(1, 150)] * 2),
    st.integers(1, 9),
    st.lists(st.floats(0, 1), min_size=1, max_size=5),
    st.sampled_from(["sm_80", "sm_90a", "sm_100a", "sm_120a"]),
    st.sampled_from([3, 16]),
)
def test_rows_by_index(extents: Any, deep: int, cuts: list[float], arch: str, multiprocessors: int) -> None:
    """A block begins in the middle of a tile's K with rows that it finds by index; a gate sees whole sums."""
    (rows, there), (k, n) = extents, (64 * deep, 48)
    a, b = operands("m", len(cuts), (there, k, n), (False, False))
    index = (np.arange(rows) * 7 % there).astype(np.int32)
    ends = sorted(int(cut * rows) for cut in cuts)
    exact, gated = expected(a[index], b, ends), np.zeros((rows, n // 2), np.float32)
    more: dict[str, Any] = {"rows": index, "decomposition": "stream_k", "out_dtype": np.float32}
    with sim.options(sms=multiprocessors, arch=arch):
        np.testing.assert_array_equal(grouped_matmul(a, b, np.array(ends, np.int32), **more), exact)
        grouped_matmul(a, b, np.array(ends, np.int32), epilogue=Gated("relu", gated, store_preact=False), **more)
    np.testing.assert_array_equal(gated, np.maximum(exact[:, ::2], 0) * exact[:, 1::2])


@pytest.mark.parametrize("gathered", [False, True])
@pytest.mark.parametrize("name", ["tensorop_bf16", "hopper_bf16"])
def test_sizes_whose_blocks_share_tiles_do_not_spill(
    name: str, gathered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    made: list[Any] = []
    compiled, entry = group_launch.cute.compile, kernels()[name]
    entry = entry.for_gathered_rows if gathered else entry
    monkeypatch.setattr(group_launch, "_COMPILED", {})
    monkeypatch.setattr(group_launch.cute, "compile", lambda *args: made.append(compiled(*args)) or made[-1])
    a, b = torch.zeros(64, 64).bfloat16(), torch.zeros(2, 64, 256).bfloat16()
    ends, rows = torch.tensor([30, 64], dtype=torch.int32), torch.zeros(64, dtype=torch.int32) if gathered else None
    monkeypatch.setattr(GroupTimes, "fastest_cut", lambda times, *_: max(times.sizes, key=lambda x: x.tile))
    with sim.options(sizes="gpu", arch="sm_90a"):
        grouped_matmul(a, b, ends, rows=rows, decomposition="stream_k", kernel=entry)
    assert all(cross_compile(kernel, "sm_90a").spills == 0 for kernel in made[0].kernels)


def test_refusals() -> None:
    a, b = operands("m", 1, (40, 24, 16), (False, False))
    with pytest.raises(ArgumentError, match="'split' of groups: it is one of auto, data_parallel, stream_k"):
        grouped_matmul(a, b, np.array([40], np.int32), decomposition="split")


def test_pytorch_records_no_decomposition() -> None:
    torch = pytest.importorskip("torch")
    a, b = (torch.from_numpy(x).requires_grad_() for x in operands("m", 1, (40, 24, 16), (False, False)))
    with pytest.raises(ArgumentError, match="decomposition cannot be given where PyTorch records the call"):
        grouped_matmul(a, b, torch.tensor([40], dtype=torch.int32), decomposition="stream_k")
