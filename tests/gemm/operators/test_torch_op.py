"""The operator of PyTorch: its checks by PyTorch itself, gradients, torch.compile, graphs, and sharded tensors."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tilewright.errors import ArgumentError
from tilewright.gemm import matmul

torch = pytest.importorskip("torch")
TorchDispatchMode = pytest.importorskip("torch.utils._python_dispatch").TorchDispatchMode
torch_op = pytest.importorskip("tilewright.gemm.operators.torch_op")

pytestmark = pytest.mark.unchecked

EXAMPLE = Path(__file__).parents[3] / "examples" / "tensor_parallel.py"


def normal(*shape: int, grad: bool = False, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, requires_grad=grad)


@pytest.mark.parametrize(
    ("shapes", "more"),
    [(((5, 8), (8, 6)), False), (((2, 5, 8), (8, 6)), True), (((2, 1, 5, 8), (3, 8, 6)), True)],
)
def test_pytorch_finds_the_operator_sound(shapes: tuple[tuple[int, ...], ...], more: bool) -> None:
    """Schema, fake form, autograd registration and compilation, by torch.library.opcheck."""
    a, b = (normal(*shape, grad=True) for shape in shapes)
    bias_and_alpha = (None, normal(shapes[1][-1], grad=True), 0.5) if more else ()
    torch.library.opcheck(torch.ops.tilewright.matmul.default, (a, b, *bias_and_alpha))


SHAPES = [
    ((5, 8), (8, 6)),
    ((8,), (8, 6)),
    ((5, 8), (8,)),
    ((8,), (8,)),
    ((2, 5, 8), (8, 6)),
    ((2, 5, 8), (2, 8, 6)),
    ((5, 8), (2, 8, 6)),
    ((2, 1, 5, 8), (3, 8, 6)),
]


@pytest.mark.parametrize("shapes", SHAPES)
def test_gradients_are_pytorchs(shapes: tuple[tuple[int, ...], ...]) -> None:
    torch.manual_seed(0)
    a, b = (normal(*shape, grad=True) for shape in shapes)
    found = matmul(a, b, alpha=2.0)
    expected = 2.0 * torch.matmul(a, b)
    torch.testing.assert_close(found, expected)
    grad = torch.randn_like(expected)
    for x, y in zip(torch.autograd.grad(found, (a, b), grad), torch.autograd.grad(expected, (a, b), grad), strict=True):
        torch.testing.assert_close(x, y)


def test_gradients_of_all_operands_and_through_an_activation() -> None:
    torch.manual_seed(1)
    a, b, c, bias = normal(5, 8, grad=True), normal(8, 6, grad=True), normal(5, 6, grad=True), normal(6, grad=True)
    operands = (a, b, c, bias)
    found = matmul(a, b, c=c, alpha=0.5, beta=3.0, bias=bias, activation="gelu")
    expected = torch.nn.functional.gelu(0.5 * (a @ b) + 3.0 * c + bias)
    torch.testing.assert_close(found, expected)
    grad = torch.randn_like(expected)
    for x, y in zip(
        torch.autograd.grad(found, operands, grad), torch.autograd.grad(expected, operands, grad), strict=True
    ):
        torch.testing.assert_close(x, y)


class OperatorNames(TorchDispatchMode):
    """The operators that are called below the gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls.append(func)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("leading", [(), (2, 3)])
def test_eager_pytorch_records_the_operator(leading: tuple[int, ...]) -> None:
    """The short way of eager calls and the dispatched one give the same bits, and gradients laid out as the operands
    are."""
    x, weight, bias = normal(*leading, 4, 8, grad=True), normal(6, 8, grad=True), normal(6, grad=True)
    assert torch_op.is_eager(x, weight, bias)
    short = matmul(x, weight.mT, bias=bias, alpha=0.5)
    with OperatorNames() as seen:
        long = torch.ops.tilewright.matmul(x, weight.mT, None, bias, 0.5)
    assert "Product" in type(short.grad_fn).__name__ and "Dispatched" in type(long.grad_fn).__name__
    assert torch.ops.tilewright.matmul.default in seen.calls
    assert torch.equal(short, long)
    grad = torch.randn_like(short)
    operands = x, weight, bias
    found, expected = (torch.autograd.grad(y, operands, grad) for y in (short, long))
    for one, other, operand in zip(found, expected, operands, strict=True):
        assert torch.equal(one, other) and one.stride() == other.stride() == operand.stride()


