"""``@cute.experimental.kernel``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from tilewright.lang.launch.kernel import KernelFunction
from tilewright.lang.launch.marked import P, mark
from tilewright.lang.tensors.bounded_tensor import BoundedTensor
from tilewright.lang.tensors.pointer import AddressSpace
from tilewright.lang.tensors.tensor import Tensor
from tilewright.layout import Layout


class ExperimentalKernel(KernelFunction[P]):
    """A kernel whose tensors in global memory know their bounds."""

    def received(self, argument: Any) -> Any:
        if type(argument) is not Tensor or argument.is_coordinate or not isinstance(argument.linear, Layout):
            return argument
        return BoundedTensor.of(argument) if argument.memspace is AddressSpace.gmem else argument


@overload
def kernel(function: Callable[P, Any], *, preprocessor: bool = True) -> KernelFunction[P]: ...
@overload
def kernel(*, preprocessor: bool = True) -> Callable[[Callable[P, Any]], KernelFunction[P]]: ...
def kernel(function: Any = None, *, preprocessor: bool = True, **unknown: Any) -> Any:
    """Decorator of kernels whose tensor arguments :func:`tilewright.cute.experimental.copy` keeps within bounds."""
    return mark(ExperimentalKernel, function, preprocessor, unknown)
