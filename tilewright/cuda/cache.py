"""The disk cache of compiled kernels, by content.

One file an entry, named by the digest of everything that decides the result. Files are written beside their place and
moved into it, so that readers and concurrent writers see whole entries only; an entry whose checksum does not hold is
treated as absent and written anew. ``TILEWRIGHT_CACHE_DIR`` moves the folder (default ``$XDG_CACHE_HOME/tilewright``),
``TILEWRIGHT_CACHE_MB`` bounds it (default 512; 0 turns the cache off).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path

FORMAT = b"tilewright-cubin-1\n"
DEFAULT_MB = 512


def folder() -> Path:
    """Where entries live."""
    if chosen := os.environ.get("TILEWRIGHT_CACHE_DIR"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "tilewright"


def limit() -> int:
    """The bound in bytes."""
    try:
        return int(float(os.environ.get("TILEWRIGHT_CACHE_MB", DEFAULT_MB)) * 2**20)
    except ValueError:
        return DEFAULT_MB * 2**20


def key(*parts: str | bytes) -> str:
    """The digest of some texts (kept apart from each other)."""
    digest = hashlib.sha256(FORMAT)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def read(name: str) -> dict[str, bytes] | None:
    """The named parts of an entry, or None if there is no sound one."""
    path = folder() / f"{name}.bin"
    try:
        data = path.read_bytes()
        os.utime(path)  # the oldest use is evicted first
    except OSError:
        return None
    return _unpack(data)


def write(name: str, parts: dict[str, bytes]) -> None:
    """Keep an entry; a folder that cannot be written is no error, the cache is a convenience."""
    bound = limit()
    if bound <= 0:
        return
    data = _pack(parts)
    with contextlib.suppress(OSError):
        place = folder()
        place.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=place)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(temporary, place / f"{name}.bin")
        except OSError:
            os.unlink(temporary)
            raise
        _evict(place, bound)


def _evict(place: Path, bound: int) -> None:
    """Delete the entries that were used longest ago until the rest takes no more than ``bound`` bytes."""
    entries = []
    with os.scandir(place) as found:
        for entry in found:
            with contextlib.suppress(OSError):
                if entry.name.endswith((".bin", ".tmp")):
                    stat = entry.stat()
                    entries.append((stat.st_mtime_ns, stat.st_size, entry.path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= bound:
            break
        with contextlib.suppress(OSError):
            os.unlink(path)
        total -= size


def _pack(parts: dict[str, bytes]) -> bytes:
    body = b"".join(parts.values())
    head = {"sizes": {name: len(part) for name, part in parts.items()}, "sha256": hashlib.sha256(body).hexdigest()}
    return FORMAT + json.dumps(head).encode() + b"\n" + body


def _unpack(data: bytes) -> dict[str, bytes] | None:
    if not data.startswith(FORMAT):
        return None
    try:
        line, body = data[len(FORMAT) :].split(b"\n", 1)
        head = json.loads(line)
        sizes, digest = head["sizes"], head["sha256"]
    except (ValueError, KeyError, TypeError):
        return None
    if hashlib.sha256(body).hexdigest() != digest:
        return None
    parts, start = {}, 0
    for name, size in sizes.items():
        parts[name] = body[start : start + size]
        start += size
    return parts
