"""What somebody who knows CUDA C++, Triton or PyTorch writes first: errors say what is written here, at the line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright import Float32, cute, utils
from tilewright.cute.nvgpu import CopyUniversalOp, warp
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ArgumentError, TilewrightError


@cute.kernel
def other():
    pass


def doubled(x: Any) -> None:
    x += 1


MISTAKES: dict[str, Callable[[Any], Any]] = {
    "has no attribute 'thread_idx'; it is cute.arch.thread_idx": lambda x: cute.thread_idx(),
    "has no attribute 'program_id'; here it is cute.arch.block_idx()": lambda x: cute.program_id(0),
    "has no attribute 'shfl_down'; here it is cute.arch.shuffle_sync_down": lambda x: cute.arch.shfl_down(x[0], 1),
    "Tensor has no attribute 'numel'; here it is cute.size(x)": lambda x: x.numel(),
    "TensorSSA has no attribute 'sum'; here it is x.reduce(": lambda x: x.load().sum(),
    "wanted, not <class 'numpy.float32'>: write Float32": lambda x: cute.make_rmem_tensor(8, np.float32),
    "wanted, not 'float16': write Float16": lambda x: utils.SmemAllocator().allocate_tensor("float16", 64),
    "wanted, not <class 'numpy.int32'>: write Int32": lambda x: cute.recast_tensor(x, np.int32),
    "wanted, not <class 'numpy.int8'> (cutlass.dtype": lambda x: x[0].to(np.int8),
    "<class 'numpy.float16'> is not a numeric type such as": lambda x: warp.MmaF16BF16Op(
        np.float16, Float32, (16, 8, 16)
    ),
    "'numpy.float32'> is not a numeric type such": lambda x: cute.make_copy_atom(CopyUniversalOp(), np.float32),
    "'dst': copy(atom, src, dst, pred, ": lambda x: cute.copy(x, x),
    "3 were given: atomic_add(ptr, val, sem, scope)": lambda x: cute.arch.atomic_add(x, 0, 1),
    "'Tensor' and 'int'; one element is t[i]; all elements of a static shape are t.load()": doubled,
    "a Python float: its number is known when the kernel runs. Use cute.math instead of Python's math "
    "(cute.math.exp(x)), and x.to(Float32) to convert": lambda x: float(cute.arch.thread_idx()[0]),
    "(Float32) is not a coordinate: use ints, None, or tuples of them; // divides integers": lambda x: x[
        cute.arch.thread_idx()[0] / 2
    ],
    "a kernel cannot launch kernels; mark other with @cute.jit to call it as a function": lambda x: other(),
    "what a run-time index chooses from is a tensor": lambda x: [1, 2][cute.arch.thread_idx()[0]],
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_first_mistake(text: str) -> None:
    mistake = MISTAKES[text]

    @cute.kernel
    def kernel(x: cute.Tensor):
        mistake(x)

    @cute.jit
    def run(x: cute.Tensor):
        kernel(x).launch(grid=(1, 1, 1), block=(32, 1, 1))

    with pytest.raises(TilewrightError) as caught:
        run(from_dlpack(np.zeros(32, np.float32)))
    assert text in str(caught.value)
    assert f"at {__file__}:{mistake.__code__.co_firstlineno + (mistake is doubled)}" in str(caught.value)


def test_what_is_compiled_and_for_which_shapes() -> None:
    @cute.jit
    def run(x: cute.Tensor):
        pass

    x, longer = (from_dlpack(np.zeros(n, np.float32)) for n in (32, 64))
    with pytest.raises(ArgumentError, match=r"got None: pass the function and its arguments, cute.compile\(f, a, b\)"):
        cute.compile(run(x))
    with pytest.raises(ArgumentError, match=r"o \(64\):\(1\)>; a static layout is .* mark_layout_dynamic\(\)"):
        cute.compile(run, x)(longer)
