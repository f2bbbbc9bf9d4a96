"""The contents of a launcher: the description of the function, from which it is called in Python, and the
machine code of its kernels. One block of bytes, found again in an object file, an archive, a library or the C source.

``MAGIC``, format number and sizes, a SHA-256 of the rest; then a description in JSON, then the cubins.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from typing import Any

from tilewright.errors import ArgumentError

FORMAT = 1
MAGIC = b"tilewright-export".ljust(24, b"\0")[::-1]  # reversed, so that text which names it is not taken for it
_HEAD = struct.Struct("<24sIIQ32s")
"""The magic, the format, the bytes of the description, all bytes, and the digest of those after the head."""
ALIGNMENT = 64
_WORDS = re.compile(rb"tw_package\[\] = \{([^}]*)\}")


def pack(description: dict[str, Any], codes: list[bytes]) -> tuple[bytes, list[int]]:
    """The package, and where each of ``codes`` begins in it."""
    text = json.dumps({**description, "codes": [len(code) for code in codes]}).encode()
    offsets = _places(len(text), [len(code) for code in codes])
    body = bytearray(offsets.pop())
    body[_HEAD.size : _HEAD.size + len(text)] = text
    for start, code in zip(offsets, codes, strict=True):
        body[start : start + len(code)] = code
    digest = hashlib.sha256(body[_HEAD.size :]).digest()
    body[: _HEAD.size] = _HEAD.pack(MAGIC, FORMAT, len(text), len(body), digest)
    return bytes(body), offsets


def _places(text: int, sizes: list[int]) -> list[int]:
    """Where each piece of code begins behind a description of ``text`` bytes, and where the package ends."""
    places, end = [], _HEAD.size + text
    for size in (*sizes, 0):
        places.append(-(-end // ALIGNMENT) * ALIGNMENT)
        end = places[-1] + size
    return places


def words(package: bytes) -> str:
    """The package as the initialiser of an array of ``uint64_t``: eight times as quick to compile as bytes."""
    numbers = struct.unpack(f"<{len(package) // 8}Q", package)
    rows = (numbers[i : i + 6] for i in range(0, len(numbers), 6))
    return "\n".join("  " + ", ".join(f"{n:#x}u" for n in row) + "," for row in rows)


def unpack(data: bytes, where: str) -> list[tuple[dict[str, Any], list[bytes]]]:
    """Description and machine code of every exported function in the bytes of a file.

    Raises ArgumentError for a missing or damaged one, and for one of another version.
    """
    if match := _WORDS.search(data):  # the C source itself
        try:
            numbers = [int(n.rstrip(b"u"), 16) for n in re.findall(rb"0x[0-9a-f]+u", match[1])]
            data = struct.pack(f"<{len(numbers)}Q", *numbers)
        except (ValueError, struct.error):
            raise ArgumentError(f"load_module: {where} is damaged: its package cannot be read") from None
    packages = []
    at = data.find(MAGIC)
    while at >= 0:
        packages.append(_one(data[at:], where))
        at = data.find(MAGIC, at + 1)
    if not packages:
        raise ArgumentError(
            f"load_module: {where} holds no function that export_to_c wrote: the object file, an archive or a library "
            "that it was linked into, or the .c file next to it is needed"
        )
    return packages


def _one(data: bytes, where: str) -> tuple[dict[str, Any], list[bytes]]:
    from tilewright import __version__

    if len(data) < _HEAD.size:
        raise ArgumentError(f"load_module: {where} is damaged: it ends within a package")
    _, version, described, size, digest = _HEAD.unpack_from(data)
    if version != FORMAT:
        raise ArgumentError(
            f"load_module: {where} was exported by another version of Tilewright (format {version}; this is "
            f"{__version__}, format {FORMAT}): export it again"
        )
    body = data[_HEAD.size : size]
    if len(data) < size or hashlib.sha256(body).digest() != digest:
        raise ArgumentError(f"load_module: {where} is damaged: its bytes are not those that export_to_c wrote")
    description = json.loads(body[:described])
    if description["tilewright"] != __version__:
        raise ArgumentError(
            f"load_module: {where} was exported by Tilewright {description['tilewright']}, this is {__version__}: "
            "export it again"
        )
    sizes = description["codes"]
    return description, [data[start : start + n] for start, n in zip(_places(described, sizes), sizes, strict=False)]
