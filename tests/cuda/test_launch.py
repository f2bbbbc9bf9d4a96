"""Loading and launching against a driver without a GPU: what reaches it, and what is said when something is wrong."""

from __future__ import annotations

import ctypes
import shutil
import struct
import subprocess
import threading
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.counting import calls_in
from tests.cuda.build import HOST, Kernel, pointer
from tilewright.atoms.dependents import GridDependency
from tilewright.cuda import capture, libcuda, limits
from tilewright.cuda import machine as gpu
from tilewright.cuda.tensormaps import encoded
from tilewright.errors import ArgumentError, MachineError
from tilewright.ir.core import Function
from tilewright.ir.runtime import DevicePointer, LaunchConfig
from tilewright.ir.tensormap import TENSOR_MAP, Im2col, Leaf, ModePart, TensorMap, TensorMapTemplate
from tilewright.ir.types import BF16, BOOL, F16, F32, F64, I8, I32, I64, U64, VecType

CACHED = (libcuda.library, libcuda.primary_context, limits.limits)


class Last(ctypes.Structure):
    """What the driver without a GPU remembers."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("smem", ctypes.c_uint),
        ("cluster", ctypes.c_uint * 3),
        ("launches", ctypes.c_uint),
        ("smem_allowed", ctypes.c_uint),
        ("non_portable", ctypes.c_uint),
        ("pushes", ctypes.c_uint),
        ("capability", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("parameters", ctypes.c_ubyte * 512),
    ]


class Driver:
    """The library of the fake and its variables."""

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))
        self.last = Last.in_dll(self.library, "last")

    def set(self, name: str, value: int) -> None:
        ctypes.c_int.in_dll(self.library, name).value = value

    def get(self, name: str) -> int:
        return ctypes.c_int.in_dll(self.library, name).value

    def expect(self, *sizes: int) -> None:
        """The sizes of the parameters of the kernels that are launched from now on."""
        (ctypes.c_int * 32).in_dll(self.library, "sizes")[:] = [*sizes, *[0] * (32 - len(sizes))]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc here")
    path = tmp_path_factory.mktemp("driver") / "libfake.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", str(HOST / "driver.c"), "-o", str(path)], check=True)
    return path


@pytest.fixture
def driver(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    copy = tmp_path / "libcuda_fake.so"  # its own copy, so its own variables
    shutil.copy(built, copy)
    monkeypatch.setenv("TILEWRIGHT_LIBCUDA", str(copy))
    monkeypatch.setattr(gpu, "_current_stream", lambda device: 0)
    for function in CACHED:
        function.cache_clear()
    yield Driver(copy)
    for function in CACHED:
        function.cache_clear()


def at(address: int, device: str = "cuda:0") -> DevicePointer:
    return DevicePointer(address, device, address, address + 1024, None)


def small(**attrs: Any) -> Function:
    k = Kernel("small", attrs, x=pointer(F32), n=I32)
    k.store(k.at(k.x, k.sreg("tid.x")), k.cast(k.n, F32))
    return k.done()


def config(grid: Any = (1, 1, 1), block: Any = (32, 1, 1), **more: Any) -> LaunchConfig:
    return LaunchConfig(grid, block, **more)


def test_every_parameter_is_handed_over(driver: Driver) -> None:
    params = {
        "flag": BOOL,
        "x": pointer(F32),
        "tiny": I8,
        "half": F16,
        "brain": BF16,
        "n": I32,
        "d": F64,
        "map": VecType(U64, 16),
    }
    k = Kernel("many", None, **params, last=I64)
    k.store(k.x, k.cast(k.n, F32))
    descriptor = np.arange(16, dtype=np.uint64)
    kernel = gpu.machine().load(k.done())
    driver.expect(1, 8, 1, 2, 2, 4, 8, 128, 8)
    kernel(config(), [True, at(0x1234567890), -3, 1.5, -2.0, -7, 2.5, descriptor.tobytes(), 1 << 40])
    data = bytes(driver.last.parameters[: driver.last.size])
    assert struct.unpack_from("<?Qb e H i d", data) == (True, 0x1234567890, -3, 1.5, 0xC000, -7, 2.5)
    np.testing.assert_array_equal(np.frombuffer(data, np.uint64, 16, offset=26), descriptor)
    assert struct.unpack_from("<q", data, 154) == (1 << 40,) and len(data) == 162


def test_the_sizes_agree_with_the_compiled_kernel(driver: Driver) -> None:
    """The driver reads as many bytes behind each pointer as the compiled kernel says that the parameter has."""
    import re

    k = Kernel("many", None, flag=BOOL, x=pointer(F32), half=F16, n=I32, map=VecType(U64, 16), few=VecType(I32, 3))
    k.store(k.x, k.cast(k.n, F32))
    placed = gpu.machine().load(k.done()).place("cuda:0")
    found = re.findall(
        r"\.param (?:\.align \d+ )?\.[a-z](\d+) (?:\.ptr[^,]*?)?many_param_\d+(?:\[(\d+)\])?", placed.artifact.ptx
    )
    sizes = [int(bits) // 8 * int(count or 1) for bits, count in found]
    assert sizes == [1, 8, 2, 4, 128, 64]
    parameters = placed.parameters
    starts = (ctypes.c_uint64 * len(sizes)).from_address(parameters.pointers.value or 0)
    offsets = [start - ctypes.addressof(parameters.buffer) for start in starts]
    ends = [offset + size for offset, size in zip(offsets, sizes, strict=True)]
    assert all(end <= start for end, start in zip(ends, offsets[1:], strict=False))
    assert ends[-1] == parameters.struct.size


def test_configuration_reaches_the_driver(driver: Driver) -> None:
    kernel = gpu.machine().load(small(smem_bytes=1024))
    kernel(config((8, 2, 3), (64, 2, 1), cluster=(4, 1, 1), stream=0x77), [at(16), 5])
    last = driver.last
    assert (tuple(last.grid), tuple(last.block), tuple(last.cluster)) == ((8, 2, 3), (64, 2, 1), (4, 1, 1))
    assert (last.smem, last.stream, last.smem_allowed) == (1024, 0x77, 0)
    kernel(config(), [at(16), 5])
    assert tuple(last.cluster) == (0, 0, 0) and last.stream is None and last.launches == 2


def test_large_shared_memory_and_clusters_are_asked_for(driver: Driver) -> None:
    kernel = gpu.machine().load(small(smem_bytes=100_000))
    kernel(config((16, 1, 1), cluster=(16, 1, 1), attributes=("non_portable_cluster",)), [at(16), 5])
    assert driver.last.smem_allowed == 100_000 and driver.last.non_portable == 1
    kernel(config(smem=200_000), [at(16), 5])
    assert driver.last.smem_allowed == driver.last.smem == 200_000


def test_zeros_are_the_drivers_own_memory(driver: Driver) -> None:
    machine = gpu.machine()
    before = ctypes.c_int.in_dll(driver.library, "allocations").value
    array = machine.zeros(1000, np.int32, "cuda:1")
    assert array.device == "cuda:1" and array.shape == (1000,)
    found = np.ones(1000, np.int32)
    machine.download(array, found)
    assert not found.any()
    assert ctypes.c_int.in_dll(driver.library, "allocations").value == before + 1
    del array
    assert ctypes.c_int.in_dll(driver.library, "allocations").value == before


def test_the_device_of_the_data_is_used(driver: Driver) -> None:
    kernel = gpu.machine().load(small())
    kernel(config(), [at(16, "cuda:1"), 5])
    kernel.place("cuda:0")
    pushes = driver.last.pushes
    kernel(config(), [at(16, "cuda:1"), 5])
    assert driver.last.pushes == pushes + 1, "the other device's context is pushed for the launch"
    assert set(kernel.artifacts) == {"cuda:0", "cuda:1"}
    driver.set("current", 0)
    launches = driver.last.launches
    kernel(config(), [at(16), 5])
    assert driver.last.launches == launches + 1, "a thread without a context"
    with pytest.raises(MachineError, match="no device cuda:5; this machine has 2"):
        kernel(config(), [at(16, "cuda:5"), 5])
    with pytest.raises(ArgumentError, match="'cpu' cannot be used by a kernel on a GPU"):
        kernel(config(), [at(16, "cpu"), 5])
    with pytest.raises(ArgumentError, match="'cuda:first' cannot be used by a kernel on a GPU"):
        kernel(config(), [at(16, "cuda:first"), 5])


def test_a_program_makes_no_call_that_needs_a_context_without_one(driver: Driver) -> None:
    """The first launch in a thread finds the device's context current: tools that watch the driver see no error."""
    driver.set("current", 0)
    kernel = gpu.machine().load(small())
    kernel(config(), [at(16), 5])
    kernel(config((2, 1, 1)), [at(16), 5])
    assert driver.last.launches == 2 and driver.get("failures") == 0
    machine = gpu.machine()
    array = machine.upload(np.arange(4, dtype=np.float32))
    machine.download(array, np.empty(4, np.float32))
    del array
    with machine.profile():
        kernel(config(), [at(16), 5])
    machine.synchronize()
    driver.set("current", 0)  # as in a new thread: a configuration not seen before
    kernel(config((3, 1, 1)), [at(16), 5])
    assert driver.get("failures") == 0 and driver.get("current") == 1


