"""The kernels of gradients that are compiled ahead are those that the gradients launch."""

from __future__ import annotations

from typing import Any

import pytest

from tilewright.gemm import matmul
from tilewright.gemm.tuning import processes
from tilewright.lang.launch import specialise, stored

torch = pytest.importorskip("torch")
torch_op = pytest.importorskip("tilewright.gemm.operators.torch_op")
torch_gradients = pytest.importorskip("tilewright.gemm.operators.torch_gradients")
gradient_kernels = pytest.importorskip("tilewright.gemm.operators.gradient_kernels")


def major(x: Any, letter: str) -> str:
    """``k`` where the matrix is contiguous along K, else ``letter``; K is the last mode of A and the first of B."""
    along_k = x.stride(-1 if letter == "m" else -2) == 1
    return "k" if along_k else letter


@pytest.mark.parametrize("wants", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("rows", [(48,), (3, 16)])
def test_the_products_are_those_of_the_gradients(rows: Any, transposed: bool, wants: Any, monkeypatch: Any) -> None:
    a = torch.randn(*rows, 32, requires_grad=wants[0])
    w = torch.randn(24, 32, requires_grad=wants[1]) if transposed else torch.randn(32, 24, requires_grad=wants[1])
    b = w.mT if transposed else w
    launched: list[Any] = []

    def product(wanted: Any, *rest: Any) -> Any:
        x, y = wanted.left, wanted.right
        m = x.numel() // x.shape[-1]
        launched.append(((m, y.shape[1], x.shape[-1]), major(x, "m"), major(y, "n")))
        return (x @ y).mT if wanted.transposed else x @ y

    monkeypatch.setattr(torch_gradients, "product", product)
    matmul(a, b).backward(torch.randn(*rows, 24))
    assert launched == gradient_kernels.gradient_products(a, b, *wants)


@pytest.mark.parametrize("a", [torch.zeros(4, 16)[:, ::2], torch.zeros(0, 8), torch.zeros(8)])
def test_operands_of_other_forms_are_left_alone(a: Any) -> None:
    assert gradient_kernels.gradient_products(a, torch.zeros(8, 8), True, True) == []
    assert gradient_kernels.gradient_products(torch.zeros(4, 8), torch.zeros(8, 16)[:, ::2], True, True) == []


@pytest.mark.parametrize("has_bias", [True, False])
def test_the_first_product_is_compiled_in_its_other_form_too(has_bias: bool, monkeypatch: Any) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(gradient_kernels, "SEEN", set())
    monkeypatch.setattr(gradient_kernels, "is_on", lambda: True)
    monkeypatch.setattr(gradient_kernels, "compile_product", lambda *x, **how: asked.append((x, how)))
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    a, w = torch.zeros(3, 16, 32), torch.zeros(24, 32)
    for x in (a, a, a[:2]):
        gradient_kernels.compile_gradients(x, w.mT, True, False, torch.zeros(24) if has_bias else None)
    form = ((48, 24, 32), "k", "k", a.dtype), {"has_bias": not has_bias}
    assert asked == [(((48, 32, 24), "k", "n", a.dtype), {}), form, (((32, 32, 24), "k", "n", a.dtype), {})]


@pytest.mark.gpu
def test_the_backward_pass_finds_its_kernels(monkeypatch: Any, tmp_path: Any) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv(stored.SWITCH, "1")
    monkeypatch.setattr(processes, "_POOL", [])  # processes with this environment
    asked: list[Any] = []
    monkeypatch.setattr(gradient_kernels, "SEEN", {"an earlier product"})
    begin = gradient_kernels.compile_gradients
    monkeypatch.setattr(torch_op, "compile_gradients", lambda *x: asked.extend(begin(*x)))
    a = torch.randint(-3, 4, (2, 152, 328), device="cuda").to(torch.bfloat16).requires_grad_()
    w = torch.randint(-3, 4, (392, 328), device="cuda").to(torch.bfloat16).requires_grad_()
    y = matmul(a, w.mT)
    for future in asked:
        future.result()
    assert len(asked) == 2
    monkeypatch.setattr(specialise, "stage", lambda *_: pytest.fail("a kernel was staged in the backward pass"))
    grad = torch.randint(-1, 2, y.shape, device="cuda").to(torch.bfloat16)
    y.backward(grad)
    exact = [x.detach().double() for x in (a, w, grad)]
    assert torch.equal(a.grad, (exact[2] @ exact[1]).to(torch.bfloat16))
    assert torch.equal(w.grad, (exact[2].flatten(0, 1).mT @ exact[0].flatten(0, 1)).to(torch.bfloat16))
