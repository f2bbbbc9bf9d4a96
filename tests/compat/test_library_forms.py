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
from tilewright.cute.testing import assert_
from tilewright.errors import ArgumentError, ConstraintError, MachineError, StagingError


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


def test_enum_members_equal_in_both_branches_stay_static() -> None:
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
        return Params(
            *(cutlass.new_from_mlir_values(x, v) for x, v in ((self.low, values[:first]), (self.high, values[first:])))
        )


def test_protocol_methods_may_keep_notes_on_their_object() -> None:
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
            cpasync.CopyBulkTensorTileG2SOp(),
            cpasync.CopyBulkTensorTileS2GOp(),
            cpasync.CopyReduceBulkTensorTileS2GOp(cute.ReductionOp.ADD),
        ):
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


class WithProtocol(NamedTuple):
    """As decorators of libraries make it: a field with a plain number gives the kernel no value."""

    scale: cutlass.Float32
    times: cutlass.Int32
    add: cutlass.Constexpr[bool] = False

    def _numbers(self) -> list[Any]:
        return [x for x in self if isinstance(x, cutlass.Numeric)]

    def __c_pointers__(self) -> list[Any]:
        return [p for x in self._numbers() for p in x.__c_pointers__()]

    def __get_mlir_types__(self) -> list[Any]:
        return [t for x in self._numbers() for t in x.__get_mlir_types__()]

    def __extract_mlir_values__(self) -> list[Any]:
        return [v for x in self._numbers() for v in cutlass.extract_mlir_values(x)]

    def __new_from_mlir_values__(self, values: list[Any]) -> Any:
        return WithProtocol(cutlass.Float32(values[0]), cutlass.Int32(values[1]), self.add)


def test_a_call_may_pass_plain_numbers_in_a_named_tuple_with_the_protocol() -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, how: WithProtocol) -> None:
        t, _, _ = cute.arch.thread_idx()
        number = how.scale * how.times
        x[t] = x[t] + number if cutlass.const_expr(how.add) else x[t] * number

    @cute.jit
    def host(x: cute.Tensor, how: WithProtocol) -> None:
        kernel(x, how).launch(grid=(1, 1, 1), block=(4, 1, 1))

    x = np.arange(4, dtype=np.float32)
    compiled = cute.compile(host, x, WithProtocol(cutlass.Float32(1), cutlass.Int32(1), True))
    compiled(x, WithProtocol(cutlass.Float32(2), cutlass.Int32(3), True))
    assert x.tolist() == [6, 7, 8, 9]
    compiled(x, WithProtocol(cutlass.Float32(2), 5, None))  # as libraries call
    assert x.tolist() == [16, 17, 18, 19]
    with pytest.raises(ArgumentError, match=r"'how\.times': expected"):
        compiled(x, WithProtocol(cutlass.Float32(2), 2.5, True))
    with pytest.raises(ArgumentError, match="add"):
        compiled(x, WithProtocol(cutlass.Float32(2), 5, False))


def test_direct_calls_with_other_constexpr_fields_are_other_programs() -> None:
    x = np.ones(4, np.float32)
    for epilogue, flags, expected in (
        (Epilogue(cutlass.Float32(3), False), Flags(False), 3),
        (Epilogue(cutlass.Float32(3), True), Flags(False), 6),
        (Epilogue(cutlass.Float32(3), False), Flags(True), 9),
        (Epilogue(cutlass.Float32(2), None), Flags(None), 18),
    ):
        scale(x, epilogue, flags)
        assert (x == expected).all()


# -- instructions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "c", "expected"),
    [
        (nvvm.add_packed_f32x2, None, (4, 6)),
        (nvvm.sub_packed_f32x2, None, (-2, -2)),
        (nvvm.mul_packed_f32x2, None, (3, 8)),
        (nvvm.fma_packed_f32x2, (10, 20), (13, 28)),
    ],
)
def test_packed_arithmetic_by_the_operation(operation: Any, c: Any, expected: tuple[int, int]) -> None:
    found = cute.arch.calc_packed_f32x2_op((1.0, 2.0), (3.0, 4.0), c, operation)
    assert tuple(x.value for x in found) == expected


