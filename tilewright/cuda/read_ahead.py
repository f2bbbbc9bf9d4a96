"""NVRTC's files, read before they are needed.

The first compilation after a start of the machine, or of a container whose disk is far away, waits for NVRTC's 150 MB:
the loader maps them, and the compiler asks for one page after the other. To read them in order takes a fraction of that
time, and the first kernel is staged meanwhile.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import sys
import threading
from pathlib import Path

import numpy as np

CHUNK = 4 << 20
ENOUGH = 0.9
"""The part of a file that is in memory where reading the rest gains nothing."""


def read_nvrtc_ahead() -> None:
    """Read the files of the NVRTC that will compile, in a thread; nothing where they are in memory. Errors are left to
    whoever compiles."""
    threading.Thread(target=_read_nvrtc, name="tilewright-read-ahead", daemon=True).start()


def _read_nvrtc() -> None:
    from tilewright.cuda.toolchain import installed

    with contextlib.suppress(Exception):
        found = installed()
        if found and os.path.isabs(found[0].path):
            library = Path(found[0].path).resolve()
            for path in (library, *library.parent.glob("libnvrtc-builtins.so*")):
                read_ahead(path)


def read_ahead(path: Path) -> int:
    """Read a file into the system's memory, unless most of it is there; gives the number of bytes that were read."""
    if part_in_memory(path) >= ENOUGH:
        return 0
    count, chunk = 0, bytearray(CHUNK)
    with open(path, "rb", buffering=0) as file:
        while size := file.readinto(chunk):
            count += size
    return count


def part_in_memory(path: Path) -> float:
    """The part of a file's pages that the system has in memory; 1 where it does not tell.

    >>> part_in_memory(Path(__file__)) > 0
    True
    """
    if not sys.platform.startswith("linux") or not path.stat().st_size:
        return 1.0
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as pages:
        resident = np.zeros(-(-len(pages) // mmap.PAGESIZE), np.uint8)  # bit 0 of each: whether that page is in memory
        first = ctypes.c_char.from_buffer(pages)
        failed = ctypes.CDLL(None).mincore(
            ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(len(pages)), ctypes.c_void_p(resident.ctypes.data)
        )
        del first  # the mapping can be closed
        return 1.0 if failed else float((resident & 1).mean())
