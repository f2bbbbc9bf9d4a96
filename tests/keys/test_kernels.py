"""Each component of the key by which a host function's launches share kernels."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import pytest

import tilewright as cutlass
from tests.keys.spy import Spy, check, components
from tilewright import cute
from tilewright.cuda.kernel_text import emit
from tilewright.lang.staging.builder import HostBuilder

pytestmark = pytest.mark.unchecked

BOUNDS, ARGUMENTS = 3, 2
OPENED = {(), (BOUNDS,), (ARGUMENTS,)}
"""The key is (function, prefix, (arguments...), (bounds...), shape of the block)."""


@cute.kernel
def store(x: cute.Tensor, value: cutlass.Constexpr):
    column, row, _ = cute.arch.thread_idx()
    turned = cute.make_composed_layout(cute.make_swizzle(1, 0, 2), 0, cute.make_layout(8))
    if column < 4:  # a block with one row needs no XOR: bit 2 of the offset is 0
        cute.make_tensor(x.iterator, turned)[column % 4 + 4 * row] = 4 * row + column + value


@cute.kernel
def store_more(x: cute.Tensor, value: cutlass.Constexpr):
    column, row, _ = cute.arch.thread_idx()
    turned = cute.make_composed_layout(cute.make_swizzle(1, 0, 2), 0, cute.make_layout(8))
    if column < 4:  # a block with one row needs no XOR: bit 2 of the offset is 0
        cute.make_tensor(x.iterator, turned)[column % 4 + 4 * row] = 4 * row + column + value + 5


class Launch(NamedTuple):
    """One launch of a host function."""

    kernel: Any = store
    value: Any = 1
    prefix: str = ""
    dtype: Any = np.int32
    more: dict[str, Any] = {}

    def stage(self, x: Any, threads: Any) -> None:
        self.kernel.set_name_prefix(self.prefix)
        self.kernel(x, self.value).launch(**{"grid": (2, 1, 1), "block": (threads, 1, 1), **self.more})


def bounds(name: str, first: Any, second: Any, **more: Any) -> tuple[Launch, Launch]:
    return Launch(more={name: first, **more}), Launch(more={name: second, **more})


CASES = {
    "function": ((0,), Launch(store), Launch(store_more)),
    "prefix": ((1,), Launch(), Launch(prefix="other_")),
    "tensor": ((ARGUMENTS, 0), Launch(), Launch(dtype=np.int64)),
    "argument": ((ARGUMENTS, 1), Launch(value=1), Launch(value=2)),
    "most threads": ((BOUNDS, 0), *bounds("max_number_threads", 64, 128)),
    "fewest blocks": ((BOUNDS, 1), *bounds("min_blocks_per_mp", 1, 2, max_number_threads=64)),
    "cluster": ((BOUNDS, 2), *bounds("cluster", (1, 1, 1), (2, 1, 1))),
    "shape of the block": ((4,), *bounds("block", (8, 1, 1), (4, 2, 1))),
}


def run(spy: Spy, *launches: Launch) -> list[Any]:
    """What each launch of one host function writes, and the CUDA text of its kernel."""

    @cute.jit(preprocessor=False)
    def host(x: cute.Tensor, y: cute.Tensor, threads: cutlass.Int32):
        HostBuilder.now().kernels = spy
        for array, launch in zip((x, y), launches, strict=False):
            launch.stage(array, threads)

    arrays = [np.zeros(8, launch.dtype) for launch in (*launches, Launch())[:2]]
    made = cute.compile(host, *arrays, 16)
    made(*arrays, 16)
    kernels = [op.attrs["kernel"] for op in made.host.walk() if op.opcode == "launch"]
    # The second kernel of a name has a number at its name's end.
    texts = [re.sub(rf"\b{k.name}\b", k.name.removesuffix("_1"), emit(k, "sm_90a").text) for k in kernels]
    return [(array.tolist(), text) for array, text in zip(arrays, texts, strict=False)]


@pytest.mark.parametrize("name", CASES)
def test_key_of_gemm_kernels_has_each_component(name: str) -> None:
    path, first, second = CASES[name]
    check(run, first, second, path, OPENED)


def test_every_component_has_a_case() -> None:
    spy = Spy()
    run(spy, Launch())
    assert {path for path, _ in components(spy.asked[0], OPENED)} == {path for path, *_ in CASES.values()}
