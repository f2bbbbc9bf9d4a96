"""From a kernel of the IR to an :class:`~tilewright.cuda.artifact.Artifact`: print, look into the cache, else compile.

Environment: ``TILEWRIGHT_DUMP=folder`` writes every form of each kernel there; ``TILEWRIGHT_LINEINFO=1`` compiles
with ``#line`` directives and line information, so that Nsight Compute shows the user's Python beside the SASS.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os

from tilewright.cuda import cache as disk
from tilewright.cuda import nvrtc
from tilewright.cuda.artifact import Artifact
from tilewright.cuda.emitter import emit
from tilewright.cuda.limits import shared_bytes
from tilewright.cuda.source import Source
from tilewright.cuda.toolchain import nvrtc_for, shown
from tilewright.errors import ConstraintError
from tilewright.ir.core import Function
from tilewright.ir.target import MULTIPROCESSORS, Architecture, architecture


def compile(
    function: Function, arch: str = "sm_90a", *, lineinfo: bool | None = None, options: tuple[str, ...] = (),
    cache: bool = True,
) -> Artifact:  # fmt: skip
    """Compile a kernel for ``arch`` (``sm_80``, ``sm_90a``, ``sm_120a``, ...); no GPU is needed.

    ``options`` are further NVRTC options (``--maxrregcount=128``); ``lineinfo`` None follows the environment.
    Raises CompileError, ConstraintError (an instruction or the shared memory that ``arch`` lacks), ArgumentError (no
    such ``arch``) and MachineError (no NVRTC installed).
    """
    if lineinfo is None:
        lineinfo = os.environ.get("TILEWRIGHT_LINEINFO", "0") not in ("", "0")
    target = architecture(arch)
    _check_shared(function, target)
    arch = str(target)
    source = emit(function, arch)
    artifact = _from_source(function, source, arch, lineinfo, tuple(options), cache)
    if folder := os.environ.get("TILEWRIGHT_DUMP"):
        artifact.dump(folder)
    return artifact


def _check_shared(function: Function, target: Architecture) -> None:
    """Say before compiling that no GPU of this architecture can launch the kernel."""
    needed = shared_bytes(function)
    if target.capability in MULTIPROCESSORS and needed > target.smem:
        raise ConstraintError(
            f"{function.name} allocates {needed} bytes of shared memory, a block has at most {target.smem} on {target}"
            ": take smaller tiles or fewer stages"
        )


def _from_source(
    function: Function, source: Source, arch: str, lineinfo: bool, options: tuple[str, ...], cache: bool
) -> Artifact:
    flags = nvrtc.options(arch, lineinfo, options)
    text = source.annotated() if lineinfo else source.text
    compiler = nvrtc_for(architecture(arch))
    name = disk.key(compiler.identity, _header_digest(), source.name, text, *flags)
    smem = shared_bytes(function)
    if cache and (found := disk.read(name)) is not None and found.keys() == {"log", "ptx", "cubin", "meta"}:
        ptx, cubin, log, seconds = found["ptx"].decode(), found["cubin"], found["log"].decode(), 0.0
    else:
        found = None
        made = nvrtc.compile_source(source, arch, lineinfo, options)
        ptx, cubin, log, seconds = made.ptx, made.cubin, made.log, made.seconds
        if cache:
            meta = json.dumps({"kernel": source.name, "arch": arch, "nvrtc": shown(compiler.version)})
            parts = {"meta": meta.encode(), "log": log.encode(), "ptx": ptx.encode(), "cubin": cubin}
            disk.write(name, parts)
    return Artifact(
        source.name, arch, str(function), source.text, ptx, cubin, log, smem, cached=found is not None, seconds=seconds,
        nvrtc=shown(compiler.version),
    )  # fmt: skip


@functools.cache
def _header_digest() -> bytes:
    digest = hashlib.sha256()
    for name, content in nvrtc.headers().items():
        digest.update(name.encode() + b"\0" + content)
    return digest.digest()
