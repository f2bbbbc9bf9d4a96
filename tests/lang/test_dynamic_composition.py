"""Compositions whose left side is known only at run time: right where they exist, else stopped by the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.cute.runtime import from_dlpack
from tilewright.layout import composition


@cute.kernel
def offsets(out: cute.Tensor, m: cutlass.Int32, n: cutlass.Int32, right: cutlass.Constexpr) -> None:
    left = cute.make_layout((m, n), stride=(16, 1000))
    both = cute.composition(left, right)
    for i in range(cute.size(right)):
        out[i] = both(i)


@cute.jit
def run(out: cute.Tensor, m: cutlass.Int32, n: cutlass.Int32, right: cutlass.Constexpr) -> None:
    offsets(out, m, n, right).launch(grid=(1, 1, 1), block=(1, 1, 1))


def shown(m: int, n: int, right: Any) -> list[int]:
    out = np.full(cute.size(right), -1, np.int32)
    run(from_dlpack(out), m, n, right)
    return out.tolist()


@pytest.mark.parametrize(("m", "n"), [(10, 2), (2, 10), (4, 5), (20, 1), (1, 20), (5, 6)])
@pytest.mark.parametrize(
    "right", [(5, 1), (4, 5), (20, 1), ((5, 4), (1, 5)), ((2, 2), (1, 10)), (1, 3), ((4, 5), (5, 1))]
)
def test_run_time_left_sides_against_static_ones(m: int, n: int, right: tuple[Any, Any]) -> None:
    """Where the static composition exists, the same offsets; where it does not, the run stops and says why."""
    tile = cute.make_layout(right[0], stride=right[1])
    try:
        static = composition(cute.make_layout((m, n), stride=(16, 1000)), tile)
    except cutlass.errors.LayoutError:
        with pytest.raises(cutlass.errors.TilewrightError, match=r"divisibility condition|steps past|before its end"):
            shown(m, n, tile)
    else:
        assert shown(m, n, tile) == [static(i) for i in range(cute.size(tile))]


def test_every_mode_stays_as_in_the_documentation(capsys) -> None:
    @cute.jit
    def show(a: cutlass.Int32, b: cutlass.Int32) -> None:
        left = cute.make_layout((a, b), stride=(16, 4))
        print(cute.composition(left, cute.make_layout((5, 4), stride=(1, 5))))
        cute.printf("{}", cute.composition(left, cute.make_layout((5, 4), stride=(1, 5))))

    show(10, 2)
    assert capsys.readouterr().out.splitlines()[-1] == "((5,1),(2,2)):((16,4),(80,4))"


def test_tensors_of_run_time_extents_take_static_tiles() -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        out[t] = cute.composition(x, cute.make_layout(12))[t]

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor) -> None:
        kernel(x, out).launch(grid=(1, 1, 1), block=(12, 1, 1))

    x, out = np.arange(40, dtype=np.float32).reshape(4, 10), np.zeros(12, np.float32)
    host(x, out)
    assert out.tolist() == x.T.reshape(-1)[:12].tolist()
    with pytest.raises(cutlass.errors.TilewrightError, match="divisibility condition"):
        host(np.arange(50, dtype=np.float32).reshape(5, 10), out)
