"""Pairs of Float32: cute.arch.add_packed_f32x2 and its like."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import Float32, cute
from tilewright._mlir.dialects import nvvm
from tilewright.atoms.packed import PairArithmetic, rounded
from tilewright.cute.runtime import from_dlpack
from tilewright.errors import ConstraintError

RN = nvvm.RoundingModeKind.RN
OPERATIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


@pytest.mark.parametrize("mode", [{}, {"rnd": "rn"}, {"rnd": RN}, {"rnd": None, "ftz": False}])
@pytest.mark.parametrize("name", OPERATIONS)
def test_each_number_is_rounded_to_the_nearest(name: str, mode: dict[str, Any]) -> None:
    operation = partial(getattr(cute.arch, f"{name}_packed_f32x2"), **mode)
    values = np.random.default_rng(3).normal(size=(2, 2)).astype(np.float32)
    found = operation(tuple(map(Float32, values[0])), tuple(map(Float32, values[1])))
    assert [float(x.value) for x in found] == OPERATIONS[name](*values).tolist()


MODES = ["rn", "rz", "rm", "rp"]
BITS = [
    0,
    1,
    2**22,
    2**23 - 1,
    2**23,
    2**23 + 1,
    0x3F800000,
    0x3F800001,
    0x3F7FFFFF,
    0x7F7FFFFF,
    0x7F000000,
    0x34000000,
    0x33800000,
    0x33800001,
    0x1F000000,
    0x0C800001,
]
"""Numbers at the ends of the range, at ties, and far from each other."""


@np.errstate(over="ignore")
def exactly(name: str, mode: str, x: list[float]) -> float:
    """By fractions: the float32 that the mode asks for."""
    fractions = [Fraction(v) for v in x]
    exact = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "fma": lambda a, b, c: a * b + c,
    }[name](*fractions)
    near = np.float32(float(exact)) if abs(exact) < 2**1000 else np.float32(np.inf)
    candidates = [np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))]
    finite = [c for c in candidates if np.isfinite(c)]
    lower = max((c for c in finite if Fraction(float(c)) <= exact), default=np.float32(-np.inf))
    upper = min((c for c in finite if Fraction(float(c)) >= exact), default=np.float32(np.inf))
    if mode in ("rm", "rp") or lower == upper:
        return float(lower if mode == "rm" else upper)
    if mode == "rz":
        return float(lower if exact > 0 else upper)
    ends = [Fraction(float(c)) if np.isfinite(c) else Fraction(2) ** 128 * (1 if c > 0 else -1) for c in (lower, upper)]
    below, above = exact - ends[0], ends[1] - exact
    even = lower if lower.view(np.int32) % 2 == 0 else upper
    return float(lower if below < above else upper if above < below else even)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [*OPERATIONS, "fma"])
def test_every_mode_against_fractions(name: str, mode: str) -> None:
    random = np.random.default_rng(4)
    bits = random.choice(np.array(BITS, np.uint32), (3, 3000)) | (random.integers(0, 2, (3, 3000)) << 31).astype(
        np.uint32
    )
    numbers = [*bits.view(np.float32)][: 3 if name == "fma" else 2]
    found = rounded(name, mode, False, numbers)
    wanted = [exactly(name, mode, x) for x in zip(*map(np.ndarray.tolist, numbers), strict=True)]
    assert found.tolist() == wanted


def test_zeros_and_subnormal_numbers() -> None:
    one, least = np.float32([1]), np.float32([2.0**-149])
    assert np.signbit(rounded("sub", "rm", False, [one, one])) and not np.signbit(
        rounded("sub", "rn", False, [one, one])
    )
    assert not np.signbit(rounded("add", "rm", False, [one * 0, one * 0]))
    assert rounded("add", "rn", True, [least, one * 0]) == 0 and rounded("add", "rn", False, [least, one * 0]) == least
    tiny = rounded("mul", "rn", True, [-np.float32([2.0**-100]), np.float32([2.0**-40])])
    assert tiny == 0 and np.signbit(tiny)


@cute.kernel
def pairs_kernel(x: cute.Tensor, out: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    a, b, c = ((x[t, 2 * i], x[t, 2 * i + 1]) for i in cutlass.range_constexpr(3))
    for i, mode in enumerate(MODES):
        for j, sources in enumerate(((a, b), (a, b), (a, b), (a, b, c))):
            operation = getattr(cute.arch, f"{['add', 'sub', 'mul', 'fma'][j]}_packed_f32x2")
            out[t, i, j, 0], out[t, i, j, 1] = operation(*sources, rnd=mode, ftz=i == 3)


@cute.jit
def pairs(x: cute.Tensor, out: cute.Tensor) -> None:
    pairs_kernel(x, out).launch(grid=(1, 1, 1), block=(32, 1, 1))


def pair_arrays() -> tuple[Any, Any]:
    return np.random.default_rng(5).normal(size=(32, 6)).astype(np.float32), np.zeros((32, 4, 4, 2), np.float32)


def check_pairs(x: Any, out: Any) -> None:
    for i, mode in enumerate(MODES):
        for j, name in enumerate(("add", "sub", "mul", "fma")):
            for k in (0, 1):
                numbers = [x[:, k], x[:, 2 + k], x[:, 4 + k]][: 3 if name == "fma" else 2]
                assert (out[:, i, j, k] == rounded(name, mode, i == 3, numbers)).all()


def test_pairs_in_a_kernel() -> None:
    x, out = pair_arrays()
    pairs(from_dlpack(x), from_dlpack(out))
    check_pairs(x, out)


@pytest.mark.gpu
def test_pairs_on_a_gpu() -> None:
    torch = pytest.importorskip("torch")
    x, out = (torch.from_numpy(v).cuda() for v in pair_arrays())
    pairs(from_dlpack(x), from_dlpack(out))
    check_pairs(x.cpu().numpy(), out.cpu().numpy())


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a", "sm_103a", "sm_120a"])
def test_the_machine_code_of_pairs(arch: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    artifact = cutlass.cuda.compile(cute.compile(pairs, *map(from_dlpack, pair_arrays())).kernels[0], arch)
    assert artifact.spills == 0
    assert (artifact.sass.count("FFMA2") > 0) == (arch in ("sm_100a", "sm_103a"))


def test_unknown_packed_operations_are_refused() -> None:
    pair = Float32(1), Float32(2)
    with pytest.raises(ConstraintError, match="fma_packed_f32x2: rnd='rna' is not one of rn, rz, rm, rp"):
        cute.arch.fma_packed_f32x2(pair, pair, pair, rnd="rna")
    with pytest.raises(ConstraintError, match="no div.rn.f32x2: operations add, sub, mul, fma"):
        PairArithmetic("div")
