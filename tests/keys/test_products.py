"""Each component of the keys of ``matmul``: of the launches that it repeats, and of the kernels that it compiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.keys.repeated import run
from tests.keys.spy import Path, Spy, check, components
from tilewright import cute, sim
from tilewright.errors import ArgumentError
from tilewright.gemm import Relu, SplitK, launcher, matmul
from tilewright.gemm.host import handle

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.unchecked

OPERANDS = ("a", "b", "out", "c", "bias")
SHAPES = {"a": (16, 32), "b": (32, 24), "out": (16, 24), "c": (16, 24), "bias": (24,)}
OPERAND, HOW, SIMULATED = ("dtype", "shape", "stride", "alignment", "device", "negative"), 1, 2
ASKED = ("alpha", "beta", "activation", "out_dtype", "precision", "kernel", "decomposition")
OPENED: set[Path] = {(), (0,), (HOW,), (SIMULATED,), *((0, i) for i in range(len(OPERANDS)))}
NAMES: dict[Path, str] = {
    **{(0, i, k): f"{name}: {part}" for i, name in enumerate(OPERANDS) for k, part in enumerate(OPERAND)},
    **{(HOW, i): name for i, name in enumerate(ASKED)},
    **{(SIMULATED, i): name for i, name in enumerate(("arch", "multiprocessors", "sizes"))},
}
"""All components of the key."""


@dataclass
class Call:
    """A product; ``lying`` says of which operand what is not as usual."""

    lying: dict[str, str] = field(default_factory=dict)
    how: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    dtype: Any = torch.float16
    without: str = ""
    """An operand that is not given."""

    def operands(self) -> Iterator[tuple[str, Any]]:
        for i, name in enumerate(OPERANDS):
            if name == self.without:
                continue
            shape, how = SHAPES[name], self.lying.get(name, "")
            columns = shape[-1]
            numbers = torch.arange(2 * (shape[0] + 1) * columns) * (i + 3) % 7 - 3
            memory = numbers.to(torch.bfloat16 if how == "dtype" else self.dtype)
            if how == "alignment":
                memory = memory[1:]
            rows = torch.as_strided(memory, shape, (*([columns] if len(shape) == 2 else []), 1))
            if how == "stride":
                rows = torch.as_strided(memory, shape, tuple(2 * s for s in rows.stride()))
            if how == "shape":
                rows = rows[..., :-1] if name == "b" else rows[:-1]
            yield name, torch._neg_view(rows) if how == "negative" else rows

    def run(self) -> Any:
        given = dict(self.operands())
        with sim.options(**{"check": "none", "schedule": "lockstep", **self.options}):
            return matmul(**given, **{"beta": 1.0, **self.how})


def pair(name: str, first: Any, second: Any, **more: Any) -> tuple[Call, Call]:
    return Call(how={name: first, **more}), Call(how={name: second, **more})


F32, NO_C = {"dtype": torch.float32}, {"beta": 0.0}
CASES: dict[str, tuple[Call, Call]] = {
    **{f"{name}: {part}": (Call(), Call({name: part})) for name in OPERANDS for part in OPERAND if part != "device"},
    # A C of another type than D's is added by the epilogue, whose arrays have a part of the key of their own.
    "c: dtype": (Call({"out": "dtype", "c": "dtype"}), Call({"out": "dtype"})),
    "out: dtype": (Call(how=NO_C, without="c"), Call({"out": "dtype"}, NO_C, without="c")),
    "alpha": pair("alpha", 1.0, 2.0),
    "beta": pair("beta", 1.0, 2.0),
    "activation": pair("activation", None, "relu"),
    "out_dtype": (Call(how=NO_C, without="c"), Call(how={**NO_C, "out_dtype": torch.float32}, without="c")),
    "precision": (Call(**F32), Call(how={"precision": "tf32"}, **F32)),
    "kernel": pair("kernel", "tensorop_f16", "tensorop_f16_f16"),
    "decomposition": pair("decomposition", "auto", "dynamic"),
    "arch": (Call(options={"arch": "sm_90a", "sizes": "gpu"}), Call(options={"arch": "sm_80", "sizes": "gpu"})),
    "sizes": (Call(options={"sizes": "simulator"}), Call(options={"sizes": "gpu"})),
    "multiprocessors": (Call(options={"sms": 1}), Call(options={"sms": 132})),
}


HARMLESS = {"bias: alignment"}
"""A bias is read element by element; its key has the components of every operand."""


def test_c_of_another_type_than_the_results_is_told_apart() -> None:
    first, second = CASES["c: dtype"]
    spy = Spy()
    run(spy, first)
    assert run(spy, second) == run(Spy(), second)


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"c: dtype"}))
def test_key_of_products_has_each_component(name: str) -> None:
    first, second = CASES[name]
    path = next(path for path, called in NAMES.items() if called == name)
    check(run, first, second, path, OPENED, needed=name not in HARMLESS)


def test_every_component_has_its_case() -> None:
    spy = Spy()
    run(spy, Call())
    assert [path for path, _ in components(spy.asked[0], OPENED)] == list(NAMES)
    assert NAMES.values() - CASES.keys() == {f"{name}: device" for name in OPERANDS}, "and these need two machines"


@pytest.mark.parametrize("remembered", [False, True])
def test_c_may_be_the_result_only_where_both_lie_alike(remembered: bool) -> None:
    a, b = (torch.arange(n * 8).reshape(8, n).half() % 5 for n in (8, 8))
    if remembered:  # c and out lie as below, and apart
        matmul(a, b, torch.zeros(8, 8).half(), torch.ones(8, 8).half().T, beta=1.0)
    out = torch.arange(64).reshape(8, 8).half()
    before = out.clone()
    try:
        matmul(a, b, out, out.T, beta=1.0)
    except ArgumentError:
        assert torch.equal(out, before)
    else:
        assert torch.equal(out.double(), a.double() @ b.double() + before.T.double())
    same = before.clone()
    assert torch.equal(matmul(a, b, same, same, beta=1.0).double(), a.double() @ b.double() + before.double())


class Launch(NamedTuple):
    """A product through ``gemm``, which compiles one kernel for all products that it reads in the same way."""

    kernel: str = "tensorop_f16"
    epilogue: Any = None
    decomposition: Any = "data_parallel"
    step: int = 1
    """Of A's rows."""
    apart: int = 32
    """How many elements A's rows are apart."""

    def run(self) -> list[Any]:
        memory = np.zeros(8 * self.apart, np.float16)  # pages that nothing touches take no memory
        a = np.lib.stride_tricks.as_strided(memory, (8, 32), (2 * self.apart, 2))[:: self.step]
        a[...] = (np.arange(8 * 32) % 7 - 3).reshape(8, 32)
        b, d = np.eye(32, 16, dtype=np.float16), np.zeros((8, 16), np.float16)
        how = {"kernel": self.kernel, "decomposition": self.decomposition, "epilogue": self.epilogue}
        launcher(a, b, d, **how)()
        return d.tolist()


