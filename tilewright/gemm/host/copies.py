"""The launches that copy matrices to packed rows before a product, and D back after it."""

from __future__ import annotations

from dataclasses import replace

from tilewright.gemm.arrays import Matrix
from tilewright.gemm.config import Major, Operand
from tilewright.gemm.host.handle import Handle, compiled
from tilewright.gemm.host.packing import Packing
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.kernel.pack import NARROW, WIDE, PackMatrices


def with_copies(product: Handle, packing: Packing, problem: Problem, seen: Problem) -> Handle:
    """``product``, of the matrices ``seen``, between the copies from and to those of ``problem``."""
    first, last = copies(packing, problem, seen)
    product = product.followed_by(last)
    return first.followed_by(product) if first is not None else product


def copies(packing: Packing, problem: Problem, seen: Problem) -> tuple[Handle | None, Handle | None]:
    """The launch before a product that copies A, B and C to where they are ``seen``, and that of D after it."""
    pairs = [(getattr(problem, name), getattr(seen, name)) for name in packing.names if name != "D"]
    last = copy_of([(seen.D, problem.D)]) if "D" in packing.names else None
    return copy_of(pairs) if pairs else None, last


def copy_of(pairs: list[tuple[Matrix, Matrix]]) -> Handle:
    """The launch that copies the first matrix of each pair to the second, as far as both reach."""
    tensors, kinds, fewest = [], [], WIDE
    for source, target in pairs:
        # A single row or column is contiguous along both modes: then the target says how it is meant.
        major = (source if source.shape[1 if source.major() is Major.K else 0] > 1 else target).major()
        operand = Operand(source.dtype, Major.K, source.dtype.width)
        rows = [matrix if major is Major.K else matrix.transposed() for matrix in (source, target)]
        shape = tuple(map(min, rows[0].shape, rows[1].shape))
        # The padded matrix is longer than its source, or the source of the copy back longer than D.
        rows = [replace(matrix, array=matrix.array._replace(shape=shape)) for matrix in rows]
        tensors.append(tuple(matrix.tensor(operand) for matrix in rows))
        backwards = tuple(stride < 0 for matrix in rows for stride in matrix.stride)
        kinds.append((source.dtype, rows[0].stride[1] == 1, backwards))
        fewest = min(fewest, shape[1])
    # Threads go along the columns: a wide tile would leave most of them idle in a matrix of few.
    columns = WIDE if fewest > NARROW else NARROW
    kernel = PackMatrices(columns)
    wide = tuple(tensor.engine.wide for pair in tensors for tensor in pair)
    key = PackMatrices, columns, tuple(kinds), wide, ()  # a key ends with the states of users' functions
    args = (tuple(tensors),)
    return Handle(compiled(kernel, key, args, False), args, kernel, key)
