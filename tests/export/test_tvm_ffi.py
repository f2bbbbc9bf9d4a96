"""The symbol ``__tvm_ffi_PREFIX`` of exported functions: called through TVM FFI, with tensors of an imaginary GPU."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tilewright as cutlass
from tests.export.harness import COMPILER, Driver, needs_compiler
from tilewright import cute
from tilewright.cute.runtime import find_runtime_libraries, make_fake_stream, make_fake_tensor

missing = importlib.util.find_spec("tvm_ffi") is None
pytestmark = [needs_compiler, pytest.mark.skipif(missing, reason="apache-tvm-ffi is not installed")]

CALLS = '''
import ctypes, sys
import numpy as np
sys.modules["torch"] = None  # TVM FFI would import it, which takes long
import tvm_ffi

class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("byte_offset", ctypes.c_uint64)]

class Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]

alive = []

class OnGpu:
    """An array at an address of the imaginary GPU, which DLPack hands over."""
    def __init__(self, address, shape, stride, code=2, bits=32, device=0):
        self.shape, self.stride = (ctypes.c_int64 * len(shape))(*shape), (ctypes.c_int64 * len(shape))(*stride)
        places = ctypes.addressof(self.shape), ctypes.addressof(self.stride)
        self.managed = Managed(DLTensor(address, 2, device, len(shape), code, bits, 1, *places, 0), None, None)
        self.device = device
        alive.append(self)
    def __dlpack_device__(self):
        return 2, self.device
    def __dlpack__(self, **_):
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.addressof(self.managed), b"dltensor", None)

def attempt(*args):
    try:
        print(function(*args))
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[-1])

function = tvm_ffi.load_module(sys.argv[1])["scale"]
a, b = OnGpu(0x1000, (3, 8), (8, 1)), OnGpu(0x2000, (3, 8), (16, 1))
keep = [tvm_ffi.from_dlpack(x) for x in (a, b)]
attempt(*keep, 0.5, 7, True)
attempt(*keep, 2, -7, 0)
attempt(*keep, 0.5, 7)
attempt(keep[0], 1, 0.5, 7, True)
attempt(keep[0], tvm_ffi.from_dlpack(OnGpu(0x2000, (3, 8), (8, 1), 0)), 0.5, 7, True)
attempt(keep[0], tvm_ffi.from_dlpack(OnGpu(0x2000, (3, 8, 1), (8, 1, 1))), 0.5, 7, True)
attempt(keep[0], tvm_ffi.from_dlpack(OnGpu(0x2000, (3, 9), (9, 1))), 0.5, 7, True)
attempt(keep[0], tvm_ffi.from_dlpack(OnGpu(0x2000, (3, 8), (8, 1), device=1)), 0.5, 7, True)
attempt(keep[0], np.zeros((3, 8), np.float32), 0.5, 7, True)
attempt(*keep, "half", 7, True)
attempt(*keep, 0.5, 1 << 40, True)
attempt(keep[0], tvm_ffi.from_dlpack(OnGpu(0x2004, (3, 8), (8, 1))), 0.5, 7, True)
attempt(*[tvm_ffi.from_dlpack(OnGpu(x, (3, 8), (8, 1), device=1)) for x in (0x1000, 0x2000)], 0.5, 7, True)
'''
EXPECTED = """
None
None
TypeError 4 arguments are given; there are 5: a, b, factor, n, flag
TypeError argument 'b': a tensor is expected
TypeError argument 'b': the elements have DLPack type code 0 and 32 bits, expected are 2 and 32
ValueError argument 'b': rank 3, expected is 2
ValueError b.shape[1] is 9, and the function was compiled for 8
ValueError argument 'b': the tensors of one call lie on devices 0 and 1
RuntimeError argument 'b': the tensor is not on a GPU, and scale is machine code for GPUs
TypeError argument 'factor': a number is expected
ValueError n is 1099511627776, which lies outside -2147483648 to 2147483647
ValueError b->data is not a multiple of 16 bytes: 0x2004
None
""".strip().splitlines()


@cute.kernel
def scale_kernel(a: cute.Tensor, b: cute.Tensor, factor: cutlass.Float32, n: cutlass.Int32, flag: cutlass.Boolean):
    i, j = cute.arch.block_idx()[0], cute.arch.thread_idx()[0]
    if flag:
        b[i, j] = factor * a[i, j] + cutlass.Float32(n)


@cute.jit
def scale(
    a: cute.Tensor, b: cute.Tensor, factor: cutlass.Float32, n: cutlass.Int32, flag: cutlass.Boolean, stream: Any
):
    scale_kernel(a, b, factor, n, flag).launch(grid=(a.shape[0], 1, 1), block=(8, 1, 1), stream=stream)


def compiled_scale() -> Any:
    rows = cute.sym_int()
    tensors = [make_fake_tensor(cutlass.Float32, (rows, 8), (cute.sym_int(), 1), assumed_align=16) for _ in range(2)]
    stream = make_fake_stream(use_tvm_ffi_env_stream=True)
    numbers = cutlass.Float32(1), cutlass.Int32(1), cutlass.Boolean(True)
    return cute.compile(scale, *tensors, *numbers, stream, options="--enable-tvm-ffi")


def test_calls_through_tvm_ffi(driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled_scale().export_to_c(str(tmp_path / "scale.o"), function_name="scale")
    library = tmp_path / "scale.so"
    assert COMPILER
    libraries = find_runtime_libraries(enable_tvm_ffi=True)
    subprocess.run([COMPILER, "-shared", "-o", str(library), str(tmp_path / "scale.o"), *libraries], check=True)
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(driver.folder),
        "FAKE_PARAMETERS": "scale_kernel=8,4,8,4,4,4,1",
    }
    command = [sys.executable, "-c", CALLS, str(library)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == EXPECTED
    found = driver.calls()
    assert len(found.loads) == 2 and len(found.launches) == 3  # the last call is on the other device
    first, second, _ = found.launches
    assert first.split()[-7:-3] == ["0010000000000000", "08000000", "0020000000000000", "10000000"]
    assert first.split()[-3:] == ["0000003f", "07000000", "01"]
    assert second.split()[-3:] == ["00000040", "f9ffffff", "00"]


def test_functions_without_the_symbol(tmp_path: Path) -> None:
    """Arguments in groups, and numbers that TVM FFI does not have."""
    import warnings

    @cute.jit
    def grouped(a: Any, x: cutlass.Float16):
        scale_kernel(a[0], a[0], 1.0, 1, True).launch(grid=(1, 1, 1), block=(8, 1, 1))

    tensor = make_fake_tensor(cutlass.Float32, (3, 8), (8, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cute.compile(grouped, (tensor,), cutlass.Float16(1)).export_to_c(tmp_path, "grouped")
        compiled_scale().export_to_c(tmp_path, "scale")
    assert "__tvm_ffi" not in (tmp_path / "grouped.c").read_text()
    assert "int __tvm_ffi_scale(" in (tmp_path / "scale.c").read_text()
