"""Finding NVRTC, the one that fits the driver and the architecture (without loading it), and the disassembler.

Several NVRTCs may be installed: NVIDIA's wheels for CUDA 12 and for CUDA 13 beside each other, and toolkits. A driver
loads machine code of its own major version of CUDA and of older ones; code of a newer minor version is fine (NVIDIA's
"minor version compatibility"), because cubins are loaded and not PTX. So the newest NVRTC of the driver's major version
or an older one is taken that knows the architecture; where no driver is, the newest.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tilewright.cuda import libcuda
from tilewright.cuda.nvrtc_library import version_of
from tilewright.errors import MachineError
from tilewright.ir.target import MULTIPROCESSORS, Architecture

Version = tuple[int, int]
WHEEL_FOLDERS = ("cu14", "cu13", "cuda_nvrtc", "cu12")
WHEELS = {"cuda_nvrtc": "nvidia_cuda_nvrtc_cu12-*.dist-info", "cu12": "nvidia_cuda_nvrtc_cu12-*.dist-info"}
LIBRARY_FOLDERS = ("lib", "lib64", "lib/x64", "bin", "bin/x86_64", "bin/x64")
LEAST = (12, 4)
"""The oldest CUDA 12 whose NVRTC is known to compile what is printed."""
_IN_NAME = re.compile(r"libnvrtc\.so\.(\d+)\.(\d+)")
_VERSION = re.compile(r"(\d+)\.(\d+)")


@dataclass(frozen=True)
class Nvrtc:
    """One NVRTC: the library to load, its version (None: not known before it is loaded), and a name that changes with
    the version: part of every cache key."""

    path: str
    version: Version | None
    identity: str

    def knows(self, arch: Architecture) -> bool:
        """Whether it compiles for ``arch``, as far as its version tells."""
        return self.version is None or first_cuda(arch) <= self.version

    def fits(self, driver: Version | None) -> bool:
        """Whether a driver of this version of CUDA loads what it compiles."""
        return driver is None or self.version is None or self.version[0] <= driver[0]


def first_cuda(arch: Architecture) -> Version:
    """The first CUDA that compiles for ``arch``; (0, 0) where the table has no such architecture."""
    if arch.capability not in MULTIPROCESSORS:
        return 0, 0
    return max(arch.multiprocessor.cuda, (12, 9) if arch.suffix == "f" else (0, 0))


def nvrtc_for(arch: Architecture) -> Nvrtc:
    """The NVRTC to compile for ``arch`` with. Raises MachineError, with the wheel to install, without one.

    Where all that know ``arch`` are newer than the driver, the newest is returned all the same: the driver may load its
    code, and says so if not.
    """
    candidates = installed()
    if not candidates:
        installed.cache_clear()  # it may be installed while a notebook runs
        raise MachineError(_missing(arch))
    able = [nvrtc for nvrtc in candidates if nvrtc.knows(arch)]
    if not able:
        major, minor = first_cuda(arch)
        have = ", ".join(shown(nvrtc.version) for nvrtc in candidates)
        raise MachineError(f"NVRTC {have} does not know {arch}, CUDA {major}.{minor} does: {to_install(arch)}")
    driver = driver_version()
    return next((nvrtc for nvrtc in able if nvrtc.fits(driver)), able[0])


def mismatch(version: str) -> str:
    """The message for code by NVRTC ``version`` that the driver has refused to load; empty where the versions fit."""
    driver, parts = driver_version(), version.split(".")
    if driver is None or not version or tuple(map(int, parts)) <= driver:
        return ""
    return (
        f".\nThe driver knows CUDA {shown(driver)}, and the code is by NVRTC {version}: {to_install(None)}, or update "
        "the driver"
    )


def to_install(arch: Architecture | None) -> str:
    """The command that installs an NVRTC for this driver and architecture."""
    driver, least = driver_version(), first_cuda(arch) if arch else (0, 0)
    if driver is not None and driver[0] < 13 and least < (13, 0):
        least = max(least, LEAST)
        return f"`pip install 'nvidia-cuda-nvrtc-cu12>={shown(least)},<13'`"
    return "`pip install 'nvidia-cuda-nvrtc>=13'`"


def driver_version() -> Version | None:
    """The CUDA version of the driver; None where there is no GPU to compile for."""
    try:
        number = libcuda.driver_version()
    except MachineError:
        return None
    return number // 1000, number % 1000 // 10


def shown(version: Version | None) -> str:
    return "of unknown version" if version is None else f"{version[0]}.{version[1]}"


def _missing(arch: Architecture) -> str:
    if sys.platform == "darwin":
        return (
            "NVIDIA has no compiler (NVRTC) for macOS: kernels run in the simulator here, and print their CUDA C++; "
            "compile them on Linux or Windows"
        )
    driver = driver_version()
    old = driver is not None and driver[0] < 13 and first_cuda(arch) < (13, 0)
    wheel = "nvidia-cuda-nvrtc-cu12" if old else "nvidia-cuda-nvrtc"
    return (
        "the compiler NVRTC is missing (no library of it was found): "
        f"`pip install {wheel}` brings it, without a toolkit"
    )


# -- what is installed -------------------------------------------------------------------------------------------------


@functools.cache
def installed() -> tuple[Nvrtc, ...]:
    """Every NVRTC here, the newest first, wheels before toolkits; at the end what the system's loader may know."""
    by_path = {str(nvrtc.path): nvrtc for nvrtc in [*_in_toolkits(), *_in_wheels()]}
    newest_first = sorted(by_path.values(), key=lambda nvrtc: nvrtc.version or (0, 0), reverse=True)
    return (*newest_first, *_known_to_the_loader()) if not newest_first else tuple(newest_first)


