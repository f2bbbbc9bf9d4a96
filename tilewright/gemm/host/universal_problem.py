"""The operands of :class:`GemmUniversal`, checked against its mode."""

from __future__ import annotations

from typing import Any

from tilewright.errors import ArgumentError
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.host.arguments import GemmUniversalArguments, GemmUniversalMode
from tilewright.gemm.host.indirect import IndirectOperands, array_batches, indices_of
from tilewright.gemm.host.problem import Problem, check_operands, check_output, check_vector, shape_text


def problem_of(arguments: GemmUniversalArguments) -> Problem:
    """Raises ArgumentError for operands that do not go together, or with the mode."""
    mode, count = arguments.mode, arguments.batch_count
    if arguments.indices:
        return product_by_index(arguments)
    if mode is GemmUniversalMode.kArray:
        return products_by_pointer(arguments)
    problem = Problem.of(arguments.A, arguments.B, arguments.C, arguments.D)
    batch = problem.shape[3]
    if mode is GemmUniversalMode.kBatched:
        if len(arguments.A.shape) != 3:
            raise ArgumentError(f"mode 'batched' wants stacks of matrices (3 dimensions), not {problem.describe()}")
        if count not in (1, batch):
            raise ArgumentError(f"batch_count is {count}; the operands have {batch} matrices each")
    elif len(arguments.A.shape) != 2:
        name = GemmUniversalMode(mode).value
        raise ArgumentError(f"mode {name!r} is for a single product; a stack of {batch} is mode 'batched'")
    return problem


def products_by_pointer(arguments: GemmUniversalArguments) -> Problem:
    """Lists of matrices, each where it is."""
    batches = array_batches(arguments.A, arguments.B, arguments.C, arguments.D)
    if arguments.batch_count not in (1, len(batches)):
        raise ArgumentError(f"batch_count is {arguments.batch_count}; the lists have {len(batches)} matrices each")
    A, B, C, D = batches[0]
    has_c = arguments.C is not None
    check_output(A, B, C if has_c else None, D, check_operands(A, B, C if has_c else None))
    return Problem(A, B, C, D, has_c, IndirectOperands(batches=batches))


def product_by_index(arguments: GemmUniversalArguments) -> Problem:
    """A single product some of whose rows are given by index."""
    if arguments.mode not in (GemmUniversalMode.kGemm, GemmUniversalMode.kGemmSplitKParallel):
        mode = GemmUniversalMode(arguments.mode).value
        raise ArgumentError(f"indices are for single products, not for mode {mode!r}")
    A, B, D = Matrix.of("a", arguments.A), Matrix.of("b", arguments.B), Matrix.of("out", arguments.D)
    C = Matrix.of("c", arguments.C) if arguments.C is not None else None
    if any(matrix.shape[2] != 1 for matrix in (A, B, D)):
        raise ArgumentError("indices are for single products, not for stacks of matrices")
    rows, columns, results = A.shape[0], B.shape[1], D.shape[0]
    matrices = {
        "gather_A": ("gather_A_indices", rows, False),
        "gather_B": ("gather_B_indices", columns, False),
        "scatter_D": ("scatter_D_indices", results, True),
    }
    vectors: dict[str, Any] = {
        key: indices_of(name, arguments.indices[name], extent, D.device, unique)
        for key, (name, extent, unique) in matrices.items()
        if name in arguments.indices
    }
    indirect = IndirectOperands(**vectors)
    m = indirect.gather_A.shape[0] if indirect.gather_A is not None else rows
    n = indirect.gather_B.shape[0] if indirect.gather_B is not None else columns
    check_operands(A, B, None)
    if C is not None and C.shape != D.shape:
        raise ArgumentError(f"c must be {shape_text(D.shape)} as out is, got {shape_text(C.shape)}")
    written = D.shape if indirect.scatter_D is None else (indirect.scatter_D.shape[0], D.shape[1], 1)
    if written != (m, n, 1):
        what = "out" if indirect.scatter_D is None else "what scatter_D_indices names of out"
        raise ArgumentError(f"{what} must be {shape_text((m, n, 1))}, got {shape_text(written)}")
    check_output(A, B, C, D, (results, D.shape[1], 1))
    problem = Problem(A, B, C if C is not None else D, D, C is not None, indirect)
    for key, (name, _, _) in matrices.items():
        if key in vectors:
            check_vector(name, vectors[key], problem)
    return problem
