"""Files that the library keeps for a user between runs: in folders of the user's own, which others cannot write to.

What is read may decide what code runs, so only files of the user are taken: each folder is the user's and closed to
others (mode 0700), each file a regular one of the user. Files are written under a temporary name and renamed, so that
readers and concurrent writers see whole files only. ``TILEWRIGHT_CACHE_DIR`` moves the folders; by default they are
where the platform keeps what can be made again (:func:`base`).
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

PAUSES = (0.01, 0.05, 0.2) if os.name == "nt" else ()
"""Seconds between the tries of :func:`write` to replace a file that another process has open."""


PLACES = ("HOME", "USERPROFILE", "LOCALAPPDATA", "XDG_CACHE_HOME")
"""What a user's own folder depends on."""


def folder(name: str) -> Path:
    """The folder ``name``, which need not exist."""
    return _folder(name, *map(os.environ.get, ("TILEWRIGHT_CACHE_DIR", *PLACES)))


@functools.cache
def _folder(name: str, chosen: str | None, *places: str | None) -> Path:
    """The result of :func:`folder` in this environment."""
    return (Path(chosen) if chosen else base()) / name


def base() -> Path:
    """Where the platform keeps what can be made again: ``%LOCALAPPDATA%``, ``~/Library/Caches``, or
    ``$XDG_CACHE_HOME`` (``~/.cache``)."""
    if os.path.expanduser("~") == "~":  # no home: nothing can be kept, and nothing may go into a folder called "~"
        return Path(os.devnull, "tilewright")
    from platformdirs import user_cache_path  # here: it takes 4 ms, which programs without a cache need not spend

    return user_cache_path("tilewright", appauthor=False)


def read(path: Path, touch: bool = False) -> bytes | None:
    """The bytes of a file, if it and its folder belong to the user; else None. ``touch`` notes the
    time of the reading in the file."""
    # Opening a pipe must not wait for a writer, nor may a link lead to other files.
    flags = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_BINARY"))
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
    import tempfile  # takes 3 ms, which a process that only reads can do without

    make_own(path.parent)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.stem}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        _put_in_place(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _put_in_place(temporary: str, path: Path) -> None:
    """Rename; on Windows as soon as no other process has the file at ``path`` open, which takes a reader a moment."""
    for pause in PAUSES:
        try:
            return os.replace(temporary, path)
        except PermissionError:
            time.sleep(pause)
    os.replace(temporary, path)


def is_own(status: os.stat_result, is_kind: Callable[[int], bool]) -> bool:
    """Whether a file is of the kind asked for, belongs to this user and can be written by no other."""
    if not is_kind(status.st_mode):
        return False
    if not hasattr(os, "geteuid"):  # Windows: the folder is in the user's profile
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def make_own(place: Path) -> None:
    """Make the folder and those above it that are missing, all of them closed to others whatever the umask says."""
    for missing in [p for p in (*reversed(place.parents), place) if not p.exists()]:
        with contextlib.suppress(FileExistsError):  # another process was faster
            missing.mkdir(mode=0o700)
    status = os.lstat(place)
    if stat.S_ISDIR(status.st_mode) and status.st_mode & 0o077:
        os.chmod(place, 0o700)  # fails in a folder of another user
    if not is_own(os.lstat(place), stat.S_ISDIR):
        raise PermissionError(f"{place} belongs to another user")
