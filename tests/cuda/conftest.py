"""Each test compiles into a cache of its own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("TILEWRIGHT_CACHE_MB", raising=False)
    monkeypatch.delenv("TILEWRIGHT_DUMP", raising=False)
    monkeypatch.delenv("TILEWRIGHT_LINEINFO", raising=False)
    return tmp_path / "cache" / "tilewright-cubins"