def test_a_kernel_without_pointers_does_not_ask_a_thread_without_context_for_its_device(driver: Driver) -> None:
    k = Kernel("nothing", None, n=I32)
    k.emit("printf", (k.n,), (), {"format": "{}"})
    driver.set("current", 0)
    kernel = gpu.machine().load(k.done())
    kernel(config(), [5])
    assert driver.last.launches == 1 and driver.get("failures") == 0


def test_a_further_thread_is_given_a_context_once(driver: Driver) -> None:
    kernel = gpu.machine().load(small())
    kernel(config(), [at(16), 5])
    driver.set("current", 0)
    for _ in range(3):
        kernel(config(), [at(16), 5])
    assert driver.last.launches == 4 and driver.get("failures") == 1


def test_kernels_without_pointers_run_on_the_current_device(driver: Driver) -> None:
    k = Kernel("nothing", None, n=I32)
    k.emit("printf", (k.n,), (), {"format": "{}"})
    kernel = gpu.machine().load(k.done())
    driver.set("current", 2)
    kernel(config(), [5])
    driver.set("current", 0)
    kernel(config(), [5])
    assert list(kernel.artifacts) == ["cuda:1", "cuda:0"]


@pytest.mark.parametrize(
    "wrong, message",
    (
        (dict(grid=(0, 1, 1)), r"grid \(0, 1, 1\) is outside 1..\(2147483647, 65535, 65535\) of Imaginary GPU"),
        (dict(grid=(1, 70000, 1)), "grid"),
        (dict(block=(1, 1, 65)), "block .* is outside"),
        (dict(block=(1024, 2, 1)), "2048 threads, Imaginary GPU allows 1024"),
        (dict(block=(1024, 1, 1)), "registers allow 512"),
        (dict(smem=300_000), "300000 bytes of shared memory a block, Imaginary GPU allows 232448"),
        (dict(smem=100), "100 bytes of shared memory are given, its allocations need 2048"),
        (dict(cluster=(32, 1, 1), grid=(32, 1, 1)), "32 blocks, the most is 16"),
        (dict(cluster=(16, 1, 1), grid=(16, 1, 1)), "16 blocks; every GPU with clusters takes 8"),
        (dict(cluster=(2, 1, 1), grid=(5, 1, 1)), r"grid \(5, 1, 1\) is not divisible by the cluster \(2, 1, 1\)"),
    ),
)
def test_limits_are_named(driver: Driver, wrong: dict[str, Any], message: str) -> None:
    kernel = gpu.machine().load(small(smem_bytes=2048))
    with pytest.raises(ArgumentError, match=message):
        kernel(config(**wrong), [at(16), 5])
    assert driver.last.launches == 0


