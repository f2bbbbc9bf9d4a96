"""The driver that writes down its calls, for C programs and for this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.export.harness import COMPILER, Driver, build_driver
from tilewright.cuda import libcuda, limits
from tilewright.cuda import machine as gpu

CACHED = (libcuda.library, libcuda.primary_context, limits.limits)


@pytest.fixture(scope="session")
def driver_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if COMPILER is None:
        pytest.skip("no C compiler here")
    return build_driver(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def driver(driver_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    made = Driver(driver_library.parent, tmp_path / "calls.log")
    monkeypatch.setenv("TILEWRIGHT_LIBCUDA", str(driver_library))
    monkeypatch.setenv("FAKE_LOG", str(made.log))
    monkeypatch.setattr(gpu, "_current_stream", lambda device: 0)
    monkeypatch.setattr(gpu, "_raw_stream", None)
    for function in CACHED:
        function.cache_clear()
    yield made
    for function in CACHED:
        function.cache_clear()
