"""The shared memory of a kernel, asked for in the host function that launches it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.ir.builder import Builder
from tilewright.lang.launch.kernel import KernelFunction
from tilewright.lang.staging.builder import HostBuilder
from tilewright.lang.staging.location import fail


def get_kernel_smem_size(kernel: Callable[..., Any], *, loc: Any = None, ip: Any = None) -> int:
    """Bytes of shared memory that the allocations of ``kernel`` need, as it was last launched above in this function.

    Raises StagingError where ``kernel`` is not marked ``@cute.kernel``, or no launch of it stands above.

    >>> from tilewright import Constexpr, Int32, utils
    >>> @cute.kernel
    ... def kernel(n: Constexpr):
    ...     cute.arch.alloc_smem(Int32, n)
    >>> @cute.jit
    ... def run():
    ...     kernel(12).launch(grid=1, block=1)
    ...     print(utils.get_kernel_smem_size(kernel))
    >>> run()
    48
    """
    marked = getattr(kernel, "__func__", kernel)  # of a method
    if not isinstance(marked, KernelFunction):
        raise fail(f"get_kernel_smem_size: {kernel!r} is not a function marked @cute.kernel")
    builder = Builder.current() if Builder.active() else None
    launched = builder.smem_bytes_of if isinstance(builder, HostBuilder) else {}
    if marked.function not in launched:
        raise fail(
            f"get_kernel_smem_size({marked.name}): how much it needs is known below its launch: write "
            f"{marked.name}(arguments).launch(grid=..., block=...) above this line, in the same @cute.jit function"
        )
    return launched[marked.function]
