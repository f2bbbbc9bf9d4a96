"""Each short cut of the simulator is taken, and results and profiles are those of the plain rule.

Random programs are compared in ``test_forwarding.py``, ``test_matrix_form.py``, ``test_thread_products.py`` and
``test_async_copies.py``; here are kernels as users have them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest

from tests.check.short_cuts import ShortCut
from tests.sim.short_cuts import SHORT_CUTS, is_lowered, owners, without
from tests.sim.test_moves import scale
from tilewright import cute, sim
from tilewright.cute.runtime import from_dlpack
from tilewright.gemm import gemm
from tilewright.gemm.host import handle


def product(kernel: str, dtype: Any) -> Any:
    """Several tiles, of which the last ones are partial; integers, as sums may have another order."""
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((200, 72), (72, 136)))
    return gemm(a, b, kernel=kernel, machine="cpu").d


def executor(name: str, make: Callable[[], Any]) -> Any:
    """Kept beside the library's own kernels."""
    known = handle._COMPILED
    if name not in known:
        known[name] = make()
    return known[name]


def elementwise() -> Any:
    x = np.random.default_rng(2).integers(-9, 10, (64, 512)).astype(np.float32)
    y = np.zeros_like(x)
    arguments = *(from_dlpack(t, assumed_align=16) for t in (x, y)), 64, 505
    executor("scale", lambda: cute.compile(scale, *arguments))(*arguments[:2])
    return y


@cute.kernel
def doubled(x: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    y[1024 * b + t] = x[1024 * b + t] * 2


@cute.jit
def run_doubled(x: cute.Tensor, y: cute.Tensor):
    doubled(x, y).launch(grid=(4, 1, 1), block=(1024, 1, 1))


def rows_of_warps() -> Any:
    x, y = np.arange(4096, dtype=np.float32), np.zeros(4096, np.float32)
    executor("doubled", lambda: cute.compile(run_doubled, x, y))(x, y)
    return y


PROGRAMS: dict[str, Callable[[], Any]] = {
    "simt": lambda: product("simt_f32", np.float32),
    "tensorop": lambda: product("tensorop_f16", np.float16),
    "elementwise": elementwise,
    "rows of warps": rows_of_warps,
}
MAY_DECLINE = (
    "multiply-adds as one product a warp",
    "accesses proved to be inside by their pointers",
    "accesses of whole warps as rows",
)
"""What gives None where it is not taken."""


def outcome(name: str) -> tuple[Any, Any]:
    with sim.options(check="none"), sim.profile() as report:
        result = PROGRAMS[name]()
    (k,) = report.kernels
    return result, (k.instructions, k.bytes, k.accesses, k.requests, k.wavefronts)


@pytest.fixture(scope="module")
def compiled() -> dict[Any, Any]:
    return {}


@pytest.fixture(scope="module")
def fast(compiled: dict[Any, Any]) -> dict[str, tuple[Any, Any]]:
    with mock.patch.object(handle, "_COMPILED", compiled):
        return {name: outcome(name) for name in PROGRAMS}


@pytest.mark.parametrize("cut", SHORT_CUTS, ids=lambda cut: cut.name)
def test_results_and_counts_are_those_of_the_plain_rule(cut: ShortCut, fast: Any, compiled: Any) -> None:
    with without(cut, {} if is_lowered(cut) else compiled):
        for name, (result, counts) in fast.items():
            found, counted = outcome(name)
            np.testing.assert_array_equal(found, result, err_msg=name)
            assert counted == counts, name


def test_each_short_cut_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else nothing would be compared."""
    taken: set[str] = set()

    def noted(name: str, function: Any) -> Any:
        def call(*args: Any, **more: Any) -> Any:
            found = function(*args, **more)
            if found is not False and not (name in MAY_DECLINE and found is None):
                taken.add(name)
            return found

        return call

    for cut in SHORT_CUTS:
        for owner in owners(cut):
            function = vars(owner)[cut.names[0]]
            found = (
                property(noted(cut.name, function.fget))
                if isinstance(function, property)
                else noted(cut.name, function)
            )
            monkeypatch.setattr(owner, cut.names[0], found)
    for name in PROGRAMS:
        monkeypatch.setattr(handle, "_COMPILED", {})
        outcome(name)
    assert [cut.name for cut in SHORT_CUTS if cut.name not in taken] == []
