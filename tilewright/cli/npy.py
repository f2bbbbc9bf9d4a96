"""Matrices in ``.npy`` files: read with clear errors, written atomically."""

from __future__ import annotations

import ast
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from tilewright.errors import ArgumentError
from tilewright.ir.lanes import Array
from tilewright.ir.types import SCALARS

MAGIC = b"\x93NUMPY"
LONGEST_HEADER = 1 << 20
# numpy.save does not write the names of ml_dtypes' types, only what it takes them for.
UNNAMED = {kind.npy: kind.dtype for kind in SCALARS.values() if kind.npy}


def read_array(path: Path) -> Array:
    """The array of a ``.npy`` file, in native byte order.

    Raises:
        ArgumentError: no such file, not a ``.npy`` file, fewer bytes than its header promises, or not real numbers.
    """
    with _os_errors_refused("read", path), path.open("rb") as file:
        return _read(file, path)


@contextmanager
def pending_output(path: Path) -> Iterator[Callable[[Array], None]]:
    """A function that writes an array to ``path`` atomically.

    A temporary file next to ``path`` is made at once, so that a path that cannot be written is refused before any work
    is done; it replaces ``path`` when the array is written, and is removed when the block ends.

    Raises:
        ArgumentError: ``path`` is not a regular file, its folder cannot be written, or the disk is full.
    """
    target = Path(os.path.realpath(path))  # a link stays a link; what it points to is replaced
    with _os_errors_refused("write", path):
        _refuse_unwritable(target, path)
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
        os.close(descriptor)
    temporary = Path(name)

    def write(array: Array) -> None:
        with _os_errors_refused("write", path):
            with temporary.open("wb") as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
                file.flush()
                os.fsync(file.fileno())
            temporary.chmod(_mode_for(target))
            temporary.replace(target)

    try:
        yield write
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _os_errors_refused(verb: str, path: Path) -> Iterator[None]:
    """An OSError inside is an ArgumentError that says what could not be done with which file."""
    try:
        yield
    except OSError as error:
        raise ArgumentError(f"cannot {verb} {path}: {error.strerror or error}") from error


def _read(file: IO[bytes], path: Path) -> Array:
    start = file.read(len(MAGIC) + 2)
    if start[: len(MAGIC)] != MAGIC or len(start) < len(MAGIC) + 2:
        raise ArgumentError(f"{path} is not a .npy file")
    width = 2 if start[-2] == 1 else 4
    length = int.from_bytes(file.read(width), "little")
    text = file.read(min(length, LONGEST_HEADER))
    shape, dtype, fortran = _header(text.decode("utf-8", "replace"), path)
    expected = dtype.itemsize
    for extent in shape:
        expected *= extent
    held = os.fstat(file.fileno()).st_size - file.tell()
    if held < expected:
        raise ArgumentError(f"{path} is truncated: its header promises {expected} bytes of data, {held} are there")
    data = np.frombuffer(file.read(expected), dtype)
    array = data.reshape(shape, order="F" if fortran else "C")
    return array.astype(dtype.newbyteorder("="), copy=False)


def _header(text: str, path: Path) -> tuple[tuple[int, ...], np.dtype[Any], bool]:
    try:
        header = ast.literal_eval(text.strip())
        descr, shape, fortran = header["descr"], header["shape"], header["fortran_order"]
    except (ValueError, SyntaxError, KeyError, TypeError, RecursionError, MemoryError) as error:
        raise ArgumentError(f"{path} is damaged: its .npy header cannot be read") from error
    if not isinstance(shape, tuple) or not all(type(extent) is int and extent >= 0 for extent in shape):
        raise ArgumentError(f"{path} is damaged: its .npy header has the shape {shape!r}")
    dtype = UNNAMED.get(descr.lstrip("<|=")) if isinstance(descr, str) else None
    try:
        dtype = dtype or np.dtype(descr)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{path} holds {descr!r}, which is not a dtype") from error
    if dtype not in UNNAMED.values() and dtype.kind not in "fiu":
        raise ArgumentError(f"{path} holds {dtype}; a matrix of real numbers is needed")
    return shape, dtype, bool(fortran)


def _refuse_unwritable(target: Path, path: Path) -> None:
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise ArgumentError(f"cannot write {path}: it is not a regular file")
    if not os.access(target, os.W_OK):
        raise ArgumentError(f"cannot write {path}: permission denied")


def _mode_for(target: Path) -> int:
    """The mode of the file that is replaced, else what a new file gets under the caller's umask."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        return 0o666 & ~umask
