"""Gradients that are launched again by what was kept of the first ones are those of the plain way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tilewright.gemm import matmul

torch = pytest.importorskip("torch")
gradients = pytest.importorskip("tilewright.gemm.operators.torch_gradients")
torch_memory = pytest.importorskip("tilewright.gemm.operators.torch_memory")

pytestmark = pytest.mark.unchecked

Tensor = Any


def whole(*shape: int, seed: int = 0, dtype: Any = torch.float32) -> Tensor:
    """Integers, whose products are exact."""
    return torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.fixture
def plain_products(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The products that were not launched by what is kept; nothing is kept at first."""
    monkeypatch.setattr(gradients, "KEPT", {})
    made: list[Any] = []
    plain = gradients.product

    def product(*given: Any) -> Any:
        made.append(given[0].number)
        return plain(*given)

    monkeypatch.setattr(gradients, "product", product)
    return made


def step(a: Tensor, b: Tensor, grad: Tensor, alpha: float = 2.0) -> list[Tensor]:
    """The gradients by ``matmul``, which are exact; they lie as their operands do."""
    a.grad = b.grad = None
    matmul(a, b, alpha=alpha).backward(grad)
    operands = [x.detach().double().requires_grad_() for x in (a, b)]
    torch.matmul(*operands).backward(alpha * grad.double())
    found = [a.grad, b.grad]
    for x, exact in zip(found, operands, strict=True):
        assert x is not None and torch.equal(x.double(), exact.grad)
    return found


STACKS = {"matrices": ((5, 8), (8, 6)), "rows": ((2, 5, 8), (8, 6)), "stacks": ((2, 5, 8), (2, 8, 6))}


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("stack", STACKS)
def test_launches_are_kept_and_exact(stack: str, transposed: bool, plain_products: list[Any]) -> None:
    """Other numbers, other memory, the same geometry."""
    of_a, of_b = STACKS[stack]
    made = []
    for seed in range(3):
        weight = whole(*of_b, seed=seed + 9)
        b = (weight.mT.contiguous().mT if transposed else weight).requires_grad_()
        made.append(step(whole(*of_a, seed=seed).requires_grad_(), b, whole(*of_a[:-1], 6, seed=seed + 5)))
        assert b.grad.stride() == b.stride()
    assert sorted(plain_products) == [0, 1] and len(gradients.KEPT) == 1
    for first, last in zip(made[0], made[2], strict=True):
        assert not torch.equal(first, last)


