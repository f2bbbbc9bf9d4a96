"""What both type checkers must accept, and the types that they must find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_type

import numpy as np

import tilewright as cutlass
from tilewright import cute
from tilewright.base_dsl.common import DSLBaseError
from tilewright.cutlass_dsl import Float32, Int32
from tilewright.errors import TilewrightError


@cute.kernel
def scale(x: cute.Tensor, y: cute.Tensor, factor: Float32, width: cutlass.Constexpr[int]) -> None:
    assert_type(x, cute.Tensor)
    assert_type(factor, cutlass.Float32)
    assert_type(width, int)
    i = width * 2 + Int32(3)
    assert_type(i, cutlass.Int32)
    y[i] = x[i] * factor


@cute.jit
def run(x: cute.Tensor, y: cute.Tensor, factor: Float32, width: cutlass.Constexpr[int] = 32) -> None:
    scale(x, y, factor, width).launch(grid=(cute.size(x), 1, 1), block=[width, 1, 1], smem=0)
    scale(x, y, factor=2.0, width=4).launch(grid=1, block=width)


@cute.jit(preprocessor=False)
def twice(n: Int32) -> Int32:
    return n + n


class Program:
    """Kernels as methods, as programs for Hopper have them."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    @cute.jit
    def __call__(self, x: cute.Tensor, n: Int32, stream: Any = None) -> None:
        self.kernel(x, n).launch(grid=(1, 1, 1), block=(self.threads, 1, 1), stream=stream)
        self.kernel.set_name_prefix("program_")

    @cute.kernel
    def kernel(self, x: cute.Tensor, n: Int32) -> None:
        assert_type(twice(n), cutlass.Int32)


@cute.kernel
def tiles(a: cute.Tensor, copy: cute.TiledCopy, mma: cute.TiledMma) -> None:
    """Views of tensors are tensors; layouts stay layouts; elements are Any."""
    tidx, _, _ = cute.arch.thread_idx()
    assert_type(tidx, cutlass.Int32)
    warp, lane = tidx // 32, tidx % 32
    assert_type(warp, cutlass.Int32)
    assert_type(lane == 0, cutlass.Boolean)
    assert_type(cute.local_tile(a, (8, 8), (0, None)), cute.Tensor)
    assert_type(cute.zipped_divide(a, (8, 8)), cute.Tensor)
    assert_type(cute.zipped_divide(a.layout, (8, 8)), Any)
    assert_type(a[None, lane], cute.Tensor)
    assert_type(a[0, None, None], cute.Tensor)
    assert_type(a[0, lane], Any)
    part = copy.get_slice(tidx).partition_S(a)
    assert_type(part, cute.Tensor)
    fragment = cute.make_fragment_like(part)
    cute.copy(copy, part, fragment, pred=None, mcast_mask=None)
    loaded = fragment.load()
    assert_type(loaded, cute.TensorSSA)
    assert_type(loaded * 2.0 + 1, cute.TensorSSA)
    assert_type(1 - loaded, cute.TensorSSA)
    assert_type(loaded > 0, cute.TensorSSA)
    assert_type(loaded.to(cutlass.Float16), cute.TensorSSA)
    assert_type(cute.math.exp(loaded), cute.TensorSSA)
    assert_type(cute.exp2(cutlass.Float16(1), fastmath=True), cutlass.Float16)
    assert_type(cute.math.isnan(loaded), cute.TensorSSA)
    uniform = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    assert_type(uniform, cutlass.Int32)
    assert_type(cute.arch.shuffle_sync_bfly(loaded, 1), cute.TensorSSA)
    assert_type(cute.arch.warp_reduction_sum(cutlass.Float32(lane)), cutlass.Float32)
    assert_type(cute.arch.vote_any_sync(lane == 0), cutlass.Boolean)
    for i in cutlass.range(uniform, unroll=2):
        fragment[i] = i.to(cutlass.Float16)  # an Int32
    acc = mma.get_slice(tidx).make_fragment_C(part)
    cute.gemm(mma, acc, part, part, acc)


assert_type(cute.make_layout((4, 8), stride=(8, 1)), cute.Layout)
assert_type(cute.make_layout(cute.make_layout(4), cute.make_layout(2)), cute.Layout)
assert_type(cute.coalesce(cute.make_layout((4, 8))), cute.Layout)
assert_type(cute.composition(cute.make_layout((4, 8)), cute.make_layout(8, stride=2)), cute.Layout)
assert_type(cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_layout(64)), cute.ComposedLayout)
assert_type(cute.right_inverse(cute.make_layout((4, 8))), cute.Layout)
assert_type(cute.rank((4, 8)), int)
assert_type(cutlass.Float16.width, int)
assert_type(cutlass.Int32(3).to(cutlass.Float16), cutlass.Float16)


class Base:
    """Methods of every kind, marked either way round; functions in functions."""

    @cute.jit
    def shared(self, x: cute.Tensor) -> cute.Tensor:
        return x

    @staticmethod
    @cute.jit
    def inner(n: Int32, m: Int32) -> Int32:
        return n + m

    @cute.jit
    @staticmethod
    def outer(n: Int32, m: Int32) -> Int32:
        return n + m

    @cute.experimental.kernel
    def bounded(self, x: cute.Tensor) -> None:
        assert_type(self.shared(x), cute.Tensor)
        self.inner(1, 2)
        self.outer(1, 2)

    @cute.jit
    def host(self, x: cute.Tensor, stream: Any = None) -> None:
        self.bounded(x).launch(grid=1, block=(32, 1, 1), cluster=None, stream=stream, use_pdl=True)

        @cute.kernel
        def local(y: cute.Tensor) -> None:
            y[0] = twice(2)

        local(x).launch(grid=[1, 1, 1], block=x.shape[0])


class Derived(Base):
    @cute.jit
    def __call__(self, x: cute.Tensor, *more: cute.Tensor, scale: Float32 | None = None, **options: Any) -> None:
        self.host(x)
        if scale is not None:
            assert_type(scale, cutlass.Float32)


def apply(f: Callable[[cute.Tensor, Int32], None], x: cute.Tensor) -> None:
    f(x, Int32(1))


@cute.jit
def named(x: cute.Tensor, n: Int32) -> None: ...


@cute.struct
class Storage:
    """pyright alone follows the numbers in annotations of more than numerics."""

    count: cutlass.Int32


Derived()(array := np.zeros(4, np.float32), array, scale=2.0)
apply(named, cute.make_tensor(cute.runtime.make_ptr(Float32, 0, cute.AddressSpace.gmem), (4,)))
cute.compile(Derived(), array).bind(array)()
cute.compile(Derived().host, array)(array)

# Numbers and arrays of any framework stand for the types of parameters.
run(array, array, 2.0)
run(array, array, factor=2, width=8)
assert_type(twice(3), cutlass.Int32)
Program(128)(array, 5)
compiled = cute.compile(run, array, array, 2.0, 32, options="--opt-level 2")
compiled(array, array, 3.0)
cute.compile[cute.OptLevel(2), cute.KeepPTX](Program(128), array, 5)
assert_type(run.__name__, str)

# Names that are other ones where they are defined.
assert_type(DSLBaseError("what"), TilewrightError)
assert_type(cutlass.select_(True, 1, 2), Any)
