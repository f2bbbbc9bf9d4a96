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
        major = (source if source.shape[1 if source.major() is Major.K else 0] > 1 else target).major()
        operand = Operand(source.dtype, Major.K, source.dtype.width)
        lying = [matrix if major is Major.K else matrix.transposed() for matrix in (source, target)]
        shape = tuple(map(min, lying[0].shape, lying[1].shape))
        lying = [replace(matrix, array=matrix.array._replace(shape=shape)) for matrix in lying]
        tensors.append(tuple(matrix.tensor(operand) for matrix in lying))
        backwards = tuple(stride < 0 for matrix in lying for stride in matrix.stride)
        kinds.append((source.dtype, lying[0].stride[1] == 1, backwards))
        fewest = min(fewest, shape[1])
    columns = WIDE if fewest > NARROW else NARROW
    kernel = PackMatrices(columns)
    key = PackMatrices, columns, tuple(kinds), tuple(tensor.engine.wide for pair in tensors for tensor in pair)
    args = (tuple(tensors),)
    return Handle(compiled(kernel, key, args, False), args, kernel, key)