def test_only_plain_eager_tensors_bypass_the_dispatcher() -> None:
    x = normal(4, 8)
    assert torch_op.is_eager(x, torch.nn.Parameter(x), None)
    assert not torch_op.is_eager(x, x.as_subclass(type("Own", (torch.Tensor,), {})))
    seen = []
    torch.func.vmap(lambda y: (seen.append(torch_op.is_eager(x)), y)[1])(x)
    with torch._subclasses.FakeTensorMode():
        seen.append(torch_op.is_eager(x))
    assert seen == [False, False]


def test_each_argument_form_has_its_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded eagerly; for torch.func; for all else (fake and compiled tensors, subclasses) the dispatcher's."""
    x, forms = normal(4, 8), []

    def form(*tensors: torch.Tensor | None) -> str:
        names = {torch_op.Product.apply: "eager", torch_op.Transformed.apply: "transformed"}
        return names.get(torch_op.call_of(*tensors), "dispatched")

    torch.func.vmap(lambda y: (forms.append(form(y)), y)[1])(x)
    with torch._subclasses.FakeTensorMode():
        forms.append(form(x))
    own = x.as_subclass(type("Own", (torch.Tensor,), {}))
    assert [form(x, None), form(x, own), *forms] == ["eager", "dispatched", "transformed", "dispatched"]
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    torch.func.vmap(lambda y: (forms.append(form(y)), y)[1])(x)
    assert [form(x), forms[-1]] == ["dispatched", "dispatched"]


def test_the_gradient_of_a_gradient() -> None:
    a, b = normal(4, 8, grad=True), normal(8, 4, grad=True)
    (first,) = torch.autograd.grad(matmul(a, b).square().sum(), a, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), b)
    (first,) = torch.autograd.grad((a @ b).square().sum(), a, create_graph=True)
    torch.testing.assert_close(second, torch.autograd.grad(first.sum(), b)[0])


