"""Changes of meaning that the release notes of the CuTe DSL announce, which names alone do not show."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import Float4E2M1FN, Float8E4M3FN, Float8E8M0FNU, Float16, Float32, Int32, cute, sim
from tilewright.cute.nvgpu.tcgen05 import CtaGroup, OperandMajorMode, OperandSource
from tilewright.cute.runtime import from_dlpack, make_fake_compact_tensor, make_ptr
from tilewright.errors import ArgumentError, StagingError
from tilewright.lang.staging.ranges import HintWarning
from tilewright.utils import blackwell_helpers


@cute.native_struct
class Counted:
    total: Int32
    count: Int32


@cute.native_struct(zero_init=False, packed=True)
class Weighted:
    total: Float32
    weight: cutlass.Constexpr[int]

    def add(self, x: Int32) -> None:
        self.total = self.total + x * self.weight


@cute.kernel
def count(held: Counted, values: cute.Tensor, n: Int32, out: cute.Tensor) -> None:
    weighted = Weighted(weight=2)
    for i in range(n):
        held.total = held.total + values[i]
        if values[i] > 2:
            held.count = held.count + 1
        weighted.add(values[i])
    out[0], out[1], out[2] = held.total, held.count, weighted.total.to(Int32)


@cute.jit
def counting(held: Counted, values: cute.Tensor, n: Int32, out: cute.Tensor) -> None:
    count(held, values, n, out).launch(grid=(1, 1, 1), block=(1, 1, 1))


def test_fields_of_native_structs_change_in_loops_and_branches() -> None:
    values, out = np.arange(5, dtype=np.int32), np.zeros(3, np.int32)
    with sim.options(check="all"):
        counting(Counted(100), values, 5, out)
    assert out.tolist() == [110, 2, 20]
    compiled = cute.compile(counting, Counted(), from_dlpack(values), Int32(5), from_dlpack(out))
    compiled(Counted(count=7), from_dlpack(values), 4, from_dlpack(out))
    assert out.tolist() == [6, 8, 12]
    assert str(Counted(3)) == "Counted(total=Int32(3), count=Int32(0))"
    with pytest.raises(ArgumentError, match="Weighted: a value for the field weight is needed"):
        Weighted()


def test_native_structs_may_be_written_in_a_function() -> None:
    Number = Int32

    @cute.native_struct
    class Inner:
        last: Number

    @cute.kernel
    def kernel(values: cute.Tensor, out: cute.Tensor) -> None:
        inner = Inner()
        for i in range(cute.size(values)):
            inner.last = values[i]
        out[0] = inner.last

    @cute.jit
    def host(values: cute.Tensor, out: cute.Tensor) -> None:
        kernel(values, out).launch(grid=(1, 1, 1), block=(1, 1, 1))

    out = np.zeros(1, np.int32)
    host(np.arange(5, dtype=np.int32), out)
    assert out[0] == 4


@cute.kernel
def halves(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor) -> None:
    for i in range(cute.size(x)):
        out[i, 0], out[i, 1] = x[i] // y[i], x[i] % y[i]


def test_remainders_have_the_sign_of_the_divisor() -> None:
    """As in Python; by C's, which older releases had, ``a == a // b * b + a % b`` does not hold."""

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor) -> None:
        halves(x, y, out).launch(grid=(1, 1, 1), block=(1, 1, 1))

    x, y = np.array([-7, 7, -7, 7]), np.array([3, -3, -3, 3])
    for kind in (np.int8, np.int32, np.int64, np.float32):
        out = np.zeros((4, 2), kind)
        host(x.astype(kind), y.astype(kind), out)
        assert out.tolist() == [[-3, 2], [-3, -2], [2, -1], [2, 1]]


@cute.kernel
def one(out: cute.Tensor) -> None:
    out[0] = 1