def test_launch_bounds_and_built_clusters_are_kept(driver: Driver) -> None:
    kernel = gpu.machine().load(small(max_threads=128, cluster=(2, 1, 1)))
    with pytest.raises(ArgumentError, match="256 threads, the kernel is built for 128"):
        kernel(config(block=(256, 1, 1)), [at(16), 5])
    with pytest.raises(ArgumentError, match=r"clusters of \(4, 1, 1\), compiled for clusters of \(2, 1, 1\)"):
        kernel(config((4, 1, 1), cluster=(4, 1, 1)), [at(16), 5])
    with pytest.raises(ArgumentError, match=r"grid \(3, 1, 1\) is not divisible by the cluster \(2, 1, 1\)"):
        kernel(config((3, 1, 1)), [at(16), 5])
    kernel(config((4, 1, 1)), [at(16), 5])
    assert tuple(driver.last.cluster) == (0, 0, 0), "the kernel's own cluster holds"


def test_launch_attributes_reach_the_driver(driver: Driver) -> None:
    """Each by its number (CUlaunchAttributeID), with 1 as its value; none where nothing is asked for."""
    kernel = gpu.machine().load(small())

    def attributes(*names: str, cluster: Any = (1, 1, 1)) -> dict[int, int]:
        driver.set("attribute_count", 0)
        kernel(config((4, 1, 1), cluster=cluster, attributes=names), [at(16), 5])
        count = ctypes.c_int.in_dll(driver.library, "attribute_count").value
        pairs = (ctypes.c_int * 16).in_dll(driver.library, "attributes_seen")
        return {pairs[2 * i]: pairs[2 * i + 1] for i in range(count)}

    assert attributes() == {}
    assert attributes("use_pdl") == {6: 1}
    assert attributes("cooperative") == {2: 1}
    assert attributes("use_pdl", "cooperative", cluster=(4, 1, 1)) == {4: 4, 6: 1, 2: 1}
    assert attributes() == {}, "each configuration keeps its own"


