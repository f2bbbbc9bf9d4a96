"""A user's epilogue function reads more than its fields; when that changes, the kernel is another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tilewright import cute
from tilewright.gemm import gemm, grouped_matmul, matmul
from tilewright.gemm.epilogue.functions import OfWholeSums
from tilewright.gemm.host import handle
from tilewright.gemm.host.epilogue_state import states_of

torch = pytest.importorskip("torch")
limit = 5.0
staged: list[str] = []


@dataclass(frozen=True)
class Limited(OfWholeSums):
    factor = 1.0

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: Any) -> None:
        staged.append("once")
        x = acc.load()
        acc.store(cute.where(x > limit, limit, x) * self.factor)


@dataclass(frozen=True)
class Applied(OfWholeSums):
    function: Callable[[Any], Any]

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: Any) -> None:
        acc.store(self.function(acc.load()))


@dataclass(frozen=True)
class Scaled(OfWholeSums):
    factors: tuple[Any, ...]

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: Any) -> None:
        acc.store(cute.full_like(acc, self.factors[0]))


def scaled(x: Any) -> Any:
    return x * limit


def operands(like: Any) -> Any:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (32, 32)).astype(np.float16) for _ in range(2))
    return (like(a), like(b)), a.astype(np.float64) @ b


def by_groups(a: Any, b: Any, epilogue: Any) -> Any:
    return grouped_matmul(a, b[None], torch.tensor([32], dtype=torch.int32), epilogue=epilogue)


WAYS = {
    "torch": (torch.from_numpy, lambda a, b, f: matmul(a, b, epilogue=f)),
    "numpy": (np.asarray, lambda a, b, f: matmul(a, b, epilogue=f)),
    "gemm": (np.asarray, lambda a, b, f: gemm(a, b, epilogue=f).d),
    "groups": (torch.from_numpy, by_groups),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_change_of_what_a_function_reads_is_seen(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    like, multiply = WAYS[way]
    given, product = operands(like)
    for changes in ({}, {}, {"limit": 2.0}, {"limit": 3.0, "factor": 2.0}):
        for name, value in changes.items():
            monkeypatch.setitem(globals(), name, value) if name == "limit" else monkeypatch.setattr(
                Limited, name, value
            )
        want = np.minimum(product, limit) * Limited.factor
        np.testing.assert_array_equal(np.asarray(multiply(*given, Limited())).astype(np.float64), want)
        want = (product * limit).astype(np.float16)
        np.testing.assert_array_equal(np.asarray(multiply(*given, Applied(scaled))), want)


def test_what_staging_changes_itself_is_no_other_state() -> None:
    given, product = operands(np.asarray)
    before = len(handle._COMPILED), len(staged)
    for _ in range(4):
        matmul(*given, epilogue=Limited())
    assert len(handle._COMPILED) - before[0] <= 1 and len(staged) - before[1] <= 1
    assert states_of((Limited(),)) == states_of((Limited(),)) != ()


def test_equal_fields_of_other_types_make_other_kernels() -> None:
    given, _ = operands(torch.from_numpy)
    for zero in (0.0, -0.0, 0.0):
        found = matmul(*given, epilogue=Scaled((zero,)), out_dtype=torch.float32)
        assert bool(torch.signbit(found).all()) == np.signbit(zero)
