"""What both type checkers must refuse. Lines end with the codes of their errors, ``# E: mypy's | pyright's``."""

from __future__ import annotations

import numpy as np

import tilewright as cutlass
from tilewright import cute, utils

# -- names that are nowhere ------------------------------------------------------------------------------------------

_ = cute.nonsense  # E: attr-defined | reportAttributeAccessIssue
_ = cute.arch.nonsense  # E: attr-defined | reportAttributeAccessIssue
_ = cute.math.cosh(1.0)  # E: attr-defined | reportAttributeAccessIssue
_ = cute.nvgpu.warp.MmaF16BF16  # E: attr-defined | reportAttributeAccessIssue
_ = cutlass.Int33  # E: attr-defined | reportAttributeAccessIssue
_ = cutlass.sim.nonsense  # E: attr-defined | reportAttributeAccessIssue
_ = cutlass.cuda.nonsense  # E: attr-defined | reportAttributeAccessIssue
_ = utils.nonsense  # E: attr-defined | reportAttributeAccessIssue
_ = cute.Layout((4, 8), (1, 4)).nonsense  # E: attr-defined | reportAttributeAccessIssue
_ = cutlass.Int32(1).nonsense  # E: attr-defined | reportAttributeAccessIssue
_ = cutlass.Float16.nonsense  # E: attr-defined | reportAttributeAccessIssue
_ = cute.make_layout((4, 8)).nonsense  # E: attr-defined | reportAttributeAccessIssue
_ = cutlass.Int32(1).to(cutlass.Float16).nonsense  # E: attr-defined | reportAttributeAccessIssue
_ = (cutlass.Int32(1) + 1).nonsense  # E: attr-defined | reportAttributeAccessIssue

# -- arguments that functions do not have ----------------------------------------------------------------------------

layout = cute.make_layout((4, 8), strides=(8, 1))  # E: call-overload | reportCallIssue
_ = cute.size()  # E: call-arg | reportCallIssue
_ = cute.coalesce(layout, profile=(1, 1))  # E: call-overload | reportCallIssue
_ = cute.make_swizzle(3, 3)  # E: call-arg | reportCallIssue
_ = cute.make_swizzle("3", 3, 3)  # E: arg-type | reportArgumentType
_ = cute.make_layout(4) + 1  # E: operator | reportOperatorIssue
_ = cutlass.Float32(1) & 1  # E: operator | reportOperatorIssue


@cute.kernel
def kernel(x: cute.Tensor, n: cutlass.Int32) -> None:
    x[0] = n.nonsense  # E: attr-defined | reportAttributeAccessIssue
    _ = x.nonsense  # E: attr-defined | reportAttributeAccessIssue
    _ = x[None, 0].nonsense  # E: attr-defined | reportAttributeAccessIssue
    cute.copy(x, x, x)  # E: arg-type | reportArgumentType
    cute.autovec_copy(x)  # E: call-arg | reportCallIssue


@cute.jit
def run(x: cute.Tensor, n: cutlass.Int32, width: cutlass.Constexpr[int]) -> None:
    width.nonsense()  # E: attr-defined | reportAttributeAccessIssue
    kernel(x, n).launch(gird=1)  # E: arg-type | reportArgumentType
    kernel(x, n).launch(grid="1")  # E: arg-type | reportArgumentType
    kernel(x, n).lunch(grid=1)  # E: attr-defined | reportAttributeAccessIssue


@cute.jit(preprocess=False)  # E: call-overload | reportCallIssue
def other(x: cute.Tensor) -> None: ...


array = np.zeros(4)
run.nonsense()  # E: attr-defined | reportAttributeAccessIssue
_ = run(array, 4, 8).nonsense  # E: attr-defined | reportAttributeAccessIssue
cute.compile[3](run, array, 4, 8)  # E: index | reportArgumentType
cute.compile(run, array, 4, 8).nonsense()  # E: attr-defined | reportAttributeAccessIssue
cute.compile(3, array)  # E: arg-type | reportArgumentType
