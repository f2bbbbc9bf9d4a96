"""What the host refuses of operands, indices, workspaces, streams and decompositions, one reason at a time."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilewright.errors import ArgumentError
from tilewright.gemm import GemmReport, GemmUniversal, Relu, SplitK, gemm, launcher
from tilewright.gemm.arrays import Matrix
from tilewright.gemm.choice.registry import KERNELS
from tilewright.gemm.config import Major, Operand
from tilewright.gemm.host import plan
from tilewright.gemm.host.indirect import array_batches, check_disjoint, indices_of
from tilewright.gemm.host.problem import Problem, check_operands, check_output, check_vector
from tilewright.gemm.host.scales import linear_combination
from tilewright.gemm.host.universal_problem import problem_of
from tilewright.gemm.host.workspace import WorkspaceBuffer, check_apart, check_stream, workspace_memory
from tilewright.gemm.kernel.reduce import ReduceSplitK
from tilewright.gemm.operators import group_launch
from tilewright.gemm.operators.compare import entry_of
from tilewright.gemm.operators.grouped import biases, check_one_kind
from tilewright.gemm.operators.grouped import check_apart as groups_apart
from tilewright.gemm.schedule.launch_arguments import Workspace
from tilewright.lang.numbers.numeric import Float16, Float32

Arguments = GemmUniversal.Arguments


def half(*shape: int) -> Any:
    return np.zeros(shape, np.float16)


def numbers(*listed: int) -> Any:
    return np.array(listed, np.int32)


def arguments(batch: int = 0, **more: Any) -> Any:
    """Of a product of 8 x 16 x 32, or of stacks of them."""
    stack = (batch,) if batch else ()
    shapes = {"A": (8, 32), "B": (32, 16), "D": (8, 16)}
    return Arguments(**{**{name: half(*stack, *shape) for name, shape in shapes.items()}, **more})


def lists(**more: Any) -> Any:
    return arguments(
        **{
            **{name: [half(*s)] * 2 for name, s in (("A", (8, 32)), ("B", (32, 16)))},
            "D": [half(8, 16), half(8, 16)],
            "mode": "array",
            **more,
        }
    )


def matrix(name: str, *shape: int, device: str = "cpu") -> Matrix:
    found = Matrix.of(name, half(*shape))
    return replace(found, array=found.array._replace(device=device))


GROUP = {"A": "a", "D": "out"}


def elsewhere(name: str, device: str = "cuda:0", dtype: Any = Float16) -> Problem:
    """A product one of whose matrices is on another device, or of another type."""
    given = problem()
    array = getattr(given, name).array._replace(device=device, dtype=dtype)
    return replace(given, **{name: replace(getattr(given, name), array=array)})


WORKSPACE = Workspace(0, Float32, 0, 64)
"""64 bytes of packed matrices."""


def read_only(n: int) -> Any:
    found = np.zeros(n, np.uint8)
    found.flags.writeable = False
    return found


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a transposed product that scatters": (
        lambda: arguments(scatter_D_indices=numbers(*range(8))).transposed_problem(), "would scatter columns of D"),
    "a transposed product with an epilogue": (
        lambda: arguments(epilogue=Relu()).transposed_problem(), "an epilogue of your own is written for rows"),
    "an unknown mode": (lambda: arguments(mode="gem"), "mode must be one of gemm, .*'gem'"),
    "lists of different lengths": (lambda: lists(B=[half(32, 16)]), r"different lengths: \[1, 2\]"),
    "no lists": (lambda: lists(A=half(8, 32)), "A must be a list of matrices in mode 'array', got ndarray"),
    "an empty list": (lambda: lists(A=[]), "A must be a list of matrices"),
    "no list at all": (lambda: lists(B=None), "B must be a list of matrices in mode 'array', got NoneType"),
    "a stack in a list": (
        lambda: array_batches([half(1, 8, 32)], [half(32, 16)], None, [half(8, 16)]), r"A\[0\] must be a matrix"),
    "another shape in a list": (
        lambda: array_batches([half(8, 32), half(9, 32)], [half(32, 16)] * 2, None, [half(8, 16), half(8, 16)]),
        r"A\[1\] is \(9, 32\).* A\[0\] is \(8, 32\)"),
    "an empty result": (lambda: launcher(half(0, 32), half(32, 16), half(0, 16)), "out is empty"),
    "indices elsewhere": (
        lambda: indices_of("rows", numbers(0), 8, "cuda:0"), "rows is on cpu, the operands are on cuda:0"),
    "indices of other numbers": (lambda: indices_of("rows", np.zeros(2, np.int64), 8, "cpu"), "a vector of Int32"),
    "indices in a matrix": (lambda: indices_of("rows", np.zeros((2, 2), np.int32), 8, "cpu"), "a vector of Int32"),
    "an index below 0": (lambda: indices_of("rows", numbers(2, -1), 8, "cpu"), "rows names row -1"),
    "an index beyond the rows": (lambda: indices_of("rows", numbers(8, 0), 8, "cpu"), "rows names row 8; there are 8"),
    "an index twice": (lambda: indices_of("rows", numbers(3, 3), 8, "cpu", unique=True), "rows names row 3 twice"),
    "another number of products": (
        lambda: problem_of(arguments(3, mode="batched", batch_count=2)),
        "batch_count is 2; the operands have 3"),
    "single matrices as a batch": (
        lambda: problem_of(arguments(mode="batched")), "mode 'batched' wants stacks"),
    "a stack as a single product": (
        lambda: problem_of(arguments(3)), "mode 'gemm' is for a single product; a stack of 3"),
    "indices of a stack": (
        lambda: problem_of(arguments(2, gather_A_indices=numbers(0))), "not for stacks of matrices"),
    "indices in another mode": (
        lambda: problem_of(arguments(2, mode="batched", gather_A_indices=numbers(0))),
        "not for mode 'batched'"),
    "another K": (lambda: check_operands(matrix("a", 8, 32), matrix("b", 31, 16), None), "inner dimensions differ"),
    "another number of matrices": (
        lambda: check_operands(matrix("a", 2, 8, 32), matrix("b", 3, 32, 16), None), "a has 2 matrices, b has 3"),
    "a C of another shape": (
        lambda: check_operands(matrix("a", 8, 32), matrix("b", 32, 16), matrix("c", 8, 17)),
        "c must be 8 x 16, got 8 x 17"),
    "a result of another shape": (
        lambda: check_output(matrix("a", 8, 32), matrix("b", 32, 16), None, matrix("out", 8, 15), (8, 16, 1)),
        "out must be 8 x 16, got 8 x 15"),
    **{f"{name} elsewhere": (
        lambda name=name: check_output(*(
            matrix(x, *shape, device="cuda:1" if x == name else "cuda:0")
            for x, shape in (("a", (8, 32)), ("b", (32, 16)), ("c", (8, 16)), ("out", (8, 16)))), (8, 16, 1)),
        "on different devices: cuda:0, cuda:1") for name in ("a", "b", "c", "out")},
    "no workspace": (lambda: workspace_memory(None, WORKSPACE, "cpu"), "the workspace is missing"),
    "a small workspace": (lambda: workspace_memory(np.zeros(63, np.uint8), WORKSPACE, "cpu"), "has 63 bytes"),
    "a workspace elsewhere": (
        lambda: workspace_memory(np.zeros(64, np.uint8), WORKSPACE, "cuda:0"), "is on cpu, the operands are on cuda:0"),
    "a read-only workspace": (lambda: workspace_memory(read_only(64), WORKSPACE, "cpu"), "read-only"),
    "no stream": (lambda: check_stream("first", "cuda:0"), "stream must be a CUDA stream or its handle, got 'first'"),
    **{f"the {name} of a group elsewhere": (
        lambda name=name: check_one_kind([problem(), elsewhere(name)], 0.0),
        f"problem 1: {word} is Float16 on cuda:0, that of problem 0 Float16 on cpu") for name, word in GROUP.items()},
    **{f"another type of the {name} of a group": (
        lambda name=name: check_one_kind([problem(), elsewhere(name, "cpu", Float32)], 0.0),
        f"problem 1: {word} is Float32 on cpu, that of problem 0 Float16") for name, word in GROUP.items()},
    "a c that only the first of a group has": (
        lambda: check_one_kind([replace(problem(), has_c=True), problem()], 1.0),
        "problem 1: beta = 1.0 needs a matrix"),
    "a bias elsewhere in a group": (
        lambda: biases([half(64), half(64)], [problem(), elsewhere("D")]), "problem 1: bias is Float16 on cpu: all"),
    "an unknown kernel to compare": (lambda: entry_of("fast", None), "no kernel 'fast' of float16 that is compared"),
    "a kernel of other numbers to compare": (lambda: entry_of("tensorop_bf16", None), "no kernel 'tensorop_bf16'"),
    "a kernel of tcgen05 to compare": (lambda: entry_of("blackwell_f16", None), "no kernel 'blackwell_f16'"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_operand_refusals_name_the_reason(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(ArgumentError, match=message):
        call()


def test_operands_just_inside_the_refusals_are_accepted() -> None:
    assert indices_of("rows", numbers(7, 0), 8, "cpu", unique=True).shape == (2,)
    assert indices_of("rows", numbers(), 8, "cpu", unique=True).shape == (0,)
    assert workspace_memory(np.zeros(64, np.uint8), WORKSPACE, "cpu").array is not None
    check_stream(None, "cuda:0")
    check_stream(7, "cuda:0")
    turned = lists().transposed_problem()
    assert [x.shape for x in turned.A] == [(16, 32)] * 2 and [x.shape for x in turned.D] == [(16, 8)] * 2
    problem = problem_of(arguments(3, mode="batched", batch_count=3))
    assert problem.shape == (8, 16, 32, 3)


def test_a_stream_of_another_device_is_refused() -> None:
    torch = pytest.importorskip("torch")
    stream = SimpleNamespace(device=torch.device("cuda", 1), cuda_stream=5)
    check_stream(stream, "cuda:1")
    with pytest.raises(ArgumentError, match="the stream is of cuda:1, the operands are on cuda:0"):
        check_stream(stream, "cuda:0")


def test_streams_are_taken_where_pytorch_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    check_stream(7, "cuda:0")
    check_stream(SimpleNamespace(device=None, cuda_stream=5), "cuda:0")


def at(name: str, low: int, high: int) -> Matrix:
    """The matrix of one row of Float16 that lies at the addresses from ``low`` to ``high``."""
    row = Matrix.of(name, half(1, (high - low) // 2))
    return replace(row, array=row.array._replace(address=low))


def overlaps(call: Callable[[], Any]) -> bool:
    try:
        call()
    except ArgumentError as error:
        assert "overlap" in str(error)
        return True
    return False


APART: dict[str, Callable[[Matrix, Matrix], Any]] = {
    "a workspace": lambda here, other: check_apart(WorkspaceBuffer(WORKSPACE, None, here.array), [other]),
    "a vector": lambda here, other: check_vector("bias", here.array, replace(problem(), D=other)),
    **{
        f"{name} of a list": lambda here, other, name=name: check_disjoint(
            **{x: [here if x == name else at(x, 1000, 1064)] for x in "ABC"}, D=[other]
        )
        for name in "ABC"
    },
    "D of a list": lambda here, other: check_disjoint(*[[at(x, 1000, 1064)] * 2 for x in "ABC"], [here, other]),
    **{
        f"{name} of a group": lambda here, other, name=name: groups_apart(
            [replace(apart(500), D=other), replace(apart(1000), **{name: here})]
        )
        for name in "ABCD"
    },
}


def apart(begin: int) -> Problem:
    return replace(problem(), **{x: at(x, begin + 100 * i, begin + 100 * i + 64) for i, x in enumerate("ABCD")})


@pytest.mark.parametrize("name", APART)
def test_neighbours_do_not_overlap(name: str) -> None:
    other = at("out", 64, 128)
    for low, high in ((0, 64), (128, 192), (10, 12), (200, 202)):
        assert not overlaps(lambda low=low, high=high: APART[name](at("x", low, high), other))
    for low, high in ((0, 66), (126, 192), (80, 82), (64, 66), (126, 128), (0, 192), (66, 130)):
        assert overlaps(lambda low=low, high=high: APART[name](at("x", low, high), other))


def test_a_c_may_be_the_result_of_its_own_product_alone() -> None:
    whole, moved = at("D", 64, 128), at("C", 66, 130)
    operands = [[at(x, 1000, 1064)] * 2 for x in "AB"]
    results = [whole, at("D", 128, 192)]
    assert not overlaps(lambda: check_disjoint(*operands, [at("C", 64, 128), at("C", 2000, 2064)], results))
    assert not overlaps(lambda: check_disjoint(*operands, [at("C", 2000, 2064)] * 2, results))
    assert overlaps(lambda: check_disjoint(*operands, [at("C", 2000, 2064), at("C", 64, 128)], results))
    assert overlaps(lambda: check_disjoint(*operands, [moved, at("C", 2000, 2064)], results))


def test_overlaps_in_lists_are_those_of_all_pairs() -> None:
    drawn, found = random.Random(0), set()
    for _ in range(400):
        spans = [(low := drawn.randrange(0, 400, 2), low + drawn.choice((2, 8, 8, 30))) for _ in range(8)]
        lists = [[at(name, *spans[i + j]) for i in (0, 4)] for j, name in enumerate("ABCD")]
        writes = lists[3]
        reads = [*lists[0], *lists[1], *(c for c, d in zip(*lists[2:], strict=True) if not c.same_view(d))]
        pairs = [*((d, x) for d in writes for x in reads), (writes[0], writes[1])]
        expected = any(
            x.array.bounds[0] < y.array.bounds[1] and y.array.bounds[0] < x.array.bounds[1] for x, y in pairs
        )
        assert overlaps(lambda lists=lists: check_disjoint(*lists)) == expected
        found.add(expected)
    assert found == {False, True}


# -- decompositions and kernels ----------------------------------------------------------------------------------------


def problem(m: int = 64, n: int = 64, k: int = 64) -> Problem:
    return Problem.of(half(m, k), half(k, n), None, half(m, n))


def stack() -> Problem:
    return Problem.of(half(2, 64, 64), half(2, 64, 64), None, half(2, 64, 64))


def indexed() -> Problem:
    return problem_of(arguments(gather_A_indices=numbers(*range(8))))


def hopper(**more: Any) -> Any:
    entry = KERNELS["hopper_f16"]
    return entry.only(replace(entry.config, cluster=(1, 1), **more))


WHY = {
    "clusters that draw tiles": (lambda: (hopper(cluster_k=2), problem(k=512), "dynamic"), "and draw none"),
    "a cluster without enough k tiles": (lambda: (hopper(cluster_k=4), problem(), "auto"), "cannot share 1 k tiles"),
    "split-K of a stack": (lambda: (hopper(), stack(), SplitK(2)), "not for a batch of 2"),
    "few rows by index": (lambda: (KERNELS["small_m_f16"], indexed(), "auto"), "not by index or pointer"),
    "too many rows": (lambda: (KERNELS["small_m_f16"], problem(), "auto"), "at most .* rows, not 64"),
    "few rows in parts": (lambda: (KERNELS["small_m_f16"], problem(1), "stream_k"), "its blocks share nothing"),
    "few rows of nothing": (lambda: (KERNELS["small_m_f16"], problem(1, k=0), "auto"), "K is 0"),
    "TMA by index": (lambda: (hopper(), indexed(), "auto"), "not by index or pointer"),
    "TMA of nothing": (lambda: (hopper(), problem(k=0), "auto"), "K is 0"),
}


@pytest.mark.parametrize("name", WHY)
def test_kernel_refusals_state_the_reason(name: str) -> None:
    entry, given, how = WHY[name][0]()
    assert WHY[name][1].split(".*")[0] in (plan.refusal(entry, given, how, 90) or "")
    assert plan.refusal(hopper(), problem(k=512), "auto", 90) is None


def test_split_k_has_the_limits_of_its_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = half(5, 256), half(256, 8)
    monkeypatch.setattr(ReduceSplitK, "MOST_ROWS", 5)
    gemm(a, b, kernel="tensorop_f16", decomposition=SplitK(2, "parallel"))
    monkeypatch.setattr(ReduceSplitK, "MOST_ROWS", 4)
    gemm(a, b, kernel="tensorop_f16", decomposition=SplitK(2))  # has no second kernel
    with pytest.raises(ArgumentError, match="parallel split-K of 5 rows: its second kernel takes 4"):
        gemm(a, b, kernel="tensorop_f16", decomposition=SplitK(2, "parallel"))
    monkeypatch.setattr(plan, "MOST_GRID", (1 << 31, 2, 2))
    gemm(a, b, kernel="tensorop_f16", decomposition=SplitK(2))
    with pytest.raises(ArgumentError, match="split-K of 3 slices: a grid has room for 2"):
        gemm(a, b, kernel="tensorop_f16", decomposition=SplitK(3))


@pytest.mark.parametrize(("how", "first"), [("auto", 1), ("data_parallel", 1), ("stream_k", 0)])
def test_the_order_of_simulation_counts_where_blocks_own_their_tiles(
    how: Any, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "in_order_of_simulation", lambda entries: entries[::-1])
    entries = [hopper(), KERNELS["tensorop_f16"]]
    assert plan.Plan.of(problem(), entries, how, "cpu").entry.config.math == ("wgmma", "tensorop")[first]


@pytest.mark.parametrize("kernel", ["hopper_i8", "tensorop_i8"])
def test_scales_of_integers_reach_as_far_as_int32(kernel: str) -> None:
    entry, given = KERNELS[kernel], problem()
    for alpha in (-(1 << 31), (1 << 31) - 1):
        assert int(linear_combination(entry, given, alpha, 0).alpha.value) == alpha
    for alpha in (-(1 << 31) - 1, 1 << 31):
        with pytest.raises(ArgumentError, match="alpha is beyond what Int32 holds"):
            linear_combination(entry, given, alpha, 0)


@pytest.mark.parametrize(("rows", "stride", "found"), [(1, 3, 8), (1, 8, 8), (1, 9, 16), (2, 12, 12), (2, 24, 24)])
def test_the_stride_of_a_single_row_is_as_aligned_as_the_kernel_needs(rows: int, stride: int, found: int) -> None:
    for major, shape, strides in ((Major.K, (rows, 3), (stride, 1)), (Major.MN, (3, rows), (1, stride))):
        one = SimpleNamespace(shape=shape, stride=strides)
        assert group_launch.leading_stride(one, Operand(Float16, major, 128)) == found


def test_sizes_of_groups() -> None:
    config, groups = hopper().config, hopper().family.grouped
    assert config.producers and groups.fits(config)
    assert not groups.fits(replace(config, cluster=(2, 1)))
    assert not groups.fits(replace(config, roles="one"))


def test_a_gpus_sizes_of_groups_are_not_the_simulators(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(group_launch, "simulated_work", lambda *given: asked.append(given) or 0)
    for machine, counted in (("gpu", False), ("cpu", True)):
        asked.clear()
        group_launch.fastest([problem()], KERNELS["tensorop_f16"], (132, 227 * 1024), machine)
        assert bool(asked) == counted


def test_an_operand_that_allows_what_is_needed_is_not_misaligned() -> None:
    listed = GemmUniversal("hopper_f16")._misaligned(arguments(B=half(32, 17)[:, :16]))
    assert [(one.operand, one.needed, one.found) for one in listed] == [("B", 8, 1)]


@pytest.mark.parametrize("given", [{}, {"bank_conflicts": 0}, {"packed": ("A", "B")}, {"on_gpu": "hopper_f16"}])
def test_a_report_has_the_rows_that_are_known(given: dict[str, Any]) -> None:
    report = GemmReport(half(8, 16), "tensorop_f16", "cpu", (64, 64, 32), "data_parallel")
    for name, value in given.items():
        setattr(report, name, value)
    rows = dict(report.rows())
    names = {
        "bank_conflicts": "extra wavefronts of shared memory",
        "packed": "copied for a faster kernel",
        "on_gpu": "kernel on a GPU (sm_90)",
    }
    assert [name for name, title in names.items() if title in rows] == list(given)


@pytest.mark.parametrize("given", [problem(k=0), stack()], ids=["no K", "a stack"])
def test_stream_k_shares_nothing_of_such_products(given: Problem) -> None:
    entry = KERNELS["tensorop_f16"]
    assert plan.shares_of(entry.config, given, (132, 227 * 1024), 2, -1) is None
    assert plan.shares_of(entry.config, problem(k=512), (132, 227 * 1024), 2, -1) is not None


def lying(shift: int = 0, **changes: Any) -> tuple[Any, ...]:
    """The geometry of a product whose A lies ``shift`` bytes further, or otherwise."""
    given = problem()
    moved = given.A.array._replace(address=given.A.array.address // 16 * 16 + shift, **changes)
    others = {x: replace(m, array=m.array._replace(address=1 << 20)) for x in "BCD" if (m := getattr(given, x))}
    return replace(given, A=replace(given.A, array=moved), **others).geometry()


@pytest.mark.parametrize(
    "changes",
    [
        {"shift": 1},
        {"shift": 8},
        {"shift": 15},
        {"shape": (64, 32, 1)},
        {"stride": (128, 1, 0)},
        {"dtype": Float32},
        {"device": "cuda:0"},
    ],
    ids=str,
)
def test_geometry_key_has_each_component(changes: dict[str, Any]) -> None:
    assert lying(**changes) != lying() == lying(16) == lying(17 * 16)


def test_operand_layouts_are_remembered_per_question() -> None:
    """Rows of 36 numbers that begin every 64: whole accesses of 16 bytes do not cover them."""
    a, b, d = np.zeros((16, 64), np.float16)[:, :36], np.zeros((36, 16), np.float16), np.zeros((16, 16), np.float16)
    problem = Problem.of(a, b, None, d)
    bits = [problem.operands(False, Float16, whole)[0].copy_bits for whole in (True, False, True)]
    assert bits == [64, 128, 64]
