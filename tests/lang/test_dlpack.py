"""Arrays as tensors: every framework's strides, dtypes and devices; dynamic layouts; refusals."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute
from tilewright.cute.runtime import from_dlpack, make_fake_compact_tensor, make_ptr
from tilewright.errors import ArgumentError
from tilewright.lang.arguments.arrays import array_of
from tilewright.lang.numbers.dtypes import numeric_of_dtype


class Dlpack:
    """An array that speaks DLPack and nothing else."""

    def __init__(self, array) -> None:
        self.array = array

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize(
    "view", [lambda a: a, lambda a: a.T, lambda a: a[::2, 1::3], lambda a: a[:, ::-1], lambda a: a[2:3]]
)
def test_numpy_views_keep_strides(view) -> None:
    array = view(np.arange(60, dtype=np.float32).reshape(6, 10))
    tensor = from_dlpack(array)
    assert tensor.layout.shape == array.shape
    assert tensor.layout.stride == tuple(s // 4 for s in array.strides)
    assert tensor.numel == array.size and np.shares_memory(tensor.numpy(), array)
    np.testing.assert_array_equal(tensor.numpy(), array)
    low, high = tensor.array.bounds
    assert low <= tensor.data_ptr < high and (high - low) // 4 >= array.size


@pytest.mark.parametrize(
    "name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "uint16", "int64", "bool"]
)
def test_dtypes(name) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    tensor = from_dlpack(np.ones(4, dtype))
    assert tensor.element_type.dtype == dtype
    assert numeric_of_dtype(dtype) is tensor.element_type


def test_unknown_dtypes() -> None:
    with pytest.raises(ArgumentError, match="complex64"):
        from_dlpack(np.zeros(3, np.complex64))
    with pytest.raises(ArgumentError, match="is not an array"):
        from_dlpack([1, 2, 3])


def test_any_dlpack_object() -> None:
    array = np.arange(12, dtype=np.int32).reshape(3, 4)[:, ::2]
    found = array_of(Dlpack(array))
    assert (found.shape, found.stride, found.dtype, found.device) == ((3, 2), (4, 2), cutlass.Int32, "cpu")
    assert found.address == array.ctypes.data


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    tensor = from_dlpack(torch.zeros(3, 5, dtype=torch.bfloat16).t(), assumed_align=16)
    assert repr(tensor) == "tensor<ptr<bf16, generic, align<16>> o (5,3):(1,5)>"
    assert str(tensor) == f"Tensor<0x{tensor.data_ptr:016x}@generic o (5, 3):(1, 5)>"
    assert str(tensor.mark_layout_dynamic()).endswith("@generic o (?, ?):(1, ?)>")
    assert from_dlpack(torch.zeros(4, dtype=torch.float8_e4m3fn)).element_type is cutlass.Float8E4M3FN
    assert from_dlpack(torch.zeros(4)[1:]).data_ptr % 16 == 4


def test_mark_layout_dynamic() -> None:
    tensor = from_dlpack(np.zeros((8, 4), np.float16))
    assert not tensor.is_dynamic_layout
    assert str(tensor.mark_layout_dynamic().layout) == "(?,?):(?,1)" and tensor.is_dynamic_layout
    assert str(from_dlpack(np.zeros((8, 4), np.float16).T).mark_layout_dynamic(leading_dim=0).layout) == "(?,?):(1,?)"
    assert tensor.__c_pointers__()[1:] == [8, 4, 4]
    with pytest.raises(ArgumentError, match="has stride 4, not 1"):
        tensor.mark_layout_dynamic(leading_dim=0)


def test_ambiguous_leading_dimension() -> None:
    overlapping = np.lib.stride_tricks.as_strided(np.zeros(8, np.float32), (3, 3), (4, 4))
    with pytest.raises(ArgumentError, match="say which one leads"):
        from_dlpack(overlapping).mark_layout_dynamic()
    assert str(from_dlpack(np.zeros((8, 1), np.float32)).mark_layout_dynamic().layout) == "(?,?):(1,?)"


def test_mark_all_dynamic_takes_no_promise_that_the_array_breaks() -> None:
    array = np.zeros((4, 6), np.float32)
    tensor = from_dlpack(array)
    for given in ((0,), (1, 4), (1, 2, 4)):
        with pytest.raises(ArgumentError, match=r"mark_all_dynamic.*mode \d of \(4,6\):\(6,1\) is not so"):
            tensor.mark_all_dynamic(*given)
    assert str(tensor.mark_all_dynamic(1, 2, 2).layout) == "(?,?{div=2}):(?{div=2},1)"
    one_row = from_dlpack(array[:1, ::2])
    assert str(one_row.mark_all_dynamic(0, 1, 2).layout) == "(?,?):(1,?{div=2})"


def test_mark_compact_shape_dynamic() -> None:
    array = np.zeros((8, 4, 16), np.float16)
    tensor = from_dlpack(array)
    text = [str(from_dlpack(array).mark_compact_shape_dynamic(mode).layout) for mode in range(3)]
    assert text == ["(?,4,16):(64,16,1)", "(8,?,16):(?{div=16},16,1)", "(8,4,?):(?{div=4},?,1)"]
    both = tensor.mark_compact_shape_dynamic(2, (0, 1, 2), divisibility=8).mark_compact_shape_dynamic(0)
    assert str(both.layout) == "(?,4,?{div=8}):(?{div=32},?{div=8},1)"
    with pytest.raises(ArgumentError, match="not divisible by 3"):
        tensor.mark_compact_shape_dynamic(2, divisibility=3)
    with pytest.raises(ArgumentError, match="is not compact in the order"):
        tensor.mark_compact_shape_dynamic(0, (2, 1, 0))
    empty = from_dlpack(np.lib.stride_tricks.as_strided(array, (2, 0), (0, array.itemsize)))
    assert str(empty.mark_compact_shape_dynamic(1, divisibility=4).layout) == "(2,?{div=4}):(?{div=4},1)"
    with pytest.raises(ArgumentError, match="mode 3 does not exist"):
        tensor.mark_compact_shape_dynamic(3)


def test_alignment_is_checked() -> None:
    array = np.zeros(64, np.float32)
    offset = (-array.ctypes.data // 4) % 4
    assert from_dlpack(array[offset:], assumed_align=16).iterator.alignment == 16
    with pytest.raises(ArgumentError, match="not a multiple of assumed_align=16"):
        from_dlpack(array[offset + 1 :], assumed_align=16)
    with pytest.raises(ArgumentError, match="power of two"):
        from_dlpack(array, assumed_align=12)


def test_element_type_override() -> None:
    tensor = from_dlpack(np.full((2, 2), 0x38, np.uint8))
    tensor.element_type = cutlass.Float8E4M3FN
    assert tensor[0, 0] == 1.0
    with pytest.raises(ArgumentError, match="8 bits|16 bits"):
        tensor.element_type = cutlass.Float16
    assert from_dlpack(np.zeros(4, np.float32), force_tf32=True).element_type is cutlass.TFloat32


def test_the_view_keeps_the_memory_alive() -> None:
    view = from_dlpack(np.full(1 << 16, 3, np.int32)).numpy()
    np.testing.assert_array_equal(np.zeros(1 << 16, np.int32) + view, 3)


def test_make_ptr_as_argument() -> None:
    data = np.arange(8, dtype=np.float32)

    @cute.kernel
    def kernel(pointer: cute.Pointer):
        t, _, _ = cute.arch.thread_idx()
        x = cute.make_tensor(pointer, cute.make_layout(8))
        x[t] = x[t] * 2

    @cute.jit
    def host(pointer: cute.Pointer):
        kernel(pointer).launch(grid=(1, 1, 1), block=(8, 1, 1))

    host(make_ptr(cutlass.Float32, data.ctypes.data, cute.AddressSpace.gmem, assumed_align=4))
    np.testing.assert_array_equal(data, np.arange(8) * 2)
    with pytest.raises(ArgumentError, match="not a multiple"):
        make_ptr(cutlass.Float32, data.ctypes.data + 1, cute.AddressSpace.gmem)


def test_wide_strides_are_64_bit() -> None:
    huge = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), (1 << 20, 1 << 20), (1 << 20, 1))
    kinds = [str(t) for t in from_dlpack(huge).mark_layout_dynamic().__get_mlir_types__()]
    assert kinds[1:] == ["i32", "i32", "i64"]


def test_fake_tensors() -> None:
    assert str(make_fake_compact_tensor(cutlass.Float16, (8, 4), stride_order=(1, 0)).layout) == "(8,4):(4,1)"


@pytest.mark.parametrize("one", [True, False])
def test_extents_of_a_stand_in_are_equal_where_they_are_one_symbol(one: bool) -> None:
    n = cute.sym_int()

    @cute.jit
    def run(x: cute.Tensor, y: cute.Tensor) -> cutlass.Int32:
        return cute.size(x) + cute.size(y)

    given = [make_fake_compact_tensor(cutlass.Float32, (n if one else cute.sym_int(),)) for _ in range(2)]
    compiled = cute.compile(run, *given)
    assert compiled(np.zeros(3, np.float32), np.zeros(3, np.float32)) == 6
    if one:
        with pytest.raises(ArgumentError, match="x.*y"):
            compiled(np.zeros(3, np.float32), np.zeros(4, np.float32))
    else:
        assert compiled(np.zeros(3, np.float32), np.zeros(4, np.float32)) == 7


def test_run_time_extents_fit_32_bits() -> None:
    """More would wrap: a kernel would see another extent than the array has."""
    for extent, fits in (((1 << 31) - 1, True), (1 << 31, False)):
        huge = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), (2, extent), (0, 0))  # one byte of memory
        if fits:
            assert from_dlpack(huge).mark_layout_dynamic().shape[1] == extent
        else:
            with pytest.raises(ArgumentError, match="extent of 2147483648 elements does not fit Int32"):
                from_dlpack(huge).mark_layout_dynamic()
        assert from_dlpack(huge).shape == (2, extent)
