"""Arrays that ``numpy.empty``, ``torch.empty`` and their like made, known as uninitialised until they are written.

Inside of :func:`marking_empty_arrays` these functions fill what they make with a pattern of eight bytes, aligned to
eight. A write to an element, on the host or in a kernel, breaks it, so that writes need no notification; a
kernel that loads an element of an unbroken *granule* (4 aligned bytes in arrays of floating-point numbers, 8 in others)
loads elements that were never written. The pattern is a NaN in every floating-point type of 2 bytes and more, none that
arithmetic gives, and a number in the integer types whose sums do not overflow.

What the pattern is copied to (``tensor.cuda()``, ``array.copy()``) is as uninitialised as what it is copied from.
"""

from __future__ import annotations

import bisect
import ctypes
import functools
import linecache
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from tilewright._at_import import AtImport
from tilewright.ir.core import Location
from tilewright.ir.lanes import Array
from tilewright.ir.measuring import is_measuring

PATTERN = bytes((0xA5, 0xFF, 0xD3, 0xFF, 0xB9, 0xFF, 0xFE, 0xFF))
LARGEST = 1 << 28  # bytes of an array that is filled: of larger ones a program may touch a few pages only
MOST = 1 << 16  # arrays whose origin is kept
# Code outside of the program writes its new arrays at once.
NOT_THE_PROGRAM = ("numpy", "torch", "tilewright", "jax", "jaxlib", "scipy", "pandas", "ml_dtypes", "matplotlib")


class EmptyArray(NamedTuple):
    """The bytes ``[low, high)`` that ``function`` (``"numpy.empty"``) gave at ``where``."""

    low: int
    high: int
    granule: int
    function: str
    where: Location | None

    def __str__(self) -> str:
        if self.where is None:
            return self.function
        text = linecache.getline(self.where.file, self.where.line).strip()
        return f"{self.function} at {self.where}{f':  {text}' if text else ''}"


_made: dict[int, EmptyArray] = {}
_starts: list[int] = []  # sorted: the keys of _made
_depth = 0
_undo: list[Callable[[], None]] = []


def any_marked() -> bool:
    """Whether any array has been marked."""
    return bool(_made)


def marked_array_at(address: int) -> EmptyArray | None:
    """The array that holds the byte at ``address``, if it was marked."""
    at = bisect.bisect_right(_starts, address) - 1
    candidate = _made[_starts[at]] if at >= 0 else None
    return candidate if candidate is not None and address < candidate.high else None


def mark(low: int, size: int, function: str, floating: bool = False, up: int = 1) -> None:
    """Fill ``size`` bytes at address ``low`` with the pattern, if :func:`marking_empty_arrays` is on and the program
    itself has asked for them: ``up`` frames above the caller."""
    if _depth:
        where = _asked_at(up + 1)
        if where is not None:
            mark_made_at(where, low, size, function, floating)


def mark_made_at(where: Location | None, low: int, size: int, function: str, floating: bool = False) -> None:
    """The same for what was made at a line (None: the line is not known)."""
    if not _depth or is_measuring() or not 0 < size <= LARGEST:
        return
    data = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(low))
    # By address, not by element: a view or copy that begins anywhere shows the same pattern.
    start = low % len(PATTERN)
    head = -start % len(PATTERN)
    data[:head] = np.frombuffer(PATTERN, np.uint8)[start:][: min(head, size)]
    body = data[head:]
    whole = body.size & -len(PATTERN)
    body[:whole].view(np.uint64)[:] = np.frombuffer(PATTERN, np.uint64)[0]
    body[whole:] = np.frombuffer(PATTERN, np.uint8)[: body.size - whole]
    _remember(EmptyArray(low, low + size, 4 if floating else len(PATTERN), function, where))


def _remember(array: EmptyArray) -> None:
    """Keep the origin of an array, in place of those whose memory it was given: they are gone."""
    at = bisect.bisect_left(_starts, array.low)
    # The array before may reach into this memory; those that begin inside of it do so surely.
    if at and _made[_starts[at - 1]].high > array.low:
        at -= 1
    end = bisect.bisect_left(_starts, array.high)
    for low in _starts[at:end]:
        del _made[low]
    _starts[at:end] = [array.low]
    _made[array.low] = array
    if len(_starts) > MOST:
        del _made[_starts.pop(0)]


def _forget(low: int) -> None:
    if _made.pop(low, None) is not None:
        del _starts[bisect.bisect_left(_starts, low)]


