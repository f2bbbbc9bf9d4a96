"""Pairs of Float32: the same numbers as each of them alone, on both machines."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright.cute as cute
from tests.machines import MACHINES, OnMachine
from tilewright.errors import ConstraintError


class Pairs:
    """out[t] = sum, difference, product and fused multiply-add of the pairs x[t], y[t] (and x[t])."""

    @cute.jit
    def __call__(self, x: cute.Tensor, y: cute.Tensor, out: cute.Tensor):
        self.kernel(x, y, out).launch(grid=(1, 1, 1), block=(x.shape[0], 1, 1))

    @cute.kernel
    def kernel(self, x: cute.Tensor, y: cute.Tensor, out: cute.Tensor):
        t = cute.arch.thread_idx()[0]
        a, b = (x[t, 0], x[t, 1]), (y[t, 0], y[t, 1])
        found = (
            cute.arch.add_packed_f32x2(a, b), cute.arch.sub_packed_f32x2(a, b), cute.arch.mul_packed_f32x2(a, b),
            cute.arch.fma_packed_f32x2(a, b, a),
        )  # fmt: skip
        for i, pair in enumerate(found):
            out[t, i, 0], out[t, i, 1] = pair


@MACHINES
def test_pairs(machine: OnMachine) -> None:
    x, y = np.random.default_rng(1).standard_normal((2, 64, 2)).astype(np.float32)
    out = np.zeros((64, 4, 2), np.float32)
    machine.run(Pairs(), x, y, out)
    fused = (x.astype(np.float64) * y + x).astype(np.float32)
    assert (out == np.stack([x + y, x - y, x * y, fused], 1)).all()


def test_what_is_no_pair() -> None:
    with pytest.raises(ConstraintError, match="a pair of Float32"):
        cute.arch.add_packed_f32x2((1.0,), (1.0, 2.0))
