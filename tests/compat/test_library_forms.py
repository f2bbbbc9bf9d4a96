"""Forms in which libraries of kernels use the language, beyond those of the documentation's programs."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright._mlir.dialects import nvvm
from tilewright.cute.nvgpu import cpasync
from tilewright.errors import ArgumentError, ConstraintError, StagingError


def run(kernel: Any, *arrays: Any, threads: int = 4) -> None:
    @cute.jit
    def host(*given: Any) -> None:
        kernel(*given).launch(grid=(1, 1, 1), block=(threads, 1, 1))

    host(*arrays)


# -- values ------------------------------------------------------------------------------------------------------------


class Order(enum.IntEnum):
    ALONG_M = 3
    ALONG_N = 5


@pytest.mark.parametrize("statement", [False, True])
def test_a_branch_may_choose_between_members_of_an_int_enum(statement: bool) -> None:
    """The member that is chosen at run time is a number."""

    @cute.kernel
    def choose(x: cute.Tensor, y: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        order = Order.ALONG_M if x[t] > 1 else Order.ALONG_N
        if cutlass.const_expr(statement):
            order = Order.ALONG_M
            if x[t] <= 1:
                order = Order.ALONG_N
        y[t] = 10 if order == Order.ALONG_N else 0
        y[t] += order

    y = np.zeros(4, np.int32)
    run(choose, np.arange(4, dtype=np.int32), y)
    assert y.tolist() == [15, 15, 3, 3]


def test_members_that_are_the_same_on_both_sides_stay_members() -> None:
    names = []

    @cute.kernel
    def keep(x: cute.Tensor) -> None:
        order = Order.ALONG_M
        if x[0] > 1:
            order = Order.ALONG_M
        names.append(order.name)

    run(keep, np.zeros(4, np.int32))
    assert names == ["ALONG_M"]


def test_a_variable_that_is_never_read_may_change_its_type() -> None:
    @cute.kernel
    def throw_away(x: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        _ = cutlass.Int32(t)
        n = cutlass.Int32(0)
        while n < 2:
            n, _ = n + 1, x
        if n > 1:
            _ = 1.5
        for _ in range(x[0]):
            n += 1
        x[t] += n

    x = np.array([3, 1, 2, 0], np.int32)
    run(throw_away, x, threads=1)
    assert x[0] == 8


def test_a_variable_that_is_read_keeps_its_type() -> None:
    @cute.kernel
    def keep(x: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        y = cutlass.Int32(t)
        while x[t] < 0:
            y = x
        x[t] = y

    @cute.kernel
    def keep_all(x: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        y = cutlass.Int32(t)
        while x[t] < 0:
            y = x
        everything = locals()
        x[t] = everything["y"]

    with pytest.raises(StagingError, match="'y'"):
        run(keep, np.zeros(4, np.int32))
    with pytest.raises(ConstraintError, match="Undefined"):
        run(keep_all, np.zeros(4, np.int32))


def test_a_quotient_by_zero_is_an_error_where_it_is_read() -> None:
    @cute.kernel
    def divide(x: cute.Tensor, used: cutlass.Constexpr) -> None:
        t, _, _ = cute.arch.thread_idx()
        stages = 0
        quotient, rest = x[t] // stages, cutlass.Int32(7) % stages
        if cutlass.const_expr(used):
            x[t] = quotient + rest

    @cute.jit
    def host(x: cute.Tensor, used: cutlass.Constexpr) -> None:
        divide(x, used).launch(grid=(1, 1, 1), block=(4, 1, 1))

    x = np.arange(4, dtype=np.int32)
    host(x, False)
    assert x.tolist() == [0, 1, 2, 3]
    with pytest.raises(StagingError, match=r"test_library_forms.py:\d+: i32 division by zero"):
        host(x, True)


# -- objects -----------------------------------------------------------------------------------------------------------


@dataclass
class Params:
    """Its protocol notes in the object how many values each field has."""

    low: cutlass.Int32
    high: cutlass.Int32

    def __extract_mlir_values__(self) -> list[Any]:
        values: list[Any] = []
        self._lengths: list[int] = []
        for field in (self.low, self.high):
            found = cutlass.extract_mlir_values(field)
            values += found
            self._lengths.append(len(found))
        return values

    def __new_from_mlir_values__(self, values: list[Any]) -> Params:
        first = self._lengths[0]
        return Params(*(cutlass.new_from_mlir_values(x, v) for x, v in
                        ((self.low, values[:first]), (self.high, values[first:]))))  # fmt: skip


def test_what_a_protocol_notes_in_its_object_is_no_change_of_the_program() -> None:
    @cute.kernel
    def clamp(x: cute.Tensor, params: Params) -> None:
        t, _, _ = cute.arch.thread_idx()
        if x[t] < params.low:
            x[t] = params.low
        elif x[t] > params.high:
            for _ in range(x[t]):
                x[t] = params.high

    @cute.jit
    def host(x: cute.Tensor, low: cutlass.Int32, high: cutlass.Int32) -> None:
        clamp(x, Params(low, high)).launch(grid=(1, 1, 1), block=(4, 1, 1))

    x = np.arange(4, dtype=np.int32)
    host(x, 1, 2)
    assert x.tolist() == [1, 1, 2, 2]


def test_the_iterator_of_a_register_tensor_is_a_pointer() -> None:
    found = []

    @cute.kernel
    def look(x: cute.Tensor) -> None:
        registers = cute.make_rmem_tensor((4, 2), cutlass.Float32)
        counts = cute.make_identity_tensor((4, 2))
        found.extend(isinstance(y.iterator, cute.Pointer) for y in (x, registers, registers[None, 0], counts))
        found.append(registers.memspace == cute.AddressSpace.rmem)

    run(look, np.zeros(4, np.float32))
    assert found == [True, True, True, False, True]
    assert not isinstance(3, cute.Pointer)
    assert cutlass.Pointer is cute.Pointer


def test_a_tma_atom_says_which_operation_it_was_made_of() -> None:
    found = []

    @cute.jit
    def host(x: cute.Tensor) -> None:
        for op in (
            cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp(),
            cpasync.CopyReduceBulkTensorTileS2GOp(cute.ReductionOp.ADD),
        ):  # fmt: skip
            atom, _ = cpasync.make_tiled_tma_atom(op, x, cute.make_layout((8, 8), stride=(8, 1)), (8, 8))
            found.append((type(atom.op) is type(op), isinstance(atom.op, cpasync.CopyBulkTensorTileG2SOp)))

    host(np.zeros((16, 16), np.float32))
    assert found == [(True, True), (True, False), (True, False)]


# -- arguments ---------------------------------------------------------------------------------------------------------


class Epilogue(NamedTuple):
    scale: cutlass.Float32
    add: cutlass.Constexpr[bool] = False


class Flags(NamedTuple):
    add: cutlass.Constexpr[bool] = False


@cute.kernel
def scaled(x: cute.Tensor, epilogue: Epilogue, flags: Flags) -> None:
    t, _, _ = cute.arch.thread_idx()
    if cutlass.const_expr(epilogue.add or flags.add):
        x[t] += epilogue.scale
    else:
        x[t] *= epilogue.scale


@cute.jit
def scale(x: cute.Tensor, epilogue: Epilogue, flags: Flags) -> None:
    scaled(x, epilogue, flags).launch(grid=(1, 1, 1), block=(4, 1, 1))


def test_constexpr_fields_need_not_be_given_to_a_compiled_function() -> None:
    x = np.arange(4, dtype=np.float32)
    compiled = cute.compile(scale, x, Epilogue(cutlass.Float32(3), True), Flags(False))
    compiled(x, Epilogue(cutlass.Float32(10), None), Flags(None))  # as libraries do
    assert x.tolist() == [10, 11, 12, 13]
    with pytest.raises(ArgumentError, match="add"):
        compiled(x, Epilogue(cutlass.Float32(10), False), Flags(None))
    with pytest.raises(ArgumentError, match="add"):
        compiled(x, Epilogue(cutlass.Float32(10), True), Flags(True))


def test_direct_calls_with_other_constexpr_fields_are_other_programs() -> None:
    x = np.ones(4, np.float32)
    for epilogue, flags, expected in (
        (Epilogue(cutlass.Float32(3), False), Flags(False), 3), (Epilogue(cutlass.Float32(3), True), Flags(False), 6),
        (Epilogue(cutlass.Float32(3), False), Flags(True), 9), (Epilogue(cutlass.Float32(2), None), Flags(None), 18),
    ):  # fmt: skip
        scale(x, epilogue, flags)
        assert (x == expected).all()


# -- instructions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "c", "expected"),
    [(nvvm.add_packed_f32x2, None, (4, 6)), (nvvm.sub_packed_f32x2, None, (-2, -2)),
     (nvvm.mul_packed_f32x2, None, (3, 8)), (nvvm.fma_packed_f32x2, (10, 20), (13, 28))],
)  # fmt: skip
def test_packed_arithmetic_by_the_operation(operation: Any, c: Any, expected: tuple[int, int]) -> None:
    found = cute.arch.calc_packed_f32x2_op((1.0, 2.0), (3.0, 4.0), c, operation)
    assert tuple(x.value for x in found) == expected


@pytest.mark.parametrize(("c", "operation"), [((1, 2), nvvm.add_packed_f32x2), (None, nvvm.fmax), (None, None)])
def test_packed_arithmetic_of_a_wrong_form_is_refused(c: Any, operation: Any) -> None:
    with pytest.raises(ConstraintError, match="calc_packed_f32x2_op"):
        cute.arch.calc_packed_f32x2_op((1.0, 2.0), (3.0, 4.0), c, operation)
