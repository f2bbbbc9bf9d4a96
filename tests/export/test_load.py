"""load_module: what it takes, what it refuses, and what the functions say that it gives."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as cutlass
from tests.export.harness import COMPILER, Driver, GpuArray, needs_compiler
from tests.export.test_calls import compiled_add, copy
from tilewright import cute
from tilewright.cute.runtime import from_dlpack, load_module
from tilewright.errors import ArgumentError, MachineError
from tilewright.export import package, program, simulated


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    compiled_add().export_to_c(tmp_path, "add", gpu_arch=("sm_80", "sm_90a"))
    return tmp_path


@needs_compiler
def test_every_kind_of_file(exported: Path) -> None:
    assert COMPILER
    subprocess.run([COMPILER, "-shared", "-o", "libadd.so", "add.o", "-ldl"], cwd=exported, check=True)
    subprocess.run(["ar", "rcs", "libadd.a", "add.o"], cwd=exported, check=True)
    for name in ("add.o", "libadd.so", "libadd.a", "add.c"):
        module = load_module(str(exported / name), enable_tvm_ffi=True)
        assert repr(module.add) == "<exported function add for sm_80, sm_90a>" and "add" in dir(module)
        assert module["add"].source == compiled_add().source
        assert [p.name for p in module.add.parameters] == ["a", "b", "c", "alpha", "stream"]
    with pytest.raises(AttributeError, match=r"has no exported function 'ad'.*add"):
        _ = module.ad


@needs_compiler
def test_files_that_hold_nothing(exported: Path) -> None:
    with pytest.raises(ArgumentError, match="cannot read '.*missing.o': No such file"):
        load_module(exported / "missing.o")
    (exported / "other.o").write_bytes(b"\177ELF and nothing else")
    with pytest.raises(ArgumentError, match="holds no function that export_to_c wrote"):
        load_module(exported / "other.o")
    with pytest.raises(ArgumentError, match="holds no function that export_to_c wrote"):
        load_module(exported / "add.h")


@needs_compiler
def test_damaged_files_and_other_versions(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = (exported / "add.o").read_bytes()
    at = data.index(package.MAGIC)
    for place in (at + 100, at + 4000):
        (exported / "bad.o").write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(ArgumentError, match="is damaged: its bytes are not those"):
            load_module(exported / "bad.o")
    (exported / "bad.o").write_bytes(data[: at + 300])
    with pytest.raises(ArgumentError, match="is damaged"):
        load_module(exported / "bad.o")
    (exported / "bad.o").write_bytes(data[: at + 30])
    with pytest.raises(ArgumentError, match="ends within a package"):
        load_module(exported / "bad.o")
    (exported / "bad.o").write_bytes(data[: at + 24] + b"\x63" + data[at + 25 :])
    with pytest.raises(ArgumentError, match="another version of Tilewright .format 99; .*export it again"):
        load_module(exported / "bad.o")
    monkeypatch.setattr(cutlass, "__version__", "7.8.9")
    with pytest.raises(ArgumentError, match="exported by Tilewright 0.*, this is 7.8.9: export it again"):
        load_module(exported / "add.o")


@needs_compiler
def test_calls_are_checked_as_those_of_the_compiled_function(exported: Path, driver: Driver) -> None:
    add = load_module(exported / "add.o").add
    arrays = [GpuArray(0x1000 * i, (64,), "<f4") for i in (1, 2, 3)]
    add(*arrays, 2.0, 0)
    add(*arrays, alpha=2.0, stream=0)
    assert len(driver.calls().launches) == 2
    wrong = GpuArray(0x1000, (64,), "<f2")
    for compiled in (add, compiled_add()):
        with pytest.raises(ArgumentError, match="argument 'a': expected"):
            compiled(wrong, *arrays[1:], 2.0, 0)
        with pytest.raises(ArgumentError, match="the argument 'stream' is missing"):
            compiled(*arrays, 2.0)
        with pytest.raises(ArgumentError, match="one symbol .SymInt. for both"):
            compiled(arrays[0], GpuArray(0x2000, (63,), "<f4"), arrays[2], 2.0, 0)
        with pytest.raises(ArgumentError, match="multiple of 4 bytes"):
            compiled(GpuArray(0x1002, (64,), "<f4"), *arrays[1:], 2.0, 0)


@needs_compiler
def test_arrays_that_are_read_only(exported: Path, driver: Driver) -> None:
    add = load_module(exported / "add.o").add
    arrays = [GpuArray(0x1000 * i, (64,), "<f4") for i in (1, 2, 3)]
    arrays[2].interface["data"] = (0x3000, True)
    with pytest.raises(ArgumentError, match=r"'c': the array is read-only, and .*test_calls.py:\d+ writes to it"):
        add(*arrays, 2.0, 0)


@needs_compiler
def test_loaded_module_without_a_gpu_is_refused(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add = load_module(exported / "add.o").add
    arrays = [np.zeros(64, np.float32) for _ in range(3)]
    with monkeypatch.context() as without:
        without.setenv("TILEWRIGHT_CACHE_MB", "0")
        with pytest.raises(MachineError, match=r"machine code for GPUs .sm_80, sm_90a., and the arrays are on the CPU"):
            add(*arrays, 2.0, 0)
    from tilewright.cuda import libcuda

    monkeypatch.setenv("TILEWRIGHT_LIBCUDA", "/nowhere/libcuda.so.1")
    libcuda.library.cache_clear()
    try:
        with pytest.raises(MachineError, match="machine code for GPUs .*, and no NVIDIA driver here"):
            add(*[GpuArray(0x1000, (64,), "<f4")] * 3, 2.0, 0)
    finally:
        libcuda.library.cache_clear()


@needs_compiler
def test_the_simulator_runs_it_where_it_was_exported(exported: Path) -> None:
    """Also in another process, from each of the files; machine code of another function is not taken for it."""
    a, b, c = (np.arange(64, dtype=np.float32) * i for i in (1, 10, 0))
    load_module(exported / "add.o").add(a, b, c, 2.0, 0)
    np.testing.assert_array_equal(c, a + 2 * b)
    program = (
        "import numpy as np, sys; from tilewright.cute.runtime import load_module\n"
        "a, b, c = (np.arange(64, dtype=np.float32) * i for i in (1, 10, 0))\n"
        "load_module(sys.argv[1]).add(a, b, c, 3.0, 0)\nprint(c[:4])"
    )
    command = [sys.executable, "-c", program, str(exported / "add.c")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("[ 0. 31. 62. 93.]\n", 0), done.stderr
    ((description, codes),) = package.unpack((exported / "add.c").read_bytes(), "add.c")
    assert simulated.kept(description, codes) and simulated.kept(description, [*codes[:-1], b"other"]) is None
    assert simulated.kept({**description, "prefix": "other"}, codes) is None


@needs_compiler
def test_devices_that_it_was_not_exported_for(exported: Path, driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_CAPABILITY", "75")
    arrays = [GpuArray(0x1000, (64,), "<f4")] * 3
    with pytest.raises(MachineError, match=r"exported for sm_80, sm_90a; Imaginary GPU 0 is sm_75: export it with"):
        load_module(exported / "add.o").add(*arrays, 2.0, 0)


def test_programs_survive_the_file() -> None:
    """A host function that was written and read is the same, but for the bodies of its kernels."""
    from tests.export.test_calls import several

    executor = cute.compile(several, from_dlpack(np.zeros(100, np.float32)).mark_layout_dynamic(), 8, 1, 128)
    import json

    host, kernels = program.read(json.loads(json.dumps(program.write(executor.host, executor.kernels))))
    assert str(host) == str(executor.host)
    assert [(k.name, [str(p) for p in k.params]) for k in kernels] == [
        (k.name, [str(p) for p in k.params]) for k in executor.kernels
    ]


def test_packages_are_found_in_text_and_bytes() -> None:
    from tilewright import __version__

    codes = [b"\177ELF" + bytes(range(200)), b"x" * 7]
    data, offsets = package.pack({"tilewright": __version__, "n": 1}, codes)
    assert all(o % package.ALIGNMENT == 0 for o in offsets) and len(data) % package.ALIGNMENT == 0
    text = f"static const uint64_t tw_package[] = {{\n{package.words(data)}\n}};".encode()
    for found in (package.unpack(b"junk" + data + b"junk" + data, "f"), package.unpack(text, "f") * 2):
        assert [given for _, given in found] == [codes, codes] and found[0][0]["n"] == 1
    with pytest.raises(ArgumentError, match="is damaged"):
        package.unpack(re.sub(rb"0x[0-9a-f]+u", b"0x123456789abcdef01u", text), "f")


def test_static_values_are_checked(tmp_path: Path) -> None:
    """What calls pass though it is static: None, a tile, a text."""

    @cute.jit
    def run(a: cute.Tensor, b: cute.Tensor, tile: Any, mode: str, none: Any = None):
        copy(a, b)

    array: Any = np.zeros((4, 4), np.float32)
    layout = cute.make_layout((4, 2))
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cute.compile(run, array, array, layout, "fast").export_to_c(tmp_path, "run", gpu_arch="sm_90a")
    loaded = load_module(tmp_path / "run.c").run
    loaded(array, array, layout, "fast")
    with pytest.raises(ArgumentError, match="'mode': expected"):
        loaded(array, array, layout, "slow")
    with pytest.raises(ArgumentError, match="'tile': expected"):
        loaded(array, array, cute.make_layout((2, 4)), "fast")
