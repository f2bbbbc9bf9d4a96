"""What is copied for a kernel, and what the host's rules of operands say in each of their cases, by themselves."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilewright.errors import ArgumentError
from tilewright.gemm import GemmUniversal
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.choice.registry import KERNELS
from tilewright.gemm.config import Major
from tilewright.gemm.host.copies import copies, copy_of
from tilewright.gemm.host.epilogue_operands import check_places
from tilewright.gemm.host.indirect import IndirectOperands
from tilewright.gemm.host.packing import Packing
from tilewright.gemm.host.problem import Problem
from tilewright.gemm.host.universal_problem import problem_of
from tilewright.lang.arguments.arrays import Array
from tilewright.lang.numbers.numeric import Float16, Float32, TFloat32

Arguments = GemmUniversal.Arguments


def zeros(*shape: int, order: Any = "C") -> np.ndarray:
    return np.zeros(shape, np.float16, order)


def product(with_c: bool = True) -> Problem:
    return Problem.of(zeros(5, 9), zeros(9, 7), zeros(5, 7) if with_c else None, zeros(5, 7))


# -- copies ------------------------------------------------------------------------------------------------------------


def names_by_the_rule(refused: set[str], with_c: bool, whole: bool) -> tuple[str, ...]:
    names = {name for name in refused if name != "C" or with_c}
    if whole and with_c and names & {"C", "D"}:
        names |= {"C", "D"}
    return tuple(sorted(names))


@pytest.mark.parametrize("whole_loads", [False, True])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("with_c", [False, True])
def test_refused_operands_are_copied_and_c_follows_d(with_c: bool, whole: bool, whole_loads: bool) -> None:
    """C and D have rows of one length where a kernel writes whole accesses of D; how it loads A and B says nothing."""
    for chosen in itertools.product([False, True], repeat=4):
        refused = {name for name, one in zip("ABCD", chosen, strict=True) if one}
        listed: Any = [
            SimpleNamespace(
                name=name,
                refusal="why" if name in refused else None,
                major=Major.K,
                access=SimpleNamespace(whole=whole if name in "CD" else whole_loads),
            )
            for name in "ABCD"
        ]
        found = Packing.needed(product(with_c), listed)
        names = names_by_the_rule(refused, with_c, whole)
        if not names:
            assert found is None
            continue
        assert found is not None
        assert (found.names, found.whole) == (names, whole)
        seen = found.placed(product(with_c))
        for name in "ABCD":
            matrix: Matrix = getattr(seen, name)
            of_d = "D" if name == "C" and not with_c else name  # without a C the kernel is given D in its place
            padded = whole and of_d in names and name in "CD"
            assert matrix.shape[1] == (8 if padded else {"A": 9}.get(name, 7)), name


def test_rows_by_index_are_not_copied() -> None:
    entry = KERNELS["hopper_f16"]
    by_index = IndirectOperands(gather_A=Matrix.of("i", np.zeros(5, np.int32).reshape(5, 1)).array)
    assert Packing.of(product(), entry) is not None
    assert Packing.of(replace(product(), indirect=by_index), entry) is None


def test_matrices_are_not_copied_for_a_kernel_that_does_not_ask_for_it() -> None:
    refused = SimpleNamespace(name="A", refusal="why", major=Major.K, access=SimpleNamespace(whole=False))

    def entry(packs: bool) -> Any:
        return SimpleNamespace(config=None, family=SimpleNamespace(packs=packs, accesses=lambda *_: [refused]))

    found = Packing.of(product(), entry(True))
    assert found is not None
    assert found.names == ("A",)
    assert Packing.of(product(), entry(False)) is None


@pytest.mark.parametrize(
    ("source", "target", "along"),
    [
        (zeros(3, 9), zeros(3, 16)[:, :9], (True, False)),
        (zeros(3, 9, order="F"), zeros(8, 9, order="F")[:3], (True, False)),
        (zeros(3, 2), zeros(3, 2, order="F"), (True, False)),
        (zeros(3, 2, order="F"), zeros(3, 2), (True, False)),
        (zeros(2, 3, order="F"), zeros(2, 3), (True, False)),
        (zeros(3, 1), zeros(3, 8)[:, :1], (True, False)),
        (zeros(4, 9)[:, ::-1], zeros(4, 9), (False, True)),
    ],
    ids=lambda x: f"{x.shape}{x.strides}" if isinstance(x, np.ndarray) else None,
)
def test_threads_that_copy_go_along_what_is_contiguous(
    source: np.ndarray, target: np.ndarray, along: tuple[bool, bool]
) -> None:
    """``along``: whether the mode that they go along is contiguous, and whether some stride is negative."""
    handle: Any = copy_of([(Matrix.of("x", source), Matrix.of("y", target))])
    ((dtype, contiguous, backwards),) = handle.key[2]
    assert (dtype, contiguous, any(backwards)) == (Float16, *along)


def test_copies_of_few_and_of_many_columns_are_kernels_of_their_own() -> None:
    pairs = ((Matrix.of("x", zeros(4, n)), Matrix.of("y", zeros(4, n))) for n in (8, 16, 4096))
    keys: list[Any] = [copy_of([pair]).key for pair in pairs]
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize("names", ["A", "AB", "CD", "ABCD", "D", "BC"])
def test_packing_copies_inputs_before_and_d_after_the_product(names: str) -> None:
    problem = product()
    packing = Packing(tuple(names), (Major.K,) * len(names), (4096,) * len(names), 0)
    seen = Problem.of(zeros(5, 9), zeros(9, 7), zeros(5, 7), zeros(5, 7))
    first, last = copies(packing, problem, seen)
    before, after = (0 if handle is None else len(handle.args[0]) for handle in (first, last))
    assert (before, after) == (len(names) - ("D" in names), "D" in names)


# -- operands ----------------------------------------------------------------------------------------------------------


def test_assumed_access_width_of_pointer_arrays_fits_each_matrix() -> None:
    def aligned(offset: int, rows: int, columns: int) -> np.ndarray:
        memory = zeros(rows * columns + 64)
        begin = -memory.ctypes.data % 64 // 2 + offset
        return memory[begin : begin + rows * columns].reshape(rows, columns)

    def widths(*offsets: int) -> list[int]:
        A, D = [aligned(offset, 8, 16) for offset in offsets], [aligned(0, 8, 8) for _ in offsets]
        B = [aligned(0, 16, 8) for _ in offsets]
        problem = problem_of(Arguments(mode="array", A=A, B=B, D=D))
        assert [len(problem.every(operand)) for operand in (0, 1, 3)] == [len(offsets)] * 3
        assert len(product().every(0)) == 1
        return [one.copy_bits for one in problem.operands(False, Float16, False)]

    assert widths(0, 0)[0] == 128
    assert widths(0, 1)[0] == 16
    assert widths(1, 0)[0] == 16
    assert widths(0, 4) == [64, 128, 128]


def test_operands_are_asked_for_by_all_that_they_depend_on() -> None:
    """Each of the three is remembered by itself, whichever is asked for first."""
    a, b, out = (np.zeros(shape, np.float32) for shape in ((8, 24), (12, 8), (8, 8)))
    narrow = Problem.of(a[:, :6], b[:6], None, out)
    asked = list(itertools.product([False, True], [Float32, TFloat32], [False, True]))
    each = [replace(narrow).operands(*one) for one in asked]
    assert [narrow.operands(*one) for one in asked] == each
    assert len({str(one) for one in each}) == len(asked)


@pytest.mark.parametrize("c", [zeros(5, 8), zeros(4, 7)], ids=["columns", "rows"])
def test_c_of_a_list_has_ds_shape(c: np.ndarray) -> None:
    listed: Any = {"A": [zeros(5, 9)], "B": [zeros(9, 7)], "D": [zeros(5, 7)]}
    problem_of(Arguments(mode="array", **listed))
    problem_of(Arguments(mode="array", C=[zeros(5, 7)], **listed))
    with pytest.raises(ArgumentError, match="c must be 5 x 7"):
        problem_of(Arguments(mode="array", C=[c], **listed))
    with pytest.raises(ArgumentError, match="both have one dtype"):
        problem_of(Arguments(mode="array", C=[np.zeros((5, 7), np.float32)], **listed))


@pytest.mark.parametrize("name", ["A", "B", "C", "D"])
@pytest.mark.parametrize("value", [None, [], np.zeros((1, 5, 9)), [zeros(5, 7)] * 2], ids=["None", "[]", "array", "2"])
def test_lists_of_matrices_are_lists_of_one_length(name: str, value: Any) -> None:
    given: Any = {"A": [zeros(5, 9)], "B": [zeros(9, 7)], "C": [zeros(5, 7)], "D": [zeros(5, 7)], name: value}
    if name == "C" and value is None:
        assert Arguments(mode="array", **given).C is None
        return
    with pytest.raises(ArgumentError, match="different lengths" if value is not None and len(value) == 2 else "a list"):
        Arguments(mode="array", **given)


@pytest.mark.parametrize("gather_A", [None, 3])
@pytest.mark.parametrize("scatter_D", [None, 3])
@pytest.mark.parametrize("gather_B", [None, 4])
def test_extents_of_a_product_by_index(gather_A: int | None, gather_B: int | None, scatter_D: int | None) -> None:
    def vector(n: int | None) -> Array | None:
        return None if n is None else Matrix.of("i", np.zeros((n, 1), np.int32)).array

    found = IndirectOperands(vector(gather_A), vector(gather_B), vector(scatter_D)).extents(9, 8, 2)
    assert found == (3 if gather_A or scatter_D else 9, 4 if gather_B else 8, 2)


@pytest.mark.parametrize("shift", [-8, -7, -1, 0, 1, 7, 8])
def test_outputs_may_adjoin_but_not_overlap_inputs(shift: int) -> None:
    memory = zeros(24)
    written, read = (
        Matrix.of("x", memory[at : at + 8].reshape(8, 1)).array._replace(shape=(8,), stride=(1,))
        for at in (8 + shift, 8)
    )
    for first, second in (([read], [written]), ([], [read, written])):
        both = [("one", x) for x in first], [("the other", x) for x in second]
        if abs(shift) == 8:
            check_places(*both, product())
        else:
            with pytest.raises(ArgumentError, match="overlaps"):
                check_places(*both, product())
