"""Where the user is: the innermost frame of user code, for error messages and for the location of every op.

Nothing is inserted into the rewritten functions for it: finding it visits a few frames, which costs about half a
microsecond.
"""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from types import CodeType, FrameType

from tilewright.errors import StagingError
from tilewright.ir.core import Location

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_LIBRARY = tuple(
    {
        os.path.dirname(os.path.abspath(os.__file__)) + os.sep,
        *(sysconfig.get_path(p) + os.sep for p in ("stdlib", "purelib")),
    }
)
GENERATED = "<tilewright: "
"""How the file names of code that we write ourselves begin."""
STAGED_LIBRARY_CODE: dict[int, CodeType] = {}
"""By identity: code objects compare by content, and to hash one takes longer than the rest of a visit to a frame."""
ENTRIES: dict[int, CodeType] = {}
"""Functions of this package in which staging begins, by identity, too."""
USER_FILES: dict[str, bool] = {}


def is_user_file(filename: str) -> bool:
    """Whether code of this file is the user's, neither ours nor Python's nor an installed package's."""
    remembered = USER_FILES.get(filename)
    if remembered is None:
        inside = filename.startswith((PACKAGE, *_LIBRARY, "<frozen", "<string>", GENERATED))
        remembered = USER_FILES[filename] = not inside
    return remembered


def register_code(code: CodeType) -> None:
    """Count the frames of ``code`` as user code wherever its file is (kernels of our own library)."""
    if not is_user_file(code.co_filename):
        STAGED_LIBRARY_CODE[id(code)] = code


def register_entry(code: CodeType) -> None:
    """Count ``code`` as one in which staging begins: the functions that called it are not staged."""
    ENTRIES[id(code)] = code


def counts_as_user(code: CodeType) -> bool:
    """Whether ``code`` is the user's, or a kernel of our own library."""
    return id(code) in STAGED_LIBRARY_CODE or is_user_file(code.co_filename)


def is_ours(code: CodeType) -> bool:
    """Whether ``code`` is of this package, kernels of our own library excepted."""
    return id(code) not in STAGED_LIBRARY_CODE and code.co_filename.startswith((PACKAGE, GENERATED))


def user_frame(depth: int = 1) -> FrameType | None:
    """The innermost frame of user code."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        if USER_FILES.get(code.co_filename) or id(code) in STAGED_LIBRARY_CODE or is_user_file(code.co_filename):
            return frame
        frame = frame.f_back
    return None


def here(depth: int = 2) -> Location | None:
    """The file and line of the innermost frame of user code."""
    frame = user_frame(depth)
    return located(frame.f_code.co_filename, frame.f_lineno) if frame is not None else None


@functools.lru_cache(maxsize=65536)
def located(file: str, line: int) -> Location:
    return Location(file, line)


def at(location: Location | None) -> str:
    return f"{location.file}:{location.line}: " if location else ""


def fail(message: str, location: Location | None = None) -> StagingError:
    """A StagingError that begins with the user's file and line."""
    return StagingError(at(location or here(2)) + message)
