"""One thread of NumPy's BLAS while a launch runs on a busy machine.

A launch multiplies many small matrices. Where other processes have the cores, the second thread of each product waits
for its turn, and the first one spins until it comes: a Hopper GEMM of 512^3 took 5.5 s in place of 0.55. Where a core
is free nothing is changed. Only OpenBLAS in NumPy's own wheels is known here; other libraries stay as they are.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

FOLDERS = ("../numpy.libs", ".dylibs")  # beside numpy/: of wheels for Linux and Windows, for macOS
NAMES = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")


class Blas(NamedTuple):
    """The functions of the library: how many threads a product may have, in all threads of the process."""

    threads: Callable[[], int]
    set_threads: Callable[[int], None]


@functools.cache
def blas() -> Blas | None:
    """The library that NumPy has loaded, if it is one that is known."""
    folders = [os.path.join(os.path.dirname(np.__file__), folder) for folder in FOLDERS]
    paths = [os.path.join(f, name) for f in folders if os.path.isdir(f) for name in os.listdir(f) if "openblas" in name]
    for path in paths:
        try:
            library = ctypes.CDLL(path)  # NumPy has loaded it already: this gives the same one
        except OSError:
            continue
        for name in NAMES:
            get = getattr(library, name.format("get_num_threads"), None)
            set_ = getattr(library, name.format("set_num_threads"), None)
            if get is not None and set_ is not None:
                set_.restype = None
                return Blas(get, set_)
    return None


def is_busy() -> bool:
    """Whether other processes have taken the cores that this one may use, in the last minute."""
    if not hasattr(os, "getloadavg"):  # Windows
        return False
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # A launch alone is a load of 1.1 of two cores; a second process beside it is one of 2.
    return os.getloadavg()[0] > cores - 0.5


class Limit:
    """How many launches want one thread, in all threads of the process, and how many threads there were before."""

    lock = threading.Lock()
    launches = 0
    before = 1


@contextmanager
def one_thread_if_busy() -> Iterator[None]:
    """A launch: with one thread of BLAS where the machine is busy. The last of several launches that ends restores the
    number, unless the program has set another one meanwhile."""
    library = blas()
    if library is None or not (Limit.launches or is_busy()):
        yield
        return
    with Limit.lock:
        Limit.launches += 1
        if Limit.launches == 1:
            Limit.before = library.threads()
            library.set_threads(1)
    try:
        yield
    finally:
        with Limit.lock:
            Limit.launches -= 1
            if Limit.launches == 0 and library.threads() == 1:
                library.set_threads(Limit.before)