def _in_wheels() -> Iterator[Nvrtc]:
    for site in _site_folders():
        for name in WHEEL_FOLDERS:
            for library in _libraries(site / "nvidia" / name):
                infos = sorted(site.glob(WHEELS.get(name, "nvidia_cuda_nvrtc-*.dist-info")), key=_of_info)
                # The wheel's metadata tells the version without loading the library.
                if infos:
                    yield Nvrtc(str(library), _of_info(infos[-1]), infos[-1].name.removesuffix(".dist-info"))
                else:
                    yield _of_file(library, site)


def _of_info(info: Path) -> Version:
    major, minor = info.name.removesuffix(".dist-info").split("-")[1].split(".")[:2]
    return int(major), int(minor)


def _in_toolkits() -> Iterator[Nvrtc]:
    for root in toolkits():
        for library in _libraries(root):
            yield _of_file(library, root)


def toolkits() -> list[Path]:
    """The folders of CUDA toolkits that the environment names, and the usual one."""
    named = [Path(os.environ[v]) for v in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(v)]
    return named if sys.platform == "win32" else [*named, Path("/usr/local/cuda")]


def _of_file(library: Path, root: Path) -> Nvrtc:
    """No wheel: the version is in the name of the file, or in the toolkit's list, or the library is loaded to tell it
    (Windows' names have only the major one); size and age stand for the rest of it."""
    real = library.resolve()
    stat = real.stat()
    version = _of_text(_IN_NAME, real.name) or _of_list(root / "version.json") or version_of(str(library))
    return Nvrtc(str(library), version, f"{real}:{stat.st_size}:{stat.st_mtime_ns}")


def _of_list(path: Path) -> Version | None:
    try:
        return _of_text(_VERSION, json.loads(path.read_text(encoding="utf-8"))["cuda_nvrtc"]["version"])
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _of_text(pattern: re.Pattern[str], text: str) -> Version | None:
    match = pattern.search(text)
    return match and (int(match[1]), int(match[2]))


def _libraries(root: Path) -> list[Path]:
    """NVRTC's own libraries below ``root``, without its built-in functions and its other builds (``.alt``)."""
    pattern = "nvrtc64_*.dll" if sys.platform == "win32" else "libnvrtc.so*"
    return [p for folder in LIBRARY_FOLDERS for p in sorted((root / folder).glob(pattern)) if ".alt." not in p.name]


def _known_to_the_loader() -> Iterator[Nvrtc]:
    """Libraries outside of the known folders, which are loaded to ask for their version."""
    names = {"win32": ("nvrtc64_130_0.dll", "nvrtc64_120_0.dll"), "darwin": ()}
    for name in names.get(sys.platform, ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")):
        if version := version_of(name):
            yield Nvrtc(name, version, f"{name}-{shown(version)}")


def _site_folders() -> list[Path]:
    return [Path(entry) for entry in sys.path if entry and os.path.isdir(os.path.join(entry, "nvidia"))]


# -- the disassembler --------------------------------------------------------------------------------------------------


@functools.cache
def disassembler() -> Path:
    """``nvdisasm``, or ``cuobjdump`` where there is no nvdisasm.

    Looked for in the wheels beside the compiler, on ``PATH``, in toolkits and in Triton. Raises MachineError when
    none of them has it.
    """
    places = [site / "nvidia" / name / "bin" for site in _site_folders() for name in WHEEL_FOLDERS]
    places += [place / "x86_64" for place in places]
    places += [Path(entry) for entry in os.environ.get("PATH", "").split(os.pathsep) if entry]
    places += [root / "bin" for root in toolkits()]
    places += [Path(entry) / "triton" / "backends" / "nvidia" / "bin" for entry in sys.path if entry]
    for tool in ("nvdisasm", "cuobjdump"):
        for place in places:
            if executable := shutil.which(tool, path=str(place)):
                return Path(executable)
    raise MachineError(
        "SASS needs NVIDIA's disassembler, and neither nvdisasm nor cuobjdump was found: "
        "`pip install nvidia-cuda-nvdisasm`, or put a CUDA toolkit's bin folder on PATH"
    )
