"""Exported functions without a GPU: the C launcher runs as it was written, and its launches reach the simulator.

The launcher is compiled with the path of the driver that writes down its calls (``driver.c``) in place of the real
one. That driver hands each launch to Python with what the kernel would get: addresses, numbers, tensor maps.
"""

from __future__ import annotations

import ctypes
import functools
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from tests.export.harness import COMPILER, build_driver
from tilewright.cuda.artifact import Artifact
from tilewright.cuda.tensormaps import DATA_TYPE_CODES
from tilewright.errors import ArgumentError
from tilewright.export import files
from tilewright.export.interface import parameters_of
from tilewright.ir.runtime import DevicePointer, LaunchConfig
from tilewright.ir.tensormap import TENSOR_MAP, TensorMap
from tilewright.ir.types import SCALARS, PtrType, ScalarType
from tilewright.lang.numbers.numeric import Integer
from tilewright.layout.tuples import flatten_to_tuple
from tilewright.sim.machine import SimKernel

NO_CODE = b"\x7fELF".ljust(64, b"\0")
CLUSTER = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION


class Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint32 * 16)]


class Config(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("smem", ctypes.c_uint32),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("count", ctypes.c_uint32),
    ]


class Map(ctypes.Structure):
    """What the driver writes into a tensor map."""

    _fields_ = [
        ("address", ctypes.c_uint64),
        ("dims", ctypes.c_uint64 * 5),
        ("strides", ctypes.c_uint64 * 4),
        ("box", ctypes.c_uint32 * 5),
        ("rest", ctypes.c_int),
    ]

    def seen(self, memories: Sequence[np.ndarray]) -> TensorMap:
        code, rank, swizzle = self.rest & 0xFF, self.rest >> 8 & 0xFF, self.rest >> 16 & 0xF
        element = next(t for t in SCALARS.values() if t.tensor_map and DATA_TYPE_CODES[t.tensor_map] == code)
        pointer = pointer_to(self.address, memories)
        return TensorMap(pointer, element, self.dims[:rank], self.strides[: rank - 1], self.box[:rank], swizzle)


Launched = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.POINTER(Config), ctypes.POINTER(ctypes.c_void_p))


def pointer_to(address: int, memories: Sequence[np.ndarray]) -> Any:
    """A pointer into one of ``memories``, which nothing but it may be reached by."""
    for memory in memories:
        low = memory.ctypes.data
        if low <= address < low + memory.nbytes:
            return DevicePointer(address, "cpu", low, low + memory.nbytes, memory)
    return address


@functools.cache
def driver() -> tuple[ctypes.CDLL, Path]:
    folder = tempfile.mkdtemp(prefix="tilewright-driver-")
    library = build_driver(Path(folder))
    return ctypes.CDLL(str(library)), library


