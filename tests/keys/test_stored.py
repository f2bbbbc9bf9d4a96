"""Each component of the keys by which compiled code, tensor maps, tuned sizes and workspaces are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.cuda.test_text import saxpy
from tests.keys.spy import Spy, check
from tilewright import disk_cache as cache
from tilewright.cuda import compiler, nvrtc, toolchain
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.operators.prepared import Workspaces
from tilewright.gemm.tuning import store
from tilewright.ir.core import Function
from tilewright.ir.tensormap import Leaf, ModePart, TensorMapTemplate
from tilewright.ir.types import F32

# -- compiled code -----------------------------------------------------------------------------------------------------


def kernel(threads: int = 128) -> Function:
    function: Function = saxpy().done()
    function.attrs["max_threads"] = threads
    return function


class Compilation(NamedTuple):
    """One call of the compiler, in an installation with this NVRTC and this device header."""

    function: Function = kernel()
    arch: str = "sm_90a"
    lineinfo: bool = False
    options: tuple[str, ...] = ()
    compiler: str = "one"
    header: bytes = b"header"

    def run(self, patch: pytest.MonkeyPatch) -> str:
        found = replace(toolchain.Nvrtc("", (13, 0), ""), identity=self.compiler)
        patch.setattr(compiler, "nvrtc_for", lambda arch: found)
        patch.setattr(nvrtc, "headers", lambda: {"tilewright.cuh": self.header})
        compiler._header_digest.cache_clear()
        patch.setattr(nvrtc, "compile_source", self.compiled)
        return compiler.compile(self.function, self.arch, lineinfo=self.lineinfo, options=self.options).ptx

    def compiled(self, source: Any, arch: str, lineinfo: bool, extra: Any) -> nvrtc.Compiled:
        """All that NVRTC sees."""
        text = source.annotated() if lineinfo else source.text
        return nvrtc.Compiled(repr((self.compiler, self.header, text, arch, lineinfo, extra)), b"", "", 0.0)


COMPILATIONS = {
    "compiler": (0, Compilation(compiler="two")),
    "device header": (1, Compilation(header=b"another")),
    "text": (3, Compilation(kernel(threads=256))),
    "architecture": (4, Compilation(arch="sm_90")),
    "options": (9, Compilation(options=("--maxrregcount=64",))),
}
SAME = {2: "the kernel's name, which the text has, too", **dict.fromkeys(range(5, 9), "NVRTC's constant options")}


def compiled(spy: Spy, *cases: Compilation) -> list[str]:
    """What each compilation gives; the cache is asked with the parts of its keys."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "key", lambda *parts: (*parts[:9], parts[9:]))
        patch.setattr(cache, "read", lambda key: spy.get(key))
        patch.setattr(cache, "write", spy.__setitem__)
        found = [case.run(patch) for case in cases]
    compiler._header_digest.cache_clear()
    return found


@pytest.mark.parametrize("name", COMPILATIONS)
def test_key_of_compilations_has_each_component(name: str) -> None:
    place, other = COMPILATIONS[name]
    check(compiled, Compilation(), other, (place,), {()})


def test_every_component_of_a_compilation_has_its_case() -> None:
    spy = Spy()
    compiled(spy, Compilation())
    assert set(range(len(spy.asked[0]))) == {place for place, _ in COMPILATIONS.values()} | SAME.keys()
    assert [part.startswith("-") for part in spy.asked[0][4:9]] == [True] * 5
    assert len(nvrtc.options("sm_90a", True, ())) == 1 + len(nvrtc.options("sm_90a", False, ()))


def test_line_information_is_another_program() -> None:
    assert len(set(compiled(Spy(), Compilation(), Compilation(lineinfo=True)))) == 2


# -- tensor maps -------------------------------------------------------------------------------------------------------


def described(spy: Spy, *cases: tuple[int, ...]) -> list[str]:
    modes = (ModePart("0", Leaf(0, 0), Leaf(1), True),), (ModePart("1", Leaf(0, 1), Leaf(0, 2), False),)
    template = TensorMapTemplate("x", F32, F32, modes, (8, 8), 0, known=spy)
    return [repr(template(*case)) for case in cases]


@pytest.mark.parametrize("place", range(4), ids=["address", "columns", "rows", "stride"])
def test_key_of_tensor_maps_has_each_component(place: int) -> None:
    first = 0x1000, 64, 16, 128
    check(described, first, tuple(2 * n if i == place else n for i, n in enumerate(first)), (place,), {()})


# -- tuned sizes -------------------------------------------------------------------------------------------------------


def problem(m: int = 64, n: int = 32, k: int = 16, batch: int = 1, dtype: Any = np.float16, **lying: str) -> Problem:
    """``lying``: of a, b or out, "turned" (the other major) or "apart" (rows begin at odd elements)."""
    shapes = {"a": (m, k), "b": (k, n), "out": (m, n)}
    made = {}
    for name, (rows, columns) in shapes.items():
        how = lying.get(name)
        if how == "turned":
            made[name] = np.zeros((batch, columns, rows), dtype).transpose(0, 2, 1)
        else:
            made[name] = np.zeros((batch, rows, columns + (how == "apart")), dtype)[..., :columns]
    return Problem.of(made["a"], made["b"], None, made["out"])


TUNED = {
    "m": problem(m=128),
    "n": problem(n=64),
    "k": problem(k=32),
    "batch": problem(batch=2),
    "dtype": problem(dtype=np.float32),
    **{f"{x} turned": problem(**{x: "turned"}) for x in ("a", "b", "out")},
    **{f"{x} apart": problem(**{x: "apart"}) for x in ("a", "b", "out")},
}


def test_tuned_choice_is_keyed_by_the_problem() -> None:
    keys = [store.problem_key(one) for one in (problem(), *TUNED.values())]
    assert len(set(keys)) == len(keys) and store.problem_key(problem()) == keys[0]
    assert len((keys[0] or "").split()) == 1 + 3 * 2, "extents, and of A, B and D the type and the major"


@pytest.mark.parametrize(
    ("where", "name"),
    [(store, "library_version"), (store.HardwareInfo, "get_device_name"), (store.HardwareInfo, "get_driver_version")],
)
def test_tuned_choice_is_keyed_by_gpu_driver_and_version(
    where: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def digest(answer: Callable[..., Any]) -> str:
        monkeypatch.setattr(where, name, answer)
        return store.gpu_digest.__wrapped__()

    monkeypatch.setattr(store.HardwareInfo, "__init__", lambda self: None)
    for other in ("get_device_name", "get_driver_version"):
        monkeypatch.setattr(store.HardwareInfo, other, lambda self: "same")
    assert digest(lambda *_: "one") != digest(lambda *_: "two")


# -- workspaces --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", range(3), ids=["stream", "role", "dtype"])
def test_key_of_workspaces_has_each_component(place: int) -> None:
    def run(spy: Spy, *cases: tuple[Any, int, Any]) -> list[Any]:
        spaces = Workspaces()
        spaces.buffers = spy
        found = []
        for stream, role, dtype in cases:
            zeros = spaces.zeros(stream, lambda n, dtype: np.zeros(n, dtype))
            asked = len(spy.asked)
            for _ in range(role):
                zeros(1, np.int8)
            del spy.asked[asked:]  # those of other roles
            memory = zeros(4, dtype)
            found.append((memory.dtype.name, memory.tolist()))
            memory[:] = 1  # as a launch that is under way
        return found

    first, others = ("one", 0, np.int32), ("two", 1, np.float32)
    check(run, first, (*first[:place], others[place], *first[place + 1 :]), (place,), {()})
