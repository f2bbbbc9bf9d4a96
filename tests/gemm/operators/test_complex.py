"""Complex products by real kernels: exact for small integers in both forms and by both rules, gradients, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.errors import ArgumentError
from tilewright.gemm import PlanarComplex, complex_matmul

C64, C128 = np.complex64, np.complex128
RULES = ["multiply_add_complex", "multiply_add_complex_gaussian"]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def drawn(seed: int, *shape: int) -> np.ndarray:
    """Small complex integers."""
    rng = np.random.default_rng(seed)
    return rng.integers(-3, 4, shape) + 1j * rng.integers(-3, 4, shape)


def conjugated(x: np.ndarray, transform: str) -> np.ndarray:
    return x.conj() if transform == "conjugate" else x


def planes(x: np.ndarray, dtype: Any) -> PlanarComplex:
    return PlanarComplex(x.real.astype(dtype), x.imag.astype(dtype))


@settings(max_examples=6, deadline=None)
@given(
    shape=st.tuples(*[st.integers(1, 40)] * 3),
    stack=st.sampled_from([(), (2,), (2, 1)]),
    dtype=st.sampled_from([C64, C128, np.float16, np.float32]),
    transforms=st.tuples(*[st.sampled_from(["none", "conjugate"])] * 2),
    factors=st.tuples(*[st.sampled_from([0.0, 1.0, -2.0, 1 - 2j])] * 2),
    majors=st.tuples(*[st.booleans()] * 3),
    rule=st.sampled_from(RULES),
)
def test_exact_for_any_operands(
    shape: Any, stack: Any, dtype: Any, transforms: Any, factors: Any, majors: Any, rule: str
) -> None:
    """With a result of their own, and in one that is given and read."""
    (m, n, k), (alpha, beta) = shape, factors
    wholes = drawn(0, *stack, m, k), drawn(1, *stack[1:], k, n), drawn(2, *stack, m, n)
    a, b, c = (
        x.swapaxes(-1, -2).copy().swapaxes(-1, -2) if turned else x for x, turned in zip(wholes, majors, strict=True)
    )
    product = conjugated(a, transforms[0]) @ conjugated(b, transforms[1])
    planar = dtype in (np.float16, np.float32)
    x, y, z = (planes(each, dtype) if planar else each.astype(dtype, order="K") for each in (a, b, c))
    how = {"transform_a": transforms[0], "transform_b": transforms[1], "math": rule}
    if dtype != np.float16:  # whose range ends
        result = complex_matmul(x, y, z, z, alpha=alpha, beta=beta, **how)
        assert result is z
        np.testing.assert_array_equal(z.real + 1j * z.imag, alpha * product + beta * c)
    result = complex_matmul(x, y, **how)
    parts = result if planar else (result.real, result.imag)
    assert {each.dtype for each in parts} == {np.dtype(dtype).type(0).real.dtype}
    np.testing.assert_array_equal(parts[0] + 1j * parts[1], product)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rule", RULES)
def test_tensors_of_pytorch(rule: str, device: str) -> None:
    """Conjugates that are bits of a tensor, a result at strides, a compiled call, gradients."""
    torch = pytest.importorskip("torch")
    a, b = (torch.from_numpy(drawn(i, *shape)).to(device) for i, shape in enumerate(((20, 12), (12, 24))))
    out = torch.zeros(24, 20, dtype=torch.complex64, device=device).T
    x, y = a.to(torch.complex64), b.to(torch.complex64)
    with torch.autocast(device):
        assert complex_matmul(x.conj(), y, out, transform_b="conjugate", math=rule) is out
    np.testing.assert_array_equal(out.cpu(), (a.conj() @ b.conj()).cpu())
    few = torch.stack((a[:2, :3], a[2:4, :3])).requires_grad_(), b[:3, :2].clone().requires_grad_()
    weights = torch.from_numpy(drawn(5, 2, 2, 2)).to(device)
    result = complex_matmul(*few, transform_a="conjugate", alpha=2j, math=rule)
    found = torch.autograd.grad(result, few, weights)
    wanted = torch.autograd.grad(2j * (few[0].conj() @ few[1]), few, weights)
    assert all(torch.equal(one, other) for one, other in zip(found, wanted, strict=True))
    with pytest.raises(ArgumentError, match="PyTorch records this call for gradients, and cannot with out"):
        complex_matmul(few[0][0], few[1], torch.zeros(2, 2, dtype=torch.complex128, device=device))


@pytest.mark.parametrize("device", DEVICES)
def test_the_operator_of_pytorch(device: str) -> None:
    torch = pytest.importorskip("torch")
    import tilewright.gemm.operators.torch_complex  # noqa: F401  registers the operator

    a, b = (torch.from_numpy(drawn(i, *shape)).to(device) for i, shape in enumerate(((2, 5, 7), (7, 4))))
    how = "none", "conjugate", RULES[0], "ieee"
    torch.library.opcheck(torch.ops.tilewright.complex_matmul, (a, b, *how), test_utils="test_faketensor")
    compiled = torch.compile(
        lambda a, b: complex_matmul(a, b, transform_b="conjugate", alpha=2.0) + 1, backend="eager", fullgraph=True
    )
    np.testing.assert_array_equal(compiled(a, b).cpu(), (2 * a @ b.conj() + 1).cpu())


@pytest.mark.parametrize("device", DEVICES)
def test_errors_are_bounded(device: str) -> None:
    """Normal numbers: in float32, and on tensor cores with 10 bits."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    a, b = (torch.randn(64, 64, dtype=torch.complex64, device=device) for _ in range(2))
    exact = a.to(torch.complex128) @ b.to(torch.complex128)
    for rule in RULES:
        for precision, bound in (("ieee", 1e-6), ("tf32", 1e-3)):
            error = (complex_matmul(a, b, math=rule, precision=precision) - exact).abs().max() / exact.abs().max()
            assert error < bound


