"""Pointers that loops and branches carry: afterwards only the alignment is known that every way leaves."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.cute.runtime import from_dlpack


@pytest.mark.parametrize("step, aligned", [(1, 2), (2, 4), (4, 8), (8, 16), (24, 16)])
def test_the_alignment_is_what_all_ways_leave(step: int, aligned: int) -> None:
    known: dict[str, int] = {}

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
        p = q = r = x.iterator
        for _ in cutlass.range(n):
            p = p + step
        if n > 2:
            q = q + step
        if n > 2:
            r = x.iterator + step
        else:
            r = x.iterator + 16
        known.update(loop=p.alignment, branch=q.alignment, both=r.alignment)
        y[0], y[1], y[2] = p.load(), q.load(), r.load()

    @cute.jit
    def run(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
        kernel(x, y, n).launch(grid=1, block=1)

    x, y = np.arange(100, dtype=np.float16), np.zeros(3, np.float16)
    given = from_dlpack(x, assumed_align=16), from_dlpack(y)
    compiled = cute.compile(run, *given, 3)
    assert known == {"loop": aligned, "branch": aligned, "both": aligned}
    for n in (3, 1):
        compiled(*given, n)
        assert y.tolist() == [n * step, step * (n > 2), step if n > 2 else 16]