def test_a_compiled_function_keeps_the_operator_as_one_node() -> None:
    graphs = []

    def backend(graph: torch.fx.GraphModule, _: list) -> object:
        graphs.append(graph)
        return graph.forward

    @torch.compile(backend=backend, fullgraph=True)
    def layer(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return matmul(x.relu(), w, bias=bias, activation="silu") + 1.0

    x, w, bias = normal(4, 8), normal(8, 6), normal(6)
    expected = torch.nn.functional.silu(x.relu() @ w + bias) + 1.0
    torch.testing.assert_close(layer(x, w, bias), expected)
    targets = [str(node.target) for node in graphs[0].graph.nodes if node.op == "call_function"]
    assert sum(name.startswith("tilewright.matmul") for name in targets) == 1 == len(graphs)


def test_compiled_gradients() -> None:
    layer = torch.compile(lambda x, w: matmul(x, w, activation="relu").sum(), backend="aot_eager", fullgraph=True)
    x, w = normal(4, 8, grad=True), normal(8, 6, grad=True)
    found = torch.autograd.grad(layer(x, w), (x, w))
    for one, other in zip(found, torch.autograd.grad((x @ w).relu().sum(), (x, w)), strict=True):
        torch.testing.assert_close(one, other)


def test_results_given_and_mistakes() -> None:
    a, b = normal(4, 8, grad=True), normal(8, 6)
    with pytest.raises(ArgumentError, match="cannot with out"):
        matmul(a, b, torch.empty(4, 6))
    with pytest.raises(ArgumentError, match="kernel, decomposition and precision"):
        matmul(a, b, precision="tf32")
    with pytest.raises(ArgumentError, match="inner dimensions differ"):
        torch.ops.tilewright.matmul(a.detach(), normal(9, 6))
    with torch.no_grad():
        out = torch.empty(4, 6)
        assert matmul(a, b, out) is out
    assert not torch_op.is_eager(torch.empty(2, device="meta"))
    meta = torch.ops.tilewright.matmul(torch.empty(3, 1, 4, 8, device="meta"), torch.empty(2, 8, 6, device="meta"))
    assert meta.shape == (3, 2, 4, 6)


def run_example(*arguments: str, launcher: tuple[str, ...] = ()) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    found = subprocess.run(
        [sys.executable, *launcher, str(EXAMPLE), *arguments],
        capture_output=True,
        text=True,
        timeout=280,
        env=environment,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.count("largest error") == 5 and "2 processes" in found.stdout, found.stdout


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch has no distributed package")
def test_tensor_parallel_layers_on_two_processes() -> None:
    run_example()


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
@pytest.mark.parametrize("launcher", [(), ("-m", "torch.distributed.run", "--nproc-per-node", "2")], ids=["", "run"])
def test_tensor_parallel_layers_on_two_gpus(launcher: tuple[str, ...]) -> None:
    run_example("--gpu", launcher=launcher)


@pytest.fixture
def mesh() -> Iterator[Any]:
    """Two devices of which this process is the first; the other one does nothing."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    yield torch.distributed.device_mesh.init_device_mesh("cpu", (2,))
    torch.distributed.destroy_process_group()


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch has no distributed package")
def test_sharding_of_the_result_from_sharded_operands(mesh: Any) -> None:
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

    def sharded(placement: Any, *shape: int) -> Any:
        shape = tuple(n // 2 if isinstance(placement, Shard) and placement.dim == i else n for i, n in enumerate(shape))
        return DTensor.from_local(torch.zeros(shape), mesh, [placement])

    for a, b, expected in (
        (Replicate(), Replicate(), Replicate()),
        (Shard(0), Replicate(), Shard(0)),
        (Replicate(), Shard(1), Shard(1)),
        (Shard(1), Shard(0), Partial()),
    ):
        result = matmul(sharded(a, 8, 16), sharded(b, 16, 4))
        assert result.placements == (expected,) and result.shape == (8, 4), (a, b, result.placements)
    bias = matmul(sharded(Replicate(), 8, 16), sharded(Shard(1), 16, 4), bias=sharded(Shard(0), 4))
    assert bias.placements == (Shard(1),)
    # Sums along a K that is spread become whole before what is not linear in them, or would be added once a rank.
    whole = sharded(Replicate(), 8, 4)
    for more in ({"activation": "relu"}, {"bias": sharded(Replicate(), 4)}, {"c": whole, "beta": 1.0}):
        result = matmul(sharded(Shard(1), 8, 16), sharded(Shard(0), 16, 4), **more)
        assert not result.placements[0].is_partial(), more
    rows = matmul(sharded(Shard(1), 2, 8, 16), sharded(Replicate(), 16, 4))
    assert rows.placements == (Shard(1),) and rows.to_local().shape == (2, 4, 4)
    batch = matmul(sharded(Shard(0), 2, 8, 16), sharded(Shard(0), 2, 16, 4))
    assert batch.placements == (Shard(0),)


@pytest.mark.gpu
def test_compiled_with_graphs_on_a_gpu() -> None:
    layer = torch.compile(lambda x, w, bias: matmul(x, w, bias=bias, activation="relu"), mode="reduce-overhead")
    x, w, bias = (torch.randint(-2, 3, s, device="cuda").half() for s in ((136, 8192), (8192, 512), (512,)))
    expected = (x.double() @ w.double() + bias.double()).relu().half()
    for _ in range(4):
        assert torch.equal(layer(x, w, bias), expected)
    assert torch.equal(layer(x[:64], w, bias), expected[:64])


@pytest.mark.gpu
def test_graphs_of_torch_compile_before_anything_else_ran() -> None:
    """In a process of its own: the first products run while PyTorch allocates from the graph's memory."""
    program = """
import torch
from tilewright.gemm import matmul
layer = torch.compile(lambda x, w: matmul(matmul(x, w).relu(), w), mode="reduce-overhead")
x, w = torch.randint(-2, 3, (136, 2048), device="cuda").half(), torch.randint(-1, 2, (2048, 2048), device="cuda").half()
first = (x.double() @ w.double()).half().relu()
expected = first.double() @ w.double()
for _ in range(5):
    found = layer(x, w).double()
    assert (found - expected).norm() / expected.norm() < 1e-3
print("right")
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, capture_output=True, text=True, timeout=280, env=environment)
    assert found.stdout.strip() == "right", found.stdout + found.stderr


@pytest.mark.parametrize("activation", ["swish", "", 3])
def test_an_activation_that_is_not_there_is_refused_where_gradients_are_wanted(activation: Any) -> None:
    with pytest.raises(ArgumentError, match=f"there is no activation {activation!r}; there are relu, "):
        matmul(normal(4, 8, grad=True), normal(8, 4), activation=activation)


def test_fake_tensors_of_two_types_are_refused() -> None:
    with torch._subclasses.FakeTensorMode():
        with pytest.raises(ArgumentError, match="both must have one dtype"):
            torch.ops.tilewright.matmul(torch.empty(4, 8), torch.empty(8, 4, dtype=torch.float16))
