"""Tensors that the CPU keeps in place of the GPU begin at multiples of 256 bytes, whichever call makes them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from tilewright import compat

SIZES = (1, 3, 33, 1000, 100_000, 300_000)  # small blocks lie at multiples of 64, large ones 64 bytes into a page


@pytest.fixture(autouse=True)
def served() -> Iterator[None]:
    compat.install(cpu=True)
    yield
    compat.uninstall()


def x(n: int) -> torch.Tensor:
    return torch.arange(n, device="cuda", dtype=torch.float32)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    "make",
    [
        lambda n: torch.empty(n, device="cuda"),
        lambda n: torch.randn(n, device="cuda"),
        lambda n: torch.ones(n).cuda(),
        lambda n: torch.ones(n).to("cuda"),
        lambda n: torch.ones(n).to("cuda", torch.float16),
        lambda n: x(n).half(),
        lambda n: x(n) + 1,
        lambda n: x(n).clone(),
        lambda n: torch.empty_like(x(n)),
        lambda n: x(n).new_zeros(n),
        lambda n: torch.cat([x(n), x(n)]),
        lambda n: torch.sort(x(n))[1],
        lambda n: torch.tensor([1] * n, device="cuda"),
        lambda n: torch.as_tensor(np.ones(n), device="cuda"),
        lambda n: copy.deepcopy(x(n)),
        lambda n: torch.nn.Parameter(x(n)),
        lambda n: torch.nn.Linear(n, 1).cuda().weight,
        lambda n: torch.nn.Linear(n, 1, device="cuda").bias,
        lambda n: torch.empty(0, device="cuda").resize_(n),
        lambda n: x(1).resize_(n),
        lambda n: torch.empty_strided((n, 2), (1, n), device="cuda"),
    ],
)
def test_each_new_tensor_begins_at_a_multiple_of_256(make: Any, n: int) -> None:
    blocks = [make(n) for _ in range(4)]  # one in four lies there by itself
    assert [b.data_ptr() % 256 for b in blocks] == [0] * 4 and all(b.is_cuda for b in blocks)


def test_values_strides_and_memory_are_those_that_were_made() -> None:
    table = torch.ones(6, 4, device="cuda")[1:5, ::2] * torch.arange(4.0, device="cuda")[:, None]
    turned = torch.empty_strided((3, 5), (1, 3), device="cuda").copy_(torch.arange(15.0).reshape(3, 5))
    assert table.tolist() == [[i, i] for i in range(4)]
    assert turned.stride() == (1, 3) and turned.tolist() == np.arange(15.0).reshape(3, 5).tolist()
    row = turned[1]
    row += 100
    assert turned[1].tolist() == [105.0, 106, 107, 108, 109], "a view shares the memory"
    grown = x(3).resize_(2000)
    assert grown[:3].tolist() == [0, 1, 2]
    host = np.zeros(4)
    copied = torch.as_tensor(host, device="cuda")
    host[0] = 5
    assert copied.tolist() == [0] * 4, "a GPU has a copy"
    target = torch.empty(5, device="cuda")
    assert torch.add(x(5), 1, out=target) is target and target.tolist() == [1, 2, 3, 4, 5]


def test_gradients_and_parameters() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(33, 17), torch.nn.Tanh(), torch.nn.Linear(17, 1)).cuda()
    weights, given = [p.detach().cpu().double() for p in module.parameters()], torch.randn(5, 33, device="cuda")
    module(given).sum().backward()
    gradients = [p.grad for p in module.parameters()]
    assert [g.data_ptr() % 256 for g in gradients] == [0] * 4 and all(g.is_cuda for g in gradients)
    hidden = torch.tanh(given.cpu().double() @ weights[0].T + weights[1])
    wanted = (weights[2] * (1 - hidden**2)).T @ given.cpu().double()
    np.testing.assert_allclose(gradients[0].cpu().numpy(), wanted.numpy(), atol=1e-4)
    assert not module.cpu()[0].weight.is_cuda and module.to("cuda")[0].weight.is_cuda
    assert not torch.nn.Parameter(torch.ones(2)).is_cuda


def test_values_saved_for_the_backward_survive_alignment() -> None:
    """`exp` keeps its result for the backward; here the result has moved."""
    leaf = x(9).requires_grad_()
    torch.exp(leaf).sum().backward()
    np.testing.assert_allclose(leaf.grad.cpu().numpy(), np.exp(np.arange(9)), rtol=1e-6)


def test_tensors_of_the_host_stay() -> None:
    host = [torch.ones(33) + i for i in range(8)]
    assert any(h.data_ptr() % 256 for h in host)
    shared = torch.from_numpy(np.zeros(3))
    at = shared.data_ptr()
    assert torch.add(shared, 1, out=shared).data_ptr() == at