@pytest.mark.parametrize(
    ("capability", "version", "overlaps"), [(90, 13000, True), (89, 13000, False), (90, 12020, False)]
)
def test_kernels_overlap_where_gpu_and_driver_can(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, capability: int, version: int, overlaps: bool
) -> None:
    """``use_pdl`` is leave to begin early; where that cannot be, kernels follow each other whole."""
    driver.last.capability = capability
    monkeypatch.setattr("tilewright.cuda.libcuda.driver_version", lambda: version)
    kernel = gpu.machine().load(small())
    driver.set("attribute_count", 0)
    kernel(config((4, 1, 1), attributes=("use_pdl",)), [at(16), 5])
    assert ctypes.c_int.in_dll(driver.library, "attribute_count").value == overlaps


@pytest.mark.parametrize("repeated", (False, True))
def test_a_captured_launch_overlaps_behind_kernels_that_let_the_next_begin(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, repeated: bool
) -> None:
    """In a graph a programmatic edge behind another kernel costs more than a plain one; in a stream it never does."""
    machine = gpu.machine()
    how = config((4, 1, 1), stream=7, attributes=("use_pdl",))
    kernel = machine.load(small())
    again = kernel.moving("cuda:0", how, (16, 5), (16, 5), (), {})
    launch = (lambda: again(7, ())) if repeated else (lambda: kernel.on("cuda:0")(how, (16, 5)))
    nodes = (ctypes.c_void_p * 4).in_dll(driver.library, "nodes")

    def overlaps(*before: int) -> bool:
        """Behind nodes of a graph: handles of kernels, 0 for a copy."""
        driver.set("node_count", len(before))
        for place, handle in enumerate(before):
            nodes[place] = handle
        launch()
        identifier, value = (ctypes.c_int * 16).in_dll(driver.library, "attributes_seen")[:2]
        assert identifier == 6
        return bool(value)

    plain, ours = 77, 78
    monkeypatch.setattr(capture, "_triggering", {ours})
    assert overlaps(plain)
    driver.set("capturing", 1)
    assert not overlaps() and not overlaps(plain) and not overlaps(0) and not overlaps(ours, plain)
    assert overlaps(ours) and overlaps(ours, ours)
    driver.set("capturing", 0)
    assert overlaps(plain)