LAUNCHES = {
    (0, 1): ("configuration", Launch(epilogue=Relu()), Launch("tensorop_f16_f16", Relu())),
    (0, 2, 0): ("epilogue function", Launch(), Launch(epilogue=Relu())),
    (0, 2, 1): ("decomposition", Launch(), Launch(decomposition=SplitK(2))),
    (0, 3): ("strides below 0", Launch(), Launch(step=-1)),
    (0, 4): ("offsets of 64 bits", Launch(), Launch(apart=1 << 29)),
}
PARTS: set[Path] = {(), (0,), (0, 2)}
FOLLOWING = {
    (0, 0): "the kernel's class follows from the configuration",
    (0, 5): "what users' functions read: tests/gemm/operators/test_epilogue_state.py",
    (1,): "another number of arguments",
}


_PROGRAMS: dict[Launch, Any] = {}


def compiled_once(case: Launch, *args: Any) -> Any:
    """What ``cute.compile`` gives for a case, which launches one kernel, is compiled for the first test of it."""
    if case not in _PROGRAMS:
        _PROGRAMS[case] = cute.compile(*args)
    return _PROGRAMS[case]


def launched(spy: Spy, *cases: Launch) -> list[Any]:
    """What each writes, and the programs that were compiled."""
    outcomes = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handle, "_COMPILED", spy)
        for case in cases:
            patch.setattr(handle, "Compiler", lambda options, key, case=case: partial(compiled_once, case))
            outcomes.append((case.run(), str(spy[spy.asked[-1]].kernels)))
    return outcomes


@pytest.mark.parametrize("path", LAUNCHES, ids=[name for name, *_ in LAUNCHES.values()])
def test_key_of_launches_has_each_component(path: Path) -> None:
    check(launched, *LAUNCHES[path][1:], path, PARTS)


def test_every_component_of_a_kernels_key_has_its_case() -> None:
    spy = Spy()
    launched(spy, Launch())
    assert {path for path, _ in components(spy.asked[0], PARTS)} == LAUNCHES.keys() | FOLLOWING.keys()


def test_a_product_that_was_seen_takes_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(matmul.__globals__, "REPEATED_PRODUCTS", {})
    a, b, bias = torch.ones(8, 32).half(), torch.ones(32, 16).half(), torch.ones(16).half()
    first = [matmul(a, b), matmul(a, b, bias=bias)]
    monkeypatch.setattr(matmul.__globals__["Request"], "run", lambda *given: pytest.fail("the long way"))
    for one, other in zip(first, [matmul(a, b), matmul(a, b, bias=bias)], strict=True):
        assert torch.equal(one, other)


def test_geometries_are_forgotten_together(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[Any, Any] = {}
    monkeypatch.setitem(matmul.__globals__, "REPEATED_PRODUCTS", kept)
    monkeypatch.setitem(matmul.__globals__, "REMEMBERED", 2)
    sizes = []
    for n in (8, 16, 24, 32):
        matmul(torch.ones(8, 32).half(), torch.ones(32, n).half())
        sizes.append(len(kept))
    assert sizes == [1, 2, 1, 2]
