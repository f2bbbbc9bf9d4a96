"""Copies among the registers of a warp, and 8-bit matrix loads, on both machines."""

from __future__ import annotations

import numpy as np
import pytest

from tests.machines import MACHINES, OnMachine
from tilewright import cute, range_constexpr
from tilewright.atoms.names import copy_by_name
from tilewright.errors import ConstraintError


@cute.kernel
def turn(source: cute.Tensor, target: cute.Tensor, predicated: cute.Constexpr) -> None:
    """Two 8x8 matrices: each lane loads its neighbours, transposes in registers, and stores them where they were."""
    tidx, _, _ = cute.arch.thread_idx()
    atom = cute.make_copy_atom(copy_by_name("SM75_U32x1_MOVM_T"), source.element_type)
    held = cute.make_layout(((2, 4, 8), 2), stride=((1, 2, 8), 64))  # (V, lane, row), matrix
    given = cute.make_tensor(source.iterator, held)[((None, tidx % 4, tidx // 4), None)]  # (V, matrix)
    wanted = cute.make_tensor(target.iterator, held)[((None, tidx % 4, tidx // 4), None)]
    before, after = cute.make_fragment_like(given), cute.make_fragment_like(given)
    cute.autovec_copy(given, before)
    if predicated:
        cute.copy(atom, before, after, pred=tidx < 3)
    cute.copy(atom, before, after)
    cute.autovec_copy(after, wanted)


@cute.jit
def turn_all(source: cute.Tensor, target: cute.Tensor, predicated: cute.Constexpr = False) -> None:
    turn(source, target, predicated).launch(grid=(1, 1, 1), block=(32, 1, 1))


@MACHINES
@pytest.mark.parametrize("dtype", [np.float16, np.int16])
def test_movmatrix(machine: OnMachine, dtype: type) -> None:
    source, target = np.arange(128).astype(dtype), np.zeros(128, dtype)
    machine.run(turn_all, source, target)
    np.testing.assert_array_equal(target.reshape(2, 8, 8), source.reshape(2, 8, 8).swapaxes(1, 2))


def test_a_predicate_is_refused() -> None:
    with pytest.raises(ConstraintError, match="SM75_U32x1_MOVM_T: cannot be predicated"):
        OnMachine("cpu").run(turn_all, np.zeros(128, np.float16), np.zeros(128, np.float16), True)


@cute.kernel
def load_bytes(source: cute.Tensor, target: cute.Tensor) -> None:
    """32 rows of 16 bytes through shared memory: four 8x16 matrices, of which lane l gets row l / 4, bytes 4 (l % 4)
    to 4 (l % 4) + 3 each."""
    tidx, _, _ = cute.arch.thread_idx()
    shared = cute.make_tensor(cute.arch.alloc_smem(source.element_type, 512, 128), cute.make_layout((16, 32)))
    for i in range(16):
        shared[i, tidx] = source[i + 16 * tidx]
    cute.arch.sync_warp()
    atom = cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x16x8bOp(num_matrices=4), source.element_type)
    registers = cute.make_rmem_tensor(16, source.element_type)  # (4 bytes, 4 matrices)
    cute.copy_atom_call(atom, shared[None, tidx], registers)
    for i in range_constexpr(16):
        target[16 * tidx + i] = registers[i]


@cute.jit
def load_all(source: cute.Tensor, target: cute.Tensor) -> None:
    load_bytes(source, target).launch(grid=(1, 1, 1), block=(32, 1, 1))


@MACHINES
def test_matrices_of_bytes(machine: OnMachine) -> None:
    source, target = np.arange(512).astype(np.uint8), np.zeros(512, np.uint8)
    machine.run(load_all, source, target)
    expected = source.reshape(4, 8, 4, 4).transpose(1, 2, 0, 3)  # (matrix, row, lane, byte) by lane
    np.testing.assert_array_equal(target.reshape(8, 4, 4, 4), expected)


def test_matrices_of_bytes_that_there_are_not() -> None:
    with pytest.raises(ConstraintError, match="does not transpose"):
        cute.nvgpu.warp.LdMatrix8x16x8bOp(transpose=True)
    with pytest.raises(ConstraintError, match="unpacks numbers of 4 or 6 bits, not of 8"):
        cute.nvgpu.warp.LdMatrix8x16x8bOp(unpack_bits=8)
    with pytest.raises(ConstraintError, match="cells of 8 bits, not f16"):
        cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x16x8bOp(), cute.Float16)


def test_default_copy_is_the_vectorising_copy() -> None:
    assert copy_by_name("DefaultCopy") == copy_by_name("AutoVectorizingCopyWithAssumedAlignment<8>")
    atom = cute.make_copy_atom(copy_by_name("DefaultCopy"), cute.Float16)
    assert atom.instruction.auto and atom.num_val_src == 1
