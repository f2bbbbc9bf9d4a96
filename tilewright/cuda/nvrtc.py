"""Calling NVRTC: text to PTX and cubin, its complaints told in terms of the user's Python."""

from __future__ import annotations

import functools
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.cuda.source import Source
from tilewright.errors import CompileError, MachineError

INCLUDE = Path(__file__).with_name("include")
HEADERS = ("tilewright.cuh", "access.cuh", "numbers.cuh", "fp8.cuh", "threads.cuh")
FRONT_ERROR = re.compile(r"^(?P<file>\S+)\((?P<line>\d+)\): (?:catastrophic )?error: (?P<text>.*)$", re.M)
#: -1 as an unsigned mask, variables that only some instructions of a kernel read.
SILENCED = "--diag-suppress=68,177,550"
PTX_ERROR = re.compile(r"ptxas application ptx input, line (?P<line>\d+); error\s*: (?P<text>.*)")


@dataclass(frozen=True)
class Compiled:
    """What NVRTC gives: ``log`` holds ptxas' resource report and warnings; ``seconds`` is the time of the call."""

    ptx: str
    cubin: bytes
    log: str
    seconds: float


@functools.cache
def headers() -> dict[str, bytes]:
    """The device header's files."""
    return {name: (INCLUDE / name).read_bytes() for name in HEADERS}


def options(arch: str, lineinfo: bool, extra: tuple[str, ...]) -> tuple[str, ...]:
    """NVRTC's command line. ``--minimal`` leaves out textures and device-side launches and saves their parsing."""
    fixed = (f"--gpu-architecture={arch}", "-std=c++17", "--minimal", "-default-device", "--ptxas-options=-v", SILENCED)
    return (*fixed, *(("-lineinfo",) if lineinfo else ()), *extra)


def compile_source(source: Source, arch: str, lineinfo: bool = False, extra: tuple[str, ...] = ()) -> Compiled:
    """Compile one kernel for ``arch`` (``sm_80``, ``sm_89``, ``sm_90a``). Raises CompileError with the user's line."""
    text = source.annotated() if lineinfo else source.text
    start = time.perf_counter()
    ok, ptx, cubin, log = _run(source.name, text, options(arch, lineinfo, extra))
    if ok:
        return Compiled(ptx, cubin, log, time.perf_counter() - start)
    if lineinfo:
        _, ptx, _, log = _run(source.name, source.text, options(arch, False, extra))
    raise CompileError(_explain(source, arch, extra, ptx, log))


def _library() -> Any:
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError, OSError) as error:
        raise MachineError(
            f"the compiler NVRTC is missing ({error}): `pip install tilewright[cuda]` brings it, without a toolkit"
        ) from error
    return nvrtc


def version() -> str:
    """The version of the NVRTC that is loaded, ``13.0`` say."""
    _, major, minor = _library().nvrtcVersion()
    return f"{major}.{minor}"


def _run(name: str, text: str, flags: tuple[str, ...]) -> tuple[bool, str, bytes, str]:
    nvrtc = _library()
    included = headers()
    result, program = nvrtc.nvrtcCreateProgram(
        text.encode(), f"{name}.cu".encode(), len(included), list(included.values()), [n.encode() for n in included]
    )
    _need(nvrtc, result, "nvrtcCreateProgram")
    try:
        (result,) = nvrtc.nvrtcCompileProgram(program, len(flags), [f.encode() for f in flags])
        log = _bytes(nvrtc, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).rstrip(b"\0").decode()
        ok = result == nvrtc.nvrtcResult.NVRTC_SUCCESS
        if not ok and result != nvrtc.nvrtcResult.NVRTC_ERROR_COMPILATION:
            raise CompileError(f"NVRTC refused {' '.join(flags)}: {_name(nvrtc, result)}\n{log}")
        ptx = _bytes(nvrtc, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program).rstrip(b"\0").decode()
        cubin = _bytes(nvrtc, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program) if ok else b""
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    return ok, ptx, cubin, log


def _bytes(nvrtc: Any, size: Any, fetch: Any, program: Any) -> bytes:
    result, count = size(program)
    _need(nvrtc, result, size.__name__)
    buffer = bytes(count)
    _need(nvrtc, fetch(program, buffer)[0], fetch.__name__)
    return buffer


def _need(nvrtc: Any, result: Any, what: str) -> None:
    if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise CompileError(f"{what} failed: {_name(nvrtc, result)}")


def _name(nvrtc: Any, result: Any) -> str:
    _, text = nvrtc.nvrtcGetErrorString(result)
    return text.decode() if isinstance(text, bytes) else str(text)


# -- errors ----------------------------------------------------------------------------------------------------------


def _explain(source: Source, arch: str, extra: tuple[str, ...], ptx: str, log: str) -> str:
    """The first complaint with the user's line and the printed lines around it, then the whole log."""
    head = f"{source.name} does not compile for {arch}"
    if found := FRONT_ERROR.search(log):
        line = int(found["line"])
        if found["file"] != f"{source.name}.cu" or line > len(source.origins):
            return f"{head}: {found['text']}\n{log.strip()}"
        return f"{head}: {found['text']}{_place(source, line)}\n{source.around(line)}\n\n{log.strip()}"
    if found := PTX_ERROR.search(log):
        return f"{head}: {found['text']}{_behind_ptx(source, arch, extra, ptx, int(found['line']))}\n\n{log.strip()}"
    return f"{head}\n{log.strip()}"


def _place(source: Source, line: int) -> str:
    origin = source.origins[line - 1]
    return f"\nprinted from {origin}:" if origin else ""


def _behind_ptx(source: Source, arch: str, extra: tuple[str, ...], ptx: str, line: int) -> str:
    """The PTX line that ptxas names, and the user's line behind it (found by compiling again with line information)."""
    lines = ptx.splitlines()
    if not 0 < line <= len(lines):
        return ""
    wanted = lines[line - 1]
    nth = lines[:line].count(wanted)
    shown = f"\n  {wanted.strip()}"
    _, annotated, _, _ = _run(source.name, source.annotated(), options(arch, True, extra))
    files = dict(re.findall(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', annotated, re.M))
    place = ""
    for text in annotated.splitlines():
        if found := re.match(r"\s*\.loc\s+(\d+)\s+(\d+)", text):
            place = f"{files.get(found[1], '?')}:{found[2]}"
        nth -= text == wanted
        if nth == 0:
            return f"{shown}\nprinted from {place}" if place else shown
    return shown
