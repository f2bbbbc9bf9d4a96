"""``warm_up``: what it compiles is what matmul then takes, and nothing is launched."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import pytest

from tilewright import sim
from tilewright.errors import ArgumentError
from tilewright.gemm import matmul, warm_up
from tilewright.gemm.host import handle
from tilewright.gemm.operators.launches import PreparedLaunch
from tilewright.gemm.operators.prepared import Prepared

torch = pytest.importorskip("torch")
MODULE = sys.modules[matmul.__module__]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The keys of the kernels that are compiled from now on."""
    found: list[Any] = []
    compiler = handle.Compiler

    def spy(options: Any, key: Any) -> Any:
        found.append(key)
        return compiler(options, key)

    monkeypatch.setattr(handle, "Compiler", spy)
    monkeypatch.setattr(handle, "_COMPILED", {})
    monkeypatch.setattr(MODULE, "REPEATED_PRODUCTS", {})
    monkeypatch.setattr(MODULE, "_ROWS", {})
    return found


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "bias": {"bias": torch.arange(24).half(), "activation": "relu"},
    "beta": {"beta": 1.0},
    "tf32": {"precision": "tf32"},
}


@pytest.mark.unchecked
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("transposed", [False, True])
def test_warmed_up_products_are_not_compiled_again(case: str, transposed: bool, made: list[Any]) -> None:
    rows, how = (1, 2, 17, 70), CASES[case]
    dtype = torch.float32 if case == "tf32" else torch.float16
    b = torch.ones(24, 48, dtype=dtype).T if transposed else torch.ones(48, 24, dtype=dtype)
    with sim.options(sizes="gpu", sms=4):
        launches = warm_up(b, rows, **how)
        assert 0 < len(made) <= launches
        made.clear()
        for n in rows:
            c = torch.ones(n, 24, dtype=dtype)
            found = matmul(torch.ones(n, 48, dtype=dtype), b, c=c if how.get("beta") else None, **how)
            expected = 48 + (torch.arange(24) if "bias" in how else 0) + (1 if how.get("beta") else 0)
            assert (found == expected).all()
    assert not made


def test_warm_up_launches_nothing(monkeypatch: pytest.MonkeyPatch, made: list[Any]) -> None:
    monkeypatch.setattr(Prepared, "launch", lambda *_: pytest.fail("a launch"))
    monkeypatch.setattr(PreparedLaunch, "at", lambda *_: pytest.fail("a launch"))
    assert warm_up(np.ones((48, 24), np.float16), [3, 40]) > 0
    assert made


KEY = ("key", ())  # the last part: the states of an epilogue's functions


def test_a_kernel_is_compiled_by_one_thread(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go = [], threading.Event()

    class Slow:
        def __init__(self, options: Any, key: Any) -> None:
            begun.append(key)

        def __call__(self, *args: Any) -> str:
            go.wait(10)
            return "compiled"

    monkeypatch.setattr(handle, "Compiler", Slow)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(handle.compiled(None, KEY, (), False))) for _ in range(3)]
    for thread in threads:
        thread.start()
    go.set()
    for thread in threads:
        thread.join()
    assert (begun, found) == ([(KEY, False)], ["compiled"] * 3)


def test_warm_up_of_zero_rows_does_nothing(made: list[Any]) -> None:
    assert warm_up(np.ones((48, 24), np.float16), []) == 0
    assert warm_up(np.ones((48, 0), np.float16), [3]) == 0
    assert not made


@pytest.mark.parametrize(
    ("rows", "message"), [(64, "range"), ([0], "0 is not one"), ([True], "True"), ([2.0], "2.0"), (["3"], "'3'")]
)
def test_rows_are_positive_integers(rows: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        warm_up(np.ones((48, 24), np.float16), rows)


def test_warm_up_refuses_what_matmul_refuses() -> None:
    with pytest.raises(ArgumentError, match="b is builtins.list, not an array"):
        warm_up([[1.0]], [3])
    with pytest.raises(ArgumentError, match="matrix"):
        warm_up(np.ones((2, 48, 24), np.float16), [3])
    with pytest.raises(ArgumentError, match="bias must be a vector of 24"):
        warm_up(np.ones((48, 24), np.float16), [3], bias=np.ones(23, np.float16))


@pytest.mark.gpu
def test_first_call_after_warm_up_does_not_compile_on_a_gpu(made: list[Any]) -> None:
    b = torch.randint(-3, 4, (256, 512), device="cuda").half()
    warm_up(b, range(1, 300))
    made.clear()
    for n in (1, 5, 64, 100, 299):
        a = torch.randint(-3, 4, (n, 256), device="cuda").half()
        assert torch.equal(matmul(a, b), (a.double() @ b.double()).half())
    assert not made