def summed(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return a[0].clone(), b, whole(2, 5, 6)  # A's gradients of both stacks are added up


def spread(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return a, b, torch.ones(()).expand(2, 5, 6)


def copied(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return whole(5, 2, 8).transpose(0, 1), b[0], whole(2, 5, 6)  # no view of all rows


def negative(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return a, b, torch._neg_view(whole(2, 5, 6))


@pytest.mark.parametrize("given", [summed, spread, copied, negative], ids=lambda f: f.__name__)
def test_gradients_of_other_forms(given: Callable[..., Any], plain_products: list[Any]) -> None:
    for _ in range(2):
        a, b, grad = given(whole(2, 5, 8), whole(2, 8, 6))
        step(a.requires_grad_(), b.detach().requires_grad_(), grad)


def test_what_changed_since_the_forward_pass_is_seen(plain_products: list[Any]) -> None:
    """The same memory with other strides; another alpha; one gradient of two; memory that is gone."""
    grad = whole(8, 8, seed=3)
    a, b = whole(8, 8, seed=1).requires_grad_(), whole(8, 8, seed=2).requires_grad_()
    step(a, b, grad)
    result = matmul(a, b, alpha=2.0)
    a.data = a.data.mT  # at the same address
    before = a.detach().clone()
    a.grad = b.grad = None
    result.backward(grad)
    assert torch.equal(b.grad, 2 * before.mT @ grad) and torch.equal(a.grad, 2 * grad @ b.detach().mT)
    step(a, b, grad, alpha=3.0)
    for x, other in ((a, b), (b, a)):
        x.requires_grad_(True).grad = None
        other.requires_grad_(False).grad = None
        matmul(a, b, alpha=2.0).backward(grad)
        assert torch.equal(x.grad, 2 * (grad @ b.mT if x is a else a.mT @ grad)) and other.grad is None
    assert len(gradients.KEPT) == 5
    result = matmul(a, b, alpha=2.0)
    a.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="storage of size 0"):  # PyTorch's, of the plain way
        result.backward(grad)


def test_a_gradient_that_is_recorded_goes_the_plain_way(plain_products: list[Any]) -> None:
    a, b, grad = whole(5, 8).requires_grad_(), whole(8, 6, seed=1).requires_grad_(), whole(5, 6, seed=2)
    step(a, b, grad)
    (of_a,) = torch.autograd.grad(matmul(a, b), a, grad.requires_grad_(), create_graph=True)
    (of_b,) = torch.autograd.grad(of_a, b, torch.ones_like(of_a))
    assert torch.equal(of_b, torch.ones(5, 8).mT @ grad.detach())
    assert len(plain_products) > 2


def test_a_kernel_that_multiplies_meanwhile_is_not_kept(
    plain_products: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    remembered = gradients.remembered_product

    class Passing:
        until = object()

    monkeypatch.setattr(gradients, "remembered_product", lambda *x: Passing())
    a, b, grad = whole(5, 8).requires_grad_(), whole(8, 6, seed=1).requires_grad_(), whole(5, 6, seed=2)
    step(a, b, grad)
    assert not gradients.KEPT
    monkeypatch.setattr(gradients, "remembered_product", remembered)
    step(a, b, grad)
    step(a, b, grad)
    assert sorted(plain_products) == [0, 0, 1, 1] and len(gradients.KEPT) == 1


def test_tensors_that_a_transform_left_behind(plain_products: list[Any]) -> None:
    """Their class is a tensor's, their memory is that of another tensor."""
    left: list[Tensor] = []

    def squares(x: Tensor) -> Tensor:
        left.append(2 * x)
        return (x**2).sum()

    torch.func.grad(squares)(torch.ones(8, 8))
    b = whole(8, 6).requires_grad_()
    result = matmul(left[0], b)
    result.backward(torch.ones(8, 6))
    assert torch.equal(result, 2 * torch.ones(8, 8) @ b) and (b.grad == 16).all()


@pytest.mark.parametrize("missing", ["torch._C._dynamo", "torch._C._len_torch_dispatch_stack"])
def test_memory_of_a_pytorch_without_the_direct_way(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that are PyTorch's own may go: then ``torch.empty_strided`` makes the result."""
    torch_memory.direct_allocation.cache_clear()
    monkeypatch.delattr(missing)
    make = torch_memory.new_tensors((2, 3), (1, 2), torch.float16, "cpu")
    monkeypatch.undo()
    torch_memory.direct_allocation.cache_clear()
    for made in (make(), torch_memory.new_tensors((2, 3), (1, 2), torch.float16, "cpu")()):
        assert (made.shape, made.stride(), made.dtype) == ((2, 3), (1, 2), torch.float16)
    assert make.func is torch.empty_strided


@pytest.mark.gpu
def test_launches_from_the_threads_of_the_backward_pass_on_a_gpu(plain_products: list[Any]) -> None:
    """Each at addresses of its own, on streams of their own."""
    torch.manual_seed(0)
    for turn in range(12):
        with torch.cuda.stream(torch.cuda.Stream() if turn % 3 == 0 else torch.cuda.current_stream()):
            a, b, grad = (
                whole(*shape, seed=3 * turn + i, dtype=torch.float16).cuda()
                for i, shape in enumerate([(64, 48), (48, 80), (64, 80)])
            )
            step(a.requires_grad_(), b.requires_grad_(), grad)
            torch.cuda.synchronize()
    assert sorted(plain_products) == [0, 1]
