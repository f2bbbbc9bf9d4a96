"""Calling NVRTC: text to PTX and cubin, its errors in terms of the user's Python."""

from __future__ import annotations

import ctypes
import functools
import re
import time
from ctypes import byref, c_char_p, c_size_t, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.cuda.nvrtc_library import library, name_of, need, version_of
from tilewright.cuda.source import Source
from tilewright.cuda.toolchain import nvrtc_for, shown
from tilewright.errors import CompileError
from tilewright.ir.target import architecture

INCLUDE = Path(__file__).with_name("include")
HEADERS = ("tilewright.cuh", "access.cuh", "numbers.cuh", "fp8.cuh", "threads.cuh")
FRONT_ERROR = re.compile(r"^(?P<file>\S+)\((?P<line>\d+)\): (?:catastrophic )?error: (?P<text>.*)$", re.M)
#: -1 as an unsigned mask, variables that only some instructions of a kernel read.
SILENCED = "--diag-suppress=68,177,550"
ERROR_COMPILATION = 6
PTX_ERROR = re.compile(r"ptxas application ptx input, line (?P<line>\d+); error\s*: (?P<text>.*)")


@dataclass(frozen=True)
class Compiled:
    """The result of NVRTC: ``log`` holds ptxas' resource report and warnings; ``seconds`` is the time of the call."""

    ptx: str
    cubin: bytes
    log: str
    seconds: float


@functools.cache
def headers() -> dict[str, bytes]:
    """The device header's files."""
    # NVRTC has no file system: the files are passed with each program.
    return {name: (INCLUDE / name).read_bytes() for name in HEADERS}


def options(arch: str, lineinfo: bool, extra: tuple[str, ...]) -> tuple[str, ...]:
    """NVRTC's command line. ``--minimal`` leaves out textures and device-side launches and saves their parsing."""
    fixed = (f"--gpu-architecture={arch}", "-std=c++17", "--minimal", "-default-device", "--ptxas-options=-v", SILENCED)
    return (*fixed, *(("-lineinfo",) if lineinfo else ()), *extra)


def compile_source(source: Source, arch: str, lineinfo: bool = False, extra: tuple[str, ...] = ()) -> Compiled:
    """Compile one kernel for ``arch`` (``sm_80``, ``sm_89``, ``sm_90a``). Raises CompileError with the user's line."""
    # #line directives only on demand: errors are placed by ``source.origins``, in the text that users see.
    text = source.annotated() if lineinfo else source.text
    if "int128" in text:  # few kernels have such numbers; the others keep their command line
        extra = (*extra, "--device-int128")
    start = time.perf_counter()
    ok, ptx, cubin, log = _run(source.name, text, arch, options(arch, lineinfo, extra))
    if ok:
        return Compiled(ptx, cubin, log, time.perf_counter() - start)
    # The error once more in the lines of the text without directives, which ``_explain`` shows.
    if lineinfo:
        _, ptx, _, log = _run(source.name, source.text, arch, options(arch, False, extra))
    raise CompileError(_explain(source, arch, extra, ptx, log))


def version(arch: str = "sm_90a") -> str:
    """The version of the NVRTC that compiles for ``arch``, ``13.0`` say. MachineError without one."""
    path = nvrtc_for(architecture(arch)).path
    library(path)
    return shown(version_of(path))


def _run(name: str, text: str, arch: str, flags: tuple[str, ...]) -> tuple[bool, str, bytes, str]:
    """(whether it compiles, PTX, cubin, log) of one text. The PTX is there also where ptxas refuses it."""
    nvrtc, included, program = library(nvrtc_for(architecture(arch)).path), headers(), c_void_p()
    names, contents = _texts([n.encode() for n in included]), _texts(list(included.values()))
    file = f"{name}.cu".encode()
    result = nvrtc.nvrtcCreateProgram(byref(program), text.encode(), file, len(included), contents, names)
    need(nvrtc, result, "nvrtcCreateProgram")
    try:
        result = nvrtc.nvrtcCompileProgram(program, len(flags), _texts([f.encode() for f in flags]))
        log = _fetch(nvrtc, "ProgramLog", program).rstrip(b"\0").decode()
        # Any other code is about the options or NVRTC itself, not about the program.
        if result not in (0, ERROR_COMPILATION):
            raise CompileError(f"NVRTC refused {' '.join(flags)}: {name_of(nvrtc, result)}\n{log}")
        ok = result == 0
        ptx = _fetch(nvrtc, "PTX", program).rstrip(b"\0").decode()
        cubin = _fetch(nvrtc, "CUBIN", program) if ok else b""
    finally:
        nvrtc.nvrtcDestroyProgram(byref(program))
    return ok, ptx, cubin, log


def _texts(items: list[bytes]) -> Any:
    return (c_char_p * len(items))(*items)


def _fetch(nvrtc: ctypes.CDLL, what: str, program: c_void_p) -> bytes:
    size = c_size_t()
    need(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(program, byref(size)), f"nvrtcGet{what}Size")
    buffer = ctypes.create_string_buffer(size.value)
    need(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(program, buffer), f"nvrtcGet{what}")
    return buffer.raw


def _explain(source: Source, arch: str, extra: tuple[str, ...], ptx: str, log: str) -> str:
    """The first complaint with the user's line and the printed lines around it, then the whole log."""
    head = f"{source.name} does not compile for {arch}"
    if error := FRONT_ERROR.search(log):
        line = int(error["line"])
        if error["file"] != f"{source.name}.cu" or line > len(source.origins):
            return f"{head}: {error['text']}\n{log.strip()}"
        return f"{head}: {error['text']}{_place(source, line)}\n{source.excerpt(line)}\n\n{log.strip()}"
    if error := PTX_ERROR.search(log):
        return f"{head}: {error['text']}{_behind_ptx(source, arch, extra, ptx, int(error['line']))}\n\n{log.strip()}"
    return f"{head}\n{log.strip()}"


def _place(source: Source, line: int) -> str:
    origin = source.origins[line - 1]
    return f"\nprinted from {origin}:" if origin else ""


def _behind_ptx(source: Source, arch: str, extra: tuple[str, ...], ptx: str, line: int) -> str:
    """The PTX line that ptxas names, and the user's line behind it (found by compiling again with line information)."""
    lines = ptx.splitlines()
    if not 0 < line <= len(lines):
        return ""
    named_line = lines[line - 1]
    # Line information moves the lines of the PTX, so the line is found again by its text and its number among
    # equal ones.
    nth = lines[:line].count(named_line)
    excerpt = f"\n  {named_line.strip()}"
    _, annotated, _, _ = _run(source.name, source.annotated(), arch, options(arch, True, extra))
    files = dict(re.findall(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', annotated, re.M))
    place = ""
    for text in annotated.splitlines():
        if location := re.match(r"\s*\.loc\s+(\d+)\s+(\d+)", text):
            place = f"{files.get(location[1], '?')}:{location[2]}"
        nth -= text == named_line
        if nth == 0:
            return f"{excerpt}\nprinted from {place}" if place else excerpt
    return excerpt
