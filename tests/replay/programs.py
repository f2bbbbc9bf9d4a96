"""The staged kernels of the five example programs, by name."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tilewright import cute
from tilewright.cute.runtime import from_dlpack
from tilewright.gemm import kernels, stage
from tilewright.ir.core import Function

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> ModuleType:
    """The module of an example program."""
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    return importlib.import_module(name)


def dynamic(*shape: int) -> Any:
    tensor = from_dlpack(np.zeros(shape, np.float32), assumed_align=16)
    return tensor.mark_layout_dynamic(leading_dim=len(shape) - 1)


def staged(function: Any, *tensors: Any) -> Function:
    return cute.compile(function, *tensors).kernels[0]


def elementwise() -> Function:
    return staged(example("elementwise").ElementwiseAdd(4), *(dynamic(64, 256) for _ in range(3)))


def transpose(kind: str) -> Function:
    return staged(example("transpose").Transpose(kind), dynamic(64, 32), dynamic(32, 64))


def softmax() -> Function:
    return staged(example("softmax").RowSoftmax(), dynamic(4, 256), dynamic(4, 256))


def row_sum() -> Function:
    return staged(example("softmax").RowSum(), dynamic(4, 256), dynamic(4))


GEMMS = ("simt_f32", "tensorop_f16", "tensorop_i8", "tensorop_f64")
"""One kernel for each way to multiply; the others differ from these in the names of types."""

PROGRAMS: dict[str, Callable[[], Function]] = {
    "elementwise": elementwise,
    **{f"transpose_{kind}": partial(transpose, kind) for kind in ("naive", "padded", "swizzled")},
    "softmax": softmax,
    "row_sum": row_sum,
    **{name: partial(stage, kernels()[name].config) for name in GEMMS},
    "tensorop_f16_shared": partial(stage, kernels()["tensorop_f16"].shared, "stream_k"),
}
