"""FastDivmodDivisor: exact over the whole range, in kernels and on the host, on both machines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import Int8, Int32, Int64, cute, sim
from tilewright.cute import FastDivmodDivisor
from tilewright.errors import ConstraintError, SimulationError

DIVISORS = [1, 2, 3, 5, 7, 641, 12345, 2**16, 2**30, 2**30 + 1, 2**31 - 2, 2**31 - 1]
RANDOM = np.random.default_rng(7)


@cute.kernel
def kernel(x: cute.Tensor, q: cute.Tensor, r: cute.Tensor, divisor: cute.FastDivmodDivisor) -> None:
    t, _, _ = cute.arch.thread_idx()
    quotient, remainder = divmod(x[t], divisor)
    for _ in range(x[0]):  # never runs; the divisor is carried through it
        quotient = quotient + x[t] // divisor
    q[t] = quotient
    r[t] = x[t] % divisor if x[t] > 100 else remainder


@cute.jit
def host(x: cute.Tensor, q: cute.Tensor, r: cute.Tensor, n: Int32, power: cutlass.Constexpr) -> None:
    divisor = cute.FastDivmodDivisor(n, power) if power else cute.fast_divmod_create_divisor(n)
    kernel(x, q, r, divisor).launch(grid=(1, 1, 1), block=(64, 1, 1))


def numbers(n: int) -> np.ndarray:
    """0 first; around multiples of ``n``, and anywhere."""
    near = [k for m in (1, 2, 3, (2**31 - 1) // n) for k in (m * n - 1, m * n, m * n + 1) if 0 <= k < 2**31]
    return np.array([0, 2**31 - 1, *near, *RANDOM.integers(0, 2**31, 62 - len(near))], np.int32)


@pytest.mark.parametrize("n", [*DIVISORS, *map(int, RANDOM.integers(1, 2**31, 4))])
def test_quotients_and_remainders(n: int) -> None:
    x = numbers(n)
    q, r = np.zeros_like(x), np.zeros_like(x)
    for power in (False, *([True] if n & (n - 1) == 0 else [])):
        host(x, q, r, n, power)
        assert (q == x // n).all() and (r == x % n).all()


@pytest.mark.gpu
def test_fast_divmod_on_a_gpu() -> None:
    torch = pytest.importorskip("torch")
    for n in DIVISORS:
        x = torch.from_numpy(numbers(n)).cuda()
        q, r = torch.zeros_like(x), torch.zeros_like(x)
        host(x, q, r, n, n & (n - 1) == 0)
        assert (q == x // n).all() and (r == x % n).all(), n


def test_the_machine_code_multiplies_instead_of_dividing() -> None:
    x = np.zeros(64, np.int32)
    artifact = cutlass.cuda.compile(cute.compile(host, x, x, x, Int32(3), False).kernels[0], "sm_90a")
    assert artifact.spills == 0
    assert " / " not in artifact.cuda and "MUFU" not in artifact.sass  # a division by an integer begins with MUFU.RCP


def test_known_numbers() -> None:
    divisor = cute.FastDivmodDivisor(6)
    assert [x.value for x in divmod(Int32(20), divisor)] == [3, 2] and divmod(20, divisor)[0].value == 3
    assert (Int8(100) % divisor).value == 4 and repr(divisor) == "FastDivmodDivisor(6)" and divisor.divisor == 6
    assert [x.value for x in divmod(Int32(-7), Int32(2))] == [-4, 1] and divmod(9, Int32(4))[1].value == 1


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda: cute.FastDivmodDivisor(0), "a divisor is 1 to 2"),
        (lambda: cute.FastDivmodDivisor(2**31), "a divisor is 1 to 2"),
        (lambda: cute.FastDivmodDivisor(2.5), "a divisor is an integer"),
        (lambda: cute.FastDivmodDivisor(6, is_power_of_2=True), "6 is not a power of two"),
        (lambda: Int32(-1) // cute.FastDivmodDivisor(3), "it divides 0 to 2"),
        (lambda: Int64(1) // cute.FastDivmodDivisor(3), "a Int64 is divided by .* up to 32 bits"),
    ],
)
def test_numbers_outside_the_range(act, text) -> None:
    with pytest.raises(ConstraintError, match=text):
        act()


def test_the_simulator_checks_what_is_not_known_while_staging() -> None:
    x = np.full(64, -1, np.int32)
    with sim.options(), pytest.raises(SimulationError, match="divides numbers from 0 to"):
        host(x, x.copy(), x.copy(), 3, False)


class WithItsDivisor(FastDivmodDivisor):
    """As libraries derive it: the preparation is carried as one value, beside the divisor."""

    def __init__(self, divisor: Any, is_power_of_2: bool | None = None) -> None:
        super().__init__(divisor, is_power_of_2=is_power_of_2)
        self.divisor = divisor

    def __extract_mlir_values__(self) -> list[Any]:
        return [self._divisor, *cutlass.extract_mlir_values(self.divisor)]

    def __new_from_mlir_values__(self, values: list[Any]) -> WithItsDivisor:
        made = object.__new__(WithItsDivisor)
        made._divisor = values[0]
        made.divisor = cutlass.new_from_mlir_values(self.divisor, values[1:])
        return made


@pytest.mark.parametrize("power", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_a_derived_class_carries_the_preparation_as_one_value(power: bool, known: bool) -> None:
    @cute.kernel
    def divide(x: cute.Tensor, y: cute.Tensor, by: WithItsDivisor) -> None:
        t, _, _ = cute.arch.thread_idx()
        y[t, 0], y[t, 1] = divmod(x[t], by)

    @cute.jit
    def run(x: cute.Tensor, y: cute.Tensor, number: Any) -> None:
        divide(x, y, WithItsDivisor(number, power)).launch(grid=(1, 1, 1), block=(cute.size(x), 1, 1))

    x = np.array([0, 1, 2, 3, 5, 6, 7, 8, 63, 64, 65, (1 << 31) - 1, 1 << 30, 12345678], np.int32)
    for number in (1, 2, 64, 1 << 30) if power else (1, 3, 7, 641, (1 << 31) - 1):
        y = np.zeros((len(x), 2), np.int32)
        if known:
            cute.compile(run, x, y, number)  # an int of the host is a run-time number

            @cute.jit
            def fixed(x: cute.Tensor, y: cute.Tensor, number: cutlass.Constexpr = number) -> None:
                divide(x, y, WithItsDivisor(number, power)).launch(grid=(1, 1, 1), block=(cute.size(x), 1, 1))

            fixed(x, y)
        else:
            run(x, y, number)
        assert np.array_equal(y, np.stack(divmod(x, number), 1))
