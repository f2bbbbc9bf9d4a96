"""A user's epilogue function reads more than its fields; when that changes, the kernel is another one."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from types import ModuleType, SimpleNamespace
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


class Plain:
    def __init__(self) -> None:
        self.factor = 1.0

    def __call__(self) -> Any:
        return self.factor


class Held(Enum):
    ONE = 1


class Number(float):
    pass


@dataclass(frozen=True)
class By(OfWholeSums):
    held: Any

    @cute.jit
    def __call__(self, acc: cute.Tensor, tile: Any) -> None:
        acc.store(acc.load() * factor_of(self.held))


def factor_of(held: Any) -> Any:
    held = held[0] if isinstance(held, (tuple, list)) else held
    held = held.get() if isinstance(held, ContextVar) else held
    return getattr(held, "factor", 1.0)


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


def variable() -> ContextVar[Any]:
    made: ContextVar[Any] = ContextVar("made")
    made.set(Plain())
    return made


HOLDERS: dict[str, Callable[[], Any]] = {
    "an object": Plain,
    "an object in a tuple": lambda: (Plain(),),
    "an object in a list": lambda: [Plain()],
    "a namespace": lambda: SimpleNamespace(factor=1.0),
    "a class": lambda: type("Made", (), {"factor": 1.0}),
    "a module": lambda: ModuleType("made"),
    "a member of an Enum": lambda: Held.ONE,
    "a number with attributes": lambda: Number(3.0),
    "a context variable": variable,
}
"""What a field may hold that changes while it stays the same object."""


@pytest.mark.parametrize(("holder", "way"), [*((holder, "torch") for holder in HOLDERS), ("an object", "gemm")])
def test_a_change_of_what_a_field_holds_is_seen(holder: str, way: str) -> None:
    like, multiply = WAYS[way]
    given, product = operands(like)
    held = HOLDERS[holder]()
    for factor in (None, 2.0, 1.0, 2.0):
        if factor is not None:
            target = held[0] if isinstance(held, (tuple, list)) else held.get() if holder.startswith("a con") else held
            target.factor = factor
        found = np.asarray(multiply(*given, By(held))).astype(np.float64)
        np.testing.assert_array_equal(found, product * factor_of(held))


def test_staging_in_an_earlier_state_leaves_the_later_one_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel for another type is staged in the first of two states: the second one still has its own number."""
    given, product = operands(np.asarray)
    wide = [x.astype(np.float32) for x in given]
    for factor, arrays in ((4.0, given), (5.0, given), (4.0, wide), (6.0, given), (5.0, given), (4.0, given)):
        monkeypatch.setattr(Limited, "factor", factor)
        found = np.asarray(matmul(*arrays, epilogue=Limited())).astype(np.float64)
        np.testing.assert_array_equal(found, np.minimum(product, limit) * factor)


def test_equal_fields_of_other_types_make_other_kernels() -> None:
    given, _ = operands(torch.from_numpy)
    for zero in (0.0, -0.0, 0.0):
        found = matmul(*given, epilogue=Scaled((zero,)), out_dtype=torch.float32)
        assert bool(torch.signbit(found).all()) == np.signbit(zero)
