"""Every ldmatrix and stmatrix with every element type, in kernels of both machines, against its thread-value layout."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
from tests.tiled.staging import shared
from tests.tiled.test_machines import MACHINES, NUMPY, Arrays
from tilewright import cute
from tilewright.atoms.copy_table import COPIES
from tilewright.atoms.matrix_copy import MatrixCopy
from tilewright.atoms.stmatrix import StMatrix
from tilewright.ir.types import BF16, E4M3, E5M2, F16, F32, I8, I32, TF32, U8, ScalarType
from tilewright.layout import make_layout, size
from tilewright.tiled import CopyAtom, make_tiled_copy

TYPES = {t.name: t for t in (BF16, E4M3, E5M2, F16, F32, I8, I32, TF32, U8)}
CASES = [
    (name, type_)
    for name, atom in sorted(COPIES.items())
    for type_ in TYPES
    if isinstance(atom, MatrixCopy) and not (atom.transpose and TYPES[type_].width > 16)
]


class OneMatrixCopy:
    """ldmatrix: x -> shared memory -> y[thread, value]; stmatrix: x[thread, value] -> shared memory -> y."""

    def __init__(self, name: str, type_: ScalarType) -> None:
        self.atom = CopyAtom(COPIES[name], type_)
        self.store = isinstance(COPIES[name], StMatrix)
        self.registers = self.atom.layout_ref_tv
        self.count = size(self.registers)

    @cute.jit
    def __call__(self, mX: cute.Tensor, mY: cute.Tensor):
        self.kernel(mX, mY).launch(grid=(1, 1, 1), block=(32, 1, 1))

    @cute.kernel
    def kernel(self, mX: cute.Tensor, mY: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        memory = shared(make_layout(self.count), mX.element_type)
        thread = make_tiled_copy(self.atom, self.registers, (self.count,)).get_slice(tidx)
        plain = cute.local_partition(memory, make_layout(32), tidx)
        if cutlass.const_expr(self.store):
            fragment = cute.make_fragment_like(thread.partition_S(memory))
            cute.basic_copy(mX[tidx, None], fragment)
            cute.copy(thread, fragment, thread.partition_D(memory))
            cute.arch.sync_threads()
            cute.basic_copy(plain, cute.local_partition(mY, make_layout(32), tidx))
        else:
            cute.basic_copy(cute.local_partition(mX, make_layout(32), tidx), plain)
            cute.arch.sync_threads()
            fragment = cute.make_fragment_like(thread.partition_D(memory))
            cute.copy(thread, thread.partition_S(memory), fragment)
            cute.basic_copy(fragment, mY[tidx, None])


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("name", "type_"), CASES)
def test_every_matrix_copy(name: str, type_: str, machine: str) -> None:
    program = OneMatrixCopy(name, TYPES[type_])
    table = np.array([[program.registers(t, v) for v in range(program.count // 32)] for t in range(32)])
    assert sorted(table.reshape(-1)) == list(range(program.count))
    values = (np.arange(program.count) % 100 - (0 if type_ == "u8" else 50)).astype(NUMPY[type_])
    given = values[table] if program.store else values
    out = np.zeros_like(values if program.store else values[table])
    arrays = Arrays(machine, given, out)
    tensors = arrays.tensors()
    if type_ == "tf32":
        for tensor in tensors:
            tensor.element_type = cute.TFloat32
    program(*tensors)
    bits = f"u{given.itemsize}"
    np.testing.assert_array_equal(arrays.back(1).view(bits), (values if program.store else values[table]).view(bits))


def test_the_cases_are_all_there_are() -> None:
    assert len({name for name, _ in CASES}) == 12 and len(CASES) == 6 * 9 + 6 * 6
