"""Activations in the epilogue against float64: within 0.6 units of the last place of Float16 (GELU 0.65), as of
Float32."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright import BFloat16, Float32
from tilewright.gemm import kernels, matmul
from tilewright.gemm.epilogue.activations import ACTIVATIONS, LOG2_TAIL, Activation, ActivationGradient, Gated
from tilewright.gemm.host import plan as plan_module
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.operators.planned import by_the_model
from tilewright.gemm.tuning.stand_in import stand_in

planned_module = importlib.import_module("tilewright.gemm.operators.planned")

EXACT: dict[str, Callable[[float], float]] = {
    "relu": lambda x: max(x, 0.0),
    "squared_relu": lambda x: max(x, 0.0) ** 2,
    "gelu": lambda x: x * 0.5 * math.erfc(-x / math.sqrt(2)),
    "gelu_tanh": lambda x: x / (1 + exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "sigmoid": lambda x: 1 / (1 + exp(-x)),
    "silu": lambda x: x / (1 + exp(-x)),
    "tanh": math.tanh,
}


def exp(x: float) -> float:
    return math.exp(x) if x < 700 else math.inf


def applied(name: str, x: np.ndarray, out: Any, device: str = "cpu") -> np.ndarray:
    """The activation of each number, by a product with one nonzero element of A in each row."""
    a, b = np.zeros((x.size, 16), np.float16), np.zeros((16, 16), np.float16)
    a[:, 0], b[0, 0] = x, 1
    if device == "cpu":
        return matmul(a, b, activation=name, out_dtype=out)[:, 0].astype(np.float64)
    import torch

    left, right = (torch.from_numpy(v).to(device) for v in (a, b))
    return matmul(left, right, activation=name, out_dtype=out)[:, 0].double().cpu().numpy()


def check(name: str, out: Any, device: str) -> None:
    x = np.concatenate([np.linspace(-12, 12, 1009), np.linspace(-0.01, 0.01, 101), [0, 30, -30, 200, -200]])
    x = x.astype(np.float16)
    exact = np.array([EXACT[name](float(v)) for v in x])
    ulp = np.spacing(np.abs(exact).astype(out)).astype(np.float64)
    # Float32 forms cancel near 0 and in the tail, where only their absolute error is small.
    least = 0.0 if out is np.float16 else 2e-7
    error = np.abs(applied(name, x, out, device) - exact) - least
    most = 8 * 0.6 if out is np.float32 else 0.65 if name == "gelu" else 0.6
    assert (error <= most * ulp).all(), (name, x[(error / ulp).argmax()])


@pytest.mark.parametrize("out", [np.float16, np.float32])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_is_exact_to_the_last_place(name: str, out: Any) -> None:
    check(name, out, "cpu")


@pytest.mark.gpu
@pytest.mark.parametrize("out", [np.float16, np.float32])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_is_exact_to_the_last_place_on_a_gpu(name: str, out: Any) -> None:
    check(name, out, "cuda")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_infinity_and_nan(name: str, device: str) -> None:
    """A row of A with a NaN is NaN; sums beyond Float16 are infinite in Float32 and end in the function's limit."""
    a, b = np.full((16, 16), 60000, np.float16), np.full((16, 16), 60000, np.float16)
    a[0] = np.nan
    a[1] *= -1
    limit = {"sigmoid": 1.0, "tanh": 1.0}.get(name, math.inf)
    if device == "cpu":
        with np.errstate(over="ignore"):
            result = matmul(a, b, activation=name)
    else:
        import torch

        result = matmul(*(torch.from_numpy(x).cuda() for x in (a, b)), activation=name).cpu().numpy()
    assert np.isnan(result[0]).all() and (result[2:] == limit).all()
    assert (result[1] == (-1 if name == "tanh" else 0)).all()


def test_the_polynomial_for_gelu() -> None:
    """Its stated error, relative and, where results are subnormal numbers of Float16, absolute."""
    for a in np.linspace(0, 20, 4001):
        found, tail = 2 ** np.polyval(LOG2_TAIL[::-1], a), 0.5 * math.erfc(a / math.sqrt(2))
        assert abs(found / tail - 1) < 7.2e-5 if a <= 4.17 else a * abs(found - tail) < 9e-9, a


def test_long_epilogues_run_beside_main_loops_where_these_are_short() -> None:
    """By kernels whose warpgroups take turns; not where K is long, tiles are few, or the kernel has no such size."""
    entry, gpu = kernels()["hopper_bf16"], (132, 232448)
    hidden = entry.for_long_epilogue((8192, 8192, 1024, 1), gpu)
    assert hidden.sizes and all(size.pingpong and size.tile[1] <= 128 for size in hidden.sizes)
    assert entry.for_long_epilogue((8192, 8192, 2048, 1), gpu) == hidden
    for shape in ((8192, 8192, 2056, 1), (512, 4096, 1024, 1)):
        assert entry.for_long_epilogue(shape, gpu) is entry
    other = kernels()["tensorop_bf16"]
    assert other.for_long_epilogue((8192, 8192, 1024, 1), gpu) is other


GRADIENT = ActivationGradient("gelu", np.zeros((1, 1), np.float16))


@pytest.mark.parametrize(
    ("functions", "out", "long"),
    [
        ((), BFloat16, False),
        ((Activation("gelu"),), BFloat16, False),  # in its quick form
        ((Activation("gelu"),), Float32, True),
        ((Activation("relu"), Activation("tanh")), BFloat16, True),
        ((Gated("gelu", None),), Float32, True),
        ((GRADIENT,), BFloat16, True),
    ],
)
def test_the_plan_of_a_long_epilogue(functions: Any, out: Any, long: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Problem, "machine", "gpu")
    for name, value in (("limits", (132, 232448)), ("capability_of", 90)):
        monkeypatch.setattr(plan_module, name, lambda machine, value=value: value)
    monkeypatch.setattr(planned_module, "limits", plan_module.limits)
    problem = stand_in((8192, 8192, 1024), BFloat16, out, "k", "k")
    config = by_the_model([kernels()["hopper_bf16"]], "auto", "", functions, problem).config
    assert (config.pingpong and config.tile[1] <= 128) == long
