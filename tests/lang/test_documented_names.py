"""Documented names that are small: each does its work."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tilewright import cute, testing, utils
from tilewright.cute.runtime import from_dlpack, make_fake_compact_tensor
from tilewright.errors import ArgumentError, ConstraintError, LayoutError, StagingError
from tilewright.lang.staging.ranges import HintWarning
from tilewright.lang.tools.tuning import SkippedWarning
from tilewright.testing import per_thread


def test_the_type_of_a_tensor() -> None:
    a = from_dlpack(np.zeros((8, 4), np.float16)).mark_layout_dynamic()
    assert str(a.type) == '!cute.memref<f16, generic, align<2>, "(?,?):(?,1)">'
    assert str(cute.make_identity_tensor((2, 3)).type) == '!cute.coord_tensor<"(2,3):(1@0,1@1)">'


def test_compose_and_max_alignment() -> None:
    layout = cute.make_layout((4, 8), stride=(13, 1))
    assert layout.compose(cute.make_layout(8, stride=2)) == cute.composition(layout, cute.make_layout(8, stride=2))
    assert layout.compose(2, 4) == cute.composition(layout, (2, 4))
    swizzled = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_layout((8, 64), stride=(64, 1)))
    assert swizzled.compose(8, 8) == cute.composition(swizzled, (8, 8))
    assert cute.make_layout((8, 4), stride=(1, 32)).max_alignment == 8 and swizzled.max_alignment == 8
    x = np.arange(32, dtype=np.int32).reshape(4, 8)
    np.testing.assert_array_equal(from_dlpack(x).compose(2, None).numpy(), x[:2])


def test_make_tile() -> None:
    tiler = cute.make_tile(cute.make_layout(2, stride=4), 3, None)
    assert cute.zipped_divide(cute.make_layout((8, 12, (5, 2))), tiler[:2]).shape == ((2, 3), (4, 4, (5, 2)))
    with pytest.raises(Exception, match="not a layout, extent or None"):
        cute.make_tile("4")
    assert cute.Tile is not None


def test_symbolic_extents_of_stand_ins() -> None:
    n, wide = cute.sym_int(divisibility=8), cute.sym_int64(divisibility=4)
    assert isinstance(n, cute.SymInt) and (n.width, wide.width, cute.sym_int32().width) == (32, 64, 32)
    fake = make_fake_compact_tensor(cutlass.Float32, (n, 4), stride_order=(1, 0))
    assert str(fake.layout) == "(?{div=8},4):(4,1)"
    with pytest.raises(ArgumentError, match="32 or 64 bits"):
        cute.SymInt(16)


def test_latex(capsys) -> None:
    cute.print_latex(cute.make_layout((2, 2)))
    utils.print_latex_tv(cute.make_layout((4, 2), stride=(1, 4)), (2, 4))
    shown = capsys.readouterr().out
    assert shown.count(r"\begin{tikzpicture}") == 2 and "T3" in shown


def test_the_prefix_of_a_kernels_name() -> None:
    class Scale:
        @cute.kernel
        def kernel(self, x: cute.Tensor) -> None:
            t, _, _ = cute.arch.thread_idx()
            x[t] = x[t] * 2

        @cute.jit
        def __call__(self, x: cute.Tensor) -> None:
            self.kernel.set_name_prefix("cutlass_")
            self.kernel(x).launch(grid=(1, 1, 1), block=(4, 1, 1))

    from tilewright import sim

    x = np.ones(4, np.float32)
    with sim.profile() as report:
        Scale()(x)
    assert report.kernels[0].name == "cutlass_Scale_kernel" and x.tolist() == [2] * 4
    with pytest.raises(StagingError, match="letters, digits"):
        Scale.kernel.set_name_prefix("a b")


def test_the_shared_memory_of_a_launch() -> None:
    @cute.kernel
    def kernel(out: cute.Tensor) -> None:
        utils.SmemAllocator().allocate(100)
        out[0] = cute.arch.dynamic_smem_size()

    @cute.jit
    def host(out: cute.Tensor, smem: cutlass.Constexpr) -> None:
        kernel(out).launch(grid=(1, 1, 1), block=(1, 1, 1), smem=smem)

    out = np.zeros(1, np.int32)
    host(out, None)
    assert out[0] == 100
    host(out, 4096)
    assert out[0] == 4096
    (staged,) = cute.compile(host, out, None).kernels
    assert "%dynamic_smem_size" in cutlass.cuda.compile(staged, "sm_90a").ptx


def test_nvtx_ranges_stand_around_the_measured_calls(monkeypatch) -> None:
    seen: list[Any] = []
    fake = types.SimpleNamespace(push_range=lambda tag: seen.append(tag), pop_range=lambda: seen.append("end"))
    monkeypatch.setitem(sys.modules, "nvtx", fake)
    testing.benchmark(lambda: seen.append("call"), warmup_iterations=1, iterations=2, nvtx_tag="mine")
    assert seen == ["call", "mine", "call", "call", "end"]


def test_tune_passes_over_what_cannot_be_made_and_lists_it() -> None:
    def make(tile: int) -> Any:
        if tile == 3:
            raise ValueError("3 is odd")
        if tile == 0:
            return 1 // tile
        return lambda: None

    with pytest.warns(SkippedWarning, match=r"(?s)2 of.*tile=0: ZeroDivisionError.*tile=3: ValueError: 3 is odd"):
        assert testing.tune(make, {"tile": [0, 2, 3]}, warmup_iterations=0, iterations=1) == {"tile": 2}
    with pytest.raises(testing.CantImplementError, match="tile=3: ValueError: 3 is odd"):
        testing.tune(make, {"tile": [3]})


def test_a_program_that_makes_a_context_first_runs_anywhere() -> None:
    cutlass.cuda.initialize_cuda_context()
    assert int(cutlass.cuda.default_stream()) == 0
    cutlass.cuda.stream_sync(cutlass.cuda.default_stream())


@pytest.mark.gpu
def test_raw_device_memory() -> None:
    assert cutlass.cuda.initialize_cuda_context(0)
    info = cutlass.cuda.get_device_info()
    assert info.compute_capability == cutlass.cuda.get_compute_capability_major_minor()
    assert info.multiprocessors > 0 and cutlass.cuda.get_driver_version() >= 12000
    given, back = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    address, stream = cutlass.cuda.allocate(given.nbytes), cutlass.cuda.stream_create()
    cutlass.cuda.memcpy_h2d(given, address)
    cutlass.cuda.stream_sync(stream)
    cutlass.cuda.memcpy_d2h(address, back)
    cutlass.cuda.stream_destroy(stream)
    cutlass.cuda.deallocate(address)
    np.testing.assert_array_equal(given, back)


def test_masked_arrays_are_refused() -> None:
    @cute.jit
    def host(x: cute.Tensor) -> None:
        pass

    masked = np.ma.masked_array(np.zeros(4, np.float32), [0, 1, 0, 0])
    with pytest.raises(ArgumentError, match="a masked array hides elements"):
        from_dlpack(masked)
    with pytest.raises(ArgumentError, match="a masked array hides elements"):
        host(masked)


def test_an_array_under_a_live_tensor_keeps_its_memory() -> None:
    array = np.arange(64, dtype=np.float32)
    tensor = from_dlpack(array)
    with pytest.raises(ValueError, match="cannot resize"):
        array.resize((1 << 16,), refcheck=False)
    view = tensor.numpy()
    del tensor
    with pytest.raises(ValueError, match="cannot resize"):
        array.resize((1 << 16,), refcheck=False)
    del view
    array.resize((128,), refcheck=False)
    assert array.size == 128


def test_simulator_options_are_checked(monkeypatch) -> None:
    from tilewright.sim import settings

    for text, works in (("maybe", False), ("0", True), ("1", True)):
        monkeypatch.setattr(settings, "_current", None)
        monkeypatch.setenv("TILEWRIGHT_SIM_CHECKS", text)
        if works:
            assert settings.current_options().checks is (text == "1")
            continue
        with pytest.raises(ArgumentError, match="TILEWRIGHT_SIM_CHECKS='maybe': it is 0 or 1"):
            settings.current_options()
    with pytest.raises(ArgumentError, match="checks='maybe'; it is True or False"):
        settings.set_options(checks="maybe")


def test_a_hint_that_is_not_followed_is_a_warning() -> None:
    @cute.jit
    def total(n: cutlass.Int32, out: cute.Tensor) -> None:
        for i in cutlass.range(n, prefetch_stages=2):
            out[0] += i

    out = np.zeros(1, np.int32)
    with pytest.warns(HintWarning, match=r"range\(prefetch_stages=2\): the loop's copies are not moved") as caught:
        total(5, out)
    assert out[0] == 10 and caught[0].filename == __file__
    with pytest.raises(StagingError, match="a whole number of stages"):
        cutlass.range(4, prefetch_stages=-1)


def test_strides_take_64_bits_where_asked() -> None:
    seen = []

    @cute.jit
    def pick(a: cute.Tensor, out: cute.Tensor) -> None:
        seen.append(a.layout.stride[0].width)
        out[0] = a[2, 1]

    x, out = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros(1, np.float32)
    for narrow, width in ((True, 32), (False, 64)):
        tensor = from_dlpack(x, use_32bit_stride=narrow).mark_layout_dynamic()
        compiled = cute.compile(pick, tensor, out)
        for given in (tensor, x):  # a plain array is passed with the strides that were compiled
            out[0] = 0
            compiled(given, out)
            assert out[0] == 9 and seen[-1] == width
    out[0] = 0
    compiled(from_dlpack(x).mark_layout_dynamic(), out)  # a tensor that is marked otherwise fits by its extents
    assert out[0] == 9


def test_floats_keep_their_fraction_everywhere() -> None:
    whole, real = from_dlpack(np.zeros(4, np.int32)), from_dlpack(np.full(4, 2.5, np.float32))

    @cute.jit
    def move(dst: cute.Tensor, src: cute.Tensor) -> None:
        cute.basic_copy(src, dst)

    @cute.jit
    def move_if(dst: cute.Tensor, src: cute.Tensor) -> None:
        fragment = cute.make_rmem_tensor(4, cutlass.Float32)
        fragment.store(src.load())
        cute.basic_copy_if(fragment, fragment, dst)

    def write(x: object) -> None:
        whole[0] = x

    for act in (
        lambda: move(whole, real),
        lambda: move_if(whole, real),
        lambda: write(2.5),
        lambda: whole.fill(0.5),
        lambda: write(cutlass.Float32(2)),
    ):
        with pytest.raises(ConstraintError, match="the fraction would be lost"):
            act()
    for x in (3, np.int64(3), 3.0, cutlass.Int8(3)):
        write(0)
        write(x)
        assert whole[0] == 3
    with pytest.raises(ArgumentError, match="a number is needed"):
        write("3")


def test_arrays_are_no_tensors() -> None:
    with pytest.raises(ArgumentError, match=r"zipped_divide: a numpy.ndarray is an array, .* from_dlpack\(x\)"):
        cute.zipped_divide(np.zeros((8, 8)), (4, 4))


class Sized:
    @cute.kernel
    def kernel(self, n: cutlass.Constexpr) -> None:
        cute.arch.alloc_smem(cutlass.Int32, n)

    @cute.jit
    def __call__(self, sizes: cutlass.Constexpr) -> None:
        for n in (3, 12):
            self.kernel(n).launch(grid=1, block=1, smem=1024)
            sizes.append(utils.get_kernel_smem_size(self.kernel))


def test_the_shared_memory_of_a_kernel_is_that_of_its_last_launch() -> None:
    sizes: list[int] = []
    Sized()(sizes)
    assert sizes == [12, 48]

    @cute.jit
    def too_early() -> None:
        utils.get_kernel_smem_size(Sized.kernel)

    with pytest.raises(StagingError, match=r"get_kernel_smem_size\(Sized_kernel\): .* above this line"):
        too_early()
    with pytest.raises(StagingError, match="is not a function marked @cute.kernel"):
        utils.get_kernel_smem_size(len)


def test_pointers_that_are_made_with_a_swizzle() -> None:
    """Rows of 128 bytes, written through the swizzle of 16-byte chunks and read without it."""
    swizzle = cute.make_swizzle(3, 4, 3)

    @cute.kernel
    def kernel(out: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        plain = cute.arch.alloc_smem(cutlass.Int32, 256, 1024)
        made = cute.make_ptr(cutlass.Int32, plain.toint(), cute.AddressSpace.smem, 1024, swizzle_=swizzle)
        for i in cutlass.range_constexpr(8):
            cute.make_tensor(made, 256)[32 * i + t] = 32 * i + t
        cute.arch.sync_threads()
        for i in cutlass.range_constexpr(8):
            out[32 * i + t] = cute.make_tensor(plain, 256)[32 * i + t]

    @cute.jit
    def host(out: cute.Tensor) -> None:
        kernel(out).launch(grid=1, block=32)

    out = np.zeros(256, np.int32)
    host(out)
    assert out.tolist() == [swizzle(4 * i) // 4 for i in range(256)]  # the swizzle is its own inverse
    with pytest.raises(ConstraintError, match="give it in the kernel"):
        cute.make_ptr(cutlass.Int32, 0x1000, cute.AddressSpace.gmem, 1024, swizzle_=swizzle)


def test_elements_as_a_vector_and_back() -> None:
    def twice(t: cutlass.Int32) -> cutlass.Int32:
        four = cute.make_rmem_tensor((2, 2), cutlass.Int32)
        for i in cutlass.range_constexpr(4):
            four[i] = 10 * t + i
        again = cute.TensorSSA.from_vector(four.load().to_vector(), dtype=cutlass.Int32, shape=(2, 2))
        return again[(1, 0)] * 100 + again[(0, 1)]

    assert per_thread(twice, 2) == [102, 1112]


def test_the_first_leaf() -> None:
    with pytest.raises(LayoutError, match="empty tuple"):
        cute.front(((), 3))
