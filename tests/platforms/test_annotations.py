"""Annotations without `from __future__ import annotations`: objects at once, or from Python 3.14 on when asked for."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np

PROGRAM = """
from typing import TYPE_CHECKING

import tilewright as cutlass
from tilewright import cute

if TYPE_CHECKING:
    from nowhere import Matrix


@cute.struct
class Storage:
    a: cute.struct.MemRange[cutlass.Float32, 32]
    b: cute.struct.Align[cute.struct.MemRange[cutlass.Int32, 4], 128]


@cute.kernel
def reverse(x: cute.Tensor, times: cutlass.Constexpr, factor: cutlass.Float32, of: MATRIX):
    a = cutlass.utils.SmemAllocator().allocate(Storage).a.get_tensor(cute.make_layout(32))
    t = cute.arch.thread_idx()[0]
    a[t] = x[t] * factor
    cute.arch.sync_threads()
    for _ in cutlass.range_constexpr(times):
        x[t] = a[31 - t]


@cute.jit
def run(x: cute.Tensor, of: MATRIX, times: cutlass.Constexpr[int] = 2, factor: cutlass.Float32 = 2.0) -> MATRIX:
    reverse(x, times, factor, of).launch(grid=(1, 1, 1), block=(32, 1, 1))
"""


def test_a_program_whose_annotations_only_type_checkers_can_evaluate(tmp_path: Path) -> None:
    lazy = sys.version_info >= (3, 14)
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.replace("MATRIX", "Matrix" if lazy else '"Matrix"'), encoding="utf-8")
    from tilewright import cute
    from tilewright.cute.runtime import from_dlpack

    run = runpy.run_path(str(script))["run"]
    x = np.arange(32, dtype=np.float32)
    run(from_dlpack(x), 3)
    assert np.array_equal(x, 2.0 * np.arange(32)[::-1])
    cute.compile(run, from_dlpack(x), 3, 1, 0.5)(from_dlpack(x), 3, 0.5)
    assert np.array_equal(x, np.arange(32))
