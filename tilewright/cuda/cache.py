"""The disk cache of compiled kernels, by content.

One file an entry, named by the digest of everything that decides the result. Files are written under a temporary name
and renamed, so that readers and concurrent writers see whole entries only; an entry whose checksum does not hold is
treated as absent and written anew.

A cached cubin is code that runs with the user's rights, so only the user's own files are taken: the entries live in a
folder of the cache's own, which is the user's and closed to others (mode 0700), and each entry must be a regular file
of the user. Eviction deletes nothing but files that the cache has written. ``TILEWRIGHT_CACHE_DIR`` moves the folder
(default ``$XDG_CACHE_HOME/tilewright``), ``TILEWRIGHT_CACHE_MB`` bounds it (default 512; 0 turns the cache off).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tilewright.errors import ArgumentError

FORMAT = b"tilewright-cubin-2\n"
OWN_FOLDER = "tilewright-cubins"
WRITTEN = re.compile(r"[0-9a-f]{64}\.bin|\.[0-9a-f]{64}\.\w+\.tmp")  # the names that write() gives
DEFAULT_MB = 512


def folder() -> Path:
    """Where entries live: a folder that holds nothing else."""
    if chosen := os.environ.get("TILEWRIGHT_CACHE_DIR"):
        return Path(chosen) / OWN_FOLDER
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "tilewright" / OWN_FOLDER


def limit() -> int:
    """The bound in bytes; ``inf`` means none."""
    text = os.environ.get("TILEWRIGHT_CACHE_MB") or str(DEFAULT_MB)
    try:
        megabytes = float(text)
    except ValueError:
        megabytes = math.nan
    if not megabytes >= 0:
        raise ArgumentError(f"TILEWRIGHT_CACHE_MB={text!r} is not a number of megabytes (0: no cache, inf: no bound)")
    return int(min(megabytes * 2**20, sys.maxsize))


def key(*parts: str | bytes) -> str:
    """The digest of some texts (kept apart from each other)."""
    digest = hashlib.sha256(FORMAT)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def read(name: str) -> dict[str, bytes] | None:
    """The named parts of an entry (``name`` is a :func:`key`), or None if there is no sound one."""
    if limit() <= 0:
        return None
    place = folder()
    # Opening a pipe must not wait for a writer, nor may a link lead to other files.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        if not _is_own(os.lstat(place), stat.S_ISDIR):
            return None
        path = place / f"{name}.bin"
        with open(os.open(path, flags), "rb") as file:
            if not _is_own(os.fstat(file.fileno()), stat.S_ISREG):
                return None
            data = file.read()
        os.utime(path)  # the oldest use is evicted first
    except OSError:
        return None
    return _unpack(name, data)


def write(name: str, parts: dict[str, bytes]) -> None:
    """Keep an entry; a folder that cannot be written is no error, the cache is a convenience."""
    bound = limit()
    if bound <= 0:
        return
    data = _pack(name, parts)
    with contextlib.suppress(OSError):
        place = folder()
        _make_own(place)
        handle, temporary = tempfile.mkstemp(prefix=f".{name}.", suffix=".tmp", dir=place)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(temporary, place / f"{name}.bin")
        except OSError:
            os.unlink(temporary)
            raise
        _evict(place, bound)


def _is_own(found: os.stat_result, is_kind: Callable[[int], bool]) -> bool:
    """Whether a file is of the kind asked for, belongs to this user and can be written by no other."""
    if not is_kind(found.st_mode):
        return False
    if not hasattr(os, "geteuid"):  # Windows: the folder lies in the user's profile
        return True
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _make_own(place: Path) -> None:
    """Make the folder and those above it that are missing, all of them closed to others whatever the umask says."""
    for missing in [p for p in (*reversed(place.parents), place) if not p.exists()]:
        with contextlib.suppress(FileExistsError):  # another process was faster
            missing.mkdir(mode=0o700)
    found = os.lstat(place)
    if stat.S_ISDIR(found.st_mode) and found.st_mode & 0o077:
        os.chmod(place, 0o700)  # fails in a folder of another user
    if not _is_own(os.lstat(place), stat.S_ISDIR):
        raise PermissionError(f"{place} belongs to another user")


def _evict(place: Path, bound: int) -> None:
    """Delete the entries that were used longest ago until the rest takes no more than ``bound`` bytes."""
    entries = []
    with os.scandir(place) as found:
        for entry in found:
            with contextlib.suppress(OSError):
                if WRITTEN.fullmatch(entry.name):
                    status = entry.stat(follow_symlinks=False)
                    entries.append((status.st_mtime_ns, status.st_size, entry.path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= bound:
            break
        with contextlib.suppress(OSError):
            os.unlink(path)
        total -= size


def _pack(name: str, parts: dict[str, bytes]) -> bytes:
    sizes = json.dumps({part: len(data) for part, data in parts.items()})
    content = sizes.encode() + b"\n" + b"".join(parts.values())
    return FORMAT + _checksum(name, content) + b"\n" + content


def _checksum(name: str, content: bytes) -> bytes:
    """Over everything, the entry's own name included: an entry that was renamed is not taken for another."""
    return hashlib.sha256(name.encode() + b"\n" + content).hexdigest().encode()


def _unpack(name: str, data: bytes) -> dict[str, bytes] | None:
    if not data.startswith(FORMAT):
        return None
    checksum, _, content = data[len(FORMAT) :].partition(b"\n")
    if checksum != _checksum(name, content):
        return None
    line, _, body = content.partition(b"\n")
    sizes = json.loads(line)
    if not isinstance(sizes, dict) or sum(sizes.values()) != len(body):
        return None
    parts, start = {}, 0
    for part, size in sizes.items():
        parts[part] = body[start : start + size]
        start += size
    return parts