class SimulatedFunction:
    """The exported form of a compiled function."""

    def __init__(self, executor: Any) -> None:
        assert COMPILER
        self.executor, self.kernels = executor, {kernel.name.encode(): kernel for kernel in executor.kernels}
        with tempfile.TemporaryDirectory() as folder:
            made = {"artifact": self.uncompiled, "_compile_object": lambda *_: None}
            with mock.patch.multiple(files, **made):
                executor.export_to_c(folder, "f", gpu_arch="sm_90a")
            source = Path(folder, "f.c")
            text = source.read_text()
            assert "libcuda.so.1" in text
            source.write_text(text.replace("libcuda.so.1", str(driver()[1])))
            command = [
                COMPILER,
                "-std=c99",
                "-O0",
                "-fPIC",
                "-shared",
                str(source),
                "-o",
                f"{folder}/f.so",
                "-ldl",
                "-lm",
            ]
            subprocess.run(command, check=True)
            self.library = ctypes.CDLL(f"{folder}/f.so")
        self.library.f_Get_Error_String.restype = ctypes.c_char_p

    @staticmethod
    def uncompiled(kernel: Any, options: Any) -> Artifact:
        return Artifact(kernel.name, options.gpu_arch, "", NO_CODE, "")

    def __call__(self, arrays: Sequence[np.ndarray], others: Sequence[Any], memories: Sequence[np.ndarray]) -> None:
        """Call with arrays for the tensors, and the other arguments as they were compiled with; kernels reach
        ``memories`` alone. Raises ArgumentError for what the C function refuses."""
        given, faults = iter(arrays), []
        arguments: list[Any] = []
        values = [
            v for p, x in zip(self.executor.parameters[len(arrays) :], others, strict=False) for v in p.argument.read(x)
        ]
        kinds = [p.type for p in self.executor.host.params][-len(values) or len(self.executor.host.params) :]
        numbers = iter(zip(kinds, values, strict=True))
        templates = iter(self.executor.parameters)
        for parameter in parameters_of(self.executor, "f"):
            if parameter.fields:
                arguments.append(ctypes.byref(tensor(parameter, next(templates).argument.template, next(given))))
            else:
                arguments.append(number(*next(numbers)))

        @Launched
        def launched(name: bytes, config: Any, parameters: Any) -> None:
            try:
                self.simulate(name, config[0], parameters, memories)
            except Exception as fault:
                faults.append(fault)

        module = ctypes.create_string_buffer(4096)
        driver()[0].fake_on_launch(launched)
        try:
            code = self.library.f_Kernel_Module_Load(module) or self.library.cute_dsl_f_wrapper(module, *arguments)
        finally:
            driver()[0].fake_on_launch(None)
        if faults:
            raise faults[0]
        if code:
            raise ArgumentError(self.library.f_Get_Error_String().decode())

    def simulate(self, name: bytes, config: Config, parameters: Any, memories: Sequence[np.ndarray]) -> None:
        kernel = self.kernels[name]
        arguments: list[Any] = []
        for place, kind in zip(parameters, (p.type for p in kernel.params), strict=False):
            if kind == TENSOR_MAP:
                arguments.append(Map.from_address(place).seen(memories))
            elif isinstance(kind, PtrType):
                arguments.append(pointer_to(ctypes.c_uint64.from_address(place).value, memories))
            else:
                dtype = kind.dtype
                raw = (ctypes.c_char * dtype.itemsize).from_address(place)
                arguments.append(np.frombuffer(raw, dtype)[0].item())
        attributes = {config.attributes[i].id: config.attributes[i].value for i in range(config.count)}
        cluster = tuple(attributes[CLUSTER][:3]) if CLUSTER in attributes else (1, 1, 1)
        SimKernel(kernel)(LaunchConfig(tuple(config.grid), tuple(config.block), cluster, config.smem), arguments)


def tensor(parameter: Any, template: Any, array: np.ndarray) -> Any:
    """The struct of a tensor parameter, as a caller in C fills it: what the header does not ask for is as it says."""
    layout = template.layout
    strides = [step // array.itemsize for step in array.strides]
    parts = {"dynamic_shapes": (layout.shape, array.shape), "dynamic_strides": (layout.stride, strides)}
    fields: list[Any] = [("data", ctypes.c_void_p)]
    filled: list[Any] = [array.ctypes.data]
    for name, (tree, numbers) in parts.items():
        leaves = flatten_to_tuple(tree)
        asked = [n for leaf, n in zip(leaves, numbers, strict=True) if isinstance(leaf, Integer)]
        for leaf, n, extent in zip(leaves, numbers, array.shape, strict=True):
            if not isinstance(leaf, Integer) and leaf != n and extent > 1:
                raise ArgumentError(f"{parameter.name}: the header says {leaf}, not {n}")
        declared = next((field for field in parameter.fields if name in field), None)
        if declared is not None:
            kind = ctypes.c_int64 if declared.startswith("int64_t") else ctypes.c_int32
            fields.append((name, kind * len(asked)))
            filled.append((kind * len(asked))(*asked))
    made = type(parameter.type, (ctypes.Structure,), {"_fields_": fields})
    return made(*filled)


def number(kind: ScalarType, value: Any) -> Any:
    """A number as C takes it; small floats are their bits."""
    if isinstance(kind, PtrType):
        return ctypes.c_void_p(value.address)
    if kind.name in ("f32", "tf32"):
        return ctypes.c_float(value)
    if kind.name == "f64":
        return ctypes.c_double(value)
    bits = np.array(value).astype(kind.dtype)
    return {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64}[bits.itemsize](
        int(bits.view(f"u{bits.itemsize}"))
    )