@pytest.mark.parametrize(
    ("option", "note"),
    [
        ({"smem_merge_branch_allocs": True}, "allocations of all branches have places of their own"),
        ({"preferred_smem_carveout": 50}, "the driver divides L1 and shared memory"),
    ],
)
def test_launches_may_ask_for_shared_memory(option: dict[str, int], note: str) -> None:
    @cute.jit
    def host(out: cute.Tensor) -> None:
        one(out).launch(grid=(1, 1, 1), block=(1, 1, 1), **option)

    out = np.zeros(1, np.int32)
    with pytest.warns(HintWarning, match=note) as caught:
        host(out)
    assert out[0] == 1 and caught[0].filename == __file__
    option[next(iter(option))] = 101
    with pytest.raises(StagingError, match=r"= 101 is not a (bool|percentage)"):
        cute.compile(host, from_dlpack(out))


def test_keys_tell_tensors_that_need_functions_of_their_own() -> None:
    def tensor(rows: int = 4) -> cute.Tensor:
        return from_dlpack(np.zeros((rows, 8), np.float32), assumed_align=16)

    unlike = [
        tensor(),
        tensor(5),
        tensor().mark_layout_dynamic(),
        tensor().mark_compact_shape_dynamic(0, stride_order=(0, 1), divisibility=2),
        tensor().mark_compact_shape_dynamic(0, stride_order=(0, 1), divisibility=4),
        from_dlpack(np.zeros((4, 8), np.float32), assumed_align=4),
        make_fake_compact_tensor(Float32, (cute.sym_int(), 8)),
        make_fake_compact_tensor(Float32, (cute.sym_int(64), 8)),
        make_fake_compact_tensor(Float32, (cute.sym_int(divisibility=8), 8)),
        make_ptr(Float32, 16, assumed_align=16),
        make_ptr(Int32, 16, assumed_align=16),
    ]
    assert len({x.__cache_key__ for x in unlike}) == len(unlike)
    assert tensor().__cache_key__ == tensor().__cache_key__
    assert make_fake_compact_tensor(Float32, (cute.sym_int(), 8)).__cache_key__ == unlike[6].__cache_key__
    assert make_ptr(Float32, 32, assumed_align=16).__cache_key__ == unlike[9].__cache_key__


def test_one_type_of_both_operands_may_be_given_once() -> None:
    """``ab_dtype``, first and by name, as before 4.5; A from tensor memory stands last."""
    k, mn, group = OperandMajorMode.K, OperandMajorMode.MN, CtaGroup.ONE
    make = blackwell_helpers.make_trivial_tiled_mma
    named = {"acc_dtype": Float32, "cta_group": group, "mma_tiler_mn": (128, 64)}
    given = [
        make(Float16, Float16, k, mn, Float32, group, (128, 64)),
        make(Float16, k, mn, Float32, group, (128, 64)),
        make(Float16, k, mn, **named),
        make(ab_dtype=Float16, a_leading_mode=k, b_leading_mode=mn, **named),
        make(Float16, a_leading_mode=k, b_leading_mode=mn, **named),
        make(Float16, b_dtype=Float16, a_leading_mode=k, b_leading_mode=mn, **named),
    ]
    assert {str(mma.op.instruction()) for mma in given} == {"SM100_128x64x16_F32F16F16_SS<K,MN>"}
    from_tmem = make(Float8E4M3FN, k, k, Float32, group, (128, 64), OperandSource.TMEM)
    assert str(from_tmem.op.instruction()) == "SM100_128x64x32_F32E4M3E4M3_TS<K,K>"
    scaled, scales = blackwell_helpers.make_blockscaled_trivial_tiled_mma, (Float8E8M0FNU, 32, group, (128, 64))
    both = scaled(Float4E2M1FN, Float4E2M1FN, k, k, *scales), scaled(Float4E2M1FN, k, k, *scales)
    by_name = scaled(
        ab_dtype=Float4E2M1FN, a_leading_mode=k, b_leading_mode=k, sf_dtype=Float8E8M0FNU, sf_vec_size=32,
        cta_group=group, mma_tiler_mn=(128, 64),
    )  # fmt: skip
    assert len({str(mma.op.instruction()) for mma in (*both, by_name)}) == 1
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'mma_tiler_mn'"):
        make(Float16, k, k, Float32, group)
