"""The GPU machine: kernels compiled for the device that holds the data, loaded once a device, launched by the driver.

A launch makes no synchronisation and no allocation, so it can be captured in a CUDA graph.
"""

from __future__ import annotations

import ctypes
import functools
import math
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tilewright.atoms.dependents import OVERLAPPING
from tilewright.cuda import capture, libcuda
from tilewright.cuda.arrays import DeviceArray, download, upload, zeros
from tilewright.cuda.artifact import Artifact
from tilewright.cuda.compiler import compile
from tilewright.cuda.kernel_text import emit
from tilewright.cuda.libcuda import LaunchAttribute, LaunchConfiguration
from tilewright.cuda.limits import Limits, check_launch, cluster_of, limits, shared_bytes
from tilewright.cuda.moving import MovingLaunch, moving_launch
from tilewright.cuda.parameters import Parameters
from tilewright.cuda.profile import ACTIVE, profile
from tilewright.cuda.toolchain import mismatch
from tilewright.errors import ArgumentError, MachineError
from tilewright.ir.core import Function
from tilewright.ir.runtime import PORTABLE_CLUSTER, DevicePointer, LaunchConfig, RunProfile
from tilewright.ir.target import architecture
from tilewright.ir.tensormap import TENSOR_MAP, TensorMap
from tilewright.ir.types import PtrType

REMEMBERED_CONFIGURATIONS = 256
DEFAULT_SMEM = 48 * 1024
OTHER_CONTEXT = (201, 400)
"""The driver's error, without a launch, when the calling thread has no context or one of another device."""


def machine() -> CudaMachine:
    """The GPUs of this computer. Raises MachineError where there is no driver or no GPU."""
    libcuda.library()
    return CudaMachine()


def artifact(function: Function, options: Any = None) -> Artifact:
    """``function`` compiled for the architecture that ``options`` name, else for the first GPU, else for sm_90a.

    Needs no GPU. ``options`` are those of ``cute.compile``.
    """
    arch = getattr(options, "gpu_arch", "") or default_architecture()
    return _compile(function, arch, options)


def text(function: Function, options: Any = None) -> str:
    """The CUDA C++ of ``function`` for the same architecture; needs no compiler either."""
    return emit(function, getattr(options, "gpu_arch", "") or default_architecture()).text


def default_architecture() -> str:
    """The architecture of the first GPU; sm_90a without a GPU."""
    try:
        return limits(0).arch
    except MachineError:
        return "sm_90a"


def _tell_of_serialised_wgmma(artifact: Artifact) -> None:
    """Warn where the compiler lets every wgmma wait for the one before it: results are right, and slow to come."""
    for line in artifact.warnings:
        if "wgmma" in line and "serialized" in line:
            warnings.warn(
                f"kernel {artifact.name} for {artifact.arch}: wgmma instructions wait for each other ({line.strip()}). "
                "Between warpgroup.fence() and warpgroup.wait_group() only wgmma may touch the accumulators, on every "
                "path; keep branches that wait out of the code that reads them",
                stacklevel=2,
            )


def _tell_of_doubts(function: Function) -> None:
    """Warn of what instructions need and the kernel does not do, though a GPU runs it."""
    for kind in dict.fromkeys(type(op.attrs["atom"]) for op in function.walk() if op.opcode == "call"):
        for text in kind.doubts(function):
            warnings.warn(f"kernel {function.name}: {text}", stacklevel=2)


def _arch_for(device: Limits, options: Any) -> str:
    """The architecture to compile for on ``device``: the one that was asked for, if the device can run it."""
    requested_arch: str = getattr(options, "gpu_arch", "")
    if not requested_arch:
        return device.arch
    if not architecture(requested_arch).runs_on(architecture(device.arch)):
        raise ArgumentError(
            f"the kernel was compiled with gpu-arch={requested_arch}, which {device.name} ({device.arch}) cannot run"
        )
    return requested_arch


def _compile(function: Function, arch: str, options: Any) -> Artifact:
    """Compile with the options of ``cute.compile`` (None: the defaults)."""
    if not function.known:  # 5 ms
        _tell_of_doubts(function)
    if options is None:
        return compile(function, arch)
    # ptxas has --fmad, too, but what may be fused is decided before it.
    words = options.ptxas_options.split()
    flags = [word if word.startswith("--fmad=") else f"--ptxas-options={word}" for word in words]
    if options.opt_level < 3:
        flags.append(f"--ptxas-options=-O{options.opt_level}")
    return compile(function, arch, lineinfo=options.generate_line_info or None, options=tuple(flags))