@pytest.mark.parametrize("action", ("wait", "launch_dependents"))
def test_kernels_that_let_the_next_begin_are_remembered(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    monkeypatch.setattr(capture, "_triggering", set())
    k = Kernel("starts", {}, x=pointer(F32), n=I32)
    k.call(GridDependency(action), ())
    k.store(k.at(k.x, k.sreg("tid.x")), k.cast(k.n, F32))
    gpu.machine().load(k.done()).on("cuda:1")
    driver.set("capturing", 1)
    driver.set("node_count", 1)
    (ctypes.c_void_p * 4).in_dll(driver.library, "nodes")[0] = 8 + 2  # its handle, as this driver numbers them
    assert capture.may_overlap(7) is (action == "launch_dependents")


def test_preferred_clusters_need_blackwell(driver: Driver) -> None:
    kernel = gpu.machine().load(small())
    with pytest.raises(ArgumentError, match=r"preferred clusters \(\(4, 1, 1\), else \(2, 1, 1\)\) need sm_100"):
        kernel(config((8, 1, 1), cluster=(4, 1, 1), fallback=(2, 1, 1)), [at(16), 5])


def test_preferred_clusters_reach_the_driver(driver: Driver) -> None:
    """The fallback is CUlaunchAttributeID 4, the cluster of a grid that has room for it, number 11."""
    driver.last.capability = 100
    kernel = gpu.machine().load(small())
    both = config((8, 1, 1), cluster=(4, 1, 1), fallback=(2, 1, 1))
    kernel(both, [at(16), 5])
    pairs = (ctypes.c_int * 16).in_dll(driver.library, "attributes_seen")
    assert [*pairs[:4]] == [4, 2, 11, 4]
    with pytest.raises(ArgumentError, match="of which they are no whole multiples"):
        kernel(both._replace(fallback=(3, 1, 1)), [at(16), 5])


def test_clusters_need_hopper(driver: Driver) -> None:
    driver.last.capability = 89
    kernel = gpu.machine().load(small())
    with pytest.raises(ArgumentError, match="need sm_90, Imaginary GPU is sm_89"):
        kernel(config((2, 1, 1), cluster=(2, 1, 1)), [at(16), 5])
    assert kernel.artifacts["cuda:0"].arch == "sm_89"


@pytest.mark.parametrize(
    "args, message",
    (
        ([at(16), 1 << 31], "2147483648 does not fit parameter n of type i32"),
        ([at(16), 1.5], "1.5 does not fit parameter n"),
        ([at(16), None], "None does not fit parameter n"),
        ([at(16)], "small takes 2 arguments, 1 were given"),
        ([at(16), 1, 2], "small takes 2 arguments, 3 were given"),
    ),
)
def test_arguments_must_fit(driver: Driver, args: list[Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        gpu.machine().load(small())(config(), args)


def test_failures_carry_the_drivers_words(driver: Driver) -> None:
    kernel = gpu.machine().load(small())
    driver.set("next_code", 701)
    with pytest.raises(
        MachineError,
        match=r"launching small on cuda:0 with .* 40 registers.*OUT_OF_RESOURCES \(701\)(.|\n)*smaller blocks",
    ):
        kernel(config(), [at(16), 5])
    driver.set("next_code", 700)
    with pytest.raises(MachineError, match="ILLEGAL_ADDRESS(.|\n)*not its own(.|\n)*nothing more here(.|\n)*simulator"):
        gpu.machine().synchronize()
    kernel(config(), [at(16), 5])


def test_arrays_on_several_devices_are_named(driver: Driver) -> None:
    k = Kernel("two", None, x=pointer(F32), y=pointer(F32))
    k.store(k.x, k.load(k.y))
    kernel = gpu.machine().load(k.done())
    with pytest.raises(ArgumentError, match="several devices: cuda:1, cuda:0"):
        kernel(config(), [at(16, "cuda:1"), at(16, "cuda:0")])


def test_arrays_travel_in_their_own_order(driver: Driver) -> None:
    import gc

    from tilewright.cuda.arrays import download, upload

    for dtype in (np.float32, BF16.dtype):
        array = np.arange(24).reshape(2, 3, 4).astype(dtype).transpose(2, 0, 1)[::2]
        moved = upload(array, 1)
        assert (moved.shape, moved.dtype, moved.device, moved.ndim) == ((2, 2, 3), array.dtype, "cuda:1", 3)
        assert moved.strides[0] == array.itemsize, "the contiguous mode stays contiguous"
        back, turned = np.zeros_like(array), np.zeros((3, 2, 2), dtype)
        download(moved, back)
        download(moved.swapaxes(0, 2), turned)
        np.testing.assert_array_equal(back, array)
        np.testing.assert_array_equal(turned, array.swapaxes(0, 2))
        assert moved.__cuda_array_interface__["data"] == (moved.address, False)
    del moved
    gc.collect()
    assert ctypes.c_int.in_dll(driver.library, "allocations").value == 0


def test_a_profile_sees_launches_and_their_time(driver: Driver) -> None:
    gpu_machine = gpu.machine()
    kernel = gpu_machine.load(small())
    heard: list[float] = []
    with gpu_machine.profile(heard.append) as report:
        kernel(config(), [at(16), 5])
        kernel(config((2, 1, 1)), [at(16), 5])
    kernel(config(), [at(16), 5])
    assert [(name, c.grid[0]) for name, c in report.launches] == [("small", 1), ("small", 2)]
    assert report.seconds == pytest.approx(0.004) and heard == [1.0] and report.instructions is None


def test_options_of_the_compiler_are_kept(driver: Driver) -> None:
    from types import SimpleNamespace

    options = SimpleNamespace(opt_level=1, ptxas_options="--maxrregcount=40", generate_line_info=True, gpu_arch="sm_80")
    made = gpu.artifact(small(), options)
    assert made.arch == "sm_80" and ".loc" in made.ptx
    with pytest.raises(ArgumentError, match=r"gpu-arch=sm_80, which Imaginary GPU \(sm_90a\) cannot run"):
        gpu.machine().load(small(), options)(config(), [at(16), 5])
    options.gpu_arch = "sm_90"
    kernel = gpu.machine().load(small(), options)
    kernel(config(), [at(16), 5])
    assert kernel.artifacts["cuda:0"].arch == "sm_90" and ".loc" in kernel.artifacts["cuda:0"].ptx


def test_products_and_sums_are_not_fused_where_that_is_forbidden() -> None:
    k = Kernel("fused", x=pointer(F32))
    a, b = (k.load(k.at(k.x, i)) for i in range(2))
    k.store(k.at(k.x, 2), k.binary("add", k.binary("mul", a, b), b))
    words = {False: "", True: "--fmad=false"}
    for forbidden, text in words.items():
        options = SimpleNamespace(opt_level=3, ptxas_options=text, generate_line_info=False, gpu_arch="sm_80")
        assert ("fma.rn.f32" in gpu.artifact(k.done(), options).ptx) is not forbidden


def test_artifacts_need_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_LIBCUDA", "libthere_is_none.so")
    for function in CACHED:
        function.cache_clear()
    assert gpu.artifact(small()).arch == "sm_90a"
    for function in CACHED:
        function.cache_clear()


def test_threads_do_not_mix_their_arguments(driver: Driver) -> None:
    kernel = gpu.machine().load(small())
    driver.expect(8, 4)
    kernel(config(), [at(16), 5])
    problems = []

    def work(number: int) -> None:
        for _ in range(200):
            try:
                kernel(config((number, 1, 1)), [at(number * 16), number])
            except Exception as error:
                problems.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems and driver.last.launches == 801
    address, number = struct.unpack_from("<Qi", bytes(driver.last.parameters))
    assert address == number * 16 and driver.last.grid[0] == number


def test_each_launch_has_its_own_addresses_and_numbers(driver: Driver) -> None:
    k = Kernel("two", None, x=pointer(F32), y=pointer(F32))
    k.store(k.x, k.load(k.y))
    kernel, scaled = gpu.machine().load(k.done()), gpu.machine().load(small())
    driver.expect(8, 8)
    for i, (x, y) in enumerate([(16, 32), (16, 32), (32, 16), (48, 48), (16, 32), (16, 32), (48, 48)]):
        if i == 4:
            with gpu.machine().profile():
                kernel(config(), [at(64), at(80)])
        kernel(config(), [at(x), at(y)])
        assert struct.unpack_from("<2Q", bytes(driver.last.parameters)) == (x, y)
    driver.expect(8, 4)
    for number in (1, 1, 2, True, 0):
        scaled(config(), [at(16), number])
        assert struct.unpack_from("<Qi", bytes(driver.last.parameters)) == (16, number)


def test_a_repeated_launch_is_the_launch_whatever_was_launched_in_between(driver: Driver) -> None:
    kernel = gpu.machine().load(small())
    driver.expect(8, 4)
    how = config((3, 1, 1), cluster=(2, 1, 1), stream=7, attributes=("use_pdl",))._replace(grid=(4, 1, 1))
    fields = ("grid", "block", "cluster", "smem", "stream", "parameters")

    def seen() -> list[bytes | int]:
        found = [getattr(driver.last, field) for field in fields]
        return [bytes(x) if isinstance(x, ctypes.Array) else x or 0 for x in found]

    kernel.on("cuda:0")(how, (16, 5))
    plain = seen()
    move = kernel.moving("cuda:0", how, (48, 5), (58, 5), (40,), {10: 0})

    def again() -> None:
        move(7, (8,))

    for other in (how._replace(stream=9), how._replace(grid=(8, 1, 1)), config()):
        kernel.on("cuda:0")(other, (32, 6))
        assert seen() != plain
        move(9, (32,))
        assert seen() != plain
        again()
        assert seen() == plain
    with gpu.machine().profile() as profile:
        again()
    assert seen() == plain and len(profile.launches) == 1
    driver.set("current", 0)
    again()
    assert seen() == plain and driver.get("failures") == 1
    assert calls_in(again) < 8


def test_the_first_launch_may_be_one_to_repeat(driver: Driver) -> None:
    driver.expect(8, 4)
    gpu.machine().load(small()).moving("cuda:0", config((3, 1, 1)), (16, 5), (16, 5), (), {})(0, ())
    assert tuple(driver.last.grid) == (3, 1, 1) and driver.last.launches == 1


def test_a_launch_is_a_handful_of_calls(driver: Driver) -> None:
    kernel = gpu.machine().load(small())
    where, args = config((4, 1, 1)), [at(16), 5]
    kernel(where, args)
    assert calls_in(lambda: kernel(where, args)) < 20


def test_missing_driver_error_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_LIBCUDA", "libthere_is_none.so")
    libcuda.library.cache_clear()
    with pytest.raises(MachineError, match="no NVIDIA driver here(.|\n)*simulator(.|\n)*compiles without a GPU"):
        gpu.machine()
    libcuda.library.cache_clear()


def test_tensor_maps_are_made_once_and_handed_over_as_bytes(driver: Driver) -> None:
    """The driver encodes at the first launch with an address, a shape and strides; later ones find the bytes again."""
    template = TensorMapTemplate(
        "maps",
        F16,
        F16,
        ((ModePart("mode 1", Leaf(0, 0), Leaf(1), True),), (ModePart("mode 0", Leaf(0, 1), Leaf(0, 2), False),)),
        (64, 8),
        3,
    )
    count = ctypes.c_int.in_dll(driver.library, "maps")
    kernel = gpu.machine().load(Kernel("mapped", map=TENSOR_MAP).done())
    driver.expect(128)
    for address in (4096, 8192, 4096, 4096):
        (made,) = template(at(address, "cuda:1"), 200, 100, 256)
        kernel(LaunchConfig((1, 1, 1), (32, 1, 1)), [made])
    assert count.value == 2
    assert driver.last.stream is None and kernel.artifacts.keys() == {"cuda:1"}  # the array's device
    data = bytes(driver.last.parameters)[:128]
    assert struct.unpack_from("<Q 2Q 2Q 5I 5I", data) == (4096, 200, 100, 512, 0, 64, 8, 0, 0, 0, 1, 1, 0, 0, 0)
    assert struct.unpack_from("<6i", data, 80) == (6, 2, 0, 3, 2, 0)  # FLOAT16, rank, interleave, 128B, L2, fill
    (same,) = template(4096, 200, 100, 256)  # the short way of a call hands over plain addresses
    assert bytes(encoded(same)) == data
    assert template(4096, 200, 100, 256)[0] is same


def test_tensor_maps_of_im2col_copies(driver: Driver) -> None:
    """Corners and steps go to the driver with W first; channels and images are not stepped over."""
    im2col = Im2col((-1, -2), (3, -4), (2, 5))
    made = TensorMap(4096, F16, (64, 9, 14, 3), (128, 1152, 16128), (32, 48), 2, im2col)
    data = encoded(made)
    assert struct.unpack_from("<Q 4Q 3Q 4i 2I 4I", data) == (
        *(4096, 64, 9, 14, 3, 128, 1152, 16128),
        *(-1, -2, 3, -4, 32, 48, 1, 2, 5, 1),
    )
    assert struct.unpack_from("<4i", data, 108) == (6, 4, 2, 2)  # FLOAT16, rank, 64B, L2
    assert made.at(8192).im2col == im2col


@pytest.mark.parametrize("serialised", [False, True])
def test_wgmma_that_the_compiler_serialises_is_told(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, serialised: bool
) -> None:
    kernel = gpu.machine().load(small())
    made = kernel.compiled_for(limits.limits(0))
    text = "ptxas info    : (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ..."
    text = text if serialised else text.replace("serialized", "slow")
    changed = replace(made, log=made.log + "\n" + text)
    assert changed.warnings
    monkeypatch.setattr(kernel, "compiled_for", lambda device: changed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernel.place("cuda:0")
        kernel.place("cuda:0")
    assert len(caught) == int(serialised)
    if serialised:
        assert "kernel small for sm_90a: wgmma instructions wait for each other" in str(caught[0].message)


@pytest.mark.parametrize(
    ("capability", "version", "overlap"),
    [
        ((9, 0), 12030, True),
        ((9, 0), 12029, False),
        ((9, 0), 13000, True),
        ((8, 9), 13000, False),
        ((10, 0), 12030, True),
    ],
)
def test_kernels_of_a_stream_that_may_overlap(
    capability: tuple[int, int], version: int, overlap: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From sm_90 and CUDA 12.3 on."""
    monkeypatch.setattr(gpu, "limits", lambda device: SimpleNamespace(capability=capability))
    monkeypatch.setattr(gpu.libcuda, "driver_version", lambda: version)
    assert gpu.overlapping(0) == overlap
