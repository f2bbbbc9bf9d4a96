"""Finding the compiler, its version (without loading it) and the disassembler."""

from __future__ import annotations

import functools
import os
import shutil
import sys
from pathlib import Path

from tilewright.errors import MachineError

WHEEL_FOLDERS = ("cu13", "cuda_nvrtc", "cu12")


@functools.cache
def nvrtc_identity() -> str:
    """A name for the installed NVRTC that changes with its version; part of every cache key, so it must be cheap."""
    for folder in _site_folders():
        if found := sorted(folder.glob("nvidia_cuda_nvrtc*.dist-info")):
            return found[-1].name.removesuffix(".dist-info")
    return _library_identity() or "unknown"


def _library_identity() -> str | None:
    """No wheel: the size and age of a toolkit's library stand for its version."""
    for library in _toolkit_libraries():
        stat = library.resolve().stat()
        return f"{library.resolve()}:{stat.st_size}:{stat.st_mtime_ns}"
    return None


def _toolkit_libraries() -> list[Path]:
    roots = [Path(os.environ[v]) for v in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(v)] + [Path("/usr/local/cuda")]
    return [library for root in roots for library in sorted((root / "lib64").glob("libnvrtc.so*"))]


def nvrtc_libraries() -> list[str]:
    """Where NVRTC may be, the likeliest first: wheels, toolkits, then what the system's loader knows."""
    wheels = [library for folder in _site_folders() for name in WHEEL_FOLDERS
              for library in sorted((folder / "nvidia" / name / "lib").glob("libnvrtc.so*"))]  # fmt: skip
    return [*map(str, [*wheels, *_toolkit_libraries()]), "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]


def _site_folders() -> list[Path]:
    return [Path(entry) for entry in sys.path if entry and os.path.isdir(os.path.join(entry, "nvidia"))]


@functools.cache
def disassembler() -> Path:
    """``nvdisasm``, or ``cuobjdump`` where there is no nvdisasm.

    Looked for in the wheels beside the compiler, on ``PATH``, in ``CUDA_HOME``, in ``/usr/local/cuda`` and in Triton.
    Raises MachineError when there is none.
    """
    places = [folder / "nvidia" / name / "bin" for folder in _site_folders() for name in WHEEL_FOLDERS]
    places += [Path(entry) for entry in os.environ.get("PATH", "").split(os.pathsep) if entry]
    places += [Path(os.environ[v]) / "bin" for v in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(v)]
    places.append(Path("/usr/local/cuda/bin"))
    places += [Path(entry) / "triton" / "backends" / "nvidia" / "bin" for entry in sys.path if entry]
    for tool in ("nvdisasm", "cuobjdump"):
        for place in places:
            if shutil.which(tool, path=str(place)):
                return place / tool
    raise MachineError(
        "SASS needs NVIDIA's disassembler, and neither nvdisasm nor cuobjdump was found: "
        "`pip install nvidia-cuda-nvdisasm`, or put a CUDA toolkit's bin folder on PATH"
    )