class CudaMachine:
    """NVIDIA GPUs through the driver API: a :class:`tilewright.ir.runtime.Machine`."""

    def load(self, function: Function, options: Any = None) -> CudaKernel:
        """``function`` ready to be launched on any device; compiled at the first launch on each kind of device."""
        self.checking(getattr(options, "check", ""))
        return CudaKernel(function, options)

    def artifact(self, function: Function, options: Any = None) -> Artifact:
        """See :func:`artifact`."""
        return artifact(function, options)

    def profile(
        self, progress: Callable[[float], None] | None = None, multiply_adds: int = 0
    ) -> AbstractContextManager[RunProfile]:
        """Gather the launches inside the context and their time on the GPU."""
        return profile(progress)

    def checking(self, check: str) -> AbstractContextManager[Any]:
        """Refuses: the checks are the simulator's."""
        if check not in ("", "none"):
            raise MachineError(
                f'check={check!r}: kernels are checked in the simulator; pass arrays of the CPU (machine="cpu")'
            )
        return nullcontext()

    def upload(self, array: Any) -> DeviceArray:
        """A copy of a NumPy array on the first GPU."""
        return upload(array)

    def zeros(self, count: int, dtype: Any, device: str) -> DeviceArray:
        """A vector of zeros of a NumPy dtype on ``device`` (``"cuda:0"``), in memory of no framework's allocator."""
        return zeros(count, dtype, _device_number(device))

    def download(self, source: DeviceArray, target: Any) -> None:
        """Copy an uploaded array back into a NumPy array of the same shape and dtype."""
        download(source, target)

    def synchronize(self, device: int = 0) -> None:
        """Wait until device number ``device`` has finished; a kernel that failed raises MachineError here."""
        libcuda.synchronize(device)


class CudaKernel:
    """One kernel; a call launches it. ``artifacts`` holds what was compiled, by device."""

    def __init__(self, function: Function, options: Any = None) -> None:
        self.function = function
        self.options = options
        self.artifacts: dict[str, Artifact] = {}
        self._pointers = [
            i for i, p in enumerate(function.params) if isinstance(p.type, PtrType) or p.type == TENSOR_MAP
        ]
        self._places: dict[str, Placed] = {}
        self._lock = threading.Lock()

    def __call__(self, config: LaunchConfig, args: Sequence[Any]) -> None:
        """Launch on the device of the first pointer argument (else the current one) and on ``config.stream``."""
        values = list(args)
        if len(values) != len(self.function.params):
            raise ArgumentError(
                f"{self.function.name} takes {len(self.function.params)} arguments, {len(values)} were given"
            )
        device = None
        for i in self._pointers:
            pointer = values[i]
            if isinstance(pointer, TensorMap):  # its bytes are a parameter; its array tells the device
                pointer = pointer.pointer
            if not isinstance(pointer, DevicePointer):
                continue
            if pointer is values[i]:
                values[i] = pointer[0]
            if device is None:
                device = pointer[1]
            elif pointer[1] != device:
                raise ArgumentError(f"{self.function.name}: its arrays are on several devices: {device}, {pointer[1]}")
        if device is None:
            device = _current_device()
        self.on(device)(config, values)

    def on(self, device: str) -> Callable[[LaunchConfig, Sequence[Any]], None]:
        """The launch on ``device`` with plain addresses in place of pointers, which are not checked to be of it."""
        return (self._places.get(device) or self.place(device)).launch

    def moving(
        self,
        device: str,
        config: LaunchConfig,
        values: Sequence[Any],
        moved: Sequence[Any],
        addresses: Sequence[int],
        distances: Mapping[int, int],
    ) -> MovingLaunch | None:
        """One launch on ``device``, for arrays at any addresses: see :func:`tilewright.cuda.moving.moving_launch`."""
        placed = self._places.get(device) or self.place(device)
        return moving_launch(placed, config, values, moved, addresses, distances)

    def compiled_for(self, device: Limits) -> Artifact:
        """The kernel compiled for a device."""
        return _compile(self.function, _arch_for(device, self.options), self.options)

    def place(self, device: str) -> Placed:
        """Compile and load for ``device`` (``"cuda:0"``) now; a launch does it when it is first needed."""
        with self._lock:
            if device not in self._places:
                number = _device_number(device)
                self.artifacts[device] = artifact = self.compiled_for(limits(number))
                _tell_of_serialised_wgmma(artifact)
                self._places[device] = Placed(self.function, artifact, number)
            return self._places[device]


