"""What a user may get wrong, at every way into the library: one clear error that names the operand, and D untouched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright.errors import ArgumentError
from tilewright.gemm import GemmUniversal, SplitK, StreamK, gemm, gemm_grouped, launcher, matmul
from tilewright.lang.arguments.arrays import Array

torch = pytest.importorskip("torch")

F16 = np.float16
A, B = (np.random.default_rng(i).integers(-2, 3, s).astype(F16) for i, s in enumerate(((40, 64), (64, 48))))
C = np.ones((40, 48), F16)
EXACT = A.astype(float) @ B.astype(float)


def universal(a: Any, b: Any, c: Any = None, out: Any = None, **scales: Any) -> None:
    handle, arguments = GemmUniversal(), GemmUniversal.Arguments(A=a, B=b, C=c, D=out, **scales)
    handle.initialize(arguments, np.zeros(max(16, handle.workspace_size(arguments)), np.uint8))
    handle()


WAYS: dict[str, Callable[..., Any]] = {
    "gemm": lambda a, b, c, out, **more: gemm(a, b, c, out=out, **more),
    "launcher": lambda a, b, c, out, **more: launcher(a, b, out, c, **more)(),
    "matmul": lambda a, b, c, out, **more: matmul(a, b, out, c, **more),
    "grouped": lambda a, b, c, out, **more: gemm_grouped([(a, b) if c is None else (a, b, c)], [out], **more),
    "universal": universal,
}


def overlapping_self() -> np.ndarray:
    return np.lib.stride_tricks.as_strided(np.full(4000, 7, F16), (40, 48), (94, 2))


def tensors(**names: Any) -> dict[str, Any]:
    """All operands as PyTorch tensors; of the named ones, what a function makes of them."""
    whole = {"a": A, "b": B, "c": C, "out": np.full((40, 48), 7, F16)}
    given = {name: torch.from_numpy(x.copy()) for name, x in whole.items()}
    return {name: names[name](x) if name in names else x for name, x in given.items()}


def graded(x: Any) -> Any:
    return x.detach().requires_grad_()


CASES: list[tuple[dict[str, Any], str]] = [
    ({"alpha": float("inf")}, "alpha is inf: a scale must be finite"),
    ({"alpha": float("nan")}, "alpha is nan: a scale must be finite"),
    ({"beta": -float("inf"), "c": C}, "beta is -inf: a scale must be finite"),
    ({"alpha": 10**400}, "alpha is beyond what Float32 holds"),
    ({"alpha": 1j}, "alpha must be a number"),
    ({"alpha": "1"}, "alpha must be a number"),
    ({"alpha": np.array([1.0, 2.0])}, "alpha must be a number|PerRowLinComb: a vector of 40 elements"),
    ({"beta": np.array([1.0, 2.0]), "c": C}, "beta must be a number|PerRowLinComb: a vector of 40 elements"),
    ({"alpha": [1]}, "alpha must be a number"),
    ({"a": A > 0, "b": B > 0}, "no kernel takes Boolean"),
    ({"a": A.astype(complex)}, "do not know the dtype complex128"),
    ({"b": B.astype(np.longdouble)}, "do not know the dtype float128"),
    ({"b": B.astype(np.float32)}, "a is Float16, b is Float32"),
    ({"a": A.astype(">f2")}, "bytes in the other order"),
    ({"a": A.tolist()}, "list"),
    ({"b": None}, "None"),
    ({"a": np.float16(1)}, r"shape \(\)|is a number"),
    ({"b": B[:10]}, "inner dimensions differ"),
    ({"c": C[:20], "beta": 1.0}, "c must"),
    ({"c": C.astype(np.float64), "beta": 1.0}, "c is Float64, (which is not added|out is Float16)"),
    ({"out": np.zeros((48, 40), F16)}, "out must"),
    ({"out": np.zeros((40, 48), np.int8)}, "cannot be written as Int8"),
    ({"out": overlapping_self()}, "several elements of out share one place"),
    ({"out": np.lib.stride_tricks.as_strided(np.zeros(48, F16), (40, 48), (0, 2))}, "several elements of out share"),
    ({"out": np.broadcast_to(np.zeros(48, F16), (40, 48))}, "out is read-only"),
    ({"out": np.ma.array(C, mask=C > 0)}, "a masked array hides elements"),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("changes", "message"), CASES, ids=lambda x: x if isinstance(x, str) else "-".join(x))
def test_bad_input_is_one_error_and_leaves_the_output(way: str, changes: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"a": A, "b": B, "c": None, "out": np.full((40, 48), 7, F16)} | changes
    before = np.array(given["out"], copy=True)
    with pytest.raises(ArgumentError, match=message):
        WAYS[way](**given)
    assert np.array_equal(np.asarray(given["out"]), before)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: tensors(out=torch._neg_view), "out: a torch tensor with the negative bit"),
        (lambda: tensors(c=torch._neg_view), "c: a torch tensor with the negative bit"),
        (lambda: tensors(out=graded), "out asks for a gradient"),
        (lambda: tensors(a=lambda x: x.to("meta")), "a.*meta|on meta"),
        (lambda: tensors(b=lambda x: x.float().to_sparse()), "layout torch.sparse|b is"),
        (lambda: tensors(a=lambda x: x.to(torch.complex64)), "do not know the dtype"),
        (lambda: tensors(a=lambda x: torch.nested.nested_tensor([x])), "a is a nested tensor"),
        (lambda: tensors(b=lambda x: torch.nested.nested_tensor([x], layout=torch.jagged)), "b is a nested tensor"),
    ],
)
def test_lazy_and_conjugated_tensors_are_refused(way: str, made: Any, message: str) -> None:
    given = made()
    before = given["out"].detach().clone()
    with pytest.raises(ArgumentError, match=message):
        WAYS[way](**given, beta=1.0)
    assert torch.equal(given["out"], before)


@pytest.mark.parametrize("way", ["gemm", "launcher", "grouped", "universal"])
def test_gradients_are_matmuls(way: str) -> None:
    given = tensors(a=graded)
    with pytest.raises(ArgumentError, match="a asks for a gradient"):
        WAYS[way](**given)
    with torch.no_grad():
        WAYS[way](**given)
    assert np.array_equal(given["out"].numpy(), EXACT)


@pytest.mark.parametrize("way", WAYS)
def test_results_that_overlap_operands(way: str) -> None:
    memory = np.zeros(3 * 48 * 64, F16)
    whole = memory[: 40 * 48].reshape(40, 48)
    for changes, message in (
        ({"c": whole, "beta": 1.0, "out": memory[48 : 48 + 40 * 48].reshape(40, 48)}, "out overlaps c without being"),
        ({"a": memory[: 40 * 64].reshape(40, 64), "out": whole}, "out overlaps a"),
        ({"b": memory[1000 : 1000 + 64 * 48].reshape(64, 48), "out": whole}, "out overlaps b"),
    ):
        with pytest.raises(ArgumentError, match=message):
            WAYS[way](**({"a": A, "b": B, "c": None} | changes))
    assert not memory.any()


def test_matmuls_repeated_calls_check_what_changes_from_call_to_call() -> None:
    """The short way of a product that was seen before knows geometry and addresses only."""
    memory = torch.zeros(3 * 64 * 64, dtype=torch.float16)
    square, other = (torch.from_numpy(np.random.default_rng(i).integers(-2, 3, (64, 64)).astype(F16)) for i in (1, 2))
    out, bias = memory[:4096].view(64, 64), torch.ones(64, dtype=torch.float16)
    expected = square.double() @ other.double() + 1
    for _ in range(2):
        assert torch.equal(matmul(square, other, out, bias=bias).double(), expected)
    late = memory[32:4128].view(64, 64)
    for arrays, words, message in (
        ((out, other, out), {"bias": bias}, "out overlaps a"),
        ((late, other, out), {"bias": bias}, "out overlaps a"),
        ((square, late, out), {"bias": bias}, "out overlaps b"),
        ((square, other, out), {"bias": out[3]}, "bias"),
    ):
        before = memory.clone()
        with pytest.raises(ArgumentError, match=message):
            matmul(*arrays, **words)
        assert torch.equal(memory, before)
    for _ in range(2):  # c may be the result itself, but not lie a little beside it
        out.fill_(1.0)
        assert torch.equal(matmul(square, other, out, out, beta=1.0).double(), expected)
    with pytest.raises(ArgumentError, match="out overlaps c"):
        matmul(square, other, out, late, beta=1.0)
    with pytest.raises(ArgumentError, match="out asks for a gradient"):
        matmul(square, other, torch.zeros(64, 64, dtype=torch.float16, requires_grad=True), bias=bias)
    assert torch.equal(matmul(square, other).double(), expected - 1)
    given = {"a": square, "b": other, "out": out, "c": torch.ones_like(square), "bias": bias}
    assert torch.equal(matmul(**given, beta=1.0).double(), expected + 1)
    for names in (("a", "b"), ("b",), ("out",), ("c",), ("bias",)):  # nor do tensors have memory because others had
        with pytest.raises(ArgumentError, match="meta"):
            matmul(**given | {name: given[name].to("meta") for name in names}, beta=1.0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"activation": []}, "there is no activation"),
        ({"activation": "swish"}, "there is no activation"),
        ({"out_dtype": "x"}, "there is no dtype 'x'"),
        ({"out_dtype": complex}, "do not know the dtype"),
        ({"precision": []}, "precision is one of"),
        ({"kernel": 3}, "kernel must be the name"),
        ({"decomposition": [1]}, "there is no decomposition"),
        ({"alpha": [1]}, "alpha must be a number"),
        ({"bias": np.ones(47, F16)}, "bias must be a vector of 48"),
        ({"bias": np.ones((48, 1), F16)}, "bias must be"),
        ({"bias": np.ones(48, complex)}, "do not know the dtype"),
    ],
    ids=lambda x: x if isinstance(x, str) else "-".join(x),
)
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_words_of_matmul(kind: str, words: dict[str, Any], message: str) -> None:
    a, b = (torch.from_numpy(x) if kind == "torch" else x for x in (A, B))
    if kind == "torch":
        words = {key: torch.from_numpy(x) if isinstance(x, np.ndarray) else x for key, x in words.items()}
    with pytest.raises(ArgumentError, match=message):
        matmul(a, b, **words)


REDUCED = ("mixed", "atomic", "shared")
NOTHING_TO_ADD: dict[str, tuple[Any, str]] = {
    "data_parallel": ("data_parallel", "each tile has a block of its own"),
    "dynamic": ("dynamic", "each tile is drawn by one block"),
    "serial": (SplitK(2), r"split-K of mode 'serial' has a rule of its own \(its blocks add themselves to D by turns"),
    "parallel": (SplitK(2, "parallel"), "split-K of mode 'parallel' has a rule of its own"),
    "cluster": (SplitK(2, "cluster"), "split-K of mode 'cluster' has a rule of its own"),
    "whole tiles": (
        StreamK.of((40, 48, 64), (64, 32, 64), multiprocessors=4, occupancy=1, fragments=1, available=1),
        "the blocks of this plan share no tile",
    ),
}


@pytest.mark.parametrize("reduction", REDUCED)
@pytest.mark.parametrize("how", NOTHING_TO_ADD)
@pytest.mark.parametrize("way", ["gemm", "launcher", "universal"])
def test_a_reduction_with_nothing_to_add_up(way: str, how: str, reduction: str) -> None:
    """What, why, and which decompositions take it; on every kernel, before anything runs."""
    decomposition, why = NOTHING_TO_ADD[how]
    d = np.full((40, 48), 7, F16)
    calls: dict[str, Callable[..., Any]] = {
        "gemm": lambda **more: gemm(A, B, out=d, **more),
        "launcher": lambda **more: launcher(A, B, d, **more)(),
        "universal": lambda **more: GemmUniversal(**more)(GemmUniversal.Arguments(A=A, B=B, D=d)),
    }
    for kernel in (None, "tensorop_f16", "hopper_f16"):
        with pytest.raises(ArgumentError, match=f"reduction '{reduction}' says how .*{why}.*'stream_k'.* take one"):
            calls[way](kernel=kernel, decomposition=decomposition, reduction=reduction)
    assert (d == 7).all()


def test_integer_scales() -> None:
    a, b = np.ones((16, 32), np.int8), np.ones((32, 16), np.int8)
    for alpha in (2**31, -(2**31) - 1, 1.5, 10**400):
        for run in (lambda alpha=alpha: gemm(a, b, alpha=alpha), lambda alpha=alpha: matmul(a, b, alpha=alpha)):
            with pytest.raises(ArgumentError, match="alpha"):
                run()
    assert (gemm(a, b, alpha=-(2**26)).d == -(2**31)).all()


def test_workspaces_and_indices_lie_apart_from_the_operands() -> None:
    handle = GemmUniversal(kernel="tensorop_f16", decomposition=SplitK(2))
    d = np.zeros((40, 48), F16)
    arguments = GemmUniversal.Arguments(A=A, B=B, D=d)
    size = handle.workspace_size(arguments)
    assert size > 0
    for matrix, name in ((d, "out"), (A, "a"), (B, "b")):
        memory = matrix.reshape(-1).view(np.uint8)[-(-size // 16) * -16 :]
        if memory.ctypes.data % 16 == 0:
            with pytest.raises(ArgumentError, match=f"the workspace overlaps {name}"):
                handle.initialize(arguments, memory)
    rows = np.arange(40, dtype=np.int32)
    both = np.zeros(40 * 48 * 2, np.uint8)
    inside = both[:160].view(np.int32)
    inside[:] = rows
    arguments = GemmUniversal.Arguments(A=A, B=B, D=both.view(F16).reshape(40, 48), gather_A_indices=inside)
    with pytest.raises(ArgumentError, match="out overlaps gather_A_indices"):
        GemmUniversal().initialize(arguments)
    assert np.array_equal(inside, rows)


def test_arrays_of_many_and_of_few_elements_have_kernels_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offsets take 64 bits where 32 do not reach: the same kernel cannot take both."""
    few = np.full((3, 64), 2, F16)
    b = np.ones((64, 24), F16)
    many = np.zeros((3, 5000), F16)[:, :64]
    many[...] = few
    reach = Array.is_wide.fget
    wide = property(lambda self: reach(self) or self.shape[0] > 1 and abs(self.stride[0]) >= 5000)
    monkeypatch.setattr(Array, "is_wide", wide)
    for name in ("tensorop_f16", "hopper_f16"):
        for a in (few, many, few, many):
            assert (gemm(a, b, kernel=name).d == 128).all()
            d = np.zeros((3, 5000), F16)[:, :24]
            assert (gemm(a, b, out=d, kernel=name).d == 128).all()


@pytest.mark.gpu
def test_operands_and_streams_of_two_devices() -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    given = {name: x.cuda() for name, x in tensors().items()}
    for name in given:
        moved = given | {name: given[name].to("cuda:1")}
        for way in WAYS:
            if way != "universal":
                with pytest.raises(ArgumentError, match="devices|is on|one type and device"):
                    WAYS[way](**moved, beta=1.0)
    handle = GemmUniversal()
    arguments = GemmUniversal.Arguments(A=given["a"], B=given["b"], D=given["out"])
    workspace = torch.empty(handle.workspace_size(arguments) + 16, dtype=torch.uint8, device="cuda")
    with pytest.raises(ArgumentError, match="the stream is of cuda:1"):
        handle.initialize(arguments, workspace, torch.cuda.Stream("cuda:1"))
    handle.initialize(arguments, workspace)
    with pytest.raises(ArgumentError, match="the stream is of cuda:1"):
        handle.run(torch.cuda.Stream("cuda:1"))
    handle.run()
    assert np.array_equal(given["out"].cpu().numpy(), EXACT)
