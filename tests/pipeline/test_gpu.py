"""The programs of the simulator's pipeline tests on a GPU."""

from __future__ import annotations

import pytest

from tests.pipeline.programs import Parities, PingPong, SumOfTiles, Transpose
from tilewright.cute.runtime import from_dlpack

pytestmark = pytest.mark.gpu
torch = pytest.importorskip("torch")


@pytest.mark.parametrize("how", ["states", "handles", "tokens"])
@pytest.mark.parametrize(("warps", "stages", "n"), [(1, 3, 8), (2, 2, 500), (1, 1, 64), (4, 4, 2)])
def test_threads_produce_and_consume(how: str, warps: int, stages: int, n: int) -> None:
    width = 32 * warps
    out = torch.full((40, n, width), -1.0, device="cuda")
    Transpose(warps, stages, how)(from_dlpack(out).mark_layout_dynamic())
    block, i, j = torch.meshgrid(torch.arange(40), torch.arange(n), torch.arange(width), indexing="ij")
    assert (out.cpu() == 1000 * block + 100 * i + width - 1 - j).all()


@pytest.mark.parametrize(("consumers", "stages", "n"), [(1, 2, 7), (2, 3, 300), (3, 1, 64), (7, 4, 1000)])
def test_cp_async_produces_and_several_warps_consume(consumers: int, stages: int, n: int) -> None:
    x = torch.randint(-9, 9, (n, 128), device="cuda").float()
    out = torch.zeros(consumers, 128, device="cuda")
    SumOfTiles(consumers, stages)(from_dlpack(x, assumed_align=16), from_dlpack(out))
    assert (out == x.sum(0)).all()


def test_named_barriers_let_two_halves_take_turns() -> None:
    out = torch.zeros(100, dtype=torch.int32, device="cuda")
    PingPong()(from_dlpack(out))
    assert out.tolist() == [10, 20] * 50


def test_parities() -> None:
    out = torch.zeros(5, 32, dtype=torch.int32, device="cuda")
    Parities()(from_dlpack(out))
    assert out[:4].tolist() == [[value] * 32 for value in (0, 1, 1, 0)]
    assert out[4].tolist() == [0] * 16 + [1] * 16
