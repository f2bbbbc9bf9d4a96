"""What is asked of the driver and of the compiler's library, against stand-ins for both."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilewright.cuda import arrays, nvrtc, nvrtc_library, toolchain
from tilewright.cuda.modules import _parameter
from tilewright.errors import ArgumentError, MachineError
from tilewright.ir.types import I32


@pytest.mark.parametrize("fails", ["", "cuStreamCreate", "cuMemsetD8Async", "cuStreamSynchronize"])
def test_zeros_are_there_when_it_returns(fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails is said; the stream is given back in any case."""
    asked: list[str] = []

    class Driver:
        def __getattr__(self, name: str) -> Any:
            return lambda *_: asked.append(name) or int(name == fails)

    def check(code: int, what: str) -> None:
        if code:
            raise MachineError(what)

    monkeypatch.setattr(arrays, "DeviceAllocation", lambda number, size: SimpleNamespace(address=4096, size=size))
    fake = SimpleNamespace(
        library=Driver, current=lambda _: contextlib.nullcontext(), relaxed=contextlib.nullcontext, check=check
    )
    monkeypatch.setattr(arrays, "libcuda", fake)
    steps = ["cuStreamCreate", "cuMemsetD8Async", "cuStreamSynchronize"]
    if fails:
        with pytest.raises(MachineError, match="making a stream" if fails == steps[0] else "setting 20 bytes to zero"):
            arrays.zeros(5, np.float32)
        expected = steps[: steps.index(fails) + 1]
    else:
        made = arrays.zeros(5, np.float32)
        assert (made.address, made.shape, made.strides, made.dtype) == (4096, (5,), (4,), np.float32)
        expected = steps
    assert asked == expected + ["cuStreamDestroy_v2"] * (fails != steps[0])


@pytest.mark.parametrize("static", [False, True])
def test_only_numbers_that_are_known_have_bytes(static: bool) -> None:
    class Number:
        ir_type, value, is_static = I32, 7, static

    if static:
        assert _parameter(Number(), 0) == np.int32(7).tobytes()
    else:
        with pytest.raises(ArgumentError, match="argument 3 is .*Number.*, whose bytes are not known"):
            _parameter(Number(), 3)


@pytest.mark.parametrize("windows", [False, True])
@pytest.mark.parametrize("absolute", [False, True])
def test_library_folder_is_added_on_windows_only(
    windows: bool, absolute: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows alone has folders of libraries, and they are named by whole paths."""
    added: list[str] = []
    if windows:
        monkeypatch.setattr(os, "add_dll_directory", added.append, raising=False)
    path = str(tmp_path / "libnvrtc-none.so") if absolute else "libnvrtc-none.so"
    with pytest.raises(MachineError, match=r"cannot be loaded \(libnvrtc-none|cannot be loaded \(/.*libnvrtc-none"):
        nvrtc_library.library.__wrapped__(path)
    assert added == ([str(tmp_path)] if windows and absolute else [])


@pytest.mark.parametrize("platform", ["win32", "linux"])
def test_the_folders_of_toolkits(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(toolchain, "sys", SimpleNamespace(platform=platform))
    usual = [] if platform == "win32" else [Path("/usr/local/cuda")]
    assert toolchain.toolkits() == usual
    monkeypatch.setenv("CUDA_PATH", "/a")
    monkeypatch.setenv("CUDA_HOME", "")
    assert toolchain.toolkits() == [Path("/a"), *usual]


def test_an_error_in_another_file_shows_the_compilers_words() -> None:
    """Lines of the device's headers are not lines of the kernel."""
    from tilewright.cuda.source import Source

    source = Source("k", "a;\nb;\n", (None, None))
    for file, line, shown in (("k.cu", 2, "b;"), ("k.cu", 9, ""), ("numbers.cuh", 2, "")):
        log = f"{file}({line}): error: expected a ;"
        text = nvrtc._explain(source, "sm_90a", (), "", log)
        assert text.startswith("k does not compile for sm_90a: expected a ;") and log in text
        assert ("b;" in text) == bool(shown)
