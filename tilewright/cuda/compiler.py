"""From a kernel of the IR to an :class:`~tilewright.cuda.artifact.Artifact`: print, look into the cache, else compile.

Environment: ``TILEWRIGHT_DUMP=folder`` writes every form of each kernel there; ``TILEWRIGHT_LINEINFO=1`` compiles
with ``#line`` directives and line information, so that Nsight Compute shows the user's Python beside the SASS.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import threading

from tilewright import disk_cache as disk
from tilewright.cuda import nvrtc
from tilewright.cuda.artifact import Artifact
from tilewright.cuda.kernel_text import emit
from tilewright.cuda.limits import shared_bytes
from tilewright.cuda.toolchain import nvrtc_for, shown
from tilewright.errors import ConstraintError
from tilewright.ir.core import Function
from tilewright.ir.target import MULTIPROCESSORS, Architecture, architecture

_UNDER_WAY: dict[str, threading.Lock] = {}
"""By entry of the disk cache: the lock of the thread that compiles it."""


def compile(
    function: Function,
    arch: str = "sm_90a",
    *,
    lineinfo: bool | None = None,
    options: tuple[str, ...] = (),
    cache: bool = True,
) -> Artifact:
    """Compile a kernel for ``arch`` (``sm_80``, ``sm_90a``, ``sm_120a``, ...); no GPU is needed.

    ``options`` are further NVRTC options (``--maxrregcount=128``); ``lineinfo`` None follows the environment.
    Raises CompileError, ConstraintError (an instruction or the shared memory that ``arch`` lacks), ArgumentError (no
    such ``arch``) and MachineError (no NVRTC installed).
    """
    if lineinfo is None:
        lineinfo = os.environ.get("TILEWRIGHT_LINEINFO", "0") not in ("", "0")
    target = architecture(arch)
    _check_shared(function, target)
    artifact = _compiled(function, target, lineinfo, tuple(options), cache)
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


def _compiled(
    function: Function, target: Architecture, lineinfo: bool, options: tuple[str, ...], cache: bool
) -> Artifact:
    """The artifact from the disk cache, or made by NVRTC and put there. Two kernels with one ``function.digest`` have
    one text: a kernel that has a digest is found in the cache without printing it."""
    arch = str(target)
    compiler = nvrtc_for(target)
    flags = nvrtc.options(arch, lineinfo, options)
    source = None if function.digest else emit(function, arch)
    text = function.digest if source is None else source.annotated() if lineinfo else source.text
    name = disk.key(compiler.identity, _header_digest(), function.name, text, *flags)
    with _UNDER_WAY.setdefault(name, threading.Lock()):  # a second thread waits for what the first one writes
        parts, seconds = (disk.read(name) if cache else None) or {}, 0.0
        cached = parts.keys() == {"log", "ptx", "cubin", "meta"}
        if not cached:
            source = source or emit(function, arch)
            made = nvrtc.compile_source(source, arch, lineinfo, options)
            meta = json.dumps({"kernel": source.name, "arch": arch, "nvrtc": shown(compiler.version)})
            parts = {"meta": meta.encode(), "log": made.log.encode(), "ptx": made.ptx.encode(), "cubin": made.cubin}
            seconds = made.seconds
            if cache:
                disk.write(name, parts)
    return Artifact(
        name=json.loads(parts["meta"])["kernel"],
        arch=arch,
        ptx=parts["ptx"].decode(),
        cubin=parts["cubin"],
        log=parts["log"].decode(),
        dynamic_smem=shared_bytes(function),
        cached=cached,
        seconds=seconds,
        nvrtc=shown(compiler.version),
        function=function,
    )


@functools.cache
def _header_digest() -> bytes:
    digest = hashlib.sha256()
    for name, content in nvrtc.headers().items():
        digest.update(name.encode() + b"\0" + content)
    return digest.digest()