@pytest.mark.parametrize(("c", "operation"), [((1, 2), nvvm.add_packed_f32x2), (None, nvvm.fmax), (None, None)])
def test_packed_arithmetic_of_a_wrong_form_is_refused(c: Any, operation: Any) -> None:
    with pytest.raises(ConstraintError, match="calc_packed_f32x2_op"):
        cute.arch.calc_packed_f32x2_op((1.0, 2.0), (3.0, 4.0), c, operation)


# -- registers and swizzles --------------------------------------------------------------------------------------------


@cute.kernel
def store_one_too_many(out: cute.Tensor) -> None:
    sums = cute.make_rmem_tensor(2, cutlass.Float32)
    sums.fill(3.0)
    for i in cutlass.range_constexpr(4):
        out[i] = sums[i]


def test_a_store_of_a_register_that_is_not_there_is_left_out_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    out = np.zeros(4, np.float32)
    with pytest.raises(ConstraintError, match=r"coordinate 2 is outside .*TILEWRIGHT_OUTSIDE_REGISTERS=undefined"):
        run(store_one_too_many, out, threads=1)
    monkeypatch.setenv("TILEWRIGHT_OUTSIDE_REGISTERS", "undefined")
    run(store_one_too_many, out, threads=1)
    assert out.tolist() == [3, 3, 0, 0]
    monkeypatch.setenv("TILEWRIGHT_OUTSIDE_REGISTERS", "1")
    with pytest.raises(ConstraintError, match="expected `undefined`"):
        run(store_one_too_many, out, threads=1)


