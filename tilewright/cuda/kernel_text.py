"""A kernel of the IR as CUDA C++: the emitter with the functions that print each opcode."""

from __future__ import annotations

# These modules register the functions that print opcodes.
import tilewright.cuda.control
import tilewright.cuda.diagnostics
import tilewright.cuda.memory
import tilewright.cuda.scalars  # noqa: F401 - for the registration alone, as those above
from tilewright.cuda.emitter import KernelEmitter
from tilewright.cuda.source import Source
from tilewright.cuda.vectors import materialise
from tilewright.ir.core import Function
from tilewright.ir.target import architecture


def emit(function: Function, arch: str = "sm_90a") -> Source:
    """``function`` (kind ``kernel``) as CUDA C++ for ``arch``.

    Raises CompileError for what has no CUDA form, ConstraintError for instructions that ``arch`` does not have and
    ArgumentError for an unknown ``arch``.

    >>> from tilewright.cuda import emit
    >>> @cute.kernel
    ... def double(x: cute.Tensor):
    ...     i, _, _ = cute.arch.thread_idx()
    ...     x[i] = x[i] + x[i]
    >>> @cute.jit
    ... def run(x: cute.Tensor):
    ...     double(x).launch(grid=(1, 1, 1), block=(64, 1, 1))
    >>> kernel = cute.compile(run, np.ones(64, np.float32)).kernels[0]
    >>> print(emit(kernel, "sm_80").text.partition("__global__")[2].strip())
    void __launch_bounds__(64) double_1(float* x) {
      const int i = threadIdx.x;
      float* p = x + i;
      const float t = *p;
      const float t_1 = *p;
      *p = t + t_1;
    }
    """
    return KernelEmitter(function, architecture(arch), materialise).source()
