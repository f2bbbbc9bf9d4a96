"""The foreign function that XLA calls: buffers and stream of one execution, read from XLA's C interface.

XLA hands a *call frame* to the handler (``xla/ffi/api/c_api.h``, which jaxlib ships); its structures are mirrored here
as far as they are read. There is one handler for all calls: the attribute ``call`` says which is meant.
"""

from __future__ import annotations

import ctypes
import functools
import traceback
from collections.abc import Callable
from ctypes import POINTER, Structure, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p
from importlib import import_module
from typing import Any, NamedTuple

from tilewright.ir.types import SCALARS

TARGET = "tilewright_cutlass_call"

_TYPES = {kind.xla: kind.numpy_name for kind in SCALARS.values() if kind.xla}
_METADATA, _EXECUTE, _INVALID_ARGUMENT = 1, 3, 3


class _Extension(Structure):
    _fields_ = [("struct_size", c_size_t), ("type", c_int), ("next", c_void_p)]


class _Version(Structure):
    _fields_ = [("struct_size", c_size_t), ("extension", c_void_p), ("major", c_int), ("minor", c_int)]


class _Metadata(Structure):
    _fields_ = [("struct_size", c_size_t), ("version", _Version), ("traits", c_uint32)]


class _MetadataExtension(Structure):
    _fields_ = [("base", _Extension), ("metadata", POINTER(_Metadata))]


class _Buffer(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("dtype", c_int),
        ("data", c_void_p),
        ("rank", c_int64),
        ("dims", POINTER(c_int64)),
    ]


class _Buffers(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("size", c_int64),
        ("types", POINTER(c_int)),
        ("items", POINTER(POINTER(_Buffer))),
    ]


class _Span(Structure):
    _fields_ = [("ptr", c_void_p), ("len", c_size_t)]


class _Scalar(Structure):
    _fields_ = [("dtype", c_int), ("value", POINTER(c_int64))]


class _Attributes(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("size", c_int64),
        ("types", POINTER(c_int)),
        ("names", POINTER(POINTER(_Span))),
        ("items", POINTER(POINTER(_Scalar))),
    ]


class _ErrorArguments(Structure):
    _fields_ = [("struct_size", c_size_t), ("extension", c_void_p), ("message", c_char_p), ("code", c_int)]


class _StreamArguments(Structure):
    _fields_ = [("struct_size", c_size_t), ("extension", c_void_p), ("ctx", c_void_p), ("stream", c_void_p)]


class _Api(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("extension", c_void_p),
        ("version", _Version),
        ("internal", c_void_p),
        ("error_create", ctypes.CFUNCTYPE(c_void_p, POINTER(_ErrorArguments))),
        ("error_message", c_void_p),
        ("error_destroy", c_void_p),
        ("register", c_void_p),
        ("stream_get", ctypes.CFUNCTYPE(c_void_p, POINTER(_StreamArguments))),
    ]


class _CallFrame(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("extension", POINTER(_Extension)),
        ("api", POINTER(_Api)),
        ("ctx", c_void_p),
        ("stage", c_int),
        ("args", _Buffers),
        ("rets", _Buffers),
        ("attrs", _Attributes),
    ]


class Buffer(NamedTuple):
    """One argument or result of an execution."""

    address: int
    shape: tuple[int, ...]
    dtype: str


Call = Callable[[list[Buffer], list[Buffer], int | None], None]
"""The function that runs at an execution: with the arguments, the results, and the stream (None on the CPU)."""
CALLS: dict[int, Call] = {}


@functools.cache
def register() -> None:
    """Register the handler with XLA, for the CPU and for NVIDIA GPUs."""
    import jax

    for platform, handler in (("cpu", _on_cpu), ("CUDA", _on_gpu)):
        jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(handler), platform=platform)


def current_gpu() -> int:
    """The number of the device whose context XLA has made current for the handler."""
    return int(import_module("tilewright.cuda.context").get_current_device())


def get_export_disabled_safety_checks() -> tuple[Any, ...]:
    """What ``jax.export.export(..., disabled_checks=...)`` needs to let ``cutlass_call`` pass. The exported program
    finds its kernels in the process that made it."""
    from jax import export

    return (export.DisabledSafetyCheck.custom_call(TARGET),)


def _handle(frame: Any, has_stream: bool) -> int | None:
    """One call of XLA: it asks for the interface's version once, and then for executions. Gives an error or None."""
    extension = frame.extension
    if extension and extension[0].type == _METADATA:
        metadata = ctypes.cast(extension, POINTER(_MetadataExtension))[0].metadata[0]
        metadata.version.major, metadata.version.minor = frame.api[0].version.major, frame.api[0].version.minor
        return None
    if frame.stage != _EXECUTE:
        return None
    try:
        CALLS[_attribute(frame.attrs, b"call")](
            _buffers(frame.args), _buffers(frame.rets), _stream(frame) if has_stream else None
        )
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        if not type(error).__module__.startswith("tilewright"):
            text += "\n" + traceback.format_exc()
        arguments = _ErrorArguments(ctypes.sizeof(_ErrorArguments), None, text.encode(), _INVALID_ARGUMENT)
        return frame.api[0].error_create(ctypes.byref(arguments))
    return None


def _buffers(frame: Any) -> list[Buffer]:
    buffers = []
    for i in range(frame.size):
        item = frame.items[i][0]
        name = _TYPES.get(item.dtype, f"XLA's type {item.dtype}")
        buffers.append(Buffer(item.data or 0, tuple(item.dims[: item.rank]), name))
    return buffers


def _attribute(attributes: Any, attribute: bytes) -> int:
    for i in range(attributes.size):
        name = attributes.names[i][0]
        if ctypes.string_at(name.ptr, name.len) == attribute:
            return int(attributes.items[i][0].value[0])
    raise KeyError(attribute)


def _stream(frame: Any) -> int:
    arguments = _StreamArguments(ctypes.sizeof(_StreamArguments), None, frame.ctx, None)
    frame.api[0].stream_get(ctypes.byref(arguments))
    return arguments.stream or 0


_Handler = ctypes.CFUNCTYPE(c_void_p, POINTER(_CallFrame))
_on_cpu = _Handler(lambda frame: _handle(frame[0], False))
_on_gpu = _Handler(lambda frame: _handle(frame[0], True))
