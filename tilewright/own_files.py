"""Files that the library keeps for a user between runs: in folders of the user's own, which others cannot write to.

What is read may decide what code runs, so only files of the user are taken: each folder is the user's and closed to
others (mode 0700), each file a regular one of the user. Files are written under a temporary name and renamed, so that
readers and concurrent writers see whole files only. ``TILEWRIGHT_CACHE_DIR`` moves the folders (default
``$XDG_CACHE_HOME/tilewright``).
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path


def folder(name: str) -> Path:
    """The folder ``name``, which need not exist."""
    if chosen := os.environ.get("TILEWRIGHT_CACHE_DIR"):
        return Path(chosen) / name
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "tilewright" / name


def read(path: Path, touch: bool = False) -> bytes | None:
    """The bytes of a file that is the user's own in a folder that is; None where there is none. ``touch`` notes the
    time of the reading in the file."""
    # Opening a pipe must not wait for a writer, nor may a link lead to other files.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        if not is_own(os.lstat(path.parent), stat.S_ISDIR):
            return None
        with open(os.open(path, flags), "rb") as file:
            if not is_own(os.fstat(file.fileno()), stat.S_ISREG):
                return None
            data = file.read()
        if touch:
            os.utime(path)
    except OSError:
        return None
    return data


def write(path: Path, data: bytes) -> None:
    """Write a whole file, with the folders that it needs. Raises OSError where that is not possible."""
    make_own(path.parent)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.stem}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def is_own(found: os.stat_result, is_kind: Callable[[int], bool]) -> bool:
    """Whether a file is of the kind asked for, belongs to this user and can be written by no other."""
    if not is_kind(found.st_mode):
        return False
    if not hasattr(os, "geteuid"):  # Windows: the folder lies in the user's profile
        return True
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def make_own(place: Path) -> None:
    """Make the folder and those above it that are missing, all of them closed to others whatever the umask says."""
    for missing in [p for p in (*reversed(place.parents), place) if not p.exists()]:
        with contextlib.suppress(FileExistsError):  # another process was faster
            missing.mkdir(mode=0o700)
    found = os.lstat(place)
    if stat.S_ISDIR(found.st_mode) and found.st_mode & 0o077:
        os.chmod(place, 0o700)  # fails in a folder of another user
    if not is_own(os.lstat(place), stat.S_ISDIR):
        raise PermissionError(f"{place} belongs to another user")
