"""After the documentation's page "Types" (types): ratios, basis strides, composed layouts, structs, unions."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as cutlass
import tilewright.cute as cute
from tilewright.errors import ArgumentError


def test_ratios():
    half, most = cute.Ratio(1, 2), cute.Ratio(3, 4)
    assert half * most == cute.Ratio(3, 8) and 5 * cute.Ratio(2, 3) == cute.Ratio(2, 3) * 5 == cute.Ratio(10, 3)
    assert cute.Ratio(3, 2).to(float) == 1.5 and cute.Ratio(3, 2).to(int) == 1 and cute.Ratio(-3, 2).to(int) == -2
    assert cute.Ratio(8, 4).is_integral() and not most.is_integral() and cute.Ratio(8, 4) == 2
    assert str(cute.Ratio(6, -4).reduced()) == "-3/2" and hash(cute.Ratio(6, 4)) == hash(cute.Ratio(3, 2))
    for wrong in ((1.5, 2), (1, "2"), (True, 1)):
        with pytest.raises(TypeError, match="both parts are ints"):
            cute.Ratio(*wrong)
    with pytest.raises(ZeroDivisionError):
        cute.Ratio(1, 0)


def test_basis_strides():
    strides = (cute.ScaledBasis(2, 0), cute.ScaledBasis(1, 1))
    layout = cute.make_layout((4, 8), stride=strides)
    assert str(layout) == "(4,8):(2@0,1@1)" and cute.crd2idx((2, 3), layout) == (4, 3)
    assert str(cute.ScaledBasis(4, [0, 1])) == "4@1@0" and cute.E(1) == cute.ScaledBasis(1, 1)
    assert 3 * cute.ScaledBasis(2, 0) == cute.ScaledBasis(6, 0) and list(cute.ScaledBasis(4, [0, 1]).mode) == [0, 1]
    assert str(cute.ScaledBasis(cute.Ratio(1, 2), 1)) == "1/2@1" and strides[0].value == 2 and strides[0].is_static()
    with pytest.raises(TypeError, match="a mode is an index"):
        cute.ScaledBasis(2, "0")


def test_composed_layouts():
    composed = cute.composition(cute.make_swizzle(2, 3, 3), cute.make_layout((8, 8)))
    assert str(composed) == "Sw<2,3,3> o 0 o (8,8):(1,8)" and not composed.is_normal
    assert (composed.inner, composed.offset, composed.outer) == (
        cute.make_swizzle(2, 3, 3),
        0,
        cute.make_layout((8, 8)),
    )
    assert composed.shape == (8, 8) and cute.make_layout((4, 8), stride=(8, 1)).max_alignment >= 1


@cute.struct
class Complex:
    real: cutlass.Float32
    imag: cutlass.Float32


@cute.union
class Bits:
    as_int: cutlass.Int32
    as_float: cutlass.Float32
    halves: cute.struct.MemRange[cutlass.Float16, 6]


@cute.struct
class Storage:
    table: cute.struct.Align[cute.struct.MemRange[cutlass.Float32, 12], 1024]
    counter: cute.struct.Align[cutlass.Int32, 16]
    value: cute.struct.Align[Complex, 16]
    bits: Bits


def test_sizes_are_known_before_anything_runs():
    assert (Storage.__sizeof__(), Storage.__alignof__()) == (1024, 1024) and Storage.size_in_bytes() == 1024
    assert (Bits.__sizeof__(), Bits.__alignof__()) == (12, 4) and {at for _, at in Bits.fields.values()} == {0}
    with pytest.raises(ArgumentError, match=r"@cute.union: .* annotates no members"):
        cute.union(type("Empty", (), {}))


def test_members_are_numbers_wherever_numbers_are_used(capsys):
    @cute.kernel
    def kernel(out: cute.Tensor, counts: cute.Tensor):
        allocator = cutlass.utils.SmemAllocator()
        storage = allocator.allocate(Storage)
        storage.counter = 5
        storage.value.real = 1.5
        storage.value.imag = storage.value.real
        storage.value.imag += 1
        storage.table[3] = 7.0
        storage.bits.as_float = 1.0
        out[0] = storage.value.imag
        out[storage.counter - 4] = cutlass.Float32(storage.counter)
        out[2] = storage.table.get_tensor(cute.make_layout((3, 4)))[0, 1] if storage.counter > 4 else storage.value.imag
        out[3] = cute.where(storage.counter < 5, storage.value.real, 2 * storage.value.real)
        out[4] = max(storage.value.real, 1.0)
        pair = cute.full(2, 2.0, cutlass.Float32) * storage.value.real + storage.value.imag
        out[5] = pair[1]
        counts[0] = storage.bits.as_int
        counts[1] = storage.counter << 2 | 1
        cute.printf("{} %d", storage.counter)
        cute.printf("%d of %f", storage.counter, storage.value.imag)
        assert (storage.table.size, storage.table.elem_width, storage.table.size_in_bytes) == (12, 32, 48)

    @cute.jit
    def host(out: cute.Tensor, counts: cute.Tensor):
        kernel(out, counts).launch(grid=[1, 1, 1], block=[1, 1, 1])

    out, counts = np.zeros(6, np.float32), np.zeros(2, np.int32)
    host(out, counts)
    assert out.tolist() == [2.5, 5, 7, 3, 1.5, 5.5]
    assert counts.tolist() == [np.float32(1).view(np.int32), 21]
    assert capsys.readouterr().out == "5 %d\n5 of 2.500000\n"


def test_names_of_the_top_level():
    assert cutlass.AddressSpace is cute.AddressSpace and cutlass.Pointer is cute.Pointer
    from tilewright.base_dsl.common import DSLCudaRuntimeError, DSLRuntimeError
    from tilewright.base_dsl.typing import DynamicExpression, JitArgument
    from tilewright.cute.cuda import CUstream
    from tilewright.cute.runtime import from_dlpack

    assert int(CUstream(0)) == 0 and issubclass(DSLCudaRuntimeError, DSLRuntimeError)
    assert isinstance(from_dlpack(np.zeros(3, np.float32)), JitArgument) and not isinstance(3, JitArgument)
    assert isinstance(cutlass.Int32(3), DynamicExpression) and not isinstance("3", DynamicExpression)
    assert list(cutlass.range_dynamic(3)) == [0, 1, 2] and cute.from_dlpack is from_dlpack
