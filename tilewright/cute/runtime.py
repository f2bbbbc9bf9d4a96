"""``cute.runtime``: arrays, pointers and streams of the host as arguments of jit functions."""

from importlib import import_module
from typing import Any

from tilewright._names import attach
from tilewright.errors import ArgumentError
from tilewright.lang.arguments.dlpack import HostTensor, from_dlpack
from tilewright.lang.arguments.fake import FakeTensor, make_fake_compact_tensor, make_fake_stream, make_fake_tensor
from tilewright.lang.tensors.host_pointer import HostPointer, make_ptr, nullptr
from tilewright.lang.tensors.pointer import AddressSpace
from tilewright.lang.tensors.pointer_class import Pointer

__all__ = [
    "AddressSpace",
    "FakeTensor",
    "HostPointer",
    "HostTensor",
    "Pointer",
    "find_runtime_libraries",
    "from_dlpack",
    "load_module",
    "make_fake_compact_tensor",
    "make_fake_stream",
    "make_fake_tensor",
    "make_ptr",
    "nullptr",
]


def load_module(file_path: Any, *, enable_tvm_ffi: bool = False) -> Any:
    """The functions in a file that ``export_to_c`` wrote; see :func:`tilewright.export.load.load_module`."""
    exporter: Any = import_module("tilewright.export")  # by name: it needs the GPU machine, as this package does not
    return exporter.load_module(file_path, enable_tvm_ffi=enable_tvm_ffi)


def find_runtime_libraries(*, enable_tvm_ffi: bool = False) -> list[str]:
    """The libraries that a program with exported functions is linked with: none, as they find the driver at run time;
    with ``enable_tvm_ffi`` that of TVM FFI. Raises ArgumentError where ``apache-tvm-ffi`` is not installed."""
    if not enable_tvm_ffi:
        return []
    try:
        libinfo: Any = import_module("tvm_ffi.libinfo")
    except ImportError as error:
        raise ArgumentError("find_runtime_libraries(enable_tvm_ffi=True): install apache-tvm-ffi first") from error
    return [str(libinfo.find_libtvm_ffi())]


attach(__name__)
