"""``matmul`` under torch.vmap and torch.autocast; alpha = 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.errors import ArgumentError
from tilewright.gemm import GemmUniversal, SplitK, gemm, gemm_grouped, matmul

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.unchecked,
    pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning"),  # PyTorch's own, of its derivatives
]


def integers(seed: int, *shape: int, dtype: Any = None) -> Any:
    drawn = torch.from_numpy(np.random.default_rng(seed).integers(-3, 4, shape))
    return drawn.to(dtype or torch.float32)


@pytest.mark.parametrize(
    ("shapes", "dims"),
    [
        (((3, 5, 8), (8, 6)), (0, None)),
        (((5, 8), (8, 6, 3)), (None, 2)),
        (((5, 3, 8), (3, 8, 6)), (1, 0)),
        (((3, 2, 5, 8), (3, 8, 6)), (0, 0)),
        (((3, 8), (8, 6)), (0, None)),
        (((5, 8), (3, 2, 8, 6)), (None, 0)),
    ],
)
def test_vmap(shapes: Any, dims: Any) -> None:
    a, b = (integers(i, *shape) for i, shape in enumerate(shapes))
    found, expected = (torch.vmap(call, in_dims=dims)(a, b) for call in (matmul, torch.matmul))
    assert torch.equal(found, expected)


def test_vmap_of_c_and_bias() -> None:
    a, b, c, bias = integers(0, 3, 5, 8), integers(1, 8, 6), integers(2, 3, 5, 6), integers(3, 3, 6)

    def call(a: Any, c: Any, bias: Any) -> Any:
        return matmul(a, b, c=c, beta=2.0, bias=bias, activation="relu")

    assert torch.equal(torch.vmap(call)(a, c, bias), torch.relu(a @ b + 2 * c + bias[:, None]))
    assert torch.equal(
        torch.vmap(call, in_dims=(0, None, None))(a, c[0], bias[0]), torch.relu(a @ b + 2 * c[0] + bias[0])
    )


def of(multiply: Any, **more: Any) -> Any:
    """A scalar function of two matrices, through all that a product may have."""

    def loss(a: Any, b: Any, c: Any, bias: Any) -> Any:
        if multiply is matmul:
            result = matmul(a, b, c=c, alpha=2.0, beta=3.0, bias=bias, **more)
        else:
            result = torch.matmul(a, b) * 2 + 3 * c + bias
            result = torch.relu(result) if more else result
        return (result * result).sum()

    return loss


GIVEN = [(3, 4, 8), (3, 8, 6), (3, 4, 6), (3, 6)]
"""Three of each operand: A, B, C, the bias."""

TRANSFORMS = {
    "grad": lambda f, x: torch.func.grad(f, argnums=(0, 1, 2, 3))(*(y[0] for y in x)),
    "vmap of grad": lambda f, x: torch.vmap(torch.func.grad(f, argnums=(0, 1, 2, 3)))(*x),
    "grad of vmap": lambda f, x: torch.func.grad(lambda *y: torch.vmap(f)(*y).sum(), argnums=(0, 1, 2, 3))(*x),
    "vmap of A": lambda f, x: torch.vmap(torch.func.grad(f), (0, None, None, None))(x[0], *(y[0] for y in x[1:])),
    "vjp": lambda f, x: torch.func.vjp(f, *(y[0] for y in x))[1](torch.tensor(2.0)),
    "jacrev": lambda f, x: torch.func.jacrev(f)(*(y[0] for y in x)),
    "grad of grad": lambda f, x: torch.func.grad(lambda a: torch.func.grad(f)(a, *(y[0] for y in x[1:])).sum())(
        x[0][0]
    ),
    "recorded grad": lambda f, x: torch.autograd.grad(
        torch.func.grad(f)(leaf := x[0][0].clone().requires_grad_(), *(y[0] for y in x[1:])).sum(), leaf
    ),
}


@pytest.mark.parametrize("more", [{}, {"activation": "relu"}], ids=["plain", "activation"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_derivatives_of_torch_func(name: str, more: Any) -> None:
    given = [integers(i, *shape) for i, shape in enumerate(GIVEN)]
    found, expected = (TRANSFORMS[name](of(multiply, **more), given) for multiply in (matmul, torch.matmul))
    for one, other in zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]:
        assert torch.equal(one, other)


@pytest.mark.parametrize("transform", [torch.func.jacfwd, torch.func.hessian])
def test_forward_mode_is_refused(transform: Any) -> None:
    with pytest.raises(ArgumentError, match="no derivative in forward mode"):
        transform(lambda a: matmul(a, integers(1, 8, 6)).sum())(integers(0, 5, 8))
    a = integers(0, 5, 8)
    with pytest.raises(ArgumentError, match="no derivative in forward mode"):
        torch.func.jvp(lambda a: matmul(a, integers(1, 8, 6)), (a,), (a,))


@pytest.mark.parametrize("cast", [torch.bfloat16, torch.float16])
def test_autocast(cast: Any) -> None:
    a, b, bias = integers(0, 5, 8, dtype=torch.bfloat16), integers(1, 8, 6), integers(2, 6)
    with torch.autocast("cpu", cast):
        found, expected = matmul(a, b, bias=bias), torch.matmul(a, b) + bias.to(cast)
        assert found.dtype == cast and torch.equal(found, expected)
        weight = b.clone().requires_grad_()
        matmul(a, weight).sum().backward()
    assert weight.grad.dtype == torch.float32
    assert torch.equal(weight.grad, a.float().T @ torch.ones(5, 6))


@pytest.mark.parametrize("graded", [False, True])
def test_the_operator_itself_under_autocast(graded: bool) -> None:
    a = torch.randint(-3, 4, (8, 16)).float().requires_grad_(graded)
    b, c = torch.randint(-3, 4, (16, 8)).float(), torch.randint(-3, 4, (8, 8)).float()
    with torch.autocast("cpu", torch.bfloat16):
        found = torch.ops.tilewright.matmul(a, b, c, beta=2.0)
    assert found.dtype == torch.bfloat16
    assert torch.equal(found.float(), a @ b + 2 * c)
    if graded:
        found.float().sum().backward()
        assert a.grad is not None and torch.equal(a.grad, b.sum(1).expand(8, 16))


@pytest.mark.parametrize("how", ["data_parallel", SplitK(2), SplitK(2, "parallel"), "stream_k"])
@pytest.mark.parametrize("beta", [0.0, 2.0])
def test_alpha_of_0_does_not_look_at_the_product(how: Any, beta: float) -> None:
    a, b = np.full((8, 160), np.nan, np.float16), np.full((160, 16), np.inf, np.float16)
    c = np.arange(128, dtype=np.float16).reshape(8, 16)
    report = gemm(a, b, c, alpha=0.0, beta=beta, kernel="tensorop_f16", decomposition=how)
    np.testing.assert_array_equal(report.d, beta * c)


def test_alpha_of_0_by_other_entry_points() -> None:
    a, b, c = np.full((8, 64), np.nan, np.float16), np.ones((64, 16), np.float16), np.ones((8, 16), np.float16)
    assert (matmul(a, b, alpha=0.0) == 0).all()
    assert (matmul(a, b, c=c, alpha=0.0, beta=3.0, bias=np.ones(16, np.float16)) == 4).all()
    assert (gemm_grouped([(a, b, c)], alpha=0.0, beta=3.0)[0] == 3).all()
    handle = GemmUniversal()
    handle.initialize(GemmUniversal.Arguments(A=np.ones_like(a), B=b, C=c, D=(d := np.zeros_like(c))))
    handle.update(GemmUniversal.Arguments(A=a, B=b, C=c, D=d, alpha=0.0, beta=2.0))
    handle()
    assert (d == 2).all()
