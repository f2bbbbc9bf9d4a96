"""Hand-built kernels for the tests: a builder with parameters, and a way to run a printed kernel on the host.

Running on the host compiles the printed CUDA C++ with g++ (one thread after another, no barriers): what the emitter
printed is checked by executing it, on machines without a GPU.
"""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.cuda import emit, nvrtc
from tilewright.cuda.nvrtc import INCLUDE
from tilewright.errors import MachineError
from tilewright.ir.builder import Builder
from tilewright.ir.core import Block, Function, Location, Value
from tilewright.ir.runtime import DevicePointer, LaunchConfig
from tilewright.ir.types import I32, MemSpace, PtrType, ScalarType, Type
from tilewright.ir.verify import verify

HOST = Path(__file__).with_name("host")
HERE = str(Path(__file__))


class Kernel(Builder):
    """``k = Kernel("name", x=pointer(F32), n=I32)``; the parameters are ``k.x`` and ``k.n``."""

    def __init__(self, name: str = "kernel", attrs: dict[str, Any] | None = None, **params: Type) -> None:
        self.args = {hint: Value(kind, hint) for hint, kind in params.items()}
        super().__init__(Block(list(self.args.values())))
        self.top = Function(name, "kernel", self.block, attrs or {})
        self.loc = Location(HERE, 1)

    def __getattr__(self, name: str) -> Value:
        try:
            return self.__dict__["args"][name]
        except KeyError:
            raise AttributeError(name) from None

    def binary(self, opcode: str, a: Value, b: Value, fits: bool = True) -> Value:
        """Numbers of these tests do not overflow unless one says so."""
        return super().binary(opcode, a, b, fits)

    def number(self, value: int) -> Value:
        return self.constant(I32, value)

    def at(self, pointer: Value, index: Value | int, align: int | None = None) -> Value:
        return self.ptr_add(pointer, index, align)

    def global_index(self) -> Value:
        """Block index times block size plus thread index."""
        return self.binary("add", self.binary("mul", self.sreg("ctaid.x"), self.sreg("ntid.x")), self.sreg("tid.x"))

    def end(self, *values: Value) -> None:
        self.emit("yield", values)

    def done(self) -> Function:
        verify(self.top)
        return self.top

    @property
    def text(self) -> str:
        return emit(self.done()).text


def needs_nvrtc() -> None:
    """Skip the module that calls this where there is no compiler."""
    try:
        nvrtc.version()
    except MachineError as error:
        pytest.skip(str(error), allow_module_level=True)


def pointer(elem: ScalarType, align: int = 16, space: MemSpace = MemSpace.GMEM) -> PtrType:
    return PtrType(elem, space, align)


COMPILER = ["g++", "-std=c++17", "-O0", "-w", "-ffp-contract=off", "-fno-strict-aliasing", "-fPIC"]


@functools.cache
def host_headers() -> tempfile.TemporaryDirectory[str]:
    """What printed kernels include, for g++; precompiled, as reading it took most of a kernel's compilation."""
    folder = tempfile.TemporaryDirectory(prefix="tilewright-host-")
    place = Path(folder.name)
    for name in ("tilewright.cuh", "fp8.cuh"):
        shutil.copy(INCLUDE / name, place)
    for name in ("prelude.h", "access.cuh", "threads.cuh"):
        shutil.copy(HOST / name, place)
    plain = (INCLUDE / "numbers.cuh").read_text()
    lacking = plain[plain.index("// ---- what C++ lacks") : plain.index("__device__ __forceinline__ float approx_exp2")]
    (place / "numbers.cuh").write_text((HOST / "numbers.cuh").read_text() + lacking + "}  // namespace tw\n")
    (place / "all.h").write_text('#include "prelude.h"\n#include "tilewright.cuh"\n')
    subprocess.run([*COMPILER, "-x", "c++-header", "all.h", "-o", "all.h.gch"], cwd=place, check=True)
    return folder


def run_on_host(function: Function, args: Sequence[Any], block: int = 32, grid: int = 1) -> None:
    """Print ``function``, compile it with g++ and run every thread; arrays are changed in place."""
    if shutil.which("g++") is None:
        pytest.skip("no g++ here")
    source = emit(function)
    indices = ("threadIdx", "blockIdx", "blockDim", "gridDim")
    driver = "".join(f"thread_local Index {name};\n" for name in indices)
    types = [type_name(p.type) for p in function.params]
    signature = ", ".join(f"{t} a{i}" for i, t in enumerate(types))
    call = ", ".join(f"a{i}" for i in range(len(types)))
    driver += (
        f'extern "C" void run(unsigned grid, unsigned block{", " if types else ""}{signature}) {{\n'
        "  gridDim = {grid, 1, 1}; blockDim = {block, 1, 1};\n"
        "  for (unsigned b = 0; b < grid; ++b) for (unsigned t = 0; t < block; ++t) {\n"
        f"    blockIdx = {{b, 0, 0}}; threadIdx = {{t, 0, 0}}; {source.name}({call}); fflush(stdout); }}\n}}\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "kernel.cpp").write_text(f'#include "all.h"\n{source.text}\n{driver}')
        command = [*COMPILER, "-shared", "-I", host_headers().name, "kernel.cpp", "-o", "k.so"]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True)
        assert done.returncode == 0, f"{done.stderr[:3000]}\n{source.text}"
        library = ctypes.CDLL(str(place / "k.so"))
        library.run(ctypes.c_uint(grid), ctypes.c_uint(block), *map(_argument, args, function.params))


def run_on_gpu(function: Function, args: Sequence[Any], block: int = 32, grid: int = 1) -> None:
    """Launch ``function`` on the first GPU; arrays are copied there and back."""
    torch = pytest.importorskip("torch")
    from tilewright.cuda.machine import machine

    buffers = [torch.from_numpy(a.view(np.uint8).copy()).cuda() if isinstance(a, np.ndarray) else None for a in args]
    values = [a if b is None else device_pointer(b) for a, b in zip(args, buffers, strict=True)]
    gpu = machine()
    gpu.load(function)(LaunchConfig((grid, 1, 1), (block, 1, 1)), values)
    gpu.synchronize()
    for array, buffer in zip(args, buffers, strict=True):
        if buffer is not None:
            array[...] = buffer.cpu().numpy().view(array.dtype).reshape(array.shape)


def device_pointer(tensor: Any) -> DevicePointer:
    """What the front makes of a PyTorch tensor."""
    address = tensor.data_ptr()
    return DevicePointer(address, f"cuda:{tensor.device.index}", address, address + tensor.nbytes, tensor)


def type_name(kind: Type) -> str:
    return f"{kind.elem.cuda}*" if isinstance(kind, PtrType) else str(getattr(kind, "cuda", "?"))


def _argument(value: Any, param: Value) -> Any:
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    wrap = {
        "i32": ctypes.c_int,
        "f32": ctypes.c_float,
        "i64": ctypes.c_longlong,
        "f64": ctypes.c_double,
        "i1": ctypes.c_bool,
    }
    return wrap[str(param.type)](value)
