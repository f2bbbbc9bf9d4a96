"""What running the documentation's programs gave, kept in build/ for the tests and the site.

A name depends on the text that was run and on Tilewright's source, so what is kept is current.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


def kept(kind: str, path: Path) -> Path:
    """The file or folder in build/``kind`` for the results of ``path``; it need not exist yet."""
    digest = hashlib.sha256(path.read_bytes() + _source())
    folder = ROOT / "build" / kind
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{path.stem}-{digest.hexdigest()[:16]}"


@cache
def _source() -> bytes:
    digest = hashlib.sha256()
    for path in sorted((ROOT / "tilewright").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()
