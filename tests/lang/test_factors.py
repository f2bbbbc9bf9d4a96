"""Quotients that are read off the multiplications, and what stays a division."""

from __future__ import annotations

import pytest

from tests.lang.evaluate import evaluate
from tilewright.lang.numbers.facts import Facts
from tilewright.lang.numbers.numeric import Int32, Int64, Uint32, wrap
from tilewright.layout import Layout, composition, exact_quotient, logical_divide, same_int


def test_factors_cancel_in_layouts_and_where_products_are_known_to_fit(stage) -> None:
    n, m = wrap(stage.n), wrap(stage.builder.sreg("tid.x"), Facts(True, 1, 1024))
    assert same_int(exact_quotient(n * 64, 64), n) and same_int(exact_quotient(m * n, n), m)
    assert exact_quotient(n * 64, n * 16) == 4 and same_int(exact_quotient(n * m * 8, m * 2), n * 4)
    assert same_int((m * 96) // 96, m) and ((m * 96) % 96).value == 0
    assert not {"div", "rem", "floordiv", "floormod"} & set(stage.opcodes())


def test_a_product_that_may_overflow_is_divided(stage) -> None:
    n = wrap(stage.n)
    quotient = (n * 64) // 64
    assert evaluate(stage.block, {stage.n: 1 << 26})[quotient.value] == 0
    assert evaluate(stage.block, {stage.n: 1 << 25})[quotient.value] == -(1 << 25)


def test_numbers_computed_twice_are_the_same(stage) -> None:
    n = wrap(stage.n)
    assert same_int((n + 3) * 4, (n + 3) * 4) and not same_int((n + 3) * 4, (n + 4) * 4)
    clock = [wrap(stage.builder.sreg("clock")) for _ in range(2)]
    assert not same_int(*clock)


@pytest.mark.parametrize("value,expected", [(-7, -7 * 6 // 4), (7, 7 * 6 // 4)])
def test_divisions_that_do_not_cancel_stay(stage, value: int, expected: int) -> None:
    n = wrap(stage.n)
    quotient = (n * 6) // 4
    assert stage.count("floordiv") == 1
    assert evaluate(stage.block, {stage.n: value})[quotient.value] == expected


def test_unsigned_numbers_wrap_around_and_do_not_cancel(stage) -> None:
    n = Uint32(wrap(stage.n))
    assert exact_quotient(n * 64, 128) is None
    assert ((n * 64) // 128).value.op.opcode == "div"


def test_an_exact_division_of_any_sign_rounds_in_no_direction(stage) -> None:
    n = Int32(stage.n).with_divisibility(16)
    assert (n // 16).value.op.opcode == "div" and (n % 8).value == 0


def test_facts_survive(stage) -> None:
    n = Int64(wrap(stage.n).assume_nonneg(100).with_divisibility(4))
    assert ((n * 6) // 2).facts[:3] == (True, 12, 298)


def test_the_algebra_uses_them(stage) -> None:
    n = wrap(stage.n)
    tiles = logical_divide(Layout((n * 64, 32), (32, 1)), (64, None))
    assert same_int(tiles.shape[0][1], n)
    assert same_int(composition(Layout((n, 8), (8, 1)), Layout(n * 4)).shape[1], 4)
    assert not {"div", "rem", "floordiv", "floormod"} & set(stage.opcodes())