class Placed:
    """A kernel on one device: its function handle, its parameter block and the launch configurations seen so far."""

    def __init__(self, function: Function, artifact: Artifact, device: int) -> None:
        self.function = function
        self.artifact = artifact
        self.device = device
        self.name = f"cuda:{device}"
        self.needed_smem = shared_bytes(function)
        self.parameters = Parameters(function.name, function.params)
        libcuda.enter(device)
        try:
            self.handle = libcuda.load_module(device, artifact.cubin, artifact.name)
        except MachineError as error:
            raise MachineError(f"{error}{mismatch(artifact.nvrtc)}") from error
        self.registers = libcuda.function_attribute(self.handle, libcuda.FUNC_NUM_REGS)
        self.threads = libcuda.function_attribute(self.handle, libcuda.FUNC_MAX_THREADS_PER_BLOCK)
        self.static_smem = libcuda.function_attribute(self.handle, libcuda.FUNC_SHARED_SIZE_BYTES)
        self._allowed_smem = DEFAULT_SMEM - self.static_smem
        if _lets_next_begin(function):
            capture.remember_triggering(self.handle)
        # By item, and so without argtypes: what it takes is made of ctypes already.
        self._submit = libcuda.library()["cuLaunchKernelEx"]
        self._configurations: dict[LaunchConfig, tuple[LaunchConfiguration, Callable[[], int]]] = {}
        self._config: LaunchConfig | None = None
        self._stream: int | None = None
        self._driver_config = LaunchConfiguration()
        self._go: Callable[[], int] = int
        self._packed: Sequence[Any] | None = None
        self._lock = threading.Lock()
        self._acquire, self._release = self._lock.acquire, self._lock.release

    def launch(self, config: LaunchConfig, values: Sequence[Any]) -> None:
        """Launch with ``values`` (addresses and numbers, one a parameter)."""
        if ACTIVE:
            return self._timed(config, values)
        stream = config[4]
        if stream is None:
            stream = (_raw_stream or _current_stream)(self.device)
        self._acquire()  # the parameters and the configuration are shared by all threads; `with` takes twice the time
        try:
            # Compiled functions pass the same object each time: identity spares the comparison of fields.
            if config is not self._config and config != self._config:
                self._choose(config)
            if stream != self._stream:
                self._driver_config.stream = self._stream = stream
            # The parameter block still holds the addresses of the launch before.
            if values != self._packed:
                self.parameters.pack(values)
                self._packed = values if self.parameters.only_addresses else None
            if code := self._go():
                self.retry_in_own_context(self._go, code, config)
        finally:
            self._release()

    def _choose(self, config: LaunchConfig) -> None:
        """Make ``config`` the one that ``_go`` launches with."""
        self._driver_config, self._go = self._configurations.get(config) or self._configure(config)
        self._config, self._stream = config, None

    def retry_in_own_context(self, go: Callable[[], int], code: int, config: LaunchConfig) -> None:
        """Launch in the device's own context if the thread's was the reason that nothing was launched, else raise.

        This way round is cheaper than to ask for the context before each launch. A thread that loads a kernel or makes
        a configuration has a context by then; a further thread gets one here, at its first launch.
        """
        if code in OTHER_CONTEXT:
            libcuda.enter(self.device)
            with libcuda.current(self.device):
                code = go()
        libcuda.check(
            code,
            f"launching {self.function.name} on {self.name} with grid {config.grid}, block {config.block}, cluster "
            f"{config.cluster}, {self.registers} registers a thread",
        )

    def _timed(self, config: LaunchConfig, values: Sequence[Any]) -> None:
        """Launch under the profile that is active."""
        stream = _current_stream(self.device) if config.stream is None else config.stream
        with self._lock, ACTIVE[-1].launch(self.function.name, config, self.device, stream):
            self._choose(config)
            self._driver_config.stream = self._stream = stream
            self.parameters.pack(values)
            self._packed = None
            if code := self._go():
                self.retry_in_own_context(self._go, code, config)

    def _configure(self, config: LaunchConfig) -> tuple[LaunchConfiguration, Callable[[], int]]:
        """Check a configuration that was not seen before; gives the driver's form of it and its launch."""
        smem = self.needed_smem if config.smem is None else config.smem
        check_launch(self.function, config, smem, self.needed_smem, limits(self.device), self.threads, self.static_smem)
        libcuda.enter(self.device)
        with libcuda.current(self.device):
            self._allow(smem, math.prod(cluster_of(self.function, config)))
        result = LaunchConfiguration(config.grid, config.block, smem)
        attributes = _launch_attributes(config, overlaps=overlapping(self.device))
        if attributes:
            result.attributes = (LaunchAttribute * len(attributes))(*attributes)
            result.count = len(attributes)
        if len(self._configurations) >= REMEMBERED_CONFIGURATIONS:
            self._configurations.clear()
        self._configurations[config] = prepared = result, self.submission(result, self.parameters)
        return prepared

    def configuration(self, config: LaunchConfig) -> LaunchConfiguration:
        """The driver's form of ``config``, whose stream is whichever was launched on last."""
        with self._lock:
            return (self._configurations.get(config) or self._configure(config))[0]

    def submission(self, config: LaunchConfiguration, parameters: Parameters) -> Callable[[], int]:
        """The driver's launch with arguments that are converted already, which may overlap where that gains."""
        go, leave = self.driver_call(config, parameters), capture.leave_to_overlap(config)
        return go if leave is None else functools.partial(capture.submit, go, config, leave)

    def driver_call(self, config: LaunchConfiguration, parameters: Parameters) -> Callable[[], int]:
        """The driver's launch with arguments that are converted already."""
        pointers = map(ctypes.c_void_p.from_param, (self.handle, parameters.pointers.value))
        return functools.partial(self._submit, ctypes.byref(config), *pointers, None)

    def _allow(self, smem: int, cluster: int) -> None:
        """Opt in to more than 48 KiB of shared memory and to clusters of more than 8 blocks."""
        driver, name = libcuda.library(), self.function.name
        if smem > self._allowed_smem:
            code = driver.cuFuncSetAttribute(self.handle, libcuda.FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, smem)
            libcuda.check(code, f"{name}: asking for {smem} bytes of shared memory")
            self._allowed_smem = smem
        if cluster > PORTABLE_CLUSTER:
            code = driver.cuFuncSetAttribute(self.handle, libcuda.FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)
            libcuda.check(code, f"{name}: asking for clusters of {cluster} blocks")


