"""The disk cache of compiled kernels and staged programs, by content.

One file an entry, named by the digest of everything that decides the result. Files are written under a temporary name
and renamed, so that readers and concurrent writers see whole entries only; an entry whose checksum does not hold is
treated as absent and written again.

A cached entry is code that runs with the user's rights, so only the user's own files are taken: the entries are in a
folder of the cache's own, which is the user's and closed to others (mode 0700), and each entry must be a regular file
of the user. Eviction deletes only files that the cache has written. ``TILEWRIGHT_CACHE_DIR`` moves the folder
(default: :func:`tilewright.own_files.base`), ``TILEWRIGHT_CACHE_MB`` bounds it (default 512; 0 turns the cache off).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import sys
from pathlib import Path

from tilewright import own_files
from tilewright.errors import ArgumentError

FORMAT = b"tilewright-cubin-2\n"
OWN_FOLDER = "tilewright-cubins"
WRITTEN = re.compile(r"[0-9a-f]{64}\.bin|\.[0-9a-f]{64}\.\w+\.tmp")  # the names that write() gives
DEFAULT_MB = 512


def folder() -> Path:
    """Where entries are: a folder that holds nothing else."""
    return own_files.folder(OWN_FOLDER)


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
    data = own_files.read(folder() / f"{name}.bin", touch=True)  # the oldest use is evicted first
    return None if data is None else _unpack(name, data)


def has(name: str) -> bool:
    """Whether there is an entry of this name, sound or not."""
    return limit() > 0 and os.path.exists(folder() / f"{name}.bin")  # False where a folder cannot be read


def write(name: str, parts: dict[str, bytes]) -> None:
    """Keep an entry; a folder that cannot be written is not an error, the cache is a convenience."""
    bound = limit()
    if bound <= 0:
        return
    data = _pack(name, parts)
    with contextlib.suppress(OSError):
        own_files.write(folder() / f"{name}.bin", data)
        _evict(folder(), bound)


def _evict(place: Path, bound: int) -> None:
    """Delete the entries that were used longest ago until the rest takes no more than ``bound`` bytes."""
    entries = []
    with os.scandir(place) as folder:
        for entry in folder:
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
