"""An attribute that tensors, layouts and numbers do not have: whether it is unknown, or documented and not here yet."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import MissingAttributeError, StagingError

TENSOR = from_dlpack(np.zeros((4, 8), np.float32))
LAYOUT = cute.make_layout((4, 8))

LATER = "yet: the CuTe DSL has it, Tilewright does not"
OUTSIDE = [
    (TENSOR, "layuot", "HostTensor has no attribute 'layuot'; did you mean 'layout'?"),
    (TENSOR, "nonsense", "HostTensor has no attribute 'nonsense'$"),
    (TENSOR, "size_in_bytes", f"HostTensor has no 'size_in_bytes' {LATER}"),
    (LAYOUT, "shap", "Layout has no attribute 'shap'; did you mean 'shape'?"),
    (cute.make_composed_layout(cute.make_swizzle(2, 4, 3), 0, LAYOUT), "outter", "did you mean 'outer'?"),
    (cutlass.Int32, "widht", "Int32 has no attribute 'widht'; did you mean 'width'?"),
    (cutlass.Int32(3), "foo", "Int32 has no attribute 'foo'$"),
]


@pytest.mark.parametrize(("thing", "name", "message"), OUTSIDE, ids=lambda x: x if isinstance(x, str) else "")
def test_unknown_attributes_on_the_host(thing, name, message) -> None:
    with pytest.raises(MissingAttributeError, match=message) as caught:
        getattr(thing, name)
    assert (caught.value.name, caught.value.obj) == (name, thing)
    assert not hasattr(thing, name) and getattr(thing, name, 5) == 5


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda t: t.nonsense, "Tensor has no attribute 'nonsense'"),
        (lambda t: t.layout.strid, "Layout has no attribute 'strid'; did you mean 'stride'?"),
        (lambda t: t.load().ir_value_int8, f"TensorSSA has no 'ir_value_int8' {LATER}"),
        (lambda t: t.iterator.size_in_bytes, f"Pointer has no 'size_in_bytes' {LATER}"),
        (lambda t: t.iterator.toinnt, "Pointer has no attribute 'toinnt'; did you mean 'toint'?"),
        (lambda t: t[0].foo, "Float32 has no attribute 'foo'"),
        (lambda t: cutlass.Int32(t[0]).valeu, "Int32 has no attribute 'valeu'; did you mean 'value'?"),
        (
            lambda t: (
                cute.make_tiled_copy_tv(
                    cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32),
                    cute.make_layout(8),
                    cute.make_layout(1),
                ).get_slise
            ),
            "TiledCopy has no attribute 'get_slise'; did you mean 'get_slice'?",
        ),
    ],
)
def test_unknown_attributes_in_a_staged_function(read, message) -> None:
    @cute.jit
    def program(t: cute.Tensor):
        read(t)  # here

    with pytest.raises((AttributeError, StagingError), match=re.escape(message) + r"\n  at .*py:\d+"):
        program(from_dlpack(np.zeros((8,), np.float32)))


def test_objects_can_be_copied_all_the_same() -> None:
    for thing in (LAYOUT, cutlass.Int32(3)):
        assert copy.copy(thing) == copy.deepcopy(thing) == thing
    assert pickle.loads(pickle.dumps(LAYOUT)) == LAYOUT


def test_a_tensor_has_no_length() -> None:
    """NumPy's ``range(len(x))`` would be one turn, or two: a layout has as many modes."""

    @cute.jit
    def run(x: cute.Tensor):
        for i in range(len(x)):
            x[i] = 1.0

    with pytest.raises(TypeError, match=r"cute\.size\(x\) is the number of elements.*\n  at .*test_attributes\.py:\d+"):
        run(from_dlpack(np.zeros(8, np.float32)))


def test_cuda_spellings_are_explained() -> None:
    """`threadIdx.x`, and a kernel without its decorator."""

    @cute.kernel
    def with_x(x: cute.Tensor):
        x[cute.arch.thread_idx().x] = 1.0

    def undecorated(x):
        x[cute.arch.thread_idx()[0]] = 1.0

    def without_indices(x):
        x[0] = 1.0

    @cute.jit
    def run(kernel: cutlass.Constexpr, x: cute.Tensor):
        kernel(x).launch(grid=(1, 1, 1), block=(8, 1, 1))

    x = from_dlpack(np.zeros(8, np.float32))
    with pytest.raises(StagingError, match=r"a tuple has no \.x: x, y, z = cute\.arch\.thread_idx\(\)"):
        run(with_x, x)
    with pytest.raises(StagingError, match="nothing to launch: .* is not marked @cute.kernel"):
        run(without_indices, x)
    with pytest.raises(StagingError, match="host code has none: mark the function .* with @cute.kernel"):
        run(undecorated, x)


@pytest.mark.parametrize(
    "of_threads",
    [
        lambda: cute.arch.block_idx(),
        lambda: cute.arch.lane_idx(),
        lambda: cute.arch.sync_threads(),
        lambda: cute.arch.shuffle_sync_bfly(cutlass.Int32(1), 1),
        lambda: cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(8)),
    ],
)
def test_host_code_refuses_what_only_threads_of_a_kernel_have(of_threads) -> None:
    """A kernel's body in a function marked @cute.jit would compute the part of one thread, and say nothing."""

    @cute.jit
    def run(x: cute.Tensor):
        of_threads()
        x[0] = 1.0

    x = np.zeros(8, np.float32)
    with pytest.raises(StagingError, match=r"host code has .*: mark the function .*\n  at .*test_attributes\.py:\d+"):
        run(x)
    assert not x.any()