def _lets_next_begin(function: Function) -> bool:
    """Whether a kernel says that the next one may begin before it has ended."""
    calls = (op for op in function.walk() if op.opcode == "call")
    return any(op.attrs["atom"].grid_dependency == "launch_dependents" for op in calls)


def overlapping(device: int) -> bool:
    """Whether kernels of a stream can overlap (programmatic dependent launch): from sm_90 on, and with drivers of CUDA
    12.3 on, which capture such launches into graphs. Where they cannot, they follow each other whole."""
    return limits(device).capability >= (OVERLAPPING // 10, 0) and libcuda.driver_version() >= 12030


def _launch_attributes(config: LaunchConfig, overlaps: bool = True) -> list[LaunchAttribute]:
    """The driver's launch attributes besides grid, block, shared memory and stream."""
    attributes = []
    if tuple(config.cluster) != (1, 1, 1):
        attributes.append(LaunchAttribute(libcuda.CLUSTER_DIMENSION, 0, tuple(config.fallback or config.cluster)))
    if config.fallback is not None:
        attributes.append(LaunchAttribute(libcuda.PREFERRED_CLUSTER_DIMENSION, 0, tuple(config.cluster)))
    if "use_pdl" in config.attributes and overlaps:
        attributes.append(LaunchAttribute(libcuda.PROGRAMMATIC_STREAM_SERIALIZATION, 0, (1,)))
    if "cooperative" in config.attributes:
        attributes.append(LaunchAttribute(libcuda.COOPERATIVE, 0, (1,)))
    return attributes


def _device_number(device: str) -> int:
    kind, _, number = device.partition(":")
    if kind != "cuda" or not (number or "0").isdigit():
        raise ArgumentError(f"an array on {device!r} cannot be used by a kernel on a GPU")
    return int(number or 0)


def _current_device() -> str:
    """The device of a kernel without pointers: the one that is current in this thread, else the first."""
    if not libcuda.has_context():
        return "cuda:0"
    number = ctypes.c_int()
    libcuda.check(libcuda.library().cuCtxGetDevice(ctypes.byref(number)), "asking for the current device")
    return f"cuda:{number.value}"


_raw_stream: Callable[[int], int] | None = None
"""PyTorch's look-up of its current stream, once PyTorch uses the GPU."""


def _current_stream(device: int) -> int:
    """PyTorch's current stream if PyTorch is in use on the GPU, else the default stream."""
    global _raw_stream
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return 0
    _raw_stream = torch._C._cuda_getCurrentRawStream
    return int(_raw_stream(device))
