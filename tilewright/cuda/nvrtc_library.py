"""The library NVRTC, loaded through ctypes."""

from __future__ import annotations

import ctypes
import functools
import os
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_void_p
from typing import Any

from tilewright.errors import CompileError, MachineError

PROTOTYPES: dict[str, list[Any]] = {
    "nvrtcVersion": [POINTER(c_int), POINTER(c_int)],
    "nvrtcCreateProgram": [
        POINTER(c_void_p),
        c_char_p,
        c_char_p,
        c_int,
        POINTER(c_char_p),
        POINTER(c_char_p),
    ],
    "nvrtcDestroyProgram": [POINTER(c_void_p)],
    "nvrtcCompileProgram": [c_void_p, c_int, POINTER(c_char_p)],
    "nvrtcGetProgramLogSize": [c_void_p, POINTER(c_size_t)],
    "nvrtcGetProgramLog": [c_void_p, c_char_p],
    "nvrtcGetPTXSize": [c_void_p, POINTER(c_size_t)],
    "nvrtcGetPTX": [c_void_p, c_char_p],
    "nvrtcGetCUBINSize": [c_void_p, POINTER(c_size_t)],
    "nvrtcGetCUBIN": [c_void_p, c_char_p],
}


@functools.cache
def library(path: str) -> ctypes.CDLL:
    """NVRTC, loaded. Called through ctypes, which spares the import of a binding at every first compilation."""
    try:
        if hasattr(os, "add_dll_directory") and os.path.isabs(path):  # where Windows finds NVRTC's built-in functions
            os.add_dll_directory(os.path.dirname(path))
        loaded = ctypes.CDLL(path)
        for name, arguments in PROTOTYPES.items():
            getattr(loaded, name).argtypes, getattr(loaded, name).restype = arguments, c_int
    except (OSError, AttributeError) as error:
        raise MachineError(
            f"the compiler NVRTC cannot be loaded ({error}): `pip install --force-reinstall` of its wheel, "
            "nvidia-cuda-nvrtc or nvidia-cuda-nvrtc-cu12, brings a sound one"
        ) from error
    loaded.nvrtcGetErrorString.argtypes, loaded.nvrtcGetErrorString.restype = [c_int], c_char_p
    return loaded


def version_of(path: str) -> tuple[int, int] | None:
    """The version of the NVRTC at ``path``; None if there is no NVRTC."""
    major, minor = c_int(), c_int()
    try:
        nvrtc = library(path)
    except MachineError:
        return None
    need(nvrtc, nvrtc.nvrtcVersion(byref(major), byref(minor)), "nvrtcVersion")
    return major.value, minor.value


def need(nvrtc: ctypes.CDLL, result: int, what: str) -> None:
    if result:
        raise CompileError(f"{what} failed: {name_of(nvrtc, result)}")


def name_of(nvrtc: ctypes.CDLL, result: int) -> str:
    return (nvrtc.nvrtcGetErrorString(result) or b"unknown").decode()


# -- errors ----------------------------------------------------------------------------------------------------------
