"""Elementary functions: Python numbers, numerics and TensorSSAs give the same."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.cute.runtime import from_dlpack

FUNCTIONS = {
    "exp": math.exp, "exp2": math.exp2, "log": math.log, "log2": math.log2, "log10": math.log10, "sin": math.sin,
    "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan, "tanh": math.tanh,
    "sqrt": math.sqrt, "rsqrt": lambda x: 1 / math.sqrt(x), "erf": math.erf, "floor": math.floor, "ceil": math.ceil,
    "round": round, "trunc": math.trunc, "log1p": math.log1p, "expm1": math.expm1,
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_python_numbers_and_numerics(name) -> None:
    function = getattr(cute.math, name)
    want = FUNCTIONS[name](0.625)
    assert function(0.625) == pytest.approx(want)
    numeric = function(cutlass.Float32(0.625))
    assert type(numeric) is cutlass.Float32 and numeric.value == pytest.approx(want)


def test_math_functions_at_run_time() -> None:
    names = tuple(FUNCTIONS)

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        data = x.load()
        for i in cutlass.range_constexpr(len(names)):
            out[i, None].store(getattr(cute.math, names[i])(data))
        out[len(names), 0] = cute.math.atan2(x[0], x[1])
        out[len(names), 1] = cute.math.exp2(x[1], fastmath=True)
        out[len(names), 2] = cute.math.fma(x[0], x[1], x[2])
        out[len(names), 3] = cute.math.pow(x[0], x[1])

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=(1, 1, 1), block=(1, 1, 1))

    x = np.array([0.1, 0.4, 0.7, 0.9], np.float32)
    out = np.zeros((len(names) + 1, 4), np.float32)
    host(from_dlpack(x), from_dlpack(out))
    want = [[FUNCTIONS[n](float(v)) for v in x] for n in names]
    want.append([math.atan2(x[0], x[1]), 2 ** float(x[1]), x[0] * x[1] + x[2], float(x[0]) ** float(x[1])])
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-6)


def test_edges() -> None:
    assert cute.math.log(0.0) == -math.inf and cute.math.rsqrt(0.0) == math.inf and cute.math.exp(1e4) == math.inf
    assert math.isnan(cute.math.sqrt(-1.0)) and math.isnan(cute.math.log(-1.0))
    assert cute.math.isnan(float("nan")) and not cute.math.isinf(1.0)
    assert type(cute.math.exp(cutlass.Int32(1))) is cutlass.Float32
    assert type(cute.math.exp(cutlass.Float16(1))) is cutlass.Float16


def test_min_max_and_select(stage) -> None:
    n, x = cutlass.Int32(stage.n), cutlass.Float32(stage.x)
    assert cutlass.min(3, 2, 5) == 2 and cutlass.max([1, 4]) == 4
    assert type(cutlass.max(n, 3)) is cutlass.Int32 and type(cutlass.min(x, n)) is cutlass.Float32
    assert type(cute.where(n > 3, n, 0)) is cutlass.Int32
    assert stage.opcodes()[-1] == "select"