A, B = drawn(0, 4, 8).astype(C64), drawn(1, 8, 6).astype(C64)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"b": B.real.copy()}, "a is complex64 of numpy, and b float32 of numpy: give all of one type"),
        ({"a": A.real.copy(), "b": B.real.copy()}, "a is float32, not complex: call matmul"),
        ({"b": PlanarComplex(B.real, B.imag)}, "a is an array, and b is not"),
        (
            {"a": PlanarComplex(A.real, A.imag[:2]), "b": PlanarComplex(B.real, B.imag)},
            "the parts of a have the shapes",
        ),
        ({"a": planes(A, np.int8), "b": planes(B, np.int8)}, "parts of complex matrices are of float16, .* not int8"),
        ({"b": B[:5]}, r"a of shape \(4, 8\) has 8 columns, and b of shape \(5, 6\) has 5 rows"),
        ({"a": A[0]}, r"a has the shape \(8,\): complex_matmul multiplies matrices"),
        ({"a": np.stack([A] * 2), "b": np.stack([B] * 3)}, "leading dimensions of a .* and b .* cannot be broadcast"),
        ({"out": np.zeros((4, 5), C64)}, r"out must have the shape of the result, \(4, 6\), not \(4, 5\)"),
        ({"beta": 1.0}, "beta = .* without c"),
        ({"alpha": np.ones(4, C64)}, "alpha is a number, not array"),
        ({"beta": "1", "c": np.zeros((4, 6), C64)}, "beta is a number, not '1'"),
        ({"transform_b": "transpose"}, "transform_b is a ComplexTransform, 'none' or 'conjugate', not 'transpose'"),
        ({"math": "multiply_add"}, "math is one of multiply_add_complex, multiply_add_complex_gaussian, not"),
        ({"precision": "tf64"}, "precision is one of"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], message: str) -> None:
    out = np.full((4, 6), 7, C64)
    call = {"a": A, "b": B, "out": None if len(change) == 2 else out, **change}
    with pytest.raises(ArgumentError, match=message):
        complex_matmul(call.pop("a"), call.pop("b"), call.pop("out"), **call)
    assert (out == 7).all()
