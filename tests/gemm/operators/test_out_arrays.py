"""What is given as ``out`` takes the result, in any layout, or is refused: also where the result is copied into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright.errors import ArgumentError
from tilewright.gemm import PlanarComplex, complex_matmul, matmul, mixed_matmul, prepare_weight, scaled_matmul

pytestmark = pytest.mark.unchecked
RNG = np.random.default_rng(4)


def integers(*shape: int, dtype: Any = np.float16) -> np.ndarray:
    return RNG.integers(-3, 4, shape).astype(dtype)


def of_complex(math: str, parts: bool) -> Callable[[Any], Any]:
    def numbers(*shape: int) -> Any:
        found = integers(*shape, dtype=np.float32), integers(*shape, dtype=np.float32)
        return PlanarComplex(*found) if parts else (found[0] + 1j * found[1]).astype(np.complex64)

    a, b = numbers(2, 3, 4, 8), numbers(2, 3, 8, 8)
    return lambda out: complex_matmul(a, b, PlanarComplex(out, out.copy()) if parts else out, math=math)


WEIGHT = prepare_weight(integers(16, 256, dtype=np.int8), np.ones((16, 2), np.float16))
A, B, WIDE = integers(2, 3, 4, 8), integers(2, 3, 8, 8), integers(2, 3, 4, 256)
SCALE = np.ones((), np.float32)
CALLS: dict[str, tuple[tuple[int, ...], Any, Callable[[Any], Any]]] = {
    "a matrix": ((4, 8), np.float16, lambda out: matmul(A[0, 0], B[0, 0], out)),
    "matrices": ((2, 3, 4, 8), np.float16, lambda out: matmul(A, B, out)),
    "rows": ((2, 3, 4, 8), np.float16, lambda out: matmul(A, B[0, 0], out)),
    "weights": ((2, 3, 4, 16), np.float16, lambda out: mixed_matmul(WIDE, WEIGHT, out=out)),
    "scales": (
        (4, 8),
        np.float16,
        lambda out: scaled_matmul(A[0, 0].astype(np.int8), B[0, 0].astype(np.int8), SCALE, SCALE, out=out),
    ),
    "complex": ((2, 3, 4, 8), np.complex64, of_complex("multiply_add_complex", False)),
    "complex by three": ((2, 3, 4, 8), np.complex64, of_complex("multiply_add_complex_gaussian", False)),
    "planar": ((2, 3, 4, 8), np.float32, of_complex("multiply_add_complex", True)),
    "planar by three": ((2, 3, 4, 8), np.float32, of_complex("multiply_add_complex_gaussian", True)),
}
"""Shape and type of the result, and the call."""


def strided(shape: tuple[int, ...], dtype: Any, strides: list[int]) -> np.ndarray:
    memory, item = np.zeros(4096, dtype), np.dtype(dtype).itemsize
    return np.lib.stride_tricks.as_strided(memory, shape, [item * step for step in strides])


def plain_steps(shape: tuple[int, ...]) -> list[int]:
    return [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]


@pytest.mark.parametrize("name", CALLS)
def test_the_result_arrives_in_every_order_of_modes(name: str) -> None:
    shape, dtype, call = CALLS[name]
    expected = call(np.zeros(shape, dtype))
    for turned in (range(len(shape)), range(len(shape))[::-1], [*range(len(shape))[1:], 0]):
        out = np.zeros([shape[i] for i in turned], dtype).transpose(np.argsort(list(turned)))
        found = call(out)
        np.testing.assert_array_equal(found, expected)
        if not name.startswith("planar"):
            assert found is out


@pytest.mark.parametrize("name", CALLS)
def test_what_cannot_hold_the_result_is_refused(name: str) -> None:
    shape, dtype, call = CALLS[name]
    steps = plain_steps(shape)
    shared = [[0 if i == mode else step for i, step in enumerate(steps)] for mode in range(len(shape))]
    shared += [[min(step, shape[-1] - 1) for step in steps]]
    for strides in shared:
        with pytest.raises(ArgumentError, match="share one place"):
            call(strided(shape, dtype, strides))
    for order in ("C", "F"):
        fixed = np.zeros(shape, dtype, order)
        fixed.flags.writeable = False
        with pytest.raises(ArgumentError, match="read-only"):
            call(fixed)


def test_parts_of_a_complex_result_are_apart() -> None:
    a = PlanarComplex(integers(4, 8, dtype=np.float32), integers(4, 8, dtype=np.float32))
    b = PlanarComplex(integers(8, 4, dtype=np.float32), integers(8, 4, dtype=np.float32))
    memory = np.zeros((4, 5), np.float32)
    for parts in ((memory[:, :4], memory[:, :4]), (memory[:, :4], memory[:, 1:]), (memory[:, :4], memory[:, :4].T)):
        with pytest.raises(ArgumentError, match="share one place|overlap"):
            complex_matmul(a, b, PlanarComplex(*parts))
    turns = np.zeros((4, 4, 2), np.float32)
    complex_matmul(a, b, PlanarComplex(turns[..., 0], turns[..., 1]))
    expected = (a.real + 1j * a.imag) @ (b.real + 1j * b.imag)
    np.testing.assert_array_equal(turns[..., 0] + 1j * turns[..., 1], expected)