@pytest.mark.parametrize(
    "use", [lambda x: x + 1, lambda x: 1 - x, bool, lambda x: x > 1, cutlass.Float32, lambda x: cute.math.exp(x)]
)
def test_an_undefined_register_can_only_be_stored(use: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_OUTSIDE_REGISTERS", "undefined")

    @cute.kernel
    def compute(out: cute.Tensor) -> None:
        use(cute.make_rmem_tensor(2, cutlass.Float32)[2])

    with pytest.raises((ConstraintError, StagingError)):
        run(compute, np.zeros(4, np.float32), threads=1)


def test_the_address_and_the_swizzle_of_a_swizzled_pointer() -> None:
    """The number is that of the place before the swizzle, which ``type.swizzle_type`` permutes; recast_ptr without a
    swizzle gives a pointer that has none."""

    @cute.kernel
    def permute(out: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        tile = cutlass.utils.SmemAllocator().allocate_tensor(
            cutlass.Float32, cute.make_layout(256), 1024, swizzle=cute.make_swizzle(3, 4, 3)
        )
        tile[t] = cutlass.Float32(t)
        cute.arch.sync_threads()
        pointer = cute.domain_offset(t, tile).iterator
        swizzle = pointer.type.swizzle_type
        assert (swizzle.num_bits, swizzle.num_base, swizzle.num_shift) == (3, 4, 3)
        assert cute.recast_ptr(pointer, dtype=cutlass.Int32).type.swizzle_type.num_bits == 0
        number = pointer.toint()
        moved = number ^ ((number & (7 << 7)) >> 3)
        out[t, 0] = cute.make_ptr(cutlass.Float32, moved, cute.AddressSpace.smem, assumed_align=4)[0]
        out[t, 1] = cute.recast_ptr(pointer, dtype=cutlass.Float32)[0]

    out = np.zeros((256, 2), np.float32)
    run(permute, out, threads=256)
    swizzle = cute.make_swizzle(3, 4, 3)
    assert out[:, 0].tolist() == list(range(256))
    assert out[:, 1].tolist() == [swizzle(4 * i) // 4 for i in range(256)]


def test_hints_and_names_of_newer_versions() -> None:
    @cute.kernel
    def roots(x: cute.Tensor, n: cutlass.Int32) -> None:
        for i in cutlass.range(n, vectorize=True):
            x[i] = cute.math.sqrt(x[i], approx=True)

    x = np.array([4, 9, 16, 25], np.float32)
    with pytest.warns(UserWarning, match=r"range\(vectorize=True\): the iterations are not put together"):
        run(roots, x, 3, threads=1)
    assert x.tolist() == [2, 3, 4, 25]
    assert cpasync.ReductionKind.ADD is cute.ReductionOp.ADD


def test_functions_of_tvms_interface_beside_a_branch() -> None:
    """An object that reaches them can be in reach of a branch."""
    tvm_ffi = pytest.importorskip("tvm_ffi")
    given = tvm_ffi.convert(lambda x: x)

    class Held:
        function = given

    held = Held()

    @cute.kernel
    def choose(x: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        kept = held
        if t > 1:
            x[t] = 5.0 if kept is not None else 0.0

    x = np.zeros(4, np.float32)
    run(choose, x)
    assert x.tolist() == [0, 0, 5, 5]


def test_parts_of_a_swizzled_tensor_seen_from_their_own_addresses() -> None:
    """A tensor of a part's permuted address and its layout counts from where the part begins, whatever the base."""
    kinds = cute.make_composed_layout(cute.make_swizzle(3, 2, 3), 0, cute.make_layout((8, 32), stride=(32, 1)))

    @cute.kernel
    def write(out: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        space = cutlass.utils.SmemAllocator().allocate_array(cutlass.Float32, 256)
        tile = cute.make_tensor(space.align(1024), kinds)
        row, quarter = t // 4, t % 4
        part = cute.local_tile(tile, (1, 8), (row, quarter))
        begin = space.align(1024) + cute.make_swizzle(3, 2, 3)(row * 32 + quarter * 8)
        own = cute.make_tensor(cute.make_ptr(cutlass.Float32, begin.toint(), cute.AddressSpace.smem), part.layout)
        for i in cutlass.range_constexpr(8):
            own[0, i] = cutlass.Float32(8 * t + i)
        cute.arch.sync_threads()
        again = cute.make_ptr(cutlass.Float32, part.iterator.toint(), cute.AddressSpace.smem)
        seen = [cute.make_tensor(pointer, part.layout) for pointer in (part.iterator, again)]
        for i in cutlass.range_constexpr(8):
            out[t, i] = tile[row, quarter * 8 + i]
            assert_(seen[0][0, i] == out[t, i] and seen[1][0, i] == out[t, i])

    out = np.zeros((32, 8), np.float32)
    run(write, out, threads=32)
    assert out.ravel().tolist() == list(range(256))


def test_bulk_sums_in_inline_ptx_are_the_instruction() -> None:
    """So that the checker follows them: the program that does not wait for its group is told."""

    @cute.kernel
    def add(out: cute.Tensor, waits: cutlass.Constexpr) -> None:
        t, _, _ = cute.arch.thread_idx()
        part = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(8), 16)
        if t < 8:
            part[t] = cutlass.Float32(t)
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        if t == 0:
            cute.arch.inline_ptx(
                "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [{$r0}], [{$r1}], {$r2};",
                read_only_args=[out.iterator.llvm_ptr, part.iterator.toint(), cutlass.Int32(32)],
            )
            cute.arch.cp_async_bulk_commit_group()
            if cutlass.const_expr(waits):
                cute.arch.cp_async_bulk_wait_group(0)

    @cute.jit
    def host(out: cute.Tensor, waits: cutlass.Constexpr) -> None:
        add(out, waits).launch(grid=(1, 1, 1), block=(32, 1, 1))

    space = np.ones(40, np.float32)
    out = space[-space.ctypes.data // 4 % 4 :][:8]  # bulk copies need 16 bytes
    host(out, True)
    assert out.tolist() == [1 + i for i in range(8)]
    assert "bulk.reduce.add.f32" in str(cute.compile(host, out, True).kernels[0])


def test_cooperative_launches_that_do_not_fit_are_refused_with_the_drivers_number() -> None:
    @cute.kernel
    def nothing(x: cute.Tensor) -> None:
        x[0] = 1.0

    @cute.jit
    def host(x: cute.Tensor, blocks: cutlass.Int32) -> None:
        nothing(x).launch(grid=(blocks, 1, 1), block=(1024, 1, 1), cooperative=True)

    with cutlass.sim.options(sms=2, check="none"):
        host(np.zeros(4, np.float32), 4)
        with pytest.raises(MachineError, match="cooperative and has 5 blocks, the simulated GPU holds 4") as caught:
            host(np.zeros(4, np.float32), 5)
    assert caught.value.error_code == 720