def _asked_at(up: int) -> Location | None:
    """The line of the program ``up`` frames above (the functions of ``cuda.bindings`` are not counted); None where that
    is code of a library."""
    frame: Any = sys._getframe(up + 1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith("tilewright.compat."):
        frame = frame.f_back
    if str(frame.f_globals.get("__name__", "")).partition(".")[0] in NOT_THE_PROGRAM:
        return None
    return Location(frame.f_code.co_filename, frame.f_lineno)


@contextmanager
def marking_empty_arrays(on: bool = True) -> Iterator[None]:
    """Inside of the context (of which several may be open) arrays that the program lets ``numpy.empty``,
    ``torch.empty`` and their like make count as uninitialised until they are written: ``check="uninitialised"`` reports
    a kernel that uses elements that were never written. Without ``on`` nothing is done.

    >>> __name__ = "__main__"  # as in a program: what libraries make does not count
    >>> with marking_empty_arrays():
    ...     x = np.empty(3, np.float32)
    ...     x[:2] = 0
    >>> [bool(v) for v in np.isnan(x)]
    [False, False, True]
    """
    global _depth
    if not on:
        yield
        return
    _depth += 1
    try:
        if _depth == 1:
            _serve_numpy()
            hook = AtImport("torch", _serve_torch)
            _undo.append(hook.cancel)
        yield
    finally:
        _depth -= 1
        if not _depth:
            while _undo:
                _undo.pop()()


def _serve_numpy() -> None:
    for name in ("empty", "empty_like"):
        _replace(np, name, functools.partial(_numpy_made, f"numpy.{name}"))


def _serve_torch() -> None:
    import torch

    for name in ("empty", "empty_like", "empty_strided", "empty_permuted"):
        _replace(torch, name, functools.partial(_torch_made, f"torch.{name}"))
    for name in ("new_empty", "new_empty_strided"):
        _replace(torch.Tensor, name, functools.partial(_torch_made, f"Tensor.{name}"))


def _replace(owner: Any, name: str, after: Callable[[Any], None]) -> None:
    """Make ``owner.name`` call ``after`` with what it returns."""
    original, own = getattr(owner, name), name in vars(owner)

    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        array = original(*args, **kwargs)
        if _depth and kwargs.get("out") is None:
            after(array)
        return array

    def undo() -> None:
        if own:
            setattr(owner, name, original)
        else:
            delattr(owner, name)

    setattr(owner, name, make)
    _undo.append(undo)


def _numpy_made(function: str, array: Any) -> None:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iufcV" or array.dtype.hasobject:
        return
    floating = (array.dtype.kind in "fc" or array.dtype.name == "bfloat16") and array.itemsize > 1
    low = array.__array_interface__["data"][0]
    mark(low, array.nbytes, function, floating, up=2)
    if low in _made:  # its memory may be given out again, with what it holds
        weakref.finalize(array, _forget, low).atexit = False


def _torch_made(function: str, tensor: Any) -> None:
    import torch

    dense = type(tensor) is torch.Tensor and tensor.layout is torch.strided and tensor.device.type == "cpu"
    if not dense or tensor.dtype == torch.bool:
        return
    floating = (tensor.is_floating_point() or tensor.is_complex()) and tensor.element_size() > 1
    storage = tensor.untyped_storage()
    mark(storage.data_ptr(), storage.nbytes(), function, floating, up=2)


class UninitialisedBytes:
    """The record of a launch's array, the bytes ``[low, high)`` from ``base`` on (a multiple of 8) in ``data``, holds
    uninitialised; ``data`` is read when the values are asked for."""

    def __init__(self, data: Array, granule: int) -> None:
        self.words = data[: data.size & -4].view(np.uint32)
        self.pattern = np.frombuffer(PATTERN, np.uint32)
        self.granule = granule

    def any(self) -> bool:
        """Whether there is a whole granule."""
        size, pairs = self.words.size, self.words[: self.words.size & -2].view(np.uint64)
        if size % 2 and self.words[-1] == self.pattern[0]:
            return True
        if self.granule == 4:
            halves = pairs.view(np.uint32)
            return bool((halves[::2] == self.pattern[0]).any() or (halves[1::2] == self.pattern[1]).any())
        return bool((pairs == np.frombuffer(PATTERN, np.uint64)[0]).any())

    def at(self, off: Array) -> Array:
        """bool: whether the bytes at these offsets belong to a whole granule. One that the end cuts in two counts by
        its first half."""
        index = off >> 2
        last = self.words.size - 1
        if last < 0:
            return np.zeros(index.shape, bool)
        untouched: Array = (self.words[np.minimum(index, last)] == self.pattern[index & 1]) & (index <= last)
        if self.granule == 8 and untouched.any():
            other = index ^ 1
            untouched &= (self.words[np.minimum(other, last)] == self.pattern[other & 1]) | (other > last)
        return untouched
